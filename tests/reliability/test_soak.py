"""A long watch: forty changes a second, while memory, files and threads do not pile up. Twelve seconds of it, with
twice as many changes, always run; `AGENTWATCH_SOAK=7200` takes two hours, in which a megabyte an hour may be added."""

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.journeys.made import FAILURE, handoff, returned
from tests.terminal.emulator import Terminal, agentwatch

SECONDS = float(os.environ.get("AGENTWATCH_SOAK", "12"))
WARM_UP = min(SECONDS / 3, 1800)
"""Seconds after which all bounded data has grown to its bound: texts, and the versions of a file."""
LOOKS = 40
"""How often the test looks, after the warm-up, at the resources of the process, once before each change."""
A_SECOND = 80 if SECONDS < 3600 else 40
TASKS = 8
ALLOWED = 5.0 if SECONDS < 3600 else (SECONDS - WARM_UP) / 3600
"""Megabytes that may be added after the warm-up."""


class Use(NamedTuple):
    """The resources of a process: resident megabytes, open files, threads."""

    megabytes: float
    files: int
    threads: int


def use_of(pid: int) -> Use:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return Use(int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"]))


def change(workspace: Path, number: int):
    """Make one of the changes of a session: tick a box, or write a return that is partial or has failed."""
    task, turn = number % TASKS, number // TASKS
    stem = workspace / f"part-{task}"
    if turn % 4 != 3:
        boxes = "".join(f"[{'x' if box < turn % 4 * 2 else ' '}] Step {box}\n" for box in range(6))
        stem.with_suffix(".todos.md").write_text(boxes, "utf-8")
        return
    state, more = ("ERROR", FAILURE) if turn % 8 == 3 else ("PARTIAL", "retry_recommended: no\n")
    text = returned(state, f"shop.part-{task}", f"Change {number} of it.", more)
    stem.with_suffix(".return.md").write_text(text, "utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_nothing_piles_up_in_a_long_watch(tmp_path):
    workspace = tmp_path / "shop"
    workspace.mkdir()
    for task in range(TASKS):
        (workspace / f"part-{task}.handoff.json").write_text(handoff(f"shop.part-{task}"), "utf-8")
    with Terminal(agentwatch(workspace), columns=100) as terminal:
        terminal.wait_for(rf"{TASKS} tasks")
        begin, looks, number = time.monotonic(), list[Use](), 0
        while (now := time.monotonic()) < begin + SECONDS:
            if now > begin + WARM_UP and len(looks) < LOOKS:
                looks.append(use_of(terminal.pid))
            change(workspace, number)
            number += 1
            due = begin + number / A_SECOND
            terminal.wait_until(lambda due=due: time.monotonic() >= due)
            terminal.written.clear()
        (workspace / "last.return.md").write_text(returned("SUCCESS", "shop.last", more=""))
        terminal.wait_for(rf"{TASKS + 1} tasks")
        # A file is open while it is read or written, so the most files and threads of several looks are the limit.
        warm = Use(looks[0].megabytes, max(one.files for one in looks), max(one.threads for one in looks))

        def is_no_more() -> bool:
            now = use_of(terminal.pid)
            return now.files <= warm.files and now.threads <= warm.threads

        terminal.wait_until(is_no_more, f"it holds more than {warm}")
        end = use_of(terminal.pid)
        print(f"\n{number:,} changes: {warm} after the warm-up, {end} at the end")
        assert end.megabytes - warm.megabytes < ALLOWED
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
