"""Sessions for somebody who looks again and again: all of them each time, read once."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import pytest

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import RunState
from agentwatch.sources.sessions.reader import Broken, Change
from agentwatch.sources.sessions.source import KeptSessions, SessionsSource
from tests.unit.claude_code.building import Store, meta, packet, report
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


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.delegated("toolu_1", packet("t.a"))
    child.asked(packet("t.a"))
    for number in range(100):
        child.used("Bash", f"toolu_a{number}", command="make")
    store.save()
    kept = KeptSessions(SessionsSource(lambda known, _: [] if known else [store.reader()]))
    assert len(paths(kept)) == 2
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("read again"))
    assert len(paths(kept)) == 2
    monkeypatch.undo()
    child.said(report("SUCCESS"))
    with child.path.open("ab") as file:
        file.write(child.lines[-1])
    read: list[int] = []
    pread = os.pread

    def counting(descriptor: int, count: int, offset: int) -> bytes:
        data = pread(descriptor, count, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counting)
    (ended,) = [one for one in kept.scan().events if isinstance(one, Ran) and one.path.endswith("toolu_1")]
    assert ended.run is not None
    assert ended.run.state is RunState.ENDED
    assert sum(read) < 2 * len(child.lines[-1])
