"""A process that is gone while its task works: which tasks ask, and until when."""

from dataclasses import replace

import pytest

from agentwatch.app.screens.timeline import Kind, spans_of
from agentwatch.contracts.shapes import Contract, Return
from agentwatch.decisions import policy
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.delegation.events import (
    Activity,
    ActivityKind,
    Aside,
    Event,
    Lost,
    Noted,
    Put,
    Ran,
    Reached,
    RunState,
    Seen,
    Tick,
)
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import JoinedTree, Tree
from agentwatch.view.words import question_at, reason_at, span_of
from tests.unit.delegation.events import (
    BROKEN,
    ROOT,
    Recorder,
    child,
    decided,
    handoff,
    message,
    meta,
    outline,
    ran,
    returned,
    todos,
    tree_of,
)

GONE = "process gone: retry or abort?"
LEFT = "process gone, and {} below had not ended: resume the session in its own program, or abort?"
CLOSED = replace(ROOT, process_gone=True)


def watched(*events: Event, at: float = 130.0, **rules: object) -> Tree:
    return tree_of([*events, Tick(9, at)], **rules)


def asks(tree: Tree) -> dict[str, str | None]:
    return {task.task_id: task.ask for task in tree.asking_tasks()}


def again(session: str, state: RunState = RunState.WORKING, **more: object) -> Event:
    return ran(child(session, state, **more), seq=99)[0]  # type: ignore[arg-type]


def test_a_broken_file_of_no_task_is_a_problem_until_deleted():
    files = Recorder()
    stray = Return(Contract.RETURN_FORMAT, None, None, recognised=False)
    tree = tree_of([files.seen("x.return.md", stray, BROKEN)])
    assert [one.path for one in tree.notices] == ["x.return.md"]
    tree.apply(files.gone("x.return.md"))
    assert tree.notices == []


def test_a_child_asks_until_it_shows_a_sign_of_life():
    tree = watched(*ran(ROOT, child("one")))
    assert asks(tree) == {}
    tree.apply(again("one", process_gone=True))
    one = tree.tasks["one"]
    assert (asks(tree), one.gone, tree.totals.needs_operator) == ({"one": GONE}, True, 1)
    assert question_at(one, one.updated_at + 720.0) == "process gone 12m ago: retry or abort?"
    for back in (False, None):
        tree.apply(again("one", process_gone=back))
        assert (asks(tree), one.gone, tree.totals.needs_operator) == ({}, False, 0)
        tree.apply(again("one", process_gone=True))
        assert asks(tree) == {"one": GONE}
    tree.apply(again("one", RunState.ENDED, said=message(returned("completed"))))
    assert asks(tree) == {}


@pytest.mark.parametrize("gone", [False, None])
def test_a_long_quiet_test_run_asks_nothing(gone):
    testing = Activity(120.0, ActivityKind.TOOL, "Bash", "npm test")
    tree = watched(*ran(ROOT, child("one", process_gone=gone, doing=testing)), at=120.0 + 86_400.0)
    assert (tree.tasks["one"].stale, asks(tree)) == (True, {})


@pytest.mark.parametrize(("at", "asking"), [(170.0, True), (181.0, False)])
def test_a_file_written_long_after_the_process_is_a_sign_of_life(at, asking):
    note = Seen(5, at, "one.md", "f", returned("working", task_id="one"))
    tree = watched(*ran(ROOT, child("one", process_gone=True)), note, at=190.0)
    assert tree.tasks["one"].needs_operator == asking


def test_a_closed_session_asks_for_what_is_open_below_it_too():
    tree = watched(*ran(CLOSED, child("one", RunState.ENDED)))
    assert asks(tree)["root"] == "process gone: resume the session in its own program, or abort?"
    tree.apply(again("one", process_gone=True), again("two", process_gone=True))
    assert asks(tree) == {"root": LEFT.format("2 tasks")}
    # The session goes on in another process: each child of the first process asks for itself.
    tree.apply(*ran(replace(ROOT, process_gone=False, updated_at=200.0)))
    assert asks(tree) == {"one": GONE, "two": GONE}
    tree.apply(*ran(CLOSED))
    tree.apply(Noted(9, 131.0, "root", Aside(Put(mark_of(tree.tasks["root"]), 131.0))))
    tree.apply(again("two", RunState.CANCELED))
    root = tree.tasks["root"]
    assert (root.ask, root.question) == (None, LEFT.format("1 task")), "it was acknowledged, and is the same"
    tree.apply(Ran(11, 202.0, "agents:root", None))
    assert asks(tree) == {"one": GONE}


def test_decisions_that_are_possible_if_the_process_is_gone():
    tree = watched(*ran(CLOSED, child("one", process_gone=True)))
    root, one = tree.tasks["root"], tree.tasks["one"]

    def allowed(task_id: str) -> set[Action]:
        return {one for one in OF_ATTEMPTS if policy.why_impossible(tree.tasks[task_id], one) is None}

    assert (allowed("one"), allowed("root")) == ({Action.RETRY, Action.ESCALATE, Action.ABORT}, {Action.ABORT})
    assert policy.suggest_action(root) is None
    tree.apply(*ran(replace(ROOT, process_gone=False)))
    assert policy.suggest_action(one) is Action.RETRY
    spent = watched(*ran(ROOT, child("one", process_gone=True)), max_retries=0)
    assert asks(spent) == {"one": "process gone: escalate or abort?"}
    assert policy.suggest_action(spent.tasks["one"]) is Action.ESCALATE
    assert next(policy.find_warnings(one, Action.RETRY)).startswith("its process is gone: the agent that handed it out")
    tree.apply(*ran(CLOSED), decided("root", Action.ABORT, 300.0))
    assert (one.state, asks(tree), tree.totals.stale) == ("canceled", {}, 0), "the abort of the session ends it, too"


def test_a_process_gone_long_before_it_was_watched_asks_nothing():
    tree = watched(*ran(ROOT, child("one", process_gone=True)), at=9_999.0, history_before=1_000.0)
    assert (tree.tasks["one"].past, tree.tasks["one"].question, asks(tree)) == (True, None, {})
    assert tree.totals.stale == 0


LOST = Lost(0, 1_030.0)


def shop() -> list[Event]:
    """Return a parent with four children: one at work, one handed off, one done and one failed."""
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


def test_lost_tasks_at_work_are_unknown_and_ended_ones_stay():
    tree = tree_of(shop())
    before, known = outline(tree), {task.task_id: task.state for task in tree.tasks.values()}
    assert tree.apply(LOST) >= {"a", "a.b", "a.c", "a.e"}
    assert outline(tree) == ["a unknown", "  a.b unknown", "  a.c unknown", "  a.d completed", "  a.e failed"]
    assert {task.task_id: task.known_state for task in tree.tasks.values()} == known
    assert (tree.totals.states.get(State.WORKING), tree.totals.states[State.UNKNOWN]) == (None, 3)
    assert {task.task_id for task in tree.tasks.values() if task.lost_since == LOST.at} == {"a", "a.b", "a.c", "a.e"}
    tree.apply(Reached(0, 1_004.0))
    assert outline(tree) == before


def test_a_lost_task_says_since_when_and_its_last_state():
    tree = tree_of([*shop(), LOST, Lost(0, 1_100.0), Tick(21, 1_210.0)])
    a = tree.tasks["a.b"]
    assert a.since == LOST.at, "a second loss is no news"
    words = "its host cannot be reached: nothing is known for 3m, and it was "
    assert reason_at(a, tree.tasks, 1_210.0) == f"{words}{a.known_state} then"
    so_far = span_of(a, a.latest, 1_210.0)
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
    assert (one.stale, one.ask, one.doing, one.last_doing, tree.totals.stale) == (False, None, None, doing, 0)
    tree.apply(Reached(12, 9_999.0))
    assert one.stale
    tree.apply(*ran(child("one", process_gone=True)))
    asked = one.ask
    tree.apply(Lost(10, 10_000.0))
    assert (one.ask, one.state) == (asked, State.UNKNOWN), "what was gone before goes on asking"


def test_lost_tasks_go_on_asking_after_those_in_reach():
    joined = JoinedTree("/")
    joined.add_tree(tree_of([*shop(), LOST]))
    joined.add_tree(tree_of(shop()), name="other")
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
