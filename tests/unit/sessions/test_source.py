"""The source of the session stores: what its readers find becomes events, whatever one of them does."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from queue import SimpleQueue
from unittest.mock import patch

import pytest

from agentwatch.delegation.events import Ran, Run, RunState
from agentwatch.sources import Batch
from agentwatch.sources.sessions.reader import Change, Found, Progress
from agentwatch.sources.sessions.source import SessionsSource

NOW = 1_000.0


def run(session: str, updated_at: float = 100.0, *, source: str = "one", parent: str | None = None) -> Run:
    return Run(
        source=source,
        session_id=session,
        parent_session=parent,
        state=RunState.WORKING,
        place="/store",
        started_at=50.0,
        updated_at=updated_at,
    )


class Scripted:
    """A reader that gives what the test tells it to."""

    def __init__(self, name: str, *rounds: Sequence[Change] | Exception):
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

    def text(self, digest: str) -> str | None:
        return f"{self.name} has it" if digest == self.name else None

    def found(self) -> Sequence[Found]:
        return [Found(self.name, "/store", 1)]

    def close(self):
        self.closed = True


def source_of(*readers: Scripted, session: str | None = None) -> SessionsSource:
    return SessionsSource(
        lambda known, _: [one for one in readers if one.name not in known], session, clock=lambda: NOW
    )


def told(batch: Batch) -> list[tuple[str, bool]]:
    return [(one.path, one.run is not None) for one in batch.events if isinstance(one, Ran)]


def test_a_reader_that_breaks_is_said_and_does_not_hide_the_others():
    broken = Scripted("broken", RecursionError("too deep"))
    batch = source_of(broken, Scripted("one", [Change("b", run("b"))])).scan()
    assert told(batch) == [("one:b", True)]
    assert "broken: cannot be used (RecursionError: too deep)" in batch.health.detail


def test_a_time_that_is_still_to_come_is_taken_for_now():
    (event,) = source_of(Scripted("one", [Change("a", run("a", updated_at=9e9))])).scan().events
    assert isinstance(event, Ran)
    assert event.run is not None
    assert event.run.updated_at == NOW


def test_what_a_session_at_work_writes_is_read_at_once(tmp_path):
    """Also after a while in which nothing happened, when the store is looked at seldom."""
    place = tmp_path / "session.jsonl"
    place.write_text("{}\n")
    now = time.time()

    class Slow(Scripted):
        """A store of which a look takes a while, so that it is not looked at often."""

        size = 0

        def read(self, seconds: float) -> Sequence[Change]:
            time.sleep(0.01 if self.size else 0.0)
            before, self.size = self.size, place.stat().st_size
            changed = replace(run("one", now), place=str(place), tokens=self.size)
            return [Change("one", changed)] if self.size != before else []

    reader = Slow("one")
    source = SessionsSource(lambda known, broken: [] if known else [reader])
    batches: SimpleQueue[Batch] = SimpleQueue()
    with patch("agentwatch.sources.sessions.source._LIVELY_SECONDS", 0.0):
        source.start(batches.put)
        try:
            batches.get(timeout=5)
            time.sleep(0.3)
            while not batches.empty():
                batches.get()
            late = []
            for number in range(5):
                place.write_text("{}\n" * (number + 2))
                written = time.monotonic()
                assert isinstance(batches.get(timeout=5).events[0], Ran)
                late.append(time.monotonic() - written)
                time.sleep(0.2)
            assert sorted(late)[2] < 0.5, "two seconds is what it waits otherwise"
        finally:
            source.stop()


class Watching:
    """A source that runs, and what it has told."""

    def __init__(self):
        self.reader = Scripted("one")
        self.runs: dict[str, Run | None] = {}
        self.source = source_of(self.reader)
        self.has_news = threading.Condition()
        self.source.start(self._apply)

    def _apply(self, batch: Batch):
        with self.has_news:
            self.runs |= {one.path: one.run for one in batch.events if isinstance(one, Ran)}
            self.has_news.notify()

    def tell(self, *changes: Change):
        """Have the reader tell this, and wait until the source has heard it."""
        mark = f"mark {len(self.runs)}"
        self.reader.rounds.append([*changes, Change(mark, run("mark"))])
        with self.has_news:
            assert self.has_news.wait_for(lambda: f"one:{mark}" in self.runs, 30)

    def shown(self) -> set[str]:
        return {one.session_id for one in self.runs.values() if one is not None} - {"mark"}


@pytest.fixture
def watching():
    one = Watching()
    yield one
    one.source.stop()
    assert one.reader.closed


def test_a_run_whose_transcript_is_there_goes_when_its_reader_says_so(tmp_path, watching):
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"user"}\n')
    watching.tell(Change("a", replace(run("a"), place=str(path))), Change("b", run("b")))
    assert watching.shown() == {"a", "b"}
    watching.tell(Change("a", None), Change("b", None))
    assert watching.shown() == set()
