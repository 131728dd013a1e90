"""Runs of session stores become tasks and attempts, beside what files say of them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import Recorder, handoff, outline, returned, tree_of

from agentwatch.contracts.shapes import (
    Contract,
    Document,
    Fields,
    Finding,
    Handoff,
    Outcome,
    Return,
)
from agentwatch.delegation.events import Checked, Claim, Event, Ran, Tick, Verdict
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.delegation.task import Basis, State
from agentwatch.view.document import tree_document

ROOT = Run(
    source="agents",
    session_id="root",
    parent_session=None,
    state=RunState.WORKING,
    place="/store",
    started_at=100.0,
    updated_at=100.0,
    title="the session",
)


def message(document: Fields | None, *findings: Finding, at: float = 150.0) -> Message:
    reading = Document(document, findings) if document else None
    return Message(at, sha256(repr(document).encode()).hexdigest(), "words", reading)


def child(session: str, state: RunState = RunState.WORKING, parent: str = "root", **more: object) -> Run:
    run = Run(
        source="agents",
        session_id=session,
        parent_session=parent,
        state=state,
        place="/store",
        started_at=110.0,
        updated_at=120.0,
        agent="general",
        title=f"title of {session}",
    )
    return replace(run, **more)  # type: ignore[arg-type]


def ran(*runs: Run) -> list[Event]:
    return [Ran(seq, 0.0, f"agents:{run.session_id}", run) for seq, run in enumerate(runs, 1)]


def test_children_hang_below_the_session_that_asked_for_them_in_any_order() -> None:
    runs = ran(ROOT, child("one"), child("deep", parent="one"), child("two", started_at=111.0))
    for order in itertools.permutations(runs):
        tree = tree_of(order)
        assert outline(tree) == ["root working", "  one working", "    deep working", "  two working"]
        assert tree.tasks["deep"].parent_basis is Basis.SESSION


def test_a_packet_answered_in_prose_is_marked_and_stays_completed() -> None:
    prompt, words = message(Handoff("t", "Mend it.")), message(None)
    for asked, said, rules in ((prompt, words, ["LNK010"]), (message(None), words, []), (prompt, None, [])):
        tree = tree_of(ran(ROOT, child("one", RunState.ENDED, prompt=asked, said=said)))
        task = tree.tasks["t" if asked is prompt else "one"]
        assert [placed.rule for placed in task.findings] == rules
        assert task.answers_in_prose == bool(rules)
        assert task.state is (State.INVALID if said is None else State.COMPLETED)


def test_a_return_that_names_another_task_than_its_session_was_handed_is_a_warning_there() -> None:
    for named, rules in ((None, []), ("t", []), ("u", ["LNK008"])):
        said = message(Return(Contract.REPORT_CONTRACT, "completed", Outcome.COMPLETED, task_id=named))
        ended = child("one", RunState.ENDED, prompt=message(Handoff("t", "Mend it.")), said=said)
        tree = tree_of(ran(ROOT, ended))
        assert [placed.rule for placed in tree.tasks["t"].findings] == rules
        assert tree.tasks["t"].state is State.COMPLETED


def test_a_packet_beside_an_example_of_a_return_is_what_was_handed_over_and_an_echo_of_it_was_not() -> None:
    example = Document(Return(Contract.REPORT_CONTRACT, "failed", Outcome.FAILED))
    both = replace(message(None), reading=example, packet=Document(Handoff("t", "Mend it.")))
    tree = tree_of(ran(ROOT, child("one", RunState.ENDED, prompt=both, said=both)))
    assert outline(tree) == ["root working", "  t failed"]
    assert tree.tasks["t"].contract is Contract.REPORT_CONTRACT


def test_a_session_whose_children_are_all_silent_is_silent_and_one_that_waits_for_somebody_is_not() -> None:
    for waiting, stale in (("", [True, True]), ("a permission: Bash make", [False, False])):
        tree = tree_of([*ran(ROOT, child("one", waiting=waiting)), Tick(9, 719.0)])
        assert not tree.tasks["root"].stale
        tree.apply(Tick(10, 720.0))
        assert [tree.tasks[task_id].stale for task_id in ("root", "one")] == stale
    tree = tree_of([*ran(ROOT, child("one"), child("two", updated_at=700.0)), Tick(9, 800.0)])
    assert [tree.tasks[task_id].stale for task_id in ("root", "one", "two")] == [False, True, False]


def test_an_idle_session_works_while_its_work_in_the_background_does() -> None:
    idle = replace(ROOT, state=RunState.ENDED)
    works, done = child("one", background=True), child("one", RunState.ENDED, said=message(None), background=True)
    tree = tree_of(ran(idle, works, child("deep", parent="one")))
    expected = (State.WORKING, "the session waits for its background work")
    assert (tree.tasks["root"].state, tree.tasks["root"].why) == expected
    tree.apply(ran(idle, done)[1])
    assert tree.tasks["root"].state is State.WORKING, "a grandchild still works"
    tree.apply(Ran(9, 0.0, "agents:deep", None))
    assert (tree.tasks["root"].state, tree.tasks["root"].why) == (State.COMPLETED, "the session is idle")
    tree.apply(ran(idle, works)[1])
    assert (tree.tasks["root"].state, tree.tasks["root"].why) == expected


def test_a_session_whose_process_is_gone_is_stale_and_does_not_wait_for_its_children() -> None:
    gone = replace(ROOT, process_gone=True)
    tree = tree_of([*ran(gone, child("one", process_gone=True)), Tick(9, 121.0)])
    assert [tree.tasks[task_id].stale for task_id in ("root", "one")] == [True, True]
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 121.0)])
    assert [tree.tasks[task_id].stale for task_id in ("root", "one")] == [False, True]


def test_a_child_whose_parent_is_not_known_is_a_root_until_it_is() -> None:
    tree = tree_of(ran(child("one")))
    assert tree.roots == ["one"]
    tree.apply(ran(ROOT)[0])
    assert tree.roots == ["root"]


def test_sessions_come_newest_first_and_their_children_in_the_order_they_began() -> None:
    newer = replace(ROOT, session_id="newer", started_at=500.0)
    late = child("late", parent="newer", started_at=520.0)
    early = child("early", parent="newer", started_at=510.0)
    tree = tree_of(ran(late, ROOT, early, newer))
    assert [task.task_id for task, _ in tree.preorder()] == ["newer", "early", "late", "root"]


def test_the_packet_names_the_task_and_a_retry_in_a_new_session_is_its_next_attempt() -> None:
    packet = message(handoff("b"), at=111.0)
    first = child("s1", RunState.ENDED, prompt=packet, said=message(returned("failed")))
    second = child("s2", RunState.ENDED, prompt=packet, said=message(returned("completed")), started_at=200.0)
    for order in (ran(ROOT, first, second), ran(second, first, ROOT)):
        task = tree_of(order).tasks["b"]
        assert [(one.number, one.session_id, one.state) for one in task.attempts] == [
            (1, "s1", State.FAILED),
            (2, "s2", State.COMPLETED),
        ]
        assert (task.parent_id, task.state) == ("root", State.COMPLETED)


def test_a_task_in_a_file_and_in_a_session_is_one_task() -> None:
    record = Recorder()
    run = child("s1", RunState.ENDED, prompt=message(handoff("a")), said=message(returned("completed")))
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), *ran(ROOT, run)])
    task = tree.tasks["a"]
    (attempt,) = task.attempts
    assert attempt.handoff is not None
    assert (attempt.handoff.path, attempt.session_id, task.state) == ("a.handoff.json", "s1", State.COMPLETED)
    assert not task.findings


def test_words_without_a_contract_are_no_fault_unless_the_configuration_demands_one() -> None:
    events = ran(ROOT, child("one", RunState.ENDED, said=message(None)))
    assert tree_of(events).tasks["one"].state is State.COMPLETED
    demanded = tree_of(events, demands=True).tasks["one"]
    assert (demanded.state, demanded.needs_operator) == (State.INVALID, True)


def test_a_child_that_ends_while_its_return_is_an_early_marker_ended_without_a_result() -> None:
    record = Recorder()
    marker = record.seen("x.return.md", returned("working", task_id="a"))
    prompt = message(handoff("a"))
    ended = child("one", RunState.ENDED, prompt=prompt, said=message(None), updated_at=marker.at + 9)
    task = tree_of([marker, *ran(ROOT, ended)]).tasks["a"]
    assert (task.state, task.why) == (State.INVALID, "it ended without a result: its return still says WORKING")
    assert task.ask == "general ended without a result; retry, or accept it as it is"
    final = replace(ended, said=message(returned("completed"), at=marker.at + 9))
    assert tree_of([marker, *ran(ROOT, final)]).tasks["a"].state is State.COMPLETED
    own_words = child("one", RunState.ENDED, prompt=prompt, said=message(returned("working"), at=115.0))
    assert tree_of(ran(ROOT, own_words)).tasks["a"].state is State.INVALID
    assert tree_of([marker, *ran(ROOT, replace(ended, state=RunState.WORKING))]).tasks["a"].state is State.WORKING
    later = tree_of([marker, *ran(ROOT, replace(ended, updated_at=marker.at - 1))]).tasks["a"]
    assert later.state is State.WORKING, "somebody has written after its end"


def test_what_an_aborted_or_failed_child_had_said_is_no_return() -> None:
    said = message(returned("completed"))
    for state, shown in ((RunState.CANCELED, State.CANCELED), (RunState.FAILED, State.FAILED)):
        task = tree_of(ran(ROOT, child("one", state, said=said, reason="Task cancelled"))).tasks["one"]
        assert (task.state, task.result, task.why) == (shown, None, "Task cancelled")
        assert task.needs_operator == (shown is State.FAILED)


def test_what_was_found_about_the_claims_of_a_run_belongs_to_its_task() -> None:
    run = child("one", RunState.ENDED, said=message(returned("completed")))
    tree = tree_of(ran(ROOT, run))
    version = tree.tasks["one"].attempts[0].returned
    assert version is not None
    lie = Claim("created", "a.py", Verdict.CONTRADICTED, "missing")
    tree.apply(Checked(5, 200.0, version.path, version.digest, (lie,)))
    assert (tree.tasks["one"].contradicted, tree.tasks["one"].needs_operator) == (True, True)


def test_the_session_of_a_human_asks_nothing_and_its_words_are_no_return() -> None:
    run = replace(ROOT, state=RunState.ENDED, said=message(returned("failed")), prompt=message(handoff("x")))
    tree = tree_of(ran(run))
    task = tree.tasks["root"]
    assert (task.state, task.needs_operator, task.title) == (State.COMPLETED, False, "the session")


def test_a_working_child_is_stale_when_silent_for_too_long_or_when_its_process_is_gone() -> None:
    tree = tree_of([*ran(ROOT, child("one")), Tick(9, 121.0)], stale_after=60.0)
    assert not tree.tasks["one"].stale
    tree.apply(Tick(10, 181.0))
    assert tree.tasks["one"].stale
    assert "not known" in tree.tasks["one"].why
    gone = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 121.0)])
    assert gone.tasks["one"].stale
    assert "its process is gone" in gone.tasks["one"].why


def newer(at: float) -> Event:
    """Another session of the workspace, and its last sign of life."""
    return Ran(9, at, "agents:newer", replace(ROOT, session_id="newer", updated_at=at))


def test_a_stale_run_says_for_how_long_it_was_silent_and_whether_its_process_is_gone() -> None:
    def why(**more: object) -> str:
        tree = tree_of([*ran(ROOT, child("one", **more)), Tick(9, 120.0 + 720.0)])
        return tree_document(tree, "/w")["tasks"][1]["why"]

    worked = "it worked when it was last heard of; "
    assert why() == f"{worked}whether its process still runs is not known; silent for 12m"
    assert why(process_gone=True) == f"{worked}its process is gone; silent for 12m"
    assert why(process_gone=False) == "its process runs; silent for 12m"
    assert why(updated_at=800.0) == f"{worked}whether its process still runs is not known"


FRIDAY = 120.0
"""When `child` was last alive."""


def test_what_was_asked_on_friday_is_asked_on_monday_whatever_other_sessions_do() -> None:
    tree = tree_of([*ran(ROOT, child("one", RunState.FAILED)), Tick(9, 9e6), newer(9e6)], history_before=FRIDAY)
    assert tree.tasks["one"].needs_operator


def test_what_was_silent_for_long_when_first_watched_asks_nothing_until_its_next_sign_of_life() -> None:
    failed = ran(ROOT, child("one", RunState.FAILED))
    tree = tree_of(failed, history_before=FRIDAY + 0.1)
    task = tree.tasks["one"]
    assert (task.past, task.ask, task.own_state) == (True, None, State.FAILED)
    assert (tree.asking(), tree.past_questions()) == ([], [task])
    tree.apply(ran(child("one", RunState.FAILED, updated_at=130.0))[0])
    assert (task.past, task.question) == (False, task.ask)
    assert (tree.asking(), tree.past_questions()) == ([task], [])


def test_a_program_that_is_known_to_run_is_not_past() -> None:
    waits = child("two", waiting="an answer: Which one?", process_gone=False)
    lost = child("three", waiting="an answer: Which one?")
    tree = tree_of(ran(ROOT, waits, lost), history_before=9e6)
    assert [task.task_id for task in tree.asking()] == ["two"]


def test_a_run_that_the_store_no_longer_has_leaves_the_tree() -> None:
    events = ran(ROOT, child("one"))
    tree = tree_of([*events, Ran(9, 0.0, "agents:one", None)])
    assert outline(tree) == ["root working"]


runs = st.lists(
    st.builds(
        lambda session, parent, state, task_id, outcome, began, days: child(
            session,
            state,
            parent,
            prompt=message(handoff(task_id)) if task_id else None,
            said=message(returned(outcome)) if outcome else None,
            started_at=float(began),
            updated_at=120.0 + days,
        ),
        st.sampled_from(["s1", "s2", "s3", "s4"]),
        st.sampled_from(["root", "s1", "s2", "s3", "s4"]),
        st.sampled_from(RunState),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, *(outcome.value for outcome in Outcome)]),
        st.integers(100, 104),
        st.integers(0, 3),
    ),
    max_size=8,
)


@given(runs, st.randoms(use_true_random=False))
def test_only_the_last_state_of_each_run_counts_whatever_came_before_and_in_which_order(
    steps: list[Run], dice: object
) -> None:
    last = {run.session_id: run for run in [ROOT, *steps]}
    shuffled = list(last.values())

    def looks(events: list[Event]) -> object:
        return tree_document(tree_of(events, history_before=FRIDAY + 2), "/w")

    expected = looks(ran(*shuffled))
    assert looks([*ran(ROOT, *steps), *ran(*shuffled)]) == expected
    assert looks(ran(*sorted(shuffled, key=lambda run: run.session_id))) == expected
    come_and_gone = [newer(9e6), Ran(9, 0.0, "agents:newer", None)]
    assert looks([*come_and_gone[:1], *ran(*shuffled), *come_and_gone[1:]]) == expected
