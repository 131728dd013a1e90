"""Observations outlive the files and the program: a real workspace, watched, left, and watched again."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path

import pytest

from agentwatch.composition import desk_of, monitor_of
from agentwatch.config import Settings
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.unit.history.recorded import META, meta, packet

CODER = "specs/7_api/coder"
Step = tuple[Callable[[], object], Callable[[Monitor], object]]
"""A deed, and what tells that it was seen."""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def live_through(workspace: Path, *steps: Step) -> Monitor:
    """Run a monitor through these steps, and end it as a user would."""
    monitor = Monitor(workspace, Settings(), FilesSource(workspace), time.time, inspects=False, remembers=True)

    async def run():
        async with aclosing(monitor.updates()) as updates:
            async for _ in updates:
                pass

    running = asyncio.create_task(run())
    try:
        async with asyncio.timeout(15):
            for act, is_seen in ((lambda: None, lambda it: it.health.mode == "live"), *steps):
                # A file that is written again within a tick of the clock looks as it did before.
                await asyncio.sleep(0.05)
                act()
                while not is_seen(monitor):  # noqa: ASYNC110  a monitor has no such event
                    await asyncio.sleep(0.01)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return monitor


def attempts(monitor: Monitor, task_id: str) -> list[tuple[int, str]]:
    task = monitor.tree.tasks.get(task_id)
    return [(one.number, str(one.state)) for one in task.attempts] if task else []


async def test_every_attempt_is_there_after_all_files_are_deleted(workspace):
    file = workspace / META
    file.parent.mkdir(parents=True)
    ends = {"sess_1": "partial", "sess_2": "partial", "sess_3": "implemented"}
    texts = [meta(status, session) for session, end in ends.items() for status in ("in_progress", end)]

    def write(text: str):
        file.with_name("next.tmp").write_text(text)
        file.with_name("next.tmp").rename(file)

    def returned(monitor: Monitor) -> list[str | None]:
        task = monitor.tree.tasks.get(CODER)
        return [monitor.content(one.returned) for one in task.attempts if one.returned] if task else []

    writing: list[Step] = [
        (lambda text=text: write(text), lambda it, text=text: text in returned(it)) for text in texts
    ]
    monitor = await live_through(workspace, *writing)
    lived = attempts(monitor, CODER)
    assert [one.session_id for one in monitor.tree.tasks[CODER].attempts] == [*ends]
    shutil.rmtree(workspace / "specs")
    for _ in range(2):
        again = await live_through(workspace, (lambda: None, lambda it: it.tree.tasks[CODER].deleted))
        assert attempts(again, CODER) == lived
        assert returned(again) == texts[1::2]


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("while_watching", [False, True])
async def test_a_second_failure_in_the_same_words_asks_again(workspace, *, deletes, while_watching):
    handed, failed, words = workspace / "b.handoff.json", workspace / "b.return.md", "## Status\nstate: ERROR\n"
    (workspace / "a.handoff.json").write_text(packet("a"))
    (workspace / "a.return.md").write_text(words)
    handed.write_text(packet("b"))
    once, twice = [(1, "invalid")], [(1, "invalid"), (2, "invalid")]
    fail: Step = lambda: failed.write_text(words), lambda it: attempts(it, "b") == twice
    await live_through(
        workspace,
        (fail[0], lambda it: attempts(it, "b") == once),
        (lambda: failed.unlink() if deletes else None, lambda it: attempts(it, "b") == once),
        (lambda: handed.write_text(packet("b", attempt=2)), lambda it: attempts(it, "b")[1:] == [(2, "submitted")]),
        *([fail] if while_watching else []),
    )
    if not while_watching:
        await asyncio.sleep(0.05)
        fail[0]()
    for _ in range(2):
        again = await live_through(workspace, (lambda: None, fail[1]))
        assert again.tree.tasks["b"].needs_operator


async def test_what_is_decided_asks_for_no_moment_at_a_start(workspace, monkeypatch):
    monkeypatch.setenv("HOME", str(workspace.parent))
    (workspace / "a.handoff.json").write_text(packet("a"))
    (workspace / "a.return.md").write_text("## Status\nstate: ERROR\n")
    await live_through(workspace, (lambda: None, lambda it: attempts(it, "a") == [(1, "invalid")]))
    words = (sys.executable, "-m", "agentwatch", "decide", "a", workspace, "--abort", "--yes")
    await asyncio.to_thread(subprocess.run, words, check=True, capture_output=True)
    monitor = monitor_of(workspace, Settings(), open_desk=partial(desk_of, workspace, Settings()))
    seen = set[str]()
    async with asyncio.timeout(15), aclosing(monitor.updates()) as updates:
        async for _ in updates:
            seen |= {task.state for task in monitor.tree.tasks.values()}
            if monitor.health.mode == "live" and monitor.clerk is not None and "canceled" in seen:
                break
    assert seen == {"canceled"}
