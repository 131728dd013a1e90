"""The source of the session stores: what its readers find becomes observations, whatever one of them does."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from unittest.mock import patch

import pytest

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources import Batch, CombinedSource
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.sessions.reader import Broken, Change, Found, Progress
from agentwatch.sources.sessions.source import SessionsSource
from tests.unit.history.recorded import packet

NOW = 1_000.0


def run(session: str, updated_at: float = 100.0) -> Run:
    return Run(
        source="scripted",
        session_id=session,
        parent_session=None,
        state=RunState.WORKING,
        place="/store",
        started_at=50.0,
        updated_at=updated_at,
    )


class Scripted:
    """A reader that gives what the test tells it to."""

    def __init__(self, name: str, *rounds: Sequence[Change] | Exception) -> None:
        self.name = name
        self.rounds = list(rounds)
        self.trouble: str | None = None
        self.closed = False

    @property
    def progress(self) -> Progress:
        return Progress(0, len(self.rounds))

    def read(self, seconds: float) -> Sequence[Change]:
        given = self.rounds.pop(0) if self.rounds else ()
        if isinstance(given, Exception):
            raise given
        return given

    def places(self) -> Sequence[Path]:
        return ()

    def text(self, digest: str) -> str | None:
        return f"{self.name} has it" if digest == self.name else None

    def found(self) -> Sequence[Found]:
        return [Found(self.name, "/store", 1)]

    def close(self) -> None:
        self.closed = True


def source_of(*readers: Scripted) -> SessionsSource:
    def open_readers(known: Collection[str], broken: Broken) -> list[Scripted]:
        return [reader for reader in readers if reader.name not in known]

    return SessionsSource(open_readers, clock=lambda: NOW)


def told(batch: Batch) -> list[tuple[str, bool]]:
    return [(one.path, one.run is not None) for one in batch.events if isinstance(one, Ran)]


def test_everything_that_the_readers_hold_is_told_in_one_scan() -> None:
    one = Scripted("one", [Change("a", run("a"))], [Change("b", run("b"))])
    other = Scripted("other", [Change("a", run("a")), Change("gone", None)])
    source = source_of(one, other)
    assert told(source.scan()) == [("one:a", True), ("one:b", True), ("other:a", True), ("other:gone", False)]
    assert [source.content("other"), source.content("nobody")] == ["other has it", None]
    assert [found.source for found in source.found()] == ["one", "other"]


def test_a_reader_that_breaks_is_said_and_does_not_hide_the_others() -> None:
    broken = Scripted("broken", RecursionError("too deep"), [Change("a", run("a"))])
    source = source_of(broken, Scripted("sound", [Change("b", run("b"))]))
    batch = source.scan()
    assert told(batch) == [("sound:b", True)]
    assert "broken: cannot be used (RecursionError: too deep)" in batch.health.detail


def test_a_time_that_is_still_to_come_is_taken_for_now() -> None:
    batch = source_of(Scripted("one", [Change("a", run("a", updated_at=9e9))])).scan()
    (event,) = batch.events
    assert isinstance(event, Ran)
    assert event.run is not None
    assert event.run.updated_at == NOW


def test_what_appears_later_is_told_live_and_the_stores_are_given_back_at_the_end() -> None:
    reader = Scripted("one", [Change("a", run("a"))])
    source = source_of(reader)
    arrived = threading.Event()
    batches: list[Batch] = []

    def emit(batch: Batch) -> None:
        batches.append(batch)
        if ("one:b", True) in told(batch):
            arrived.set()

    source.start(emit)
    reader.rounds.append([Change("b", run("b"))])
    assert arrived.wait(10)
    source.stop()
    assert reader.closed
    assert [path for batch in batches for path, _ in told(batch)] == ["one:a", "one:b"]


def test_files_and_sessions_are_one_source(tmp_path: Path) -> None:
    (tmp_path / "a.handoff.json").write_text(packet("a"))
    combined = CombinedSource([FilesSource(tmp_path), source_of(Scripted("one", [Change("s", run("s"))]))])
    batch = combined.scan()
    assert [event.path for event in batch.events] == ["a.handoff.json", "one:s"]
    assert batch.health.mode == "live"
    assert combined.content("one") == "one has it"


def test_what_a_session_at_work_writes_is_read_at_once(tmp_path: Path) -> None:
    """Also after a while in which nothing happened, when the store is looked at seldom."""
    place = tmp_path / "session.jsonl"
    place.write_text("{}\n")
    now = time.time()

    class Slow(Scripted):
        """A store of which a look takes a while, so that it is not looked at often."""

        reads = 0

        def read(self, seconds: float) -> Sequence[Change]:
            self.reads += 1
            if self.reads == 1:
                return [Change("one", replace(run("one", now), place=str(place)))]
            time.sleep(0.01)
            size = place.stat().st_size
            return [Change("one", replace(run("one", now), place=str(place), tokens=size))] if size > 3 else []

    reader = Slow("slow")
    source = SessionsSource(lambda known, broken: [] if known else [reader])
    batches: SimpleQueue[tuple[float, Batch]] = SimpleQueue()
    with patch("agentwatch.sources.sessions.source._LIVELY_SECONDS", 0.0):
        source.start(lambda batch: batches.put((time.monotonic(), batch)))
        try:
            batches.get(timeout=5)
            time.sleep(0.3)
            while not batches.empty():
                batches.get()
            late = []
            for number in range(5):
                place.write_text("{}\n" * (number + 2))
                written = time.monotonic()
                at, batch = batches.get(timeout=5)
                late.append(at - written)
                assert isinstance(batch.events[0], Ran)
                time.sleep(0.2)
            assert sorted(late)[2] < 0.5, "two seconds is what it waits otherwise"
        finally:
            source.stop()


class Watching:
    """A source that runs, and what it has told."""

    def __init__(self, *rounds: Sequence[Change]) -> None:
        self.reader = Scripted("scripted", *rounds)
        self.runs: dict[str, Run | None] = {}
        self.source = source_of(self.reader)
        self.source.start(self._take)

    def _take(self, batch: Batch) -> None:
        self.runs |= {one.path: one.run for one in batch.events if isinstance(one, Ran)}

    def tell(self, *changes: Change) -> None:
        """Have the reader tell this, and wait until the source has heard it."""
        mark = f"mark {len(self.runs)}"
        self.reader.rounds.append([*changes, Change(mark, run("mark"))])
        end = time.monotonic() + 30
        while f"scripted:{mark}" not in self.runs:
            assert time.monotonic() < end
            time.sleep(0.01)

    def shown(self) -> set[str]:
        return {one.session_id for one in self.runs.values() if one is not None} - {"mark"}


@pytest.fixture
def watching() -> Iterator[Watching]:
    one = Watching()
    yield one
    one.source.stop()


@pytest.mark.parametrize("left", [None, b""])
def test_a_run_outlives_its_transcript_on_a_screen(tmp_path: Path, watching: Watching, left: bytes | None) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"user"}\n')
    watching.tell(Change("a", replace(run("a"), place=str(path))))
    if left is None:
        path.unlink()
    else:
        path.write_bytes(left)
    watching.tell(Change("a", None))
    assert watching.shown() == {"a"}


def test_a_run_whose_transcript_is_gone_stays_as_it_was_on_a_screen(tmp_path: Path, watching: Watching) -> None:
    place, above = tmp_path / "a.jsonl", str(tmp_path / "above.jsonl")
    place.write_text('{"type":"user"}\n')
    child = replace(run("a"), place=str(place))
    watching.tell(Change("above", replace(run("above"), place=above)), Change("a", child))
    place.unlink()
    watching.tell(Change("a", replace(child, place=above, state=RunState.SUBMITTED)))
    assert watching.runs["scripted:a"] == child


def test_a_run_whose_transcript_is_there_goes_when_its_reader_says_so(tmp_path: Path, watching: Watching) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"user"}\n')
    watching.tell(Change("a", replace(run("a"), place=str(path))), Change("b", run("b")))
    watching.tell(Change("a", None), Change("b", None))
    assert watching.shown() == set()
