"""A process that is gone while its task works: which tasks ask, and until when."""

from dataclasses import replace

import pytest

from agentwatch.decisions import policy
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.delegation.events import Activity, ActivityKind, Aside, Event, Noted, Put, Ran, RunState, Seen, Tick
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.tree import Tree
from agentwatch.view.words import question_at
from tests.unit.delegation.events import ROOT, child, decided, message, ran, returned, tree_of

GONE = "process gone: retry or abort?"
LEFT = "process gone, and {} below had not ended: resume the session in its own program, or abort?"
CLOSED = replace(ROOT, process_gone=True)


def watched(*events: Event, at: float = 130.0, **rules: object) -> Tree:
    return tree_of([*events, Tick(9, at)], **rules)


def asks(tree: Tree) -> dict[str, str | None]:
    return {task.task_id: task.ask for task in tree.asking()}


def again(session: str, state: RunState = RunState.WORKING, **more: object) -> Event:
    return ran(child(session, state, **more), seq=99)[0]  # type: ignore[arg-type]


def test_a_child_asks_until_its_process_or_a_sign_of_life_comes_back():
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


def test_a_closed_session_asks_for_itself_and_for_what_is_open_below():
    tree = watched(*ran(CLOSED, child("one", RunState.ENDED)))
    assert asks(tree)["root"] == "process gone: resume the session in its own program, or abort?"
    tree.apply(again("one", process_gone=True), again("two", process_gone=True))
    assert asks(tree) == {"root": LEFT.format("2 tasks")}
    # The session goes on in another process: what the first one ran is asked about for itself.
    tree.apply(*ran(replace(ROOT, process_gone=False, updated_at=200.0)))
    assert asks(tree) == {"one": GONE, "two": GONE}
    tree.apply(*ran(CLOSED))
    tree.apply(Noted(9, 131.0, "root", Aside(Put(mark_of(tree.tasks["root"]), 131.0))))
    tree.apply(again("two", RunState.CANCELED))
    root = tree.tasks["root"]
    assert (root.ask, root.question) == (None, LEFT.format("1 task")), "it was acknowledged, and is the same"
    tree.apply(Ran(11, 202.0, "agents:root", None))
    assert asks(tree) == {"one": GONE}


def test_what_can_be_decided_about_a_process_that_is_gone():
    tree = watched(*ran(CLOSED, child("one", process_gone=True)))
    root, one = tree.tasks["root"], tree.tasks["one"]

    def allowed(task_id: str) -> set[Action]:
        return {one for one in OF_ATTEMPTS if policy.why_not(tree.tasks[task_id], one) is None}

    assert (allowed("one"), allowed("root")) == ({Action.RETRY, Action.ESCALATE, Action.ABORT}, {Action.ABORT})
    assert policy.suggested(root) is None
    tree.apply(*ran(replace(ROOT, process_gone=False)))
    assert policy.suggested(one) is Action.RETRY
    assert next(policy.warnings(one, Action.RETRY)).startswith("its process is gone: the agent that handed it out")
    tree.apply(*ran(CLOSED), decided("root", Action.ABORT, 300.0))
    assert (one.state, asks(tree), tree.totals.stale) == ("canceled", {}, 0), "the abort of the session ends it, too"


def test_without_a_retry_left_it_offers_none():
    tree = watched(*ran(ROOT, child("one", process_gone=True)), max_retries=0)
    assert asks(tree) == {"one": "process gone: escalate or abort?"}
    assert policy.suggested(tree.tasks["one"]) is Action.ESCALATE


def test_a_process_gone_long_before_it_was_watched_asks_nothing():
    tree = watched(*ran(ROOT, child("one", process_gone=True)), at=9_999.0, history_before=1_000.0)
    assert (tree.tasks["one"].past, tree.tasks["one"].question, asks(tree)) == (True, None, {})
    assert tree.totals.stale == 0


def test_one_that_is_snoozed_asks_again_when_its_time_has_come():
    tree = watched(*ran(ROOT, child("one", process_gone=True)))
    mark = mark_of(tree.tasks["one"])
    tree.apply(Noted(9, 131.0, "one", Aside(Put(mark, 131.0, snoozed=True, until=500.0))))
    assert asks(tree) == {}
    tree.apply(Tick(10, 500.0))
    assert asks(tree) == {"one": GONE}
