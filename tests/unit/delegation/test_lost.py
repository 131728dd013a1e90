"""Nothing is known of a workspace whose host cannot be reached: what was at work is unknown, what asks still does."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import Recorder, handoff, meta, outline, returned, todos, tree_of
from tests.unit.delegation.test_interleaving import Step, histories, record
from tests.unit.delegation.test_runs import ROOT, child, ran

from agentwatch.delegation.events import Event, Lost, Reached, Ruled, Rules, Tick
from agentwatch.delegation.run import Activity, ActivityKind, RunState
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import JoinedTree, Tree
from agentwatch.view.document import tree_document
from agentwatch.view.spans import Kind, spans_of
from agentwatch.view.times import stands_since, took
from agentwatch.view.words import why_at


def shop() -> list[Event]:
    """A parent with a child at work, one handed off, one done and one that failed."""
    see = Recorder().seen
    return [
        see("a.json", handoff("a")),
        see("b.json", handoff("a.b")),
        see("b.todos.md", todos("x", "-")),
        see("c.json", handoff("a.c")),
        see("d.json", handoff("a.d")),
        see("d.md", returned("completed", task_id="a.d")),
        see("e.json", handoff("a.e")),
        see("e.md", returned("failed", task_id="a.e")),
        Tick(20, 1_020.0),
    ]


def test_what_was_at_work_is_unknown_and_what_has_ended_stays_as_it_was() -> None:
    tree = tree_of(shop())
    known = {task.task_id: task.state for task in tree.tasks.values()}
    assert tree.apply(Lost(0, 1_030.0)) >= {"a", "a.b", "a.c", "a.e"}
    assert outline(tree) == ["a unknown", "  a.b unknown", "  a.c unknown", "  a.d completed", "  a.e failed"]
    assert {task.task_id: task.known_state for task in tree.tasks.values()} == known
    assert (tree.totals.states.get(State.WORKING), tree.totals.states[State.UNKNOWN]) == (None, 3)
    assert {task.task_id for task in tree.tasks.values() if task.lost_since == 1_030.0} == {"a", "a.b", "a.c", "a.e"}


def test_it_says_since_when_and_what_it_was() -> None:
    tree = tree_of([*shop(), Lost(0, 1_030.0), Lost(0, 1_100.0), Tick(21, 1_210.0)])
    a = tree.tasks["a.b"]
    assert stands_since(a) == 1_030.0, "a second loss is no news"
    words = "its host cannot be reached: nothing is known for 3m, and it was "
    assert why_at(a, 1_210.0) == f"{words}{a.known_state} then"
    so_far = took(a, a.latest, 1_210.0)
    assert so_far is not None
    assert so_far.seconds == 1_030.0 - (a.attempts[-1].started_at or 0.0)
    work, unknown = spans_of(a)
    assert (work.end, unknown.start, unknown.end, unknown.kind) == (1_030.0, 1_030.0, None, Kind.SILENT)
    assert unknown.look.word == "unknown"


def test_nothing_turns_silent_and_nothing_new_rings_while_it_is_lost() -> None:
    doing = Activity(120.0, ActivityKind.TOOL, "Bash", "npm test")
    tree = tree_of([*ran(ROOT, child("one", doing=doing)), Tick(9, 130.0)], stale_after=60.0)
    tree.apply(Lost(10, 131.0))
    tree.apply(Tick(11, 9_999.0))
    one = tree.tasks["one"]
    assert (one.stale, one.ask, one.doing, one.did) == (False, None, None, doing)
    assert (tree.totals.stale, tree.asking()) == (0, [])
    tree.apply(Reached(12, 9_999.0))
    assert one.stale


def test_what_asks_goes_on_asking_behind_those_that_can_be_reached() -> None:
    tree = tree_of([*shop(), Lost(0, 1_030.0)])
    other = tree_of(shop())
    assert [task.task_id for task in tree.asking()] == ["a.e"]
    joined = JoinedTree("/")
    joined.show(tree)
    joined.show(other, name="other")
    assert [key[-3:] for key in joined.queue] == ["a.e", "a.e"]
    assert next(iter(joined.queue)) != "a.e"


def test_a_process_that_was_gone_before_goes_on_asking_and_does_not_come_anew() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 130.0)])
    asked = tree.tasks["one"].ask
    tree.apply(Lost(10, 131.0))
    assert (tree.tasks["one"].ask, tree.tasks["one"].state) == (asked, State.UNKNOWN)
    tree.apply(Reached(11, 140.0))
    assert tree.tasks["one"].ask == asked


def test_an_idle_session_whose_work_goes_on_in_the_background_is_unknown_too() -> None:
    tree = tree_of([*ran(replace(ROOT, state=RunState.ENDED, ended_at=125.0), child("one")), Tick(9, 130.0)])
    assert tree.tasks["root"].state is State.WORKING
    tree.apply(Lost(10, 131.0))
    assert (tree.tasks["root"].state, tree.tasks["root"].known_state) == (State.UNKNOWN, State.WORKING)


def test_what_is_only_named_follows_what_is_below_it() -> None:
    see = Recorder().seen
    tree = tree_of([see("j/.return-meta.json", meta("working", "orchestrator", "plan", "planner")), Tick(2, 1_002.0)])
    before = outline(tree)
    tree.apply(Lost(0, 1_003.0))
    assert {task.state for task in tree.tasks.values()} == {State.UNKNOWN}
    tree.apply(Reached(0, 1_004.0))
    assert outline(tree) == before


@given(histories, st.data())
def test_once_it_is_reached_the_tree_is_as_if_it_had_never_been_lost(steps: list[Step], data: st.DataObject) -> None:
    events = record(steps)
    at = sorted(data.draw(st.tuples(*[st.integers(0, len(events))] * 2)))
    lost = [*events[: at[0]], Lost(0, 1_003.0), *events[at[0] : at[1]], Reached(0, 1_004.0)]
    end = Tick(len(events) + 1, 1_100.0)
    whole, cut = tree_of([*events, end]), tree_of([*lost, *events[at[1] :], end])
    assert tree_document(cut, "/w") == tree_document(whole, "/w")
    assert cut.totals == whole.totals


@given(histories, st.data())
def test_rules_that_come_later_judge_all_that_came_before(steps: list[Step], data: st.DataObject) -> None:
    events = record(steps)
    rules = Rules(
        strict=data.draw(st.booleans()),
        stale_after=data.draw(st.sampled_from([1.0, 600.0])),
        max_retries=data.draw(st.integers(0, 2)),
        history_before=data.draw(st.sampled_from([float("-inf"), 1_004.0])),
    )
    at = data.draw(st.integers(0, len(events)))
    end = Tick(len(events) + 1, 1_100.0)
    ruled = tree_of([*events[:at], Ruled(0, 1_000.0, rules), *events[at:], end])
    meant = Tree(rules)
    for one in (*events, end):
        meant.apply(one)
    assert tree_document(ruled, "/w") == tree_document(meant, "/w")
    assert ruled.totals == meant.totals
