"""A decision changes what a task waits for, and binds only the attempt and the return that it was made about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.delegation.events import BROKEN, Recorder, handoff, outline, returned, tree_of

from agentwatch.contracts.shapes import Finding
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.view.times import stands_since


def failed(outcome: str = "failed", *findings: Finding) -> tuple[Recorder, list[Event], Decision]:
    """A task that failed, and a retry of it."""
    record = Recorder()
    result = record.seen("a.return.md", returned(outcome), *findings)
    events: list[Event] = [record.seen("a.handoff.json", handoff("a")), result]
    recorded = (Receipt(Stage.RECORDED, 1_010.0),)
    return (
        record,
        events,
        Decision(
            decision_id="d1",
            task_id="a",
            attempt=1,
            handoff_sha256=None,
            return_sha256=result.digest,
            action=Action.RETRY,
            at=1_010.0,
            receipts=recorded,
        ),
    )


def decided(decision: Decision) -> Decided:
    return Decided(50, decision.at, decision.decision_id, decision)


def test_what_an_abort_above_ended_is_so_since_the_abort() -> None:
    record, events, decision = failed()
    blocked = record.seen("b.return.md", returned("blocked", task_id="a.b"))
    retried = record.seen("c.return.md", returned("failed", task_id="a.c"))
    first = replace(decision, decision_id="d2", task_id="a.c", return_sha256=retried.digest)
    abort = replace(decision, action=Action.ABORT, at=1_050.0)
    tree = tree_of([*events, blocked, retried, decided(first), decided(abort)])
    assert outline(tree) == ["a canceled", "  a.b canceled", "  a.c canceled"]
    assert {stands_since(task) for task in tree.tasks.values()} == {abort.at}


def test_a_decision_may_be_known_before_the_files_are() -> None:
    _, events, decision = failed()
    assert tree_of([decided(decision), *events]).tasks["a"].state is State.RETRYING


@pytest.mark.parametrize("action", OF_ATTEMPTS)
@pytest.mark.parametrize(
    "receipts", [(), (Receipt(Stage.READ, 1_500.0),), (Receipt(Stage.READ, 1_500.0, claimed=True),)]
)
def test_a_decision_whose_time_is_over_binds_nobody_whoever_says_that_it_was_read(
    receipts: tuple[Receipt, ...], action: Action
) -> None:
    _, events, decision = failed("failed", BROKEN)
    made = replace(decision, action=action, expires_at=2_000.0, receipts=(*decision.receipts, *receipts))
    tree = tree_of([*events, decided(made), Tick(60, 1_999.0)])
    assert tree.tasks["a"].binding == made
    assert tree.apply(Tick(61, 2_000.0)) == {"a"}
    task = tree.tasks["a"]
    assert (task.state, task.needs_operator, task.decision) == (State.INVALID, True, None)
    assert task.why.endswith("what you decided about it has expired")
    # The clock was set back.
    tree.apply(Tick(62, 1_999.0))
    assert tree.tasks["a"].binding == made


@pytest.mark.parametrize(
    ("outcome", "action", "remaining"),
    [
        ("failed", Action.RETRY, 0),
        ("failed", Action.RESPOND, 0),
        ("blocked", Action.RETRY, 0),
        ("blocked", Action.RESPOND, 1),
        ("failed", Action.ESCALATE, 1),
    ],
)
def test_a_retry_counts_as_used_from_when_it_is_decided_on(outcome: str, action: Action, remaining: int) -> None:
    record, events, decision = failed(outcome)
    tree = tree_of([*events, decided(replace(decision, action=action))])
    assert tree.tasks["a"].retry.remaining == remaining
    tree = tree_of([*events, decided(replace(decision, action=action))])
    tree.apply(record.seen("a.handoff.json", handoff("a", attempt=2)))
    assert tree.tasks["a"].retry.remaining == (0 if action is Action.ESCALATE else remaining)


def test_a_retry_in_a_rewritten_return_is_used_up_once() -> None:
    record, events, decision = failed()
    digest = events[0].digest  # type: ignore[union-attr]  # the handoff
    once_more = record.seen("a.return.md", returned("failed"))
    tree = tree_of([*events, decided(read(decision, Action.RETRY, digest)), once_more])
    assert tree.tasks["a"].retry.remaining == 0
    tree = tree_of([*events, decided(read(decision, Action.RETRY, digest)), once_more], max_retries=3)
    tree.apply(record.seen("a.handoff.json", handoff("a", attempt=2)))
    assert tree.tasks["a"].retry.remaining == 2


def read(decision: Decision, action: Action, handed_off: str | None = None) -> Decision:
    """The decision, of another kind, once an agent knows it."""
    receipts = (*decision.receipts, Receipt(Stage.READ, 1_011.0))
    return replace(decision, action=action, handoff_sha256=handed_off, receipts=receipts)


def stage_of(tree: Tree, number: int = 1) -> Stage | None:
    decision = tree.tasks["a"].attempts[number - 1].decision
    return decision.receipt.stage if decision is not None else None


@pytest.mark.parametrize("action", [Action.RETRY, Action.RESPOND])
@pytest.mark.parametrize("stated", [None, 1, 2])
def test_a_return_rewritten_after_a_decision_that_was_read_is_the_next_attempt(
    action: Action, stated: int | None
) -> None:
    record, events, decision = failed("blocked")
    digest = events[0].digest  # type: ignore[union-attr]  # the handoff
    done = record.seen("a.return.md", returned("completed", attempt=stated))._replace(at=1_020.0)
    answered = read(decision, action, digest)
    tree = tree_of([*events, decided(answered), done])
    task = tree.tasks["a"]
    assert [(one.number, one.state) for one in task.attempts] == [(1, State.BLOCKED), (2, State.COMPLETED)]
    assert (stage_of(tree), stage_of(tree, 2), task.decision) == (Stage.ACTED, None, None)
    assert task.retry.remaining == (0 if action is Action.RETRY else 1)
    rewritten = record.seen("a.return.md", returned("partial", attempt=stated))
    assert [one.number for one in tree_of([*events, decided(answered), done, rewritten]).tasks["a"].attempts] == [
        1,
        2,
    ]

    tree = tree_of([*events, decided(replace(answered, receipts=decision.receipts)), done])
    assert [one.state for one in tree.tasks["a"].attempts] == [State.BLOCKED] * (stated == 2) + [State.COMPLETED]


def test_an_abort_ends_what_is_open_below_also_what_comes_there_later() -> None:
    record, events, decision = failed()
    tree = tree_of(
        [
            *events,
            record.seen("b.handoff.json", handoff("a.b")),
            record.seen("c.handoff.json", handoff("a.b.c")),
            record.seen("d.return.md", returned("failed", task_id="a.d")),
            record.seen("q.handoff.json", handoff("q")),
            record.seen("r.handoff.json", handoff("q.r")),
        ]
    )
    assert [task.task_id for task in tree.asking()] == ["a", "a.d"]
    tree.apply(decided(replace(decision, action=Action.ABORT)))
    assert tree.asking() == []
    below = ["a canceled", "  a.b canceled", "    a.b.c canceled", "  a.d failed"]
    assert outline(tree) == [*below, "q working", "  q.r submitted"]
    assert (tree.tasks["a.b.c"].why, tree.tasks["a.b.c"].ended_at) == (
        "you aborted a, and with it what was open below",
        decision.at,
    )

    tree.apply(record.seen("q.handoff.json", handoff("q", parent_task_id="a")))
    assert outline(tree) == [*below, "  q canceled", "    q.r canceled"]
    tree.apply(record.seen("q.handoff.json", handoff("q")))
    assert outline(tree) == [*below, "q working", "  q.r submitted"]
    tree.apply(record.seen("a.handoff.json", handoff("a", attempt=2)))
    assert outline(tree)[:3] == ["a working", "  a.b working", "    a.b.c submitted"]


def test_a_child_that_goes_on_after_a_retry_and_fails_in_the_same_words_asks_again() -> None:
    _, (handed, result), decision = failed()
    retried = decided(read(decision, Action.RETRY, handed.digest))  # type: ignore[union-attr]
    again = [result._replace(seq=seq, at=at) for seq, at in ((7, 1_009.5), (8, 1_020.0), (9, 1_030.0))]  # type: ignore[union-attr]
    touched, failed_again, touched_again = again
    tree = tree_of([handed, result, touched, retried])
    assert tree.tasks["a"].state is State.RETRYING, "it was only touched before anybody knew of the decision"
    tree.apply(failed_again)
    mark = mark_of(tree.tasks["a"])
    task = tree.tasks["a"]
    assert [(one.number, one.state) for one in task.attempts] == [(1, State.FAILED), (2, State.FAILED)]
    assert (task.needs_operator, task.retry.remaining, stage_of(tree)) == (True, 0, Stage.ACTED)
    tree.apply(touched_again)
    assert mark_of(tree.tasks["a"]) == mark, "a mere touch is nothing new"
    late = tree_of([handed, result, failed_again, retried])
    assert late.tasks["a"].attempt == 2, "in whatever order it is known"


def test_what_a_session_corrects_after_it_was_sent_on_is_of_the_attempt_that_goes_on() -> None:
    record = Recorder()
    first, second, third = (returned(outcome, session_id="command") for outcome in ("failed", "blocked", "completed"))
    handed, bad = record.seen("a.handoff.json", handoff("a")), record.seen("a.return.json", first)
    decision = failed()[2]
    known = replace(decision, return_sha256=bad.digest, handoff_sha256=handed.digest)
    read = replace(known, receipts=(*known.receipts, Receipt(Stage.READ, 1_010.0)))
    again = [record.seen("a.return.json", one)._replace(at=1_020.0) for one in (second, third)]
    tree = tree_of([handed, bad, decided(read), *again])
    states = [(one.number, one.state) for one in tree.tasks["a"].attempts]
    assert states == [(1, State.FAILED), (2, State.COMPLETED)]
