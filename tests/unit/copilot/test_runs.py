"""What the events of Copilot CLI come to: who asked whom, how each one stands, and who waits for a human."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentwatch.sources.copilot import copilot_reader as locks
from agentwatch.sources.sessions import processes
from tests.unit.copilot.building import SESSION, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


# The program


def gone(store: Store) -> bool | None:
    """Whether the program is, where what it has written was written long ago."""
    store.save()
    os.utime(store.home / "session-state" / SESSION / "events.jsonl", (1.0, 1.0))
    return store.runs()[SESSION].process_gone


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes began as long ago as the locks."""
    monkeypatch.setattr(locks, "_began", lambda _: 2.0)


@pytest.mark.usefixtures("began")
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


@pytest.mark.skipif(sys.platform != "linux", reason="start times are read from /proc")
def test_another_process_under_the_number_of_a_lock_does_not_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session()
    store.lock(os.getpid())
    monkeypatch.setattr(processes, "sees_all", lambda: True)
    assert gone(store) is True
    began = locks._began(os.getpid())
    assert began is not None
    assert 0 <= time.time() - began < 86_400


def test_what_was_written_before_the_program_began_was_left_behind_by_another(store: Store) -> None:
    store.session()
    lock = store.lock(os.getpid())
    os.utime(lock, (4_000_000_000.0,) * 2)
    assert gone(store) is True
