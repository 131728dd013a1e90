"""Runs of session stores become tasks and attempts, together with the files about the same tasks."""

import itertools
from dataclasses import replace

import pytest

from agentwatch.contracts.shapes import Contract, Document, Handoff, Outcome, Return
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Activity, ActivityKind, Event, Ran, Run, RunState, Tick
from agentwatch.delegation.task import Basis, State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.report.account import verdict_of
from agentwatch.view.document import tree_document
from tests.unit.delegation.events import (
    ROOT,
    Recorder,
    child,
    decided,
    handoff,
    message,
    outline,
    ran,
    returned,
    todos,
    tree_of,
)

IDLE = replace(ROOT, state=RunState.ENDED)
PACKET, PROSE = message(Handoff("t", "Mend it.")), message(None)
ENDED = child("one", RunState.ENDED, prompt=PACKET, said=PROSE)


def below(*runs: Run, **rules: object) -> Tree:
    return tree_of(ran(ROOT, *runs), **rules)


def rules_of(task: Task) -> list[str]:
    return [placed.rule for placed in task.findings]


def test_children_hang_below_the_session_that_asked_in_any_order():
    runs = ran(ROOT, child("one"), child("deep", parent="one"), child("two", started_at=111.0))
    for order in itertools.permutations(runs):
        tree = tree_of(order)
        assert outline(tree) == ["root working", "  one working", "    deep working", "  two working"]
        assert tree.tasks["deep"].parent_basis is Basis.SESSION
    tree.apply(Ran(9, 0.0, "agents:one", None))
    assert outline(tree) == ["root working", "  two working", "deep working"], "the store no longer has it"


@pytest.mark.parametrize(
    ("prompt", "said", "rules"), [(PACKET, PROSE, ["LNK010"]), (PROSE, PROSE, []), (PACKET, None, [])]
)
def test_a_packet_answered_in_prose_is_marked_and_completed(prompt, said, rules):
    task = below(replace(ENDED, prompt=prompt, said=said)).tasks["t" if prompt is PACKET else "one"]  # type: ignore[arg-type]
    assert (rules_of(task), task.answers_in_prose) == (rules, bool(rules))
    assert task.state is (State.INVALID if said is None else State.COMPLETED)


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELED])
def test_a_run_that_was_cut_off_is_not_what_its_return_says(state):
    written = Recorder().seen("t.return.md", returned("completed", task_id="t"))
    task = tree_of([*ran(ROOT, replace(ENDED, state=state)), written]).tasks["t"]
    assert task.result is not None
    assert task.state is State(state.value)


def test_a_return_that_names_another_task_is_a_warning_there():
    for named, rules in ((None, []), ("t", []), ("u", ["LNK008"])):
        said = message(Return(Contract.REPORT_CONTRACT, "completed", Outcome.COMPLETED, task_id=named))
        task = below(replace(ENDED, said=said)).tasks["t"]
        assert (rules_of(task), task.state) == (rules, State.COMPLETED)


def test_a_packet_beside_an_example_of_a_return_was_handed_over():
    example = Document(Return(Contract.REPORT_CONTRACT, "failed", Outcome.FAILED))
    both = replace(PROSE, reading=example, packet=Document(Handoff("t", "Mend it.")))
    tree = below(replace(ENDED, prompt=both, said=both))
    assert outline(tree) == ["root working", "  t failed"]
    assert tree.tasks["t"].contract is Contract.REPORT_CONTRACT


HEARD, NOT_KNOWN = "it worked when it was last heard of; ", "whether its process still runs is not known"


@pytest.mark.parametrize(
    ("runs", "at", "stale", "why"),
    [
        ([child("one")], 719.0, [False, False], HEARD + NOT_KNOWN),
        ([child("one")], 720.0, [True, True], f"{HEARD}{NOT_KNOWN}; silent for 10m"),
        ([child("one", process_gone=False)], 720.0, [True, True], "its process runs; silent for 10m"),
        ([child("one", waiting="a permission: Bash make")], 720.0, [False, False], None),
        ([child("one"), child("two", updated_at=700.0)], 800.0, [False, True, False], None),
        ([child("one", process_gone=True)], 121.0, [False, True], f"{HEARD}its process is gone; silent for 1s"),
        ([child("one", process_gone=True), replace(ROOT, process_gone=True)], 121.0, [True, True], None),
    ],
)
def test_silence_and_a_process_that_is_gone_make_stale(runs, at, stale, why):
    tree = tree_of([*ran(ROOT, *runs), Tick(9, at)])
    assert [task.stale for task, _ in tree.preorder()] == stale
    assert why in (None, tree_document(tree, "/w")["tasks"][1]["why"])


def test_an_idle_session_works_while_its_background_work_does():
    works = child("one", background=True)
    tree = tree_of(ran(IDLE, works, child("deep", parent="one")))
    root = tree.tasks["root"]
    assert (root.state, root.why) == (State.WORKING, "the session waits for its background work")
    tree.apply(*ran(replace(works, state=RunState.ENDED, said=PROSE)))
    assert root.state is State.WORKING, "a grandchild still works"
    tree.apply(Ran(9, 0.0, "agents:deep", None))
    assert (root.state, root.why) == (State.COMPLETED, "the session is idle")
    assert verdict_of(tree, 0) == "2 tasks: 1 your turn, 1 completed (1 unchecked). Nothing needs a human."
    tree.apply(*ran(works))
    assert root.state is State.WORKING


def test_sessions_come_newest_first_and_children_as_they_began():
    newer = replace(ROOT, session_id="newer", started_at=500.0)
    late, early = (child(name, parent="newer", started_at=at) for name, at in (("late", 520.0), ("early", 510.0)))
    tree = tree_of(ran(late, ROOT))
    assert tree.roots == ["root", "late"], "a root as long as its parent is not known"
    tree.apply(*ran(early, newer))
    assert [task.task_id for task, _ in tree.preorder()] == ["newer", "early", "late", "root"]


def test_a_retry_in_a_new_session_is_the_next_attempt():
    first = child("s1", RunState.ENDED, prompt=PACKET, said=message(returned("failed")))
    second = replace(first, session_id="s2", said=message(returned("completed")), started_at=200.0)
    expected = [(1, "s1", State.FAILED), (2, "s2", State.COMPLETED)]
    for order in (ran(ROOT, first, second), ran(second, first, ROOT)):
        task = tree_of(order).tasks["t"]
        assert [(one.number, one.session_id, one.state) for one in task.attempts] == expected
        assert (task.parent_id, task.state) == ("root", State.COMPLETED)


def test_two_programs_that_use_one_task_id_have_two_tasks():
    ours = child("s1", prompt=PACKET, started_at=200.0)
    first, theirs = (replace(one, source="others", started_at=90.0) for one in (ROOT, ours))
    events = [Ran(at, 0.0, f"{run.source}:{run.session_id}", run) for at, run in enumerate((ours, theirs, first, ROOT))]
    aborted = decided("t#agents", Action.ABORT, 300.0)
    for order in itertools.permutations((*events, aborted)):
        tree = tree_of(order)
        assert {task.task_id: task.parent_id for task, _ in tree.preorder()} == {
            "root": None,
            "t": "root",
            "root#agents": None,
            "t#agents": "root#agents",
        }
        assert (tree.tasks["t"].state, tree.tasks["t#agents"].state) == (State.WORKING, State.CANCELED)
    # Now only one program has the task.
    tree.apply(Ran(9, 0.0, "others:s1", None))
    assert [one.session_id for one in tree.tasks["t"].attempts] == ["s1"]
    assert "t#agents" not in tree.tasks


def test_a_task_in_a_file_and_in_a_session_is_one_task():
    run = child("s1", RunState.ENDED, prompt=message(handoff("a")), said=message(returned("completed")))
    task = tree_of([Recorder().seen("a.handoff.json", handoff("a")), *ran(ROOT, run)]).tasks["a"]
    (attempt,) = task.attempts
    assert (attempt.handoff and attempt.handoff.path, attempt.session_id) == ("a.handoff.json", "s1")
    assert (task.state, task.findings) == (State.COMPLETED, ())


def test_words_are_no_fault_unless_a_contract_is_demanded():
    run = replace(ENDED, prompt=None)
    assert below(run).tasks["one"].state is State.COMPLETED
    demanded = below(run, demands=True).tasks["one"]
    assert (demanded.state, demanded.needs_operator) == (State.INVALID, True)


def test_a_child_that_ends_on_an_early_marker_has_no_result():
    marker = Recorder().seen("x.return.md", returned("working", task_id="t"))
    ended = replace(ENDED, updated_at=marker.at + 9)

    def task_of(run: Run, *events: Event) -> Task:
        return tree_of([*events, *ran(ROOT, run)]).tasks["t"]

    task = task_of(ended, marker)
    assert (task.state, task.why) == (State.INVALID, "it ended without a result: its return still says WORKING")
    assert task.ask == "general ended without a result; retry, or accept it as it is"
    own_words = replace(ENDED, said=message(returned("working"), at=115.0))
    assert task_of(own_words).state is State.INVALID
    final = replace(ended, said=message(returned("completed"), at=marker.at + 9))
    assert task_of(final, marker).state is State.COMPLETED
    for more in (replace(ended, state=RunState.WORKING), replace(ended, updated_at=marker.at - 1)):
        assert task_of(more, marker).state is State.WORKING, "it goes on, or somebody has written after its end"


@pytest.mark.parametrize("state", [RunState.CANCELED, RunState.FAILED])
def test_words_of_an_aborted_or_failed_child_are_no_return(state):
    task = below(child("one", state, said=message(returned("completed")), reason="Task cancelled")).tasks["one"]
    assert (task.state, task.result, task.why) == (state, None, "Task cancelled")
    assert task.needs_operator == (state is RunState.FAILED)


def test_the_session_of_a_human_asks_and_returns_nothing():
    run = replace(IDLE, said=message(returned("failed")), prompt=message(handoff("x")))
    task = tree_of(ran(run)).tasks["root"]
    assert (task.state, task.needs_operator, task.title) == (State.COMPLETED, False, "the session")


FRIDAY = 120.0
"""The last sign of life of `child`."""


def test_history_asks_nothing_until_its_next_sign_of_life():
    failed = ran(ROOT, child("one", RunState.FAILED))
    monday = ran(replace(ROOT, session_id="newer", updated_at=9e6))
    assert tree_of([*failed, Tick(9, 9e6), *monday], history_before=FRIDAY).tasks["one"].needs_operator
    tree = tree_of(failed, history_before=FRIDAY + 0.1)
    task = tree.tasks["one"]
    assert (task.past, task.ask, task.own_state) == (True, None, State.FAILED)
    assert (tree.asking_tasks(), tree.past_questions()) == ([], [task])
    tree.apply(*ran(child("one", RunState.FAILED, updated_at=130.0)))
    assert (task.past, task.question) == (False, task.ask)
    assert (tree.asking_tasks(), tree.past_questions()) == ([task], [])


def test_a_program_that_is_known_to_run_is_not_past():
    waits = child("two", waiting="an answer: Which one?", process_gone=False)
    lost = replace(waits, session_id="three", process_gone=None)
    assert [task.task_id for task in below(waits, lost, history_before=9e6).asking_tasks()] == ["two"]


def test_the_checklist_of_the_run_counts_once_it_goes_on():
    one = child("one", prompt=PACKET, todos=todos("x", "-").items)
    tree = tree_of([*ran(ROOT, one), Recorder().seen("t.todos.md", todos("x", "x"))])
    tree.apply(Recorder().seen("t.handoff.json", handoff("t")))
    assert tree.tasks["t"].progress == (2, 2)
    doing = Activity(150.0, ActivityKind.TOOL, "Bash", "make")
    tree.apply(*ran(replace(one, doing=doing, updated_at=2_000.0)))
    assert (tree.tasks["t"].progress, tree.tasks["t"].doing) == ((1, 2), doing)
