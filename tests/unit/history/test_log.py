"""Every change of a state, in order, one line each."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentwatch.delegation.events import Event, Gone, Ran, Tick
from agentwatch.delegation.run import Doing, DoingKind, Run, RunState
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import StateChange, StateChanges, changes, document, line
from agentwatch.history.story import story
from tests.unit.delegation.events import Recorder, handoff, returned
from tests.unit.history.recorded import META, Workspace, meta, packet

ERROR = "## Status\nstate: ERROR\nsummary: no\n"


def states(events: list[Event]) -> list[tuple[str, str | None, str | None, int]]:
    return [(one.task_id, one.before, one.after, one.attempt) for one in changes(events)]


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
    assert [change.at for change in changes(events)] == [one.at for one in events]


def test_what_changes_no_state_is_no_change() -> None:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("x.handoff.json", packet("x")),
        Tick(2, 2_000.0),
        workspace.seen("x.handoff.json", packet("x", "said better")),
    ]
    assert len(states(events)) == 1


def test_a_new_attempt_in_the_same_state_is_a_change() -> None:
    workspace = Workspace()
    found = states([workspace.seen(META, meta("blocked", session)) for session in ("sess_1", "sess_2")])
    assert [one[1:] for one in found] == [(None, "blocked", 1), ("blocked", "blocked", 2)]


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
    tree = Tree(remembers=True)
    found = changes(story(events, 0.0), tree)
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


def test_a_renamed_directory_is_one_change_of_each_task() -> None:
    workspace = Workspace()
    nameless = packet("x").replace('"task_id": "x"', '"task_id": ""')
    events: list[Event] = [
        workspace.seen("one/a.handoff.json", nameless),
        workspace.seen("one/a.return.md", ERROR),
        workspace.gone("one/a.handoff.json"),
        gone := workspace.gone("one/a.return.md"),
        workspace.seen("two/a.handoff.json", nameless, at=1_001.0),
        workspace.seen("two/a.return.md", ERROR, at=1_002.0),
        workspace.seen("two/b.handoff.json", packet("b")),
    ]
    assert [one[:4] for one in remembered(events)[2:]] == [
        (gone.at, "one/a", "invalid", None),
        (gone.at, "two/a", None, "invalid"),
        (1_007.0, "b", None, "submitted"),
    ]


def test_what_was_gone_at_a_start_makes_nothing_later_that_was_written_before() -> None:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("a.handoff.json", packet("a")),
        workspace.gone("a.handoff.json")._replace(at=9_000.0),
        workspace.seen("b.handoff.json", packet("b"), at=1_500.0),
    ]
    assert remembered(events) == [(1_001.0, "a", None, "submitted"), (1_500.0, "b", None, "submitted")]


def test_a_log_of_a_tree_that_stands_begins_with_what_changes_next() -> None:
    workspace = Workspace()
    tree = Tree()
    tree.apply(workspace.seen("x.handoff.json", packet("x")))
    log = StateChanges(tree)
    assert log.after({"x"}, 1.0) == []
    returned = workspace.seen("x.return.md", "## Status\nstate: ERROR\nsummary: no\n")
    assert [one.before for one in log.after(tree.apply(returned), 2.0)] == [State.SUBMITTED]


def test_changes_of_one_moment_come_in_the_order_of_the_tasks() -> None:
    workspace = Workspace()
    found = states(
        [
            workspace.seen("p.handoff.json", packet("p")),
            workspace.seen("p.b.handoff.json", packet("p.b")),
            workspace.seen("p.b.return.md", "## Status\nstate: ERROR\nsummary: no\n"),
        ]
    )
    assert [one[0] for one in found].index("p") < [one[0] for one in found].index("p.b")


def test_a_line_says_when_what_and_why() -> None:
    change = StateChange(1_700_000_000.0, "checkout.api", State.WORKING, State.FAILED, 2, "the return says ERROR")
    assert line(change) == ("2023-11-14T22:13:20Z  checkout.api  working → failed  attempt 2  the return says ERROR")
    assert line(StateChange(0.0, "a", None, State.SUBMITTED, 1, "")) == "1970-01-01T00:00:00Z  a  new → submitted"
    assert line(StateChange(0.0, "a", State.SUBMITTED, None, 1, "")) == "1970-01-01T00:00:00Z  a  submitted → gone"


def test_no_foreign_text_reaches_the_terminal_as_it_is() -> None:
    hostile = "x\x1b]52;c;aGk=\x07\n\u202e[/red]"
    shown = line(StateChange(0.0, hostile, None, State.FAILED, 1, hostile))
    assert shown.isprintable()
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("at", [1e300, -1e300, float("nan"), float("inf")])
def test_a_time_of_another_world_is_left_out(at: float) -> None:
    change = StateChange(at, "a", None, State.FAILED, 1, "")
    assert line(change).startswith("- ")
    assert document(change)["at"] is None


def test_the_document_is_json_with_the_texts_as_they_were_written() -> None:
    change = StateChange(0.0, "x\x1b", None, State.FAILED, 3, "why")
    assert json.loads(json.dumps(document(change))) == {
        "at": "1970-01-01T00:00:00Z",
        "task_id": "x\x1b",
        "before": None,
        "after": "failed",
        "attempt": 3,
        "reason": "why",
        "contradicted": False,
    }


def test_what_a_task_does_is_told_once_where_it_is_asked_for() -> None:
    make = Doing(10.0, DoingKind.TOOL, "Bash", "make \x1b[31m")
    steps = [None, make, make._replace(over=True), make._replace(at=20.0, repeats=2), None]
    steps += [Doing(30.0, DoingKind.TODO, about="Test"), Doing(30.0, DoingKind.TODO, about="Test", over=True)]
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
    told = StateChanges(Tree(), tells_activity=True).tell(events)
    assert [line(change).partition("  s  ")[2] for change in told][1:] == [
        "· Bash make ␛[31m",
        "· Bash ×2 make ␛[31m",
        "· ◐ Test",
        "· ✓ Test",
    ]
    assert len(list(changes(events))) == 1
    (first,) = (one for one in StateChanges(Tree(), tells_activity=True).tell(events[:2]) if one.at)
    assert document(first)["activity"]["about"] == make.about
    assert json.dumps(document(first))


def test_a_tree_that_is_made_anew_tells_what_is_different_and_no_more() -> None:
    see = Recorder().seen
    before = [see("a.json", handoff("a")), see("b.json", handoff("b")), see("c.json", handoff("c"))]
    tree, anew = Tree(), Tree()
    changes = StateChanges(tree)
    list(changes.tell(before))
    for one in (*before[:2], see("b.md", returned("failed", task_id="b"))):
        anew.apply(one)
    told = [one for one in changes.turn(anew, 2_000.0) if isinstance(one, StateChange)]
    assert {(one.task_id, one.before, one.after) for one in told} == {
        ("b", State.SUBMITTED, State.FAILED),
        ("c", State.SUBMITTED, None),
    }
