"""Who waits for something in a directory is rung for, and nobody else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentwatch.sources.files import bell as bell_module
from agentwatch.sources.files.bell import Bell
from agentwatch.sources.files.inotify_backend import InotifyBackend
from agentwatch.sources.files.watch import Changes, WatchError
from tests.unit.files.watching import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


class Ear:
    """Counts the rings."""

    def __init__(self) -> None:
        self._rung = threading.Semaphore(0)

    def ring(self) -> None:
        self._rung.release()

    def hears(self) -> bool:
        return self._rung.acquire(timeout=PATIENCE)

    @property
    def has_heard(self) -> bool:
        return self._rung.acquire(blocking=False)


@pytest.fixture
def bell() -> Iterator[Bell]:
    bell = Bell()
    yield bell
    if bell._thread is not None:
        bell._thread.join(PATIENCE)
        assert bell._thread is None


def test_it_rings_for_what_happens_in_a_directory_also_one_that_is_not_there_yet(bell: Bell, tmp_path: Path) -> None:
    there, later = Ear(), Ear()
    (tmp_path / "there").mkdir()
    with bell.heard([tmp_path / "there"], there.ring), bell.heard([tmp_path / "a" / "b"], later.ring):
        assert there.hears()
        assert later.hears()
        while later.has_heard:
            pass
        (tmp_path / "a" / "b").mkdir(parents=True)
        assert later.hears()
        while later.has_heard:
            pass
        (tmp_path / "a" / "b" / "x.json").write_text("{}")
        assert later.hears()


def test_locks_the_history_and_other_directories_ring_for_nobody(bell: Bell, tmp_path: Path) -> None:
    ear, other = Ear(), Ear()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with bell.heard([tmp_path / "one"], ear.ring), bell.heard([tmp_path / "two"], other.ring):
        # Once when each begins to be heard; the second begins anew for both.
        assert other.hears()
        while ear.has_heard:
            pass
        for name in ("history.db-wal", "watched.lock", ".writing-x"):
            (tmp_path / "one" / name).write_text("x")
        (tmp_path / "two" / "x.json").write_text("x")
        assert other.hears()
        assert not ear.has_heard


def test_it_rests_when_nobody_listens_and_rings_again_for_the_next(bell: Bell, tmp_path: Path) -> None:
    for _ in range(2):
        ear = Ear()
        with bell.heard([tmp_path], ear.ring):
            assert ear.hears()
            thread = bell._thread
        assert thread is not None
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_it_rings_for_everybody_when_something_was_lost(
    bell: Bell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflows = threading.Event()

    class Overflowing(InotifyBackend):
        def wait(self, timeout: float) -> Changes:
            changes = super().wait(min(timeout, 0.01))
            return changes._replace(lost=True) if overflows.is_set() else changes

    monkeypatch.setattr(bell_module, "_open", lambda: Overflowing("/"))
    ear = Ear()
    with bell.heard([tmp_path / "later"], ear.ring):
        assert ear.hears()
        while ear.has_heard:
            pass
        overflows.set()
        assert ear.hears()


def test_where_the_system_tells_nothing_everybody_is_told_to_look(
    bell: Bell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(InotifyBackend):
        def wait(self, timeout: float) -> Changes:
            raise WatchError("no more")

    monkeypatch.setattr(bell_module, "_open", lambda: Failing("/"))
    ear = Ear()
    with bell.heard([tmp_path], ear.ring):
        assert ear.hears()
        assert not bell.works
    with bell.heard([tmp_path], ear.ring):
        assert bell._thread is None
