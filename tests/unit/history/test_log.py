"""The story of a workspace in the order of its events, and every change of a state in it, one line each."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.cli.log import log_document, log_line
from agentwatch.contracts.shapes import Document, Fields
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import (
    Activity,
    ActivityKind,
    Decided,
    Event,
    Message,
    Ran,
    Run,
    RunState,
    StartedBy,
    Turn,
)
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import RequestChange, StateChange, StateChanges, order_events, replay_state_changes
from agentwatch.view.document import tree_document
from tests.unit.delegation.asking import decided, request, requested, session
from tests.unit.delegation.asking import ran as ran_session
from tests.unit.delegation.events import ROOT as SESSION
from tests.unit.delegation.events import handoff, returned, tree_of
from tests.unit.delegation.test_interleaving import drawn_steps, record
from tests.unit.history.recorded import Workspace, packet

ERROR = "## Status\nstate: ERROR\nsummary: no\n"


def told(events: Iterable[Event], now: float = 1_000.0) -> list[str]:
    changes = replay_state_changes(order_events(events, now), Tree())
    return [f"{one.at:g} {one.task_id}: {one.before} → {one.after} {one.attempt}" for one in changes]


# Files


@pytest.mark.parametrize("order", [("handoff.json", "return.md"), ("return.md", "handoff.json")])
def test_files_that_are_deleted_or_renamed_make_no_other_task(order):
    workspace = Workspace()
    events = [workspace.seen("one/a.handoff.json", packet("x")), written := workspace.seen("one/a.return.md", ERROR)]
    before = told(events)
    assert before == ["1001 x: None → submitted 1", "1002 x: submitted → invalid 1"]
    assert told([*events, *(workspace.gone(f"one/a.{name}") for name in order)]) == before
    events += [workspace.gone("one/a.return.md"), workspace.seen("one/other.return.md", ERROR, at=written.at)]
    assert told(events) == told([*events, workspace.gone("one/other.return.md")]) == before


def test_a_file_that_was_gone_at_a_start_delays_nothing():
    workspace = Workspace()
    events = [
        workspace.seen("a.handoff.json", packet("a")),
        workspace.gone("a.handoff.json")._replace(at=9_000.0),
        workspace.seen("b.handoff.json", packet("b"), at=1_500.0),
    ]
    told_now = ["1001 a: None → submitted 1", "1500 a: submitted → canceled 1", "1500 b: None → submitted 1"]
    assert told(events) == told_now


# Lines


def test_the_acts_of_a_task_are_listed_once_if_asked_for():
    make = Activity(10.0, ActivityKind.TOOL, "Bash", "make \x1b[31m")
    todo = Activity(30.0, ActivityKind.TODO, about="Test")
    again = make._replace(at=20.0, repeats=2)
    steps = [None, make, make._replace(over=True), again, None, todo, todo._replace(over=True)]
    run = replace(ROOT, session_id="s", process_gone=False)
    events = [
        Ran(number, number * 10.0, "x:s", replace(run, doing=doing, updated_at=number * 10.0))
        for number, doing in enumerate(steps)
    ]
    changes = list(StateChanges(Tree(), with_activity=True).apply(events))
    assert [log_line(change).partition("  s  ")[2] for change in changes[1:]] == [
        "· Bash make ␛[31m",
        "· Bash ×2 make ␛[31m",
        "· ◐ Test",
        "· ✓ Test",
    ]
    assert log_document(changes[1]).to_json()["activity"]["about"] == make.about
    assert len(list(replay_state_changes(events, Tree()))) == 1


def test_the_log_tells_each_step_of_a_request_once():
    one = request(command="rm \x1b[31m-r build")
    taken = decided(one, stage=Stage.DELIVERED, at=1_111.0)
    events = [ran_session(session()), requested(one), decided(one), taken, ran_session(session(updated_at=1_115.0), 9)]
    changes = StateChanges(Tree()).apply(order_events(events, 2_000.0))
    lines = [log_line(change) for change in changes if isinstance(change, RequestChange)]
    assert [line.split("  ", 2)[2] for line in lines] == [
        "allow? Bash  rm ␛[31m-r build: waits for you",
        "allow? Bash  rm ␛[31m-r build: allowed, not delivered yet, dev@laptop",
        "allow? Bash  rm ␛[31m-r build: allowed and delivered; the result is not known yet, dev@laptop",
    ]
    assert lines[0].startswith("1970-01-01T00:18:20Z  s1  ")


# Sessions


ROOT = replace(SESSION, updated_at=300.0, process_gone=True, model="m")


def message(document: Fields | None, at: float) -> Message:
    return Message(at, f"{at:064.0f}", "words", Document(document) if document else None)


def child(task_id: str, began: float, ended: float | None, **more: object) -> Run:
    """Return a run that was handed a packet, and returned at `ended`."""
    over = {"updated_at": 290.0}
    if ended is not None:
        said = message(returned("completed"), ended)
        over = {"updated_at": ended, "state": RunState.ENDED, "ended_at": ended, "said": said}
    name, prompt = f"{task_id}-{began:g}", message(handoff(task_id), began)
    begun = replace(ROOT, session_id=name, parent_session="root", started_at=began, process_gone=False, prompt=prompt)
    return replace(begun, **(over | more))  # type: ignore[arg-type]


def failed(task_id: str, began: float, ended: float) -> Run:
    return child(task_id, began, ended, said=message(returned("failed"), ended))


def round_of(began: float, ended: float, outcome: str) -> Turn:
    return Turn(began, state=RunState.ENDED, said=message(returned(outcome), ended), ended_at=ended)


def ran(*runs: Run) -> list[Event]:
    return [Ran(seq, run.updated_at, f"agents:{run.session_id}", run) for seq, run in enumerate(runs, 1)]


def retry(at: float, returned_at: int, *read: Receipt, expires_at: float | None = None) -> Decided:
    decision = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=f"{110:064}",
        return_sha256=f"{returned_at:064}",
        action=Action.RETRY,
        at=at,
        receipts=(Receipt(Stage.RECORDED, at), *read),
        expires_at=expires_at,
    )
    return Decided(0, at, "d1", decision)


def test_a_task_that_nothing_speaks_of_any_more_goes():
    tree = Tree()
    log = StateChanges(tree)
    assert [one.after for one in log.changes_of(tree.apply(*ran(ROOT)), 1.0) if isinstance(one, StateChange)] == [
        "working"
    ]
    (change,) = log.changes_of(tree.apply(Ran(2, 7.0, "agents:root", None)), 7.0)
    assert isinstance(change, StateChange)
    assert (change.at, change.before, change.after) == (7.0, State.WORKING, None)
    assert log.changes_of({"root", "never heard of"}, 8.0) == []


TALK = replace(
    ROOT,
    state=RunState.ENDED,
    said=message(None, 300.0),
    ended_at=300.0,
    rounds=(Turn(100.0, state=RunState.ENDED, said=message(None, 120.0)), Turn(150.0)),
)
FIRST, FAILED = failed("a", 110.0, 150.0), round_of(110.0, 130.0, "failed")


@pytest.mark.parametrize(
    ("events", "lines"),
    [
        # Readers give the newest run first.
        (
            ran(child("late", 200.0, None), child("early", 110.0, 150.0), ROOT),
            [
                "100 root: None → working 1",
                "110 early: None → working 1",
                "150 early: working → completed 1",
                "200 late: None → working 1",
            ],
        ),
        # A retry runs in another session.
        (
            ran(child("a", 160.0, 170.0), FIRST, ROOT),
            [
                "100 root: None → working 1",
                "110 a: None → working 1",
                "150 a: working → failed 1",
                "160 a: failed → working 2",
                "170 a: working → completed 2",
            ],
        ),
        # Each round of a child has its lines; a human's session only has its last turn, which waits for the child.
        (
            ran(TALK, child("a", 110.0, 150.0, rounds=(round_of(110.0, 130.0, "partial"), Turn(140.0)))),
            [
                "100 root: None → working 1",
                "110 a: None → working 1",
                "130 a: working → partial 1",
                "140 a: partial → working 1",
                "150 a: working → completed 1",
                "300 root: working → completed 1",
            ],
        ),
        # A retry in the same session is an attempt of its own.
        (
            [
                *ran(ROOT, child("a", 110.0, 150.0, rounds=(FAILED, Turn(140.0, asker=StartedBy.HOOK)))),
                retry(135.0, 130, Receipt(Stage.READ, 136.0)),
            ],
            [
                "100 root: None → working 1",
                "110 a: None → working 1",
                "130 a: working → failed 1",
                "135 a: failed → retrying 1",
                "140 a: retrying → working 2",
                "150 a: working → completed 2",
            ],
        ),
    ],
)
def test_a_session_is_listed_in_the_order_of_its_events(events, lines):
    assert told(events) == lines


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        (157.0, ["155 a: failed → retrying 1", "160 a: retrying → working 2"]),
        # The decision expired before an agent had read it.
        (200.0, ["155 a: failed → retrying 1", "158 a: retrying → failed 1", "160 a: failed → working 2"]),
    ],
)
def test_a_decision_comes_before_its_effects(now, lines):
    decision = retry(155.0, 150, expires_at=158.0)
    assert told([decision, *ran(child("a", 160.0, None), FIRST, ROOT)], now)[3:] == lines


def test_a_decision_in_the_second_of_its_return_comes_behind_it():
    workspace, made = Workspace(), retry(10.0, 0)
    handed = workspace.seen("x.handoff.json", packet("x"), at=5.0)
    failed = workspace.seen("x.return.md", ERROR, at=10.4)
    digests = {"handoff_sha256": handed.digest, "return_sha256": failed.digest}
    made = made._replace(decision=replace(made.decision, task_id="x", **digests))
    assert told([handed, failed, made])[-1] == "10.4 x: invalid → retrying 1"


def test_no_line_is_later_than_the_last_sign_of_life():
    odd = child("a", 9e11, 9e11, updated_at=150.0, rounds=(round_of(9e11, 9e11, "partial"), Turn(9e11)))
    assert [line.split()[0] for line in told(ran(ROOT, odd))] == ["100", *["150"] * 4]


@given(st.lists(drawn_steps, max_size=14))
def test_the_story_ends_with_the_tree_of_what_it_is_made_of(steps):
    events = record(steps)
    of_the_story, of_the_source = tree_of(order_events(events, 0.0)), tree_of(events)
    assert tree_document(of_the_story, "/w") == tree_document(of_the_source, "/w")
