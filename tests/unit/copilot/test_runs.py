"""What the events of Copilot CLI come to: who asked whom, how each one stands, and who waits for a human."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.sources.sessions import processes
from tests.unit.copilot.building import SESSION, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def gone(store: Store) -> bool | None:
    """Whether the program is, where what it has written was written long ago."""
    store.save()
    os.utime(store.home / "session-state" / SESSION / "events.jsonl", (1.0, 1.0))
    return store.runs()[SESSION].process_gone


def test_a_program_that_left_its_lock_behind_is_gone_and_nobody_can_answer_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session().asks_leave("r1", "ls")
    lock = store.lock(os.getpid())
    assert gone(store) is False
    assert store.runs()[SESSION].waiting == "a permission: shell ls"
    lock.unlink()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    store.lock(process.pid)
    monkeypatch.setattr(processes, "sees_all", lambda: True)
    assert gone(store) is True
    assert store.runs()[SESSION].waiting == ""
    # It may run in another container.
    monkeypatch.setattr(processes, "sees_all", lambda: False)
    assert gone(store) is None


def test_what_was_written_before_the_program_began_was_left_behind_by_another(store: Store) -> None:
    store.session()
    lock = store.lock(os.getpid())
    os.utime(lock, (4_000_000_000.0,) * 2)
    assert gone(store) is True
