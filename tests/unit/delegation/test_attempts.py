"""When a new attempt begins, and what each attempt holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.observations import BROKEN, Recorder, handoff, meta, returned, todos, tree_of

from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.delegation.run import Doing, DoingKind
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import DelegationTree


def states(tree: DelegationTree, task_id: str) -> list[tuple[int, str]]:
    return [(attempt.number, attempt.state) for attempt in tree.tasks[task_id].attempts]


def rules(tree: DelegationTree, task_id: str) -> list[str]:
    return [placed.finding.rule for placed in tree.tasks[task_id].findings]


def test_a_handoff_rewritten_before_the_return_amends_the_attempt() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.handoff.json", handoff("a")), see("a.handoff.json", handoff("a", mode="code"))])
    assert states(tree, "a") == [(1, "submitted")]
    assert tree.tasks["a"].agent == "code"


def test_a_handoff_rewritten_after_the_return_begins_the_next_attempt() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a.handoff.json", handoff("a")),
            see("a.return.md", returned("failed")),
            see("a.handoff.json", handoff("a")),
        ]
    )
    assert states(tree, "a") == [(1, "failed"), (2, "submitted")]


def test_a_return_rewritten_in_the_second_attempt_ends_the_second_attempt() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a.handoff.json", handoff("a")),
            see("a.return.md", returned("failed")),
            see("a.handoff.json", handoff("a")),
            see("a.return.md", returned("completed")),
        ]
    )
    assert states(tree, "a") == [(1, "failed"), (2, "completed")]


def test_numbered_handoffs_are_attempts_in_the_order_of_their_numbers() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a-2.handoff.json", handoff("a", attempt=2)),
            see("a.handoff.json", handoff("a")),
            see("a.return.md", returned("failed", task_id="a", attempt=1)),
        ]
    )
    assert states(tree, "a") == [(1, "failed"), (2, "submitted")]
    assert rules(tree, "a") == []


def test_another_session_in_the_same_file_is_the_next_attempt() -> None:
    see = Recorder().seen
    path = "specs/7/.return-meta.json"
    tree = tree_of(
        [
            see(path, meta("working", "orchestrator", "coder", session="s1")),
            see(path, meta("partial", "orchestrator", "coder", session="s1")),
            see(path, meta("working", "orchestrator", "coder", session="s2")),
            see(path, meta("completed", "orchestrator", "coder", session="s2")),
        ]
    )
    assert states(tree, "specs/7/coder") == [(1, "partial"), (2, "completed")]


def test_an_early_marker_after_a_final_return_without_session_is_the_next_attempt() -> None:
    see = Recorder().seen
    path = "specs/7/.return-meta.json"
    tree = tree_of([see(path, meta("failed", agent="coder")), see(path, meta("working", agent="coder"))])
    assert states(tree, "specs/7/coder") == [(1, "failed"), (2, "working")]


def test_two_handoff_files_of_one_task_are_a_duplicate_and_the_first_is_shown() -> None:
    see = Recorder().seen
    first, second = see("x/handoff.json", handoff("a", mode="code")), see("y/handoff.json", handoff("a", mode="ask"))
    for order in ([first, second], [second, first]):
        tree = tree_of(order)
        assert rules(tree, "a") == ["LNK004"]
        assert tree.tasks["a"].agent == "code"
        assert tree.tasks["a"].findings[0].path == "y/handoff.json"


def test_two_return_files_of_one_attempt_are_a_duplicate_and_the_first_is_shown() -> None:
    see = Recorder().seen
    other = returned("failed", task_id="a", summary="otherwise")
    tree = tree_of([see("x.md", returned("failed", task_id="a")), see("y.md", other)])
    assert rules(tree, "a") == ["LNK005"]
    assert states(tree, "a") == [(1, "failed")]


def two_returns(first: str, second: str, **settings: object) -> tuple[Recorder, DelegationTree]:
    record = Recorder()
    a, b = returned(first, task_id="a"), returned(second, task_id="a")
    return record, tree_of([record.seen("r1.md", a), record.seen("r2.md", b)], **settings)


def test_an_early_marker_is_no_rival_of_the_return_that_follows_it() -> None:
    see = Recorder().seen
    tree = tree_of(
        [see("x.return.json", returned("working", task_id="a")), see("x.return.md", returned("completed", task_id="a"))]
    )
    assert rules(tree, "a") == []
    assert states(tree, "a") == [(1, "completed")]


@pytest.mark.parametrize(
    ("first", "second"), [("completed", "failed"), ("failed", "completed"), ("partial", "blocked")]
)
def test_two_returns_that_disagree_are_invalid_and_need_the_operator(first: str, second: str) -> None:
    record, tree = two_returns(first, second)
    task = tree.tasks["a"]
    why = f"two returns speak of it and disagree: r1.md says {first.upper()}, r2.md {second.upper()}"
    assert (task.state, task.why) == (State.INVALID, why)
    assert task.ask == f"{why}; look at both, then retry, or accept the first as it is"
    assert [placed.finding.rule for placed in task.findings] == ["LNK005"]
    tree.apply(record.seen("r2.md", returned(first, task_id="a")))
    assert tree.tasks["a"].state is State(first)


def test_two_returns_that_agree_or_of_which_one_is_early_or_gone_are_only_found() -> None:
    for first, second in (("completed", "completed"), ("completed", "working")):
        assert two_returns(first, second)[1].tasks["a"].state is State.COMPLETED
    assert two_returns("completed", "failed", strict=False)[1].tasks["a"].state is State.COMPLETED
    record, tree = two_returns("completed", "failed", remembers=True)
    tree.apply(record.gone("r2.md"))
    assert tree.tasks["a"].state is State.COMPLETED


def test_returns_of_different_sessions_in_different_files_are_attempts() -> None:
    see = Recorder().seen
    contract = Contract.SUBAGENT_RETURN
    tree = tree_of(
        [
            see("j/one.json", returned("failed", contract, agent="coder", session_id="s1")),
            see("j/two.json", returned("completed", contract, agent="coder", session_id="s2")),
        ]
    )
    assert states(tree, "j/coder") == [(1, "failed"), (2, "completed")]


def test_a_return_of_another_session_than_the_handoff_breaks_rule_4() -> None:
    see = Recorder().seen
    observations = [
        see("j/handoff.json", handoff("a", session_id="s1")),
        see("j/return.json", returned("completed", Contract.SUBAGENT_RETURN, agent="coder", session_id="s2")),
    ]
    tree = tree_of(observations)
    assert rules(tree, "a") == ["LNK006"]
    assert tree.tasks["a"].state == "invalid"
    assert tree_of(observations, strict=False).tasks["a"].state == "completed"


def test_a_return_that_breaks_its_contract_is_invalid_unless_enforcement_is_lenient() -> None:
    see = Recorder().seen
    observations = [see("a.handoff.json", handoff("a")), see("a.return.md", returned("completed"), BROKEN)]
    strict, lenient = tree_of(observations), tree_of(observations, strict=False)
    assert (strict.tasks["a"].state, strict.tasks["a"].reported_state) == ("invalid", "COMPLETED")
    assert lenient.tasks["a"].state == "completed"
    assert rules(lenient, "a") == ["RET001"]


def test_a_checklist_that_moves_is_a_sign_of_life() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.handoff.json", handoff("a")), see("a.todos.md", todos(" ", " "))])
    assert tree.tasks["a"].state == "submitted"
    tree.apply(see("a.todos.md", todos("x", "-")))
    assert tree.tasks["a"].state == "working"
    assert tree.tasks["a"].progress == (1, 2)


def test_a_task_of_files_alone_does_the_todo_that_moved_last_while_it_works() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.handoff.json", handoff("a")), see("a.todos.md", todos(" ", " ", " "))])

    def does() -> tuple[str, bool] | None:
        doing = tree.tasks["a"].doing
        return None if doing is None else (doing.about, doing.over)

    assert does() is None
    tree.apply(see("a.todos.md", todos("-", " ", " ")))
    assert does() == ("step 1", False)
    tree.apply(see("a.todos.md", todos("x", "-", " ")))
    assert does() == ("step 1", True)
    assert tree.tasks["a"].doing == Doing(tree.tasks["a"].updated_at, DoingKind.TODO, about="step 1", over=True)
    tree.apply(see("a.todos.md", todos("x", " ", "-")))
    assert does() == ("step 3", False)
    tree.apply(see("a.return.md", returned("completed")))
    assert does() is None
    tree = tree_of([see("b.handoff.json", handoff("b")), see("b.todos.md", todos("x", "-", " "))])
    assert tree.tasks["b"].doing is not None
    assert tree.tasks["b"].doing.about == "step 2", "of a list that was not known, what is in progress"


def test_a_deleted_return_reopens_the_attempt() -> None:
    recorder = Recorder()
    tree = tree_of([recorder.seen("a.handoff.json", handoff("a")), recorder.seen("a.return.md", returned("failed"))])
    tree.apply(recorder.gone("a.return.md"))
    assert states(tree, "a") == [(1, "submitted")]
    assert tree.asking() == []


@pytest.mark.parametrize("number", [2, 99])
def test_an_attempt_that_nobody_handed_out_does_not_hide_a_failure(number: int) -> None:
    record = Recorder()
    observations = [
        record.seen("x.handoff.json", handoff("t.x")),
        record.seen("x.return.md", returned("failed", attempt=1)),
        record.seen("y.return.md", returned("completed", task_id="t.x", attempt=number)),
    ]
    task = tree_of(observations).tasks["t.x"]
    assert [placed.finding.rule for placed in task.findings] == ["LNK011"]
    assert task.needs_operator
    handed = record.seen("y.handoff.json", handoff("t.x", attempt=number))
    task = tree_of([*observations, handed]).tasks["t.x"]
    assert (task.findings, task.needs_operator) == ((), False)


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("number", [None, 2])
def test_a_return_written_again_in_the_same_words_ends_the_next_attempt(*, remembers: bool, number: int | None) -> None:
    record = Recorder()
    failed = record.seen("a.return.md", returned("failed"))
    first = [record.seen("a.handoff.json", handoff("a"))._replace(seq=0), failed]
    again = record.seen("a.handoff.json", handoff("a", attempt=number, mode="code"))
    tree = tree_of([*first, again, failed._replace(seq=8, at=2_000.0)], remembers=remembers)
    assert states(tree, "a") == [(1, "failed"), (2, "failed")]
    assert tree.asking() == [tree.tasks["a"]]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_return_that_lies_where_it_lay_does_not_end_the_next_attempt(*, is_deleted: bool) -> None:
    record = Recorder()
    seen = [record.seen("a.handoff.json", handoff("a")), failed := record.seen("a.return.md", returned("failed"))]
    seen.append(record.seen("a.handoff.json", handoff("a", mode="code")))
    gone = [record.gone("a.return.md")] if is_deleted else []
    tree = tree_of([*seen, *gone, failed._replace(seq=9)], remembers=True)
    assert states(tree, "a") == [(1, "failed"), (2, "submitted")]


@pytest.mark.parametrize("remembers", [False, True])
def test_a_return_that_is_only_touched_stays_what_it_was(*, remembers: bool) -> None:
    record = Recorder()
    seen = [record.seen("a.handoff.json", handoff("a")), failed := record.seen("a.return.md", returned("failed"))]
    tree = tree_of([*seen, failed._replace(seq=9, at=9_000.0)], remembers=remembers)
    assert states(tree, "a") == [(1, "failed")]
    assert (tree.tasks["a"].updated_at, tree.tasks["a"].ended_at) == (failed.at, failed.at)


def of_session(outcome: str, **more: object) -> Return:
    return returned(outcome, Contract.SUBAGENT_RETURN, **{"session_id": "command", **more})


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("number", [None, 2])
@pytest.mark.parametrize("handed_to", [None, "command"])
@pytest.mark.parametrize("contract", [Contract.SUBAGENT_RETURN, Contract.RETURN_META, Contract.RETURN_FORMAT])
def test_a_session_that_goes_through_all_attempts_ends_each_of_them(
    *, remembers: bool, number: int | None, handed_to: str | None, contract: Contract
) -> None:
    see = Recorder().seen
    result = returned("failed", contract, session_id="command")
    observations = [
        see("a.handoff.json", handoff("a", session_id=handed_to)),
        see("a.return.json", result),
        see("a.handoff.json", handoff("a", attempt=number, mode="code", session_id=handed_to)),
        see("a.return.json", result),
    ]
    tree = tree_of(observations, remembers=remembers)
    assert states(tree, "a") == [(1, "failed"), (2, "failed")]
    assert tree.asking() == [tree.tasks["a"]]
    corrected = see("a.return.json", replace(result, outcome=Outcome.COMPLETED))
    tree.apply(corrected)
    assert states(tree, "a") == [(1, "failed"), (2, "completed")], "the same attempt goes on"
    cold = tree_of([observations[2], corrected])
    assert cold.tasks["a"].state == tree.tasks["a"].state


def test_a_session_that_goes_on_without_another_handoff_is_the_same_attempt() -> None:
    see = Recorder().seen
    observations = [see("a.handoff.json", handoff("a")), see("a.return.json", of_session("failed"))]
    tree = tree_of([*observations, see("a.return.json", of_session("completed"))])
    assert states(tree, "a") == [(1, "completed")]


def test_a_session_that_answers_in_a_file_of_its_own_for_each_attempt_ends_each_of_them() -> None:
    see = Recorder().seen
    observations = [
        see("x/one.handoff.json", handoff("a")),
        see("x/one.return.json", of_session("failed", task_id="a")),
        see("x/two.handoff.json", handoff("a", attempt=2)),
        see("x/two.return.json", of_session("completed", task_id="a")),
    ]
    tree = tree_of(observations)
    assert states(tree, "a") == [(1, "failed"), (2, "completed")]
    assert rules(tree, "a") == []


@pytest.mark.parametrize("first", [None, "working"])
def test_a_session_answers_the_latest_of_attempts_that_have_no_result(first: str | None) -> None:
    see = Recorder().seen
    observations = [see("a.handoff.json", handoff("a", session_id="command"))]
    if first is not None:
        observations.append(see("a.return.json", of_session(first)))
    observations.append(see("a.handoff.json", handoff("a", attempt=2, session_id="command")))
    tree = tree_of([*observations, see("a.return.json", of_session("failed"))])
    assert states(tree, "a") == [(1, first or "submitted"), (2, "failed")]


def test_a_return_that_gets_its_session_only_when_it_is_whole_ends_the_second_attempt() -> None:
    see = Recorder().seen
    observations = [
        see("a.handoff.json", handoff("a")),
        see("a.return.json", of_session("failed")),
        see("a.handoff.json", handoff("a", attempt=2)),
        see("a.return.json", of_session("failed", session_id=None), BROKEN)._replace(incomplete=True),
        see("a.return.json", of_session("blocked")),
    ]
    assert states(tree_of(observations), "a") == [(1, "failed"), (2, "blocked")]


@pytest.mark.parametrize("handed_to", [None, "command"])
def test_a_return_that_was_written_before_the_next_handoff_stays_with_its_session(handed_to: str | None) -> None:
    see = Recorder().seen
    observations = [
        see("a.handoff.json", handoff("a", session_id=handed_to)),
        see("a.return.json", of_session("failed")),
        again := see("a.handoff.json", handoff("a", attempt=2, session_id=handed_to)),
        see("a.return.json", of_session("blocked"))._replace(at=again.at - 0.5),
    ]
    assert states(tree_of(observations), "a") == [(1, "blocked"), (2, "submitted")]


def test_a_return_of_another_session_than_that_of_its_handoff_can_be_corrected() -> None:
    see = Recorder().seen
    observations = [
        see("a.handoff.json", handoff("a")),
        see("a.return.json", of_session("failed")),
        see("a.handoff.json", handoff("a", attempt=2, session_id="s2")),
        see("a.return.json", of_session("completed")),
    ]
    tree = tree_of(observations)
    assert states(tree, "a") == [(1, "failed"), (2, "invalid")]
    assert rules(tree, "a") == ["LNK006"]
    tree.apply(see("a.return.json", of_session("completed", session_id="s2")))
    assert states(tree, "a") == [(1, "failed"), (2, "completed")]
    assert rules(tree, "a") == []


said = st.tuples(st.sampled_from(["failed", "blocked", "completed"]), st.sampled_from([None, "command"]), st.booleans())


@given(st.lists(st.lists(said, max_size=3), min_size=1, max_size=4), st.booleans())
def test_what_comes_after_a_handoff_is_of_its_attempt_whatever_was_remembered(
    attempts: list[list[tuple[str, str | None, bool]]], remembers: bool
) -> None:
    see = Recorder().seen
    observations, expected = [], []
    for number, returns in enumerate(attempts, 1):
        observations.append(see("a.handoff.json", handoff("a", attempt=number)))
        for outcome, session, in_markdown in returns:
            contract = Contract.RETURN_FORMAT if in_markdown else Contract.SUBAGENT_RETURN
            observations.append(see("a.return.json", returned(outcome, contract, session_id=session)))
        expected.append((number, returns[-1][0] if returns else "submitted"))
    assert states(tree_of(observations, remembers=remembers), "a") == expected
    handed, *answers = observations[-1 - len(attempts[-1]) :]
    assert states(tree_of([handed, *answers[-1:]]), "a")[-1] == expected[-1], "as who sees only what is there now"
