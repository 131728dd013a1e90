"""What a screen shows of runs whose transcripts are lost: that they are gone says nothing of what has come of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.sessions.outliving import Outliving
from agentwatch.sources.sessions.reader import SessionReader
from tests.unit.sessions.conformance import Store
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.copilot import copilot
from tests.unit.sessions.stores.gemini import gemini
from tests.unit.sessions.stores.qwen import qwen
from tests.unit.sessions.test_conformance import built


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_a_link(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("elsewhere")))


class Screen:
    """What is shown of the runs of one reader."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self._outliving = Outliving()

    def update(self, key: str, run: Run | None, reader: str = "reader") -> None:
        for shown, one in self._outliving.update(reader, key, run):
            self.runs.pop(shown, None)
            if one is not None:
                self.runs[shown] = one

    def look(self, reader: SessionReader) -> None:
        for change in reader.read(60.0):
            self.update(change.key, change.run, reader.name)

    def known(self) -> dict[str, tuple[RunState, str]]:
        """Of the runs that were asked for: how they stand, and which transcript is theirs."""
        return {run.session_id: (run.state, run.place) for run in self.runs.values() if run.parent_session is not None}


@pytest.mark.parametrize("build", [claude_code, codex, copilot, gemini, qwen])
@pytest.mark.parametrize("lose", [Path.unlink, emptied, replaced_by_a_pipe, replaced_by_a_directory])
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


@pytest.fixture
def parent(tmp_path: Path) -> Run:
    return a_run(tmp_path / "parent.jsonl", parent_session=None)


@pytest.fixture
def child(tmp_path: Path) -> Run:
    return a_run(tmp_path / "child.jsonl", parent_session="parent", updated_at=100.0)


def a_run(path: Path, *, parent_session: str | None, updated_at: float = 10.0) -> Run:
    path.write_text('{"type":"user"}\n')
    return Run(
        source="reader",
        session_id=path.stem,
        parent_session=parent_session,
        state=RunState.WORKING,
        place=str(path),
        started_at=10.0,
        updated_at=updated_at,
        tokens=7,
    )


@pytest.fixture
def screen(parent: Run, child: Run) -> Screen:
    one = Screen()
    one.update("parent", parent)
    one.update("child", child)
    return one


def told_by(parent: Run, child: Run, state: RunState = RunState.SUBMITTED, updated_at: float = 10.0) -> Run:
    """What the parent's transcript tells of its child."""
    return replace(child, place=parent.place, state=state, updated_at=updated_at, tokens=None)


@pytest.mark.parametrize(
    "lose", [Path.unlink, emptied, replaced_by_a_pipe, replaced_by_a_directory, replaced_by_a_link]
)
def test_a_child_whose_transcript_is_lost_is_not_as_little_as_its_parent_knows(
    screen: Screen, parent: Run, child: Run, lose: Callable[[Path], None]
) -> None:
    lose(Path(child.place))
    screen.update("child", told_by(parent, child))
    assert screen.runs["child"] == child


def test_what_its_parent_hears_of_a_child_whose_transcript_is_lost_is_news(
    screen: Screen, parent: Run, child: Run
) -> None:
    Path(child.place).unlink()
    screen.update("child", replace(told_by(parent, child), process_gone=True))
    assert screen.runs["child"] == replace(child, process_gone=True)
    screen.update("child", told_by(parent, child, RunState.ENDED, 120.0))
    assert screen.runs["child"] == replace(child, state=RunState.ENDED, updated_at=120.0)
    screen.update("child", None)
    assert screen.runs["child"].state is RunState.ENDED


def test_a_transcript_that_is_back_or_was_moved_tells_of_its_run_again(
    screen: Screen, parent: Run, child: Run, tmp_path: Path
) -> None:
    Path(child.place).unlink()
    screen.update("child", told_by(parent, child))
    again = replace(child, state=RunState.SUBMITTED, updated_at=50.0)
    Path(child.place).write_text('{"type":"user"}\n')
    screen.update("child", again)
    assert screen.runs["child"] == again
    moved = replace(again, place=str(Path(child.place).rename(tmp_path / "moved.jsonl")))
    screen.update("child", moved)
    assert screen.runs["child"] == moved


def test_a_child_that_had_ended_by_what_its_parent_heard_has_ended_when_that_is_lost(
    screen: Screen, parent: Run, child: Run
) -> None:
    ended = replace(child, state=RunState.CANCELED, updated_at=110.0)
    screen.update("child", ended)
    Path(parent.place).unlink()
    screen.update("parent", None)
    screen.update("child", child)
    assert screen.runs["child"] == ended
    goes_on = replace(child, updated_at=130.0)
    screen.update("child", goes_on)
    assert screen.runs["child"] == goes_on


def test_a_call_is_not_shown_beside_the_run_that_came_of_it(screen: Screen, parent: Run, child: Run) -> None:
    asked = replace(child, prompt=Message(10.0, "0" * 64, "Look."))
    screen.update("child", asked)
    Path(child.place).unlink()
    screen.update("child", None)
    screen.update("call", replace(told_by(parent, asked), session_id="call"))
    assert screen.runs == {"parent": parent, "child": asked}


def test_a_key_that_became_that_of_another_session_is_not_withdrawn(screen: Screen, child: Run, tmp_path: Path) -> None:
    Path(child.place).unlink()
    screen.update("child", None)
    other = a_run(tmp_path / "other.jsonl", parent_session=None)
    screen.update("child", other)
    screen.update("moved", child)
    assert screen.runs["child"] == other
    screen.update("child", None)
    assert screen.runs.keys() == {"parent", "moved"}
