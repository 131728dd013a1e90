"""What is put aside in a real workspace, from the shell and on a screen, for all commands alike."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli import run
from agentwatch.composition import monitor_of
from agentwatch.config import Settings
from agentwatch.state import HISTORY, record_first_watch, state_directory
from tests.homes import DAY, live_in, write_aged
from tests.unit.sessions.store import report

NO_PROGRAMS = Settings(sessions=False)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A watched workspace of a user who has no programs. Two tasks failed in it, on Friday and just now."""
    live_in(tmp_path, monkeypatch)
    place = tmp_path / "shop"
    place.mkdir()
    write_aged(place / "friday.return.md", report("ERROR"), days=3.5)
    write_aged(place / "new.return.md", report("ERROR", "It failed again."), days=0)
    record_first_watch(state_directory(place), time.time() - 30 * DAY)
    monkeypatch.chdir(place)
    return place


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(words)
    told = capsys.readouterr()
    return code, told.out, told.err


def pending(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(asked(capsys, "pending", "--json", *words, str(workspace))[1])
    return told


def asking(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> set[str]:
    return {task["task_id"] for task in pending(capsys, workspace, *words)["tasks"]}


def test_a_damaged_file_is_told_and_kept(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(capsys, "ack", "friday", str(workspace))
    path = state_directory(workspace) / HISTORY
    path.write_bytes(b"oops" * 1_000)
    code, _, err = asked(capsys, "pending", str(workspace))
    assert code == 1
    assert f"what you have put aside cannot be read: the history cannot be read: {path}" in err
    assert path.read_bytes() == b"oops" * 1_000
    asked(capsys, "ack", "new", str(workspace))
    assert asking(capsys, workspace) == {"friday"}
    (aside,) = path.parent.glob("history.corrupt-*.db")
    assert aside.read_bytes() == b"oops" * 1_000


# Screens


async def test_a_running_screen_takes_in_what_a_command_puts_aside_and_never_asks_for_it_at_the_next_start(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor = monitor_of(workspace, NO_PROGRAMS, remembers=True, inspects=False)
    async with asyncio.timeout(20), aclosing(monitor.updates()) as updates:
        async for _ in updates:
            if {"friday", "new"} <= monitor.tree.tasks.keys() and monitor.health.mode == "live":
                break
        assert await asyncio.to_thread(run, ["ack", "friday", str(workspace)]) == 0
        began = time.monotonic()
        async for _ in updates:
            if monitor.tree.tasks["friday"].acknowledged:
                break
        assert time.monotonic() - began < 5.0
    again = monitor_of(workspace, NO_PROGRAMS, remembers=True, inspects=False)
    async with asyncio.timeout(20), aclosing(again.updates()) as updates:
        async for _ in updates:
            assert "friday" not in again.tree.queue
            if {"friday", "new"} <= again.tree.tasks.keys() and again.health.mode == "live":
                break
