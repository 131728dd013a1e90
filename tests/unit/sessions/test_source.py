"""The source of the session stores: what its readers find becomes observations, whatever one of them does."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from agentwatch.delegation.observation import Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.health import Batch
from agentwatch.sources.sessions.reader import Broken, Change, Found, Progress
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.sources.source import CombinedSource
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
    return [(one.path, one.run is not None) for one in batch.observations if isinstance(one, Ran)]


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
    (observation,) = batch.observations
    assert isinstance(observation, Ran)
    assert observation.run is not None
    assert observation.run.updated_at == NOW


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
    assert [observation.path for observation in batch.observations] == ["a.handoff.json", "one:s"]
    assert batch.health.mode == "live"
    assert set(combined.known()) == {"a.handoff.json"}
    assert combined.content("one") == "one has it"
