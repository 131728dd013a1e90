"""Sessions for somebody who looks again and again: all of them each time, read once."""

from __future__ import annotations

from collections.abc import Collection

from agentwatch.delegation.events import Ran
from agentwatch.sources.sessions.reader import Broken, Change
from agentwatch.sources.sessions.source import KeptSessions, SessionsSource
from tests.unit.sessions.test_source import Scripted, run


def paths(kept: KeptSessions) -> dict[str, float]:
    events = [one for one in kept.scan().events if isinstance(one, Ran)]
    return {one.path: one.run.updated_at for one in events if one.run is not None}


def test_each_look_gives_all_runs_as_they_are_now() -> None:
    reader = Scripted("one", [Change("a", run("a")), Change("b", run("b"))], [], [Change("a", run("a", 200.0))])

    def open_readers(known: Collection[str], broken: Broken) -> list[Scripted]:
        return [] if known else [reader]

    kept = KeptSessions(SessionsSource(open_readers, clock=lambda: 1_000.0))
    assert paths(kept) == {"one:a": 200.0, "one:b": 100.0}
    assert paths(kept) == {"one:a": 200.0, "one:b": 100.0}
    reader.rounds.append([Change("b", None)])
    assert paths(kept) == {"one:a": 200.0}
