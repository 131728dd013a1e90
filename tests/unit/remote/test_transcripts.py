"""A transcript that lies on a host is shown here as it is shown there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.unit.delegation.asking import ran, session

from agentwatch.config import Settings
from agentwatch.delegation.run import Run
from agentwatch.delegation.tree import Tree
from agentwatch.remote.protocol import Ask
from agentwatch.remote.texts import Answers, FarTranscript
from agentwatch.sources.sessions.entries import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields
from agentwatch.sources.sessions.following import LinesTranscript

KEY = ran(session()).path


def entries_in(fields: Fields) -> list[Entry]:
    return [Entry(float(str(fields["at"])), EntryKind(str(fields["kind"])), **fields["more"])]  # type: ignore[arg-type]


class There:
    """A host with one run, whose transcript is a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_up = True
        self.asked: list[str] = []
        there = SimpleNamespace(transcript=self.transcript, workspace=path.parent, settings=Settings())
        self.answers = Answers(there)  # type: ignore[arg-type]

    def transcript(self, _run: Run) -> LinesTranscript:
        return LinesTranscript(self.path, lambda: entries_in)

    def write(self, at: float, kind: EntryKind, **more: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"at": at, "kind": kind.value, "more": more}) + "\n")

    def ask(self, place: str) -> str | None:
        self.asked.append(place)
        return self.answers.look_at("screen", KEY, place, session()) if self.is_up else None


def test_steps_whole_steps_and_all_entries_are_those_of_the_host(tmp_path: Path) -> None:
    there, now = There(tmp_path / "log.jsonl"), [0.0]
    there.write(1_000.0, EntryKind.WORDS, text="I count\nthe seeds")
    there.write(1_001.0, EntryKind.CALL, call="c1", tool="Bash", given={"command": "ls", "deep": [{"a": None}]})
    here, local = FarTranscript(there.ask, lambda: now[0]), LinesTranscript(there.path, lambda: entries_in)
    look, same = here.look(), local.look()
    assert look is not None
    assert same is not None
    assert (tuple(look.steps), look.has_older, look.trouble) == (tuple(same.steps), same.has_older, "")
    assert [here.whole(step) for step in look.steps] == [local.whole(step) for step in same.steps]
    assert list(here.entries()) == list(local.entries())
    # It is not asked again at once, and what is the same is not sent again.
    assert here.look() is None
    now[0] += 2
    assert here.look() is None
    there.write(1_002.0, EntryKind.RESULT, call="c1", text="a b c")
    now[0] += 2
    look, same = here.look(), local.look()
    assert look is not None
    assert same is not None
    assert tuple(look.steps) == tuple(same.steps)
    assert tuple(here.older().steps) == tuple(same.steps)


def test_what_was_seen_stays_while_the_host_does_not_answer(tmp_path: Path) -> None:
    there, now = There(tmp_path / "log.jsonl"), [0.0]
    there.write(1_000.0, EntryKind.WORDS, text="I count")
    here = FarTranscript(there.ask, lambda: now[0])
    look = here.look()
    assert look is not None
    there.is_up, now[0] = False, 2.0
    gone = here.look()
    assert gone is not None
    assert (gone.steps, gone.trouble) == (look.steps, "The host does not answer")
    there.is_up, now[0] = True, 4.0
    assert here.look() == look


def test_an_answer_looks_at_the_tree_before_it_leaves_the_loop_on_which_the_tree_changes(tmp_path: Path) -> None:
    there = There(tmp_path / "log.jsonl")
    there.write(1_000.0, EntryKind.WORDS, text="I count")
    tree = Tree()
    tree.apply(ran(session()))
    monitor = SimpleNamespace(tree=tree, transcript=there.transcript, workspace=tmp_path, settings=Settings())
    answers = Answers(monitor)  # type: ignore[arg-type]
    about = {"id": "s.1", "screen": "s", "workspace": "w", "what": "transcript", "place": "look"}
    look, other = (answers.find(Ask(**about, key=key)) for key in (KEY, "other:run"))
    del monitor.tree
    assert "I count" in (look() or "")
    assert other() is None


def test_what_nobody_can_have_said_is_no_transcript(tmp_path: Path) -> None:
    for data in ("[7]", "{", '{"steps": [7]}', "[" * 5_000):
        here = FarTranscript(lambda _place, data=data: data)  # type: ignore[misc]
        assert here.look() is None
        assert list(here.entries()) == []
