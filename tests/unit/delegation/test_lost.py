"""Nothing is known of a workspace whose host cannot be reached: what was at work is unknown, what asks still does."""

from dataclasses import replace

from agentwatch.app.screens.timeline import Kind, spans_of
from agentwatch.delegation.events import Activity, ActivityKind, Event, Lost, Reached, RunState, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import JoinedTree
from agentwatch.view.words import took, why_at
from tests.unit.delegation.events import ROOT, Recorder, child, handoff, meta, outline, ran, returned, todos, tree_of

LOST = Lost(0, 1_030.0)


def shop() -> list[Event]:
    """A parent with a child at work, one handed off, one done and one that failed."""
    see = Recorder().seen
    return [
        see("a.json", handoff("a")),
        see("b.json", handoff("a.b")),
        see("b.todos.md", todos("x", "-")),
        see("c.json", handoff("a.c")),
        see("d.md", returned("completed", task_id="a.d")),
        see("e.md", returned("failed", task_id="a.e")),
        Tick(20, 1_020.0),
    ]


def test_what_was_at_work_is_unknown_and_what_has_ended_stays():
    tree = tree_of(shop())
    before, known = outline(tree), {task.task_id: task.state for task in tree.tasks.values()}
    assert tree.apply(LOST) >= {"a", "a.b", "a.c", "a.e"}
    assert outline(tree) == ["a unknown", "  a.b unknown", "  a.c unknown", "  a.d completed", "  a.e failed"]
    assert {task.task_id: task.known_state for task in tree.tasks.values()} == known
    assert (tree.totals.states.get(State.WORKING), tree.totals.states[State.UNKNOWN]) == (None, 3)
    assert {task.task_id for task in tree.tasks.values() if task.lost_since == LOST.at} == {"a", "a.b", "a.c", "a.e"}
    tree.apply(Reached(0, 1_004.0))
    assert outline(tree) == before


def test_it_says_since_when_and_what_it_was():
    tree = tree_of([*shop(), LOST, Lost(0, 1_100.0), Tick(21, 1_210.0)])
    a = tree.tasks["a.b"]
    assert a.since == LOST.at, "a second loss is no news"
    words = "its host cannot be reached: nothing is known for 3m, and it was "
    assert why_at(a, tree.tasks, 1_210.0) == f"{words}{a.known_state} then"
    so_far = took(a, a.latest, 1_210.0)
    assert so_far is not None
    assert so_far.seconds == LOST.at - (a.attempts[-1].started_at or 0.0)
    work, unknown = spans_of(a)
    assert (work.end, unknown.start, unknown.end, unknown.kind) == (LOST.at, LOST.at, None, Kind.SILENT)
    assert unknown.look.word == "unknown"


def test_nothing_turns_silent_or_gone_while_it_is_lost():
    doing = Activity(120.0, ActivityKind.TOOL, "Bash", "npm test")
    tree = tree_of([*ran(ROOT, child("one", doing=doing)), Tick(9, 130.0)], stale_after=60.0)
    tree.apply(Lost(10, 131.0), Tick(11, 9_999.0))
    one = tree.tasks["one"]
    assert (one.stale, one.ask, one.doing, one.did, tree.totals.stale) == (False, None, None, doing, 0)
    tree.apply(Reached(12, 9_999.0))
    assert one.stale
    tree.apply(*ran(child("one", process_gone=True)))
    asked = one.ask
    tree.apply(Lost(10, 10_000.0))
    assert (one.ask, one.state) == (asked, State.UNKNOWN), "what was gone before goes on asking"


def test_what_asks_goes_on_asking_behind_those_in_reach():
    joined = JoinedTree("/")
    joined.show(tree_of([*shop(), LOST]))
    joined.show(tree_of(shop()), name="other")
    assert [key[-3:] for key in joined.queue] == ["a.e", "a.e"]
    assert joined.queue[1] == "a.e"


def test_an_idle_session_and_a_mere_name_follow_what_is_below():
    see = Recorder().seen
    idle = replace(ROOT, state=RunState.ENDED, ended_at=125.0)
    path = see("j/.return-meta.json", meta("working", "orchestrator", "plan", "planner"))
    tree = tree_of([path, *ran(idle, child("one")), Tick(2, 1_002.0)])
    assert {task.state for task in tree.tasks.values()} == {State.WORKING}
    tree.apply(Lost(0, 1_003.0))
    assert {task.state for task in tree.tasks.values()} == {State.UNKNOWN}
    assert tree.tasks["root"].known_state is State.WORKING
