"""Acknowledge, snooze, undo and what is new, by keys in two terminals of one operator, and from a shell."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import FAILED

DAY = 86_400


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace in which four tasks failed three weeks ago."""
    place = tmp_path / "shop"
    place.mkdir()
    for number in range(4):
        file = place / f"old{number}.return.md"
        file.write_text(FAILED.replace("shop.api", f"old{number}"), "utf-8")
        os.utime(file, (time.time() - 21 * DAY,) * 2)
    return place


def environment(workspace: Path) -> dict[str, str]:
    return {"HOME": str(workspace.parent), "XDG_STATE_HOME": str(workspace.parent / "state")}


@contextmanager
def screen(workspace: Path, *words: str) -> Iterator[Terminal]:
    with Terminal(agentwatch(workspace, *words), environment=environment(workspace)) as terminal:
        terminal.wait_for("● live")
        terminal.wait_for(r"\? keys")
        yield terminal
        terminal.press("\x1b\x1bq")


def fail(workspace: Path, name: str) -> None:
    (workspace / f"{name}.return.md").write_text(FAILED.replace("shop.api", name), "utf-8")


@pytest.mark.slow
def test_what_is_put_aside_in_one_terminal_is_put_aside_in_the_other(workspace: Path) -> None:
    with screen(workspace) as one, screen(workspace) as other:
        # Else the cursor stays on the first task of all, and looks at it.
        for terminal in (one, other):
            terminal.press("G")
            terminal.wait_for("✗ old0")
        fail(workspace, "form")
        for terminal in (one, other):
            terminal.wait_for("1 new +1 needs you")
        one.press("u")
        # Its row was selected for a second, in one of them.
        for terminal in (one, other):
            terminal.wait_until(lambda: "new" not in terminal.text().splitlines()[0])  # noqa: B023
        one.wait_for("▌ +✗ form .*NEEDS YOU")
        one.press("A")
        one.wait_for("“form”: 1 task stops asking")
        one.wait_for("enter acknowledge")
        one.press("\r")
        for terminal in (one, other):
            terminal.wait_until(lambda: "need" not in terminal.text().splitlines()[0])  # noqa: B023
        other.press("Z")
        other.wait_for(r"Undone: 1 task acknowledged")
        for terminal in (one, other):
            terminal.wait_for("1 needs you")
        one.press("n")
        one.wait_for("▌ +✗ form .*NEEDS YOU")
        one.press("w")
        one.wait_for("enter snooze")
        one.press("4")
        for terminal in (one, other):
            terminal.wait_until(lambda: "need" not in terminal.text().splitlines()[0])  # noqa: B023
        ran = subprocess.run(
            agentwatch("ack", "--undo", workspace),
            env={**os.environ, **environment(workspace)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, "undone: 1 task snoozed" in ran.stdout) == (0, True)
        for terminal in (one, other):
            terminal.wait_for("1 needs you")


@pytest.mark.slow
def test_the_history_is_reviewed_with_three_keys_and_with_a_filter(workspace: Path) -> None:
    with screen(workspace) as terminal:
        fail(workspace, "form")
        terminal.wait_for("4 never reviewed")
        terminal.press("HA")
        terminal.wait_for("all of history: 4 past questions are reviewed")
        terminal.wait_for("enter acknowledge")
        terminal.press("\r")
        terminal.wait_until(lambda: "never reviewed" not in terminal.text())
        terminal.press("Z")
        terminal.wait_for("4 never reviewed")
        terminal.wait_for("1 needs you")
        terminal.press("/is:history\r")
        terminal.wait_for("4 found")
        terminal.press("A")
        terminal.wait_for("4 past questions are reviewed")
        terminal.wait_for("enter acknowledge")
        terminal.press("\r")
        terminal.wait_for("Acknowledged: 4 past questions")
        terminal.wait_for("1 needs you")


@pytest.mark.slow
def test_a_read_only_screen_says_that_it_keeps_it_to_itself(workspace: Path) -> None:
    fail(workspace, "form")
    with screen(workspace, "--read-only") as terminal:
        terminal.wait_for("✗ form .*NEEDS YOU")
        terminal.press("n")
        terminal.wait_for("▌ +✗ form")
        terminal.press("A")
        terminal.wait_for("enter acknowledge")
        terminal.press("\r")
        terminal.wait_for("nothing is written")
        terminal.wait_until(lambda: "need" not in terminal.text().splitlines()[0])
    with screen(workspace) as terminal:
        terminal.wait_for("1 needs you")
