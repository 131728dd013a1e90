"""A process that is gone while its task works: which tasks ask, and until when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import returned, tree_of
from tests.unit.delegation.test_interleaving import interleaved
from tests.unit.delegation.test_runs import ROOT, child, message, ran

from agentwatch.contracts.shapes import Outcome, Return
from agentwatch.decisions import policy
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Aside, Decided, Event, Put, Ran, Rules, Seen, Tick
from agentwatch.delegation.run import Activity, ActivityKind, Run, RunState
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document
from agentwatch.view.words import question_at

GONE = "process gone: retry or abort?"


def test_a_child_whose_process_is_gone_asks_until_the_process_or_a_sign_of_life_comes_back() -> None:
    tree = tree_of([*ran(ROOT, child("one")), Tick(9, 130.0)])
    assert tree.asking() == []
    tree.apply(again("one", process_gone=True))
    one = tree.tasks["one"]
    assert (one.ask, one.gone, tree.asking()) == (GONE, True, [one])
    assert question_at(one, one.updated_at + 720.0) == "process gone 12m ago: retry or abort?"
    assert tree.tasks["root"].below is not None
    assert tree.tasks["root"].below.needs_operator == tree.totals.needs_operator == 1
    for back in (False, None):
        tree.apply(again("one", process_gone=back))
        assert (one.ask, one.gone, tree.asking(), tree.totals.needs_operator) == (None, False, [], 0)
        tree.apply(again("one", process_gone=True))
        assert one.ask == GONE
    tree.apply(again("one", RunState.ENDED, said=message(Return("return-format", "SUCCESS", Outcome.COMPLETED))))  # type: ignore[arg-type]
    assert tree.asking() == []


@pytest.mark.parametrize("gone", [False, None])
def test_a_long_quiet_test_run_asks_nothing(gone: bool | None) -> None:
    """Whether its process is known to run, or nothing is known of it."""
    testing = Activity(120.0, ActivityKind.TOOL, "Bash", "npm test")
    tree = tree_of([*ran(ROOT, child("one", process_gone=gone, doing=testing)), Tick(9, 120.0 + 86_400.0)])
    assert tree.tasks["one"].stale
    assert tree.asking() == []


def test_a_file_that_is_written_long_after_the_last_sign_of_the_process_is_a_sign_of_life() -> None:
    for at, asks in ((170.0, True), (181.0, False)):
        note = Seen(5, at, "one.md", "f", returned("working", task_id="one"))
        tree = tree_of([*ran(ROOT, child("one", process_gone=True)), note, Tick(9, 190.0)])
        assert tree.tasks["one"].needs_operator == asks


def test_a_session_that_its_human_closed_asks_only_if_something_below_has_not_ended_and_asks_for_it() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one", RunState.ENDED)), Tick(9, 130.0)])
    assert tree.tasks["root"].stale
    assert tree.tasks["root"].ask is None
    tree.apply(again("one", process_gone=True))
    tree.apply(again("two", process_gone=True))
    asked = "process gone, and 2 tasks below had not ended: resume the session in its own program, or abort?"
    assert [task.ask for task in tree.asking()] == [asked]
    # The session goes on in another process: what the first one ran is asked about for itself.
    tree.apply(Ran(9, 200.0, "agents:root", replace(ROOT, process_gone=False)))
    assert {task.task_id: task.ask for task in tree.asking()} == {"one": GONE, "two": GONE}
    tree.apply(Ran(10, 201.0, "agents:root", replace(ROOT, process_gone=True)))
    assert [task.task_id for task in tree.asking()] == ["root"]
    tree.apply(Ran(11, 202.0, "agents:root", None))
    assert {task.task_id for task in tree.asking()} == {"one", "two"}


def test_what_can_be_decided_about_a_process_that_is_gone() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one", process_gone=True)), Tick(9, 130.0)])
    root, one = tree.tasks["root"], tree.tasks["one"]
    assert allowed(one) == {Action.RETRY, Action.ESCALATE, Action.ABORT}
    assert allowed(root) == {Action.ABORT}
    assert policy.suggested(root) is None
    tree.apply(Ran(9, 200.0, "agents:root", replace(ROOT, process_gone=False)))
    assert policy.suggested(one) is Action.RETRY
    assert policy.options(one)[Action.RETRY].warnings[0].startswith("its process is gone: the agent that handed it out")
    tree.apply(decided("one", Action.ABORT))
    assert (one.state, tree.asking()) == ("canceled", [])


def test_to_abort_a_session_whose_process_is_gone_ends_what_is_below() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one", process_gone=True)), Tick(9, 130.0)])
    tree.apply(decided("root", Action.ABORT))
    assert (tree.tasks["one"].state, tree.asking(), tree.totals.stale) == ("canceled", [], 0)


def test_without_a_retry_left_it_offers_none() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 130.0)], max_retries=0)
    assert tree.tasks["one"].ask == "process gone: escalate or abort?"
    assert policy.suggested(tree.tasks["one"]) is Action.ESCALATE


def test_a_process_that_was_gone_long_before_the_workspace_was_watched_asks_nothing() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 9_999.0)], history_before=1_000.0)
    assert (tree.tasks["one"].past, tree.tasks["one"].question, tree.asking()) == (True, None, [])
    assert tree.totals.stale == 0


def test_a_closed_session_that_was_acknowledged_asks_no_more_when_only_one_task_below_is_left() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one"), child("two")), Tick(9, 130.0)])
    root = tree.tasks["root"]
    tree.apply(aside("root", Put(mark_of(root), 131.0)))
    tree.apply(again("two", state=RunState.CANCELED))
    assert (root.ask, root.question) == (
        None,
        "process gone, and 1 task below had not ended: resume the session in its own program, or abort?",
    )


def test_one_that_is_snoozed_asks_again_when_its_time_has_come() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 130.0)])
    one = tree.tasks["one"]
    tree.apply(aside("one", Put(mark_of(one), 131.0, snoozed=True, until=500.0)))
    assert one.ask is None
    tree.apply(Tick(10, 500.0))
    assert one.ask == GONE


def again(session: str, state: RunState = RunState.WORKING, **more: object) -> Ran:
    run = child(session, state, **more)
    return Ran(99, run.updated_at, f"agents:{session}", run)


def allowed(task: Task) -> set[Action]:
    return {action for action, option in policy.options(task).items() if option.allowed}


def aside(task_id: str, put: Put) -> Event:
    from agentwatch.delegation.events import Noted

    return Noted(9, put.at, task_id, Aside(put))


def decided(task_id: str, action: Action) -> Decided:
    decision = Decision(
        decision_id="d",
        task_id=task_id,
        attempt=1,
        handoff_sha256=None,
        return_sha256=None,
        action=action,
        at=300.0,
        receipts=(Receipt(Stage.RECORDED, 300.0),),
    )
    return Decided(99, 300.0, "d", decision)


# In random orders

SESSIONS = ["root", "one", "two", "three"]
runs = st.builds(
    lambda session, parent, state, **more: child(session, state, **more, parent=parent if parent < session else None),
    st.sampled_from(SESSIONS),
    st.sampled_from(SESSIONS),
    st.sampled_from([RunState.WORKING, RunState.WORKING, RunState.ENDED]),
    process_gone=st.sampled_from([None, False, True, True]),
    tokens=st.none() | st.integers(0, 30),
    updated_at=st.sampled_from([1_002.0, 1_010.0, 1_080.0]),
)


def recorded(changes: list[Run]) -> list[Event]:
    return [Ran(seq, run.updated_at, f"agents:{run.session_id}", run) for seq, run in enumerate(changes)]


def grown(events: list[Event], ticks: list[float | None]) -> Tree:
    tree = Tree(Rules(history_before=1_005.0, stale_after=5.0))
    for number, event in enumerate(events):
        tree.apply(event)
        if number < len(ticks) and (at := ticks[number]) is not None:
            tree.apply(Tick(99, at))
    tree.apply(Tick(99, 1_100.0))
    return tree


times = st.lists(st.none() | st.floats(1_000.0, 1_200.0), max_size=10)


@given(st.lists(runs, max_size=10), st.lists(st.integers(0, 12), max_size=10), times)
def test_any_interleaving_and_any_time_asks_the_same(
    changes: list[Run], order: list[int], ticks: list[float | None]
) -> None:
    events = recorded(changes)
    assert documents(grown(interleaved(events, order), ticks)) == documents(grown(events, []))


@given(st.lists(runs, max_size=10), times)
def test_what_asks_is_counted_above_and_stands_in_the_queue(changes: list[Run], ticks: list[float | None]) -> None:
    tree = grown(recorded(changes), ticks)
    for task in tree.tasks.values():
        below = [tree.tasks[one] for one in tree.tasks if task.task_id in tree.ancestors(one)]
        assert (task.below.needs_operator if task.below else 0) == sum(one.needs_operator for one in below)
        assert not (task.gone and task.past)
        assert (task.below.tokens if task.below else 0) == sum(one.tokens or 0 for one in below)
        above = tree.tasks[task.parent_id] if task.parent_id is not None else None
        assert not (above is not None and above.gone and task.gone)
    assert {task.task_id for task in tree.asking()} == {task.task_id for task in tree.tasks.values() if task.ask}


def documents(tree: Tree) -> list[dict[str, Any]]:
    return tree_document(tree, "/w")["tasks"]


@given(st.lists(runs, max_size=10))
def test_apply_names_every_task_that_changes(changes: list[Run]) -> None:
    tree = Tree(Rules(stale_after=5.0))
    before: dict[str, object] = {}
    for event in (*recorded(changes), Tick(99, 1_030.0), Tick(99, 1_100.0), Tick(99, 1_000.0)):
        changed = tree.apply(event)
        after: dict[str, object] = {one["task_id"]: {**one, "depth": None, "why": None} for one in documents(tree)}
        assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= changed
        before = after
