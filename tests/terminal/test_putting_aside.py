"""Acknowledge, snooze, undo and what is new, by keys in two terminals of one operator, and from a shell."""

from __future__ import annotations

import os
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
