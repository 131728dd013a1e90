"""What a screen shows of runs whose transcripts are lost: that they are gone says nothing of what has come of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions.reader import SessionReader
from agentwatch.sources.sessions.source import ShownRuns
from tests.unit.sessions.conformance import Store
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.copilot import copilot
from tests.unit.sessions.stores.qwen import qwen
from tests.unit.sessions.test_conformance import built


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


class Screen:
    """What is shown of the runs of one reader."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self._shown = ShownRuns()

    def look(self, reader: SessionReader) -> None:
        for key, run in reader.read(60.0):
            if self._shown.update(key, run):
                self.runs.pop(key, None)
                if run is not None:
                    self.runs[key] = run

    def known(self) -> dict[str, tuple[RunState, str]]:
        """Of the runs that were asked for: how they stand, and which transcript is theirs."""
        return {run.session_id: (run.state, run.place) for run in self.runs.values() if run.parent_session is not None}


@pytest.mark.parametrize("build", [claude_code, codex, copilot, qwen])
@pytest.mark.parametrize("lose", [Path.unlink, emptied, replaced_by_a_pipe])
@pytest.mark.parametrize("parents_first", [False, True])
def test_what_a_run_came_to_stays_whichever_transcript_goes(
    build: Callable[[Path], Store], lose: Callable[[Path], None], *, parents_first: bool
) -> None:
    with built(build) as store:
        store.finish()
        screen, reader = Screen(), store.reader()
        screen.look(reader)
        before, shown = screen.known(), len(screen.runs)
        places = {run.place: run.parent_session is None for run in screen.runs.values() if run.place.endswith(".jsonl")}
        for place in sorted(places, key=lambda one: (places[one] is not parents_first, one)):
            lose(Path(place))
            screen.look(reader)
            assert (screen.known(), len(screen.runs)) == (before, shown), place
