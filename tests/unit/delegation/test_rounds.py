"""A child that is sent on in its own session: which of its rounds are attempts of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import BROKEN, Recorder, handoff, returned, tree_of
from tests.unit.delegation.test_runs import ROOT, message

from agentwatch.contracts.shapes import Finding, Outcome
from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Ran
from agentwatch.delegation.run import Message, Run, RunState, StartedBy, Turn
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document

PACKET = message(handoff("a"), at=110.0)
FAILED = message(returned("failed"), at=115.0)
DONE = message(returned("completed"), at=125.0)
PARENT, HOOK, PROGRAM = StartedBy.PARENT, StartedBy.HOOK, StartedBy.PROGRAM


def child(*rounds: tuple[StartedBy, Message | None], state: RunState = RunState.ENDED, session: str = "s1") -> Run:
    """A child of the root: round n begins at 100 + 10 n and ends five seconds later."""
    told = [
        Turn(100.0 + 10 * n, PACKET if n == 1 else message(None), asker, RunState.ENDED, said, 105.0 + 10 * n)
        for n, (asker, said) in enumerate(rounds, 1)
    ]
    last = told[-1]
    ended = last.ended_at if state is RunState.ENDED else None
    run = Run(
        source="agents",
        session_id=session,
        parent_session="root",
        state=state,
        place="/store",
        started_at=110.0,
        updated_at=last.ended_at or 0.0,
        ended_at=ended,
        tokens=900,
    )
    return replace(run, prompt=PACKET, said=last.said if ended else None, rounds=tuple(told))


def decision(
    about: Message | None, at: float, action: Action = Action.RETRY, attempt: int = 1, *, read: bool = True
) -> Decided:
    digest = about.digest if about is not None else None
    receipts = tuple(Receipt(stage, at) for stage in (Stage.RECORDED, *([Stage.READ] if read else [])))
    name = f"d{attempt}"
    return Decided(
        9,
        at,
        name,
        Decision(
            decision_id=name,
            task_id="a",
            attempt=attempt,
            handoff_sha256=PACKET.digest,
            return_sha256=digest,
            action=action,
            at=at,
            receipts=receipts,
        ),
    )


def ran(*runs: Run) -> list[Event]:
    return [Ran(seq, 0.0, f"agents:{run.session_id}", run) for seq, run in enumerate((ROOT, *runs), 1)]


def attempts(tree: Tree) -> list[tuple[int, State]]:
    return [(one.number, one.state) for one in tree.tasks["a"].attempts]


ONE, TWO = (1, State.FAILED), (2, State.COMPLETED)


@pytest.mark.parametrize("asker", [HOOK, PARENT])
def test_a_retry_in_the_same_session_is_an_attempt_of_its_own(asker: StartedBy) -> None:
    tree = tree_of([*ran(child((PARENT, FAILED), (asker, DONE))), decision(FAILED, 117.0)])
    task = tree.tasks["a"]
    first, second = task.attempts
    assert attempts(tree) == [ONE, TWO]
    assert (first.session_id, second.session_id, second.again) == ("s1", "s1", True)
    assert (first.decision and first.decision.receipt.stage, second.decision) == (Stage.ACTED, None)
    assert (task.retry.remaining, task.attempts[-1].started_at, task.ended_at) == (0, 120.0, 125.0)
    assert second.handed_off_at == 110.0, "what the session made in its first attempt is its own, too"
    document = next(one for one in tree_document(tree, "/w")["tasks"] if one["task_id"] == "a")
    told = [(one["number"], one["state"], one["started_at"], one["return_sha256"]) for one in document["attempts"]]
    assert told == [
        (1, "failed", "1970-01-01T00:01:50Z", FAILED.digest),
        (2, "completed", "1970-01-01T00:02:00Z", DONE.digest),
    ]
    runs = [one["run"] for one in document["attempts"]]
    assert [run and run["tokens"] for run in runs] == [None, 900], "the store counts the session, and it counts once"


def test_a_retry_that_ends_in_the_very_same_bytes_asks_again_and_can_be_decided_anew() -> None:
    events = [*ran(child((PARENT, FAILED), (HOOK, FAILED))), decision(FAILED, 117.0)]
    task = tree_of(events).tasks["a"]
    assert (task.attempt, task.state, task.binding, task.needs_operator) == (2, State.FAILED, None, True)
    again = tree_of([*events, decision(FAILED, 130.0, Action.ESCALATE, attempt=2)]).tasks["a"]
    assert (again.state, again.needs_operator) == (State.ESCALATED, False)


def test_a_child_that_works_on_its_retry_works_on_its_second_attempt() -> None:
    run = child((PARENT, FAILED), (HOOK, None), state=RunState.WORKING)
    assert attempts(tree_of([*ran(run), decision(FAILED, 117.0)])) == [ONE, (2, State.WORKING)]


@pytest.mark.parametrize(
    "decided",
    [
        [],
        [decision(FAILED, 117.0, read=False)],
        [decision(FAILED, 121.0)],
        [decision(FAILED, 117.0, Action.ACCEPT)],
        [decision(FAILED, 117.0, Action.ABORT)],
        [decision(DONE, 117.0)],
        [decision(None, 117.0)],
        [decision(FAILED, 117.0, attempt=2)],
    ],
)
def test_a_hook_that_holds_without_a_decision_begins_no_attempt(decided: list[Event]) -> None:
    tree = tree_of([*ran(child((PARENT, FAILED), (HOOK, DONE))), *decided])
    assert [number for number, _ in attempts(tree)] == [1]


def test_a_child_that_was_held_begins_its_second_attempt_when_the_decision_reaches_it() -> None:
    run = child((PARENT, FAILED), (HOOK, FAILED), (HOOK, DONE))
    tree = tree_of([*ran(run), decision(FAILED, 127.0)])
    assert attempts(tree) == [ONE, TWO]
    assert [one.started_at for one in tree.tasks["a"].attempts] == [110.0, 130.0]


@pytest.mark.parametrize("said", [message(None), message(returned("failed"), BROKEN), None])
def test_a_form_that_is_corrected_is_no_attempt(said: Message | None) -> None:
    for asker in (HOOK, PARENT):
        assert attempts(tree_of(ran(child((PARENT, said), (asker, DONE))))) == [(1, State.COMPLETED)]


def test_a_child_without_a_return_is_retried_in_its_session() -> None:
    tree = tree_of([*ran(child((PARENT, message(None)), (HOOK, DONE))), decision(None, 117.0)])
    assert attempts(tree) == [(1, State.COMPLETED), TWO]
    tree = tree_of([*ran(child((PARENT, None), (HOOK, DONE))), decision(None, 117.0)])
    assert attempts(tree) == [(1, State.INVALID), TWO]


def test_a_parent_that_asks_again_after_a_failure_begins_an_attempt_and_after_anything_else_goes_on() -> None:
    for outcome in Outcome:
        said = message(returned(outcome.value), at=120.0)
        number = 2 if outcome is Outcome.FAILED else 1
        assert tree_of(ran(child((PARENT, said), (PARENT, DONE)))).tasks["a"].attempt == number, outcome
        assert tree_of(ran(child((PARENT, said), (PROGRAM, DONE)))).tasks["a"].attempt == 1, outcome


def test_an_answer_to_a_blocked_child_begins_an_attempt_that_is_no_retry() -> None:
    blocked = message(returned("blocked"), at=120.0)
    tree = tree_of([*ran(child((PARENT, blocked), (HOOK, blocked))), decision(blocked, 117.0, Action.RESPOND)])
    task = tree.tasks["a"]
    assert attempts(tree) == [(1, State.BLOCKED), (2, State.BLOCKED)]
    assert (task.retry.remaining, task.needs_operator) == (1, True)


def test_a_number_that_a_later_round_is_handed_is_that_of_its_attempt() -> None:
    said = message(returned("completed"), at=140.0)
    run = child((PARENT, message(returned("partial"), at=120.0)), (PARENT, said))
    last = replace(run.rounds[1], prompt=message(handoff("a", attempt=3)))
    tree = tree_of(ran(replace(run, rounds=(run.rounds[0], last))))
    assert attempts(tree) == [(1, State.PARTIAL), (3, State.COMPLETED)]
    assert not tree.tasks["a"].attempts[1].again


def test_three_attempts_of_one_session_and_one_of_another_stand_in_the_order_in_which_they_began() -> None:
    first = child((PARENT, FAILED), (HOOK, FAILED), (PARENT, DONE))
    beside = replace(child((PARENT, FAILED), session="s2"), started_at=125.0, rounds=())
    decided = [decision(FAILED, 117.0)]
    for runs in ((first, beside), (beside, first)):
        task = tree_of([*ran(*runs), *decided]).tasks["a"]
        expected = [(1, "s1"), (2, "s1"), (3, "s2"), (4, "s1")]
        assert [(one.number, one.session_id) for one in task.attempts] == expected


def test_a_child_that_writes_its_return_into_a_file_is_retried_in_its_session() -> None:
    record = Recorder()
    prompt = record.seen("a.handoff.json", handoff("a"))._replace(digest=PACKET.digest, at=105.0)
    bad = record.seen("a.return.md", returned("failed"))._replace(at=114.0)
    good = record.seen("a.return.md", returned("completed"))._replace(at=124.0)
    words = message(None)
    told = decision(Message(0.0, bad.digest, ""), 117.0)
    tree = tree_of([prompt, bad, good, *ran(child((PARENT, words), (HOOK, words))), told])
    assert attempts(tree) == [ONE, TWO]
    task: Task = tree.tasks["a"]
    assert [one.run and one.run.started_at for one in task.attempts] == [110.0, 120.0]
    assert task.attempts[-1].started_at == 120.0


@pytest.mark.parametrize("decided", [False, True])
def test_a_child_that_names_one_session_in_all_its_return_files_is_retried_in_its_own(*, decided: bool) -> None:
    """The session that a return names covers a whole command; its store knows the child by another."""
    record = Recorder()
    failed, completed = (returned(outcome, session_id="command") for outcome in ("failed", "completed"))
    files = [
        record.seen("a.handoff.json", handoff("a"))._replace(digest=PACKET.digest, at=105.0),
        bad := record.seen("a.return.json", failed)._replace(at=114.0),
        record.seen("a.handoff.json", handoff("a", attempt=2))._replace(at=118.0),
        record.seen("a.return.json", completed)._replace(at=124.0),
    ]
    words = message(None)
    told = [decision(Message(0.0, bad.digest, ""), 117.0)] if decided else []
    tree = tree_of([*files, *ran(child((PARENT, words), (PARENT, words))), *told])
    assert attempts(tree) == [ONE, TWO]
    assert [one.run and one.run.started_at for one in tree.tasks["a"].attempts] == [110.0, 120.0]


def test_the_handoff_that_the_orchestrator_wrote_for_the_retry_is_that_of_the_attempt_in_the_session() -> None:
    record = Recorder()
    amended = record.seen("a-2.handoff.json", handoff("a", attempt=2, decision_id="d1"))
    tree = tree_of([amended, *ran(child((PARENT, FAILED), (PARENT, DONE))), decision(FAILED, 117.0)])
    assert attempts(tree) == [ONE, TWO]
    handed = tree.tasks["a"].attempts[1].handoff
    assert handed is not None
    assert handed.path == "a-2.handoff.json"


askers = st.sampled_from(list(StartedBy))
words = st.sampled_from([FAILED, DONE, message(None), message(returned("blocked")), None])
broken = st.sampled_from([(), (BROKEN,)])


@given(
    st.lists(st.lists(st.tuples(askers, words), min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.tuples(words, st.integers(105, 150), st.sampled_from(OF_ATTEMPTS), st.integers(1, 3)), max_size=3),
    st.randoms(use_true_random=False),
)
def test_attempts_do_not_depend_on_the_order_in_which_rounds_and_decisions_are_observed(
    sessions: list[list[tuple[StartedBy, Message | None]]],
    choices: list[tuple[Message | None, int, Action, int]],
    dice: object,
) -> None:
    runs = [child(*rounds, session=f"s{number}") for number, rounds in enumerate(sessions, 1)]
    made = {number: decision(about, float(at), action, number) for about, at, action, number in choices}
    events = [*ran(*runs), *made.values()]
    expected = tree_document(tree_of(events), "/w")
    early = [Ran(0, 0.0, f"agents:{run.session_id}", run.part(0, 1)) for run in runs]
    dice.shuffle(events)  # type: ignore[attr-defined]
    assert tree_document(tree_of([*early, *events]), "/w") == expected
    numbers = [one.number for one in tree_of(events).tasks["a"].attempts]
    assert numbers == list(range(1, len(numbers) + 1))


def test_broken_returns_are_found_in_the_attempt_that_they_ended() -> None:
    finding: Finding = BROKEN
    bad = message(returned("failed"), finding, at=120.0)
    tree = tree_of([*ran(child((PARENT, bad), (HOOK, DONE))), decision(bad, 117.0)])
    assert attempts(tree) == [(1, State.INVALID), TWO]
