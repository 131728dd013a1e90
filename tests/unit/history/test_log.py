"""The story of a workspace in the order in which it happened, and every change of a state in it, one line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.cli.log import log_document, log_line
from agentwatch.contracts.shapes import Document, Fields
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Gone, Ran, Tick
from agentwatch.delegation.run import Activity, ActivityKind, Message, Run, RunState, StartedBy, Turn
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import (
    RequestChange,
    StateChange,
    StateChanges,
    state_changes,
    story,
)
from agentwatch.view.document import tree_document
from tests.unit.delegation.asking import decided, request, requested, session
from tests.unit.delegation.asking import ran as ran_session
from tests.unit.delegation.events import handoff, returned, tree_of
from tests.unit.delegation.test_interleaving import Step, drawn_steps, record
from tests.unit.history.recorded import Workspace, packet
from tests.unit.sessions.store import NOW, STORY, Store

ERROR = "## Status\nstate: ERROR\nsummary: no\n"


def states(events: list[Event]) -> list[tuple[str, str | None, str | None, int]]:
    return [(one.task_id, one.before, one.after, one.attempt) for one in state_changes(events, Tree())]


def test_a_task_comes_works_ends_and_is_tried_again() -> None:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("x.handoff.json", packet("x")),
        workspace.seen("x.return.md", "## Status\nstate: ERROR\nsummary: no\n"),
        workspace.seen("x.handoff.json", packet("x", "build it otherwise")),
    ]
    found = states(events)
    assert found[0] == ("x", None, "submitted", 1)
    assert found[1][:2] == ("x", "submitted")
    assert found[2] == ("x", found[1][2], "submitted", 2)
    assert [change.at for change in state_changes(events, Tree())] == [one.at for one in events]


def test_a_task_that_nothing_speaks_of_any_more_goes() -> None:
    workspace = Workspace()
    seen = workspace.seen("x.handoff.json", packet("x"))
    tree = Tree()
    log = StateChanges(tree)
    assert [one.after for one in log.after(tree.apply(seen), 1.0)] == [State.SUBMITTED]
    gone = Gone(2, 7.0, "x.handoff.json")
    for change in log.after(tree.apply(gone), gone.at):
        assert (change.at, change.before, change.after) == (7.0, State.SUBMITTED, None)
    assert log.after({"x", "never heard of"}, 8.0) == []


def remembered(events: list[Event]) -> list[tuple[float, str, str | None, str | None]]:
    tree = Tree()
    found = state_changes(story(events, 0.0), tree)
    return [(one.at, one.task_id, one.before, one.after) for one in found]


def test_a_task_whose_files_are_deleted_stays_and_none_of_them_becomes_a_task() -> None:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("one/a.handoff.json", packet("x")),
        workspace.seen("one/a.return.md", ERROR),
    ]
    before = remembered(events)
    assert [one[1:] for one in before] == [("x", None, "submitted"), ("x", "submitted", "invalid")]
    for order in (("handoff.json", "return.md"), ("return.md", "handoff.json")):
        assert remembered([*events, *(workspace.gone(f"one/a.{name}") for name in order)]) == before


def test_a_renamed_file_is_told_where_it_was_renamed_and_not_where_it_was_written() -> None:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("one/a.handoff.json", packet("x")),
        written := workspace.seen("one/a.return.md", ERROR),
    ]
    before = remembered(events)
    events.append(workspace.gone("one/a.return.md"))
    events.append(workspace.seen("one/other.return.md", ERROR, at=written.at))
    assert remembered(events) == before
    events.append(workspace.gone("one/other.return.md"))
    assert remembered(events) == before


def test_what_was_gone_at_a_start_makes_nothing_later_that_was_written_before() -> None:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("a.handoff.json", packet("a")),
        workspace.gone("a.handoff.json")._replace(at=9_000.0),
        workspace.seen("b.handoff.json", packet("b"), at=1_500.0),
    ]
    assert remembered(events) == [(1_001.0, "a", None, "submitted"), (1_500.0, "b", None, "submitted")]


def test_no_foreign_text_reaches_the_terminal_as_it_is() -> None:
    hostile = "x\x1b]52;c;aGk=\x07\n\u202e[/red]"
    shown = log_line(StateChange(0.0, hostile, None, State.FAILED, 1, hostile))
    assert shown.isprintable()
    assert len(shown.splitlines()) == 1


def test_what_a_task_does_is_told_once_where_it_is_asked_for() -> None:
    make = Activity(10.0, ActivityKind.TOOL, "Bash", "make \x1b[31m")
    steps = [None, make, make._replace(over=True), make._replace(at=20.0, repeats=2), None]
    todo = Activity(30.0, ActivityKind.TODO, about="Test")
    steps += [todo, todo._replace(over=True)]
    run = Run(
        source="x",
        session_id="s",
        parent_session=None,
        state=RunState.WORKING,
        place="/store",
        started_at=5.0,
        updated_at=5.0,
    )
    events: list[Event] = [
        Ran(number, number * 10.0, "x:s", replace(run, doing=doing, updated_at=number * 10.0))
        for number, doing in enumerate(steps)
    ]
    told = StateChanges(Tree(), with_activity=True).apply(events)
    assert [log_line(change).partition("  s  ")[2] for change in told][1:] == [
        "· Bash make ␛[31m",
        "· Bash ×2 make ␛[31m",
        "· ◐ Test",
        "· ✓ Test",
    ]
    assert len(list(state_changes(events, Tree()))) == 1
    (first,) = (one for one in StateChanges(Tree(), with_activity=True).apply(events[:2]) if one.at)
    assert log_document(first).plain()["activity"]["about"] == make.about


# Requests

ONE = request(command="rm \x1b[31m-r build")
HISTORY: list[Event] = [
    ran_session(session()),
    requested(ONE),
    decided(ONE),
    decided(ONE, stage=Stage.DELIVERED, at=1_111.0),
]


def test_the_log_tells_each_step_of_a_request_once_and_who_took_it() -> None:
    told = StateChanges(Tree()).apply(story([*HISTORY, ran_session(session(updated_at=1_115.0), 9)], 2_000.0))
    lines = [log_line(one) for one in told if isinstance(one, RequestChange)]
    assert [one.split("  ", 2)[2] for one in lines] == [
        "allow? Bash  rm ␛[31m-r build: waits for you",
        "allow? Bash  rm ␛[31m-r build: allowed, not delivered yet, dev@laptop",
        "allow? Bash  rm ␛[31m-r build: allowed and delivered; what came of it is not known yet, dev@laptop",
    ]
    assert lines[0].startswith("1970-01-01T00:18:20Z  s1  ")


# The story

ROOT = Run(
    source="agents",
    session_id="root",
    parent_session=None,
    state=RunState.WORKING,
    place="/store",
    started_at=100.0,
    updated_at=300.0,
    process_gone=True,
    model="m",
)
Line = tuple[float, str, str | None, str | None, int]


def message(document: Fields | None, at: float) -> Message:
    return Message(at, f"{at:064.0f}", "words", Document(document) if document else None)


def child(task_id: str, began: float, ended: float | None, **more: object) -> Run:
    """A run that was handed a packet, and returned at `ended`."""
    last = 290.0 if ended is None else ended
    run = Run(
        source="agents",
        session_id=f"{task_id}-{began:g}",
        parent_session="root",
        state=RunState.WORKING,
        place="/store",
        started_at=began,
        updated_at=last,
        model="m",
    )
    run = replace(run, prompt=message(handoff(task_id), began))
    if ended is not None:
        run = replace(run, state=RunState.ENDED, ended_at=ended, said=message(returned("completed"), ended))
    return replace(run, **more)  # type: ignore[arg-type]


def ran(*runs: Run) -> list[Event]:
    return [Ran(seq, run.updated_at, f"agents:{run.session_id}", run) for seq, run in enumerate(runs, 1)]


def told(events: Iterable[Event], now: float = 1_000.0) -> list[Line]:
    return [
        (one.at, one.task_id, one.before, one.after, one.attempt) for one in state_changes(story(events, now), Tree())
    ]


def test_a_session_is_told_when_it_began_and_when_it_ended() -> None:
    # Readers give the newest first.
    assert told(ran(child("late", 200.0, None), child("early", 110.0, 150.0), ROOT)) == [
        (100.0, "root", None, "working", 1),
        (110.0, "early", None, "working", 1),
        (150.0, "early", "working", "completed", 1),
        (200.0, "late", None, "working", 1),
    ]


def test_a_retry_in_another_session_is_the_next_attempt() -> None:
    failed = child("a", 110.0, 150.0, said=message(returned("failed"), 150.0))
    assert told(ran(child("a", 160.0, 170.0), failed, ROOT))[1:] == [
        (110.0, "a", None, "working", 1),
        (150.0, "a", "working", "failed", 1),
        (160.0, "a", "failed", "working", 2),
        (170.0, "a", "working", "completed", 2),
    ]


def test_the_rounds_of_a_child_are_told_and_those_of_a_human_are_not() -> None:
    first = replace(Turn(110.0, state=RunState.ENDED), said=message(returned("partial"), 130.0), ended_at=130.0)
    talk = replace(ROOT, state=RunState.ENDED, said=message(None, 300.0), ended_at=300.0)
    talk = replace(talk, rounds=(Turn(100.0, state=RunState.ENDED, said=message(None, 120.0)), Turn(150.0)))
    assert told(ran(talk, child("a", 110.0, 150.0, rounds=(first, Turn(140.0))))) == [
        (100.0, "root", None, "working", 1),
        (110.0, "a", None, "working", 1),
        (130.0, "a", "working", "partial", 1),
        (140.0, "a", "partial", "working", 1),
        (150.0, "a", "working", "completed", 1),
        (300.0, "root", "working", "completed", 1),
    ]


def test_a_retry_in_the_same_session_is_told_as_an_attempt_of_its_own() -> None:
    said = message(returned("failed"), 130.0)
    first = Turn(110.0, state=RunState.ENDED, said=said, ended_at=130.0)
    run = child("a", 110.0, 150.0, rounds=(first, Turn(140.0, asker=StartedBy.HOOK)))
    receipts = (Receipt(Stage.RECORDED, 135.0), Receipt(Stage.READ, 136.0))
    decision = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=None,
        return_sha256=said.digest,
        action=Action.RETRY,
        at=135.0,
        receipts=receipts,
    )
    assert told([*ran(ROOT, run), Decided(0, 135.0, "d1", decision)])[1:] == [
        (110.0, "a", None, "working", 1),
        (130.0, "a", "working", "failed", 1),
        (135.0, "a", "failed", "retrying", 1),
        (140.0, "a", "retrying", "working", 2),
        (150.0, "a", "working", "completed", 2),
    ]


def test_a_decision_stands_between_what_it_was_about_and_what_came_of_it() -> None:
    failed = child("a", 110.0, 150.0, said=message(returned("failed"), 150.0))
    assert failed.said is not None
    assert failed.prompt is not None
    receipts = (Receipt(Stage.RECORDED, 155.0),)
    decision = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=failed.prompt.digest,
        return_sha256=failed.said.digest,
        action=Action.RETRY,
        at=155.0,
        receipts=receipts,
        expires_at=158.0,
    )
    decided = Decided(0, 155.0, "d1", decision)
    again = child("a", 160.0, None)
    assert [line[:4] for line in told([decided, *ran(again, failed, ROOT)], now=157.0)[2:]] == [
        (150.0, "a", "working", "failed"),
        (155.0, "a", "failed", "retrying"),
        (160.0, "a", "retrying", "working"),
    ]
    # Nobody had read it when its time was over.
    assert [line[:4] for line in told([decided, *ran(again, failed, ROOT)], now=200.0)[3:]] == [
        (155.0, "a", "failed", "retrying"),
        (158.0, "a", "retrying", "failed"),
        (160.0, "a", "failed", "working"),
    ]


def test_no_session_is_told_to_have_begun_or_ended_later_than_its_last_sign_of_life() -> None:
    first = Turn(9e11, state=RunState.ENDED, said=message(returned("partial"), 9e11), ended_at=9e11)
    odd = child("a", 9e11, 9e11, updated_at=150.0, rounds=(first, Turn(9e11)))
    assert [line[0] for line in told(ran(ROOT, odd))] == [100.0, 150.0, 150.0, 150.0, 150.0]


@given(st.lists(drawn_steps, max_size=14))
def test_the_story_ends_with_the_tree_of_what_it_is_made_of(steps: list[Step]) -> None:
    events = record(steps)
    ends = story(events, 0.0)
    of_the_story, of_the_source = (tree_of(told) for told in (ends, events))
    assert tree_document(of_the_story, "/w") == tree_document(of_the_source, "/w")


@pytest.mark.parametrize("program", ["claude-code", "codex", "opencode", "roo"])
def test_every_store_tells_each_attempt_in_order_and_ends_as_it_stands(program: str, tmp_path: Path) -> None:
    store = Store(program, tmp_path)
    try:
        store.finish()
        watch = store.watch()
        watch.look()
        runs = list(watch.runs.values())
        Random(1).shuffle(runs)
        events = story(runs, NOW)
        assert (
            tree_document(tree_of([*events, Tick(0, NOW)]), "workspace")["tasks"]
            == (tree_document(tree_of([*watch.runs.values(), Tick(0, NOW)]), "workspace")["tasks"])
        )
        lines = list(state_changes(events, Tree()))
        assert [one.at for one in lines] == sorted(one.at for one in lines)
        for task_id, states in STORY.items():
            if task_id in watch.tasks:
                last = {one.attempt: one.after for one in lines if one.task_id == task_id}
                assert (list(last), last[len(states)]) == (list(range(1, len(states) + 1)), states[-1])
    finally:
        store.close()
