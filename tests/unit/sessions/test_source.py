"""The source of the session stores: the results of its readers become events, even if a reader breaks."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from queue import SimpleQueue

from agentwatch.delegation.events import Ran, Run, RunState
from agentwatch.sources import Batch
from agentwatch.sources.sessions.reader import Change, Found, Progress
from agentwatch.sources.sessions.source import SessionsSource

NOW = 1_000.0


def run(session: str, updated_at: float = 100.0) -> Run:
    return Run(
        source="one",
        session_id=session,
        parent_session=None,
        state=RunState.WORKING,
        place="/store",
        started_at=50.0,
        updated_at=updated_at,
    )


class Scripted:
    """A reader that returns the changes that a test gives it."""

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


def source_of(*readers: Scripted) -> SessionsSource:
    return SessionsSource(lambda known, _: [one for one in readers if one.name not in known], clock=lambda: NOW)


def told(batch: Batch) -> list[tuple[str, bool]]:
    return [(one.path, one.run is not None) for one in batch.events if isinstance(one, Ran)]


def test_a_broken_reader_is_reported_and_hides_no_others():
    broken = Scripted("broken", RecursionError("too deep"))
    batch = source_of(broken, Scripted("one", [Change("b", run("b"))])).scan()
    assert told(batch) == [("one:b", True)]
    assert "broken: cannot be used (RecursionError: too deep)" in batch.health.detail


def test_a_time_in_the_future_counts_as_now():
    (event,) = source_of(Scripted("one", [Change("a", run("a", updated_at=9e9))])).scan().events
    assert event.run.updated_at == NOW


def test_a_growing_transcript_is_read_at_once(tmp_path, monkeypatch):
    """The clock stops, so the time for a look at all stores never comes, but a growing file is still read."""
    place, looked_twice = tmp_path / "session.jsonl", threading.Event()
    place.write_text("{}\n")
    now, stopped_at = time.time(), time.monotonic()

    class Growing(Scripted):
        """A reader of one session, which has used as many tokens as its transcript has bytes."""

        size = looks = 0

        def read(self, seconds: float) -> Sequence[Change]:
            self.looks += 1
            if self.looks == 2:
                monkeypatch.setattr(time, "monotonic", lambda: stopped_at)
                looked_twice.set()
            before, self.size = self.size, place.stat().st_size
            changed = replace(run("one", now), place=str(place), tokens=self.size)
            return [Change("one", changed)] if self.size != before else []

    source = SessionsSource(lambda known, _: [] if known else [Growing("one")])
    batches: SimpleQueue[Batch] = SimpleQueue()
    source.start(batches.put)
    try:
        assert looked_twice.wait(30)
        for number in range(3):
            size = place.write_text("{}\n" * (number + 2))
            while not any(one.run.tokens == size for one in batches.get(timeout=30).events):
                pass
    finally:
        source.stop()


def test_a_run_goes_when_its_reader_says_so_and_not_its_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"user"}\n')
    runs = [Change("a", replace(run("a"), place=str(path))), Change("b", run("b"))]
    reader = Scripted("one", runs)
    source = source_of(reader)
    assert told(source.scan()) == [("one:a", True), ("one:b", True)]
    reader.rounds.append([Change("a", None), Change("b", None)])
    assert told(source.scan()) == []
    source.close()
    assert reader.closed
