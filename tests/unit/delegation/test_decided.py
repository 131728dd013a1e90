"""A decision changes what a task waits for, and binds only the attempt and the return that it was made about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.delegation.events import BROKEN, Recorder, handoff, outline, returned, tree_of

from agentwatch.contracts.shapes import Finding
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Checked, Decided, Event, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document
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


@pytest.mark.parametrize(
    ("action", "state"),
    [
        (Action.RETRY, State.RETRYING),
        (Action.RESPOND, State.RETRYING),
        (Action.ESCALATE, State.ESCALATED),
        (Action.ABORT, State.CANCELED),
        (Action.ACCEPT, State.COMPLETED),
    ],
)
def test_a_decided_task_asks_no_more_and_says_what_was_decided(action: Action, state: State) -> None:
    _, events, decision = failed()
    tree = tree_of([*events, decided(replace(decision, action=action))])
    task = tree.tasks["a"]
    assert (task.state, task.needs_operator, tree.asking()) == (state, False, [])
    assert task.attempts[0].state is State.FAILED
    (document,) = tree_document(tree, "/w")["tasks"]
    told = {"decision_id": "d1", "action": action.value, "receipt": "recorded", "claimed": False, "claimed_by": None}
    assert document["decision"] == told


@pytest.mark.parametrize("action", [one for one in OF_ATTEMPTS if one is not Action.ACCEPT])
def test_what_was_decided_is_so_since_then_and_not_since_the_attempt_ended(action: Action) -> None:
    _, events, decision = failed()
    tree = tree_of([*events, decided(replace(decision, action=action))])
    assert tree.tasks["a"].ended_at != decision.at
    assert stands_since(tree.tasks["a"]) == decision.at


def test_what_an_abort_above_ended_is_so_since_the_abort() -> None:
    record, events, decision = failed()
    blocked = record.seen("b.return.md", returned("blocked", task_id="a.b"))
    retried = record.seen("c.return.md", returned("failed", task_id="a.c"))
    first = replace(decision, decision_id="d2", task_id="a.c", return_sha256=retried.digest)
    abort = replace(decision, action=Action.ABORT, at=1_050.0)
    tree = tree_of([*events, blocked, retried, decided(first), decided(abort)])
    assert outline(tree) == ["a canceled", "  a.b canceled", "  a.c canceled"]
    assert {stands_since(task) for task in tree.tasks.values()} == {abort.at}


def test_an_accepted_partial_return_stays_partial() -> None:
    _, events, decision = failed("partial", BROKEN)
    tree = tree_of([*events, decided(replace(decision, action=Action.ACCEPT))])
    assert tree.tasks["a"].state is State.PARTIAL


def test_a_decision_binds_only_the_return_that_it_was_made_about() -> None:
    record, events, decision = failed()
    tree = tree_of([*events, decided(decision), record.seen("a.return.md", returned("blocked"))])
    assert (tree.tasks["a"].state, tree.tasks["a"].decision) == (State.BLOCKED, None)


def test_a_decision_may_be_known_before_the_files_are() -> None:
    _, events, decision = failed()
    assert tree_of([decided(decision), *events]).tasks["a"].state is State.RETRYING


def test_the_next_attempt_shows_that_the_agent_has_acted() -> None:
    record, events, decision = failed()
    tree = tree_of([*events, decided(decision), record.seen("a.handoff.json", handoff("a"))])
    first, second = tree.tasks["a"].attempts
    assert first.decision is not None
    assert first.decision.receipt.stage is Stage.ACTED
    assert (second.decision, tree.tasks["a"].state) == (None, State.SUBMITTED)


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


def test_a_decision_that_another_attempt_followed_is_told_also_when_its_time_is_over() -> None:
    record, events, decision = failed()
    again = record.seen("a.handoff.json", handoff("a"))
    tree = tree_of([*events, decided(replace(decision, expires_at=2_000.0)), again, Tick(60, 3_000.0)])
    (told,) = tree.tasks["a"].attempts[0].decisions
    assert (told.receipt.words, told.expired) == ("acted (an agent says so)", False)


def test_each_of_several_decisions_expires_in_its_time() -> None:
    record, events, decision = failed()
    tree = tree_of([*events, decided(replace(decision, expires_at=2_000.0))])
    tree.apply(record.seen("a.handoff.json", handoff("a", attempt=2)))
    again = record.seen("a-2.return.md", returned("failed", task_id="a", attempt=2))
    tree.apply(again)
    second = Decision(
        decision_id="d2",
        task_id="a",
        attempt=2,
        handoff_sha256=None,
        return_sha256=again.digest,
        action=Action.RETRY,
        at=1_900.0,
        receipts=decision.receipts,
        expires_at=3_000.0,
    )
    tree.apply(decided(second))
    tree.apply(Tick(60, 2_500.0))
    assert tree.tasks["a"].state is State.RETRYING
    tree.apply(Tick(61, 3_000.0))
    assert tree.tasks["a"].state is State.FAILED


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
    done = record.seen("a.return.md", returned("completed", attempt=stated))
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


@pytest.mark.parametrize("outcome", ["failed", "blocked"])
def test_what_an_aborted_child_says_late_begins_nothing_anew(outcome: str) -> None:
    record, events, decision = failed()
    aborted = read(decision, Action.ABORT, events[0].digest)  # type: ignore[union-attr]
    late = record.seen("a.return.md", returned(outcome))
    tree = tree_of([*events, decided(aborted), late])
    assert (tree.tasks["a"].state, tree.tasks["a"].ask, stage_of(tree)) == (State.CANCELED, None, Stage.ACTED)
    unread = replace(aborted, receipts=decision.receipts)
    assert tree_of([*events, decided(unread), late]).tasks["a"].state is State.CANCELED
    # Its success is worth knowing.
    tree = tree_of([*events, decided(aborted), record.seen("a.return.md", returned("completed"))])
    assert tree.tasks["a"].state is State.COMPLETED


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


@pytest.mark.parametrize(
    "decision",
    [
        Decision(
            decision_id="d1",
            task_id="a",
            attempt=1,
            handoff_sha256=None,
            return_sha256=None,
            action=action,
            at=1_010.0,
            receipts=(Receipt(Stage.RECORDED, 1_010.0),),
            mode=mode,
        )
        for action, mode in [(Action.ACCEPT, None), (Action.RETRY, None), (Action.ESCALATE, "architect")]
    ],
)
@pytest.mark.parametrize("restores", [None, "a", "other"])
def test_a_handoff_of_another_task_carries_out_only_a_call_for_the_fitter(
    decision: Decision, restores: str | None
) -> None:
    record, events, made = failed("partial", BROKEN)
    decision = replace(decision, return_sha256=made.return_sha256)
    tree = tree_of([*events, decided(decision)])
    tree.apply(record.seen("b.handoff.json", handoff("b", decision_id="d1", restores=restores)))
    tree.apply(record.seen("b.return.md", returned("completed", task_id="b")))
    assert (stage_of(tree), tree.tasks["a"].binding) == (Stage.RECORDED, decision)
    assert decision.decision_id in tree.over("a") or restores != "a"


@pytest.mark.parametrize("changes", [{"restores": "other"}, {"restores": None}, {"decision_id": "d2"}])
def test_the_fitter_names_the_task_and_the_decision(changes: dict[str, str | None]) -> None:
    record, events, decision = failed()
    tree = tree_of([*events, decided(replace(decision, action=Action.ESCALATE, mode="fitter"))])
    tree.apply(record.seen("f.handoff.json", handoff("f", **({"restores": "a", "decision_id": "d1"} | changes))))
    assert stage_of(tree) is Stage.RECORDED


def test_a_fitter_whose_claim_is_false_restores_nothing_until_its_success_is_accepted() -> None:
    record, events, decision = failed()
    called = replace(decision, action=Action.ESCALATE, mode="fitter")
    fitter = record.seen("f.handoff.json", handoff("f", restores="a", decision_id="d1"))
    done = record.seen("f.return.md", returned("completed"))
    tree = tree_of([*events, decided(called), fitter, done])
    lie = Claim("created", "fixed.py", Verdict.CONTRADICTED, "there is no such file")
    tree.apply(Checked(60, 1_020.0, "f.return.md", done.digest, (lie,)))
    assert (tree.tasks["a"].state, tree.tasks["a"].retry.restored, tree.over("a")) == (State.ESCALATED, False, set())
    accepted = Decision(
        decision_id="d3",
        task_id="f",
        attempt=1,
        handoff_sha256=None,
        return_sha256=done.digest,
        action=Action.ACCEPT,
        at=1_030.0,
        receipts=decision.receipts,
    )
    tree.apply(decided(accepted))
    assert (tree.tasks["a"].state, tree.tasks["a"].retry.restored, tree.over("a")) == (State.FAILED, True, {"d1"})


@pytest.mark.parametrize(
    ("outcome", "state", "over"),
    [
        ("working", State.ESCALATED, False),
        ("failed", State.ESCALATED, False),
        ("completed", State.FAILED, True),
        ("partial", State.FAILED, True),
    ],
)
def test_a_station_can_be_decided_anew_once_its_fitter_has_ended(outcome: str, state: State, *, over: bool) -> None:
    record, events, decision = failed()
    called = record.seen("f.handoff.json", handoff("f", restores="a", decision_id="d1"))
    tree = tree_of([*events, decided(replace(decision, action=Action.ESCALATE, mode="fitter")), called])
    assert (tree.tasks["a"].state, stage_of(tree)) == (State.ESCALATED, Stage.ACTED)
    assert "carried out (an agent says so)" in tree.tasks["a"].why
    tree.apply(record.seen("f.return.md", returned(outcome)))
    station = tree.tasks["a"]
    assert (station.state, station.needs_operator, tree.over("a")) == (state, over, {"d1"} if over else set())
    assert ("the fitter has restored the line" in (station.ask or "")) == (outcome == "completed")
    if over:
        tree.apply(decided(replace(decision, decision_id="d2")))
        assert tree.tasks["a"].state is State.RETRYING
        assert [one.decision_id for one in station.attempts[0].decisions] == ["d1", "d2"]


def test_a_retry_is_used_up_though_the_return_was_rewritten_while_nobody_watched() -> None:
    record, events, decision = failed()
    rewritten = record.seen("a.return.md", returned("failed"))
    task = tree_of([events[0], rewritten, decided(decision)]).tasks["a"]
    assert (task.needs_operator, task.retry.remaining) == (True, 0)
    assert task.ask is not None
    assert "no retry left" in task.ask


@pytest.mark.parametrize(("action", "remaining"), [(Action.RESPOND, 1), (Action.RETRY, 0)])
def test_an_answer_to_an_attempt_that_nothing_is_seen_of_any_more_is_no_retry(action: Action, remaining: int) -> None:
    record, _, decision = failed()
    second = [
        record.seen("b.handoff.json", handoff("a", attempt=2)),
        record.seen("b.return.md", returned("failed", task_id="a", attempt=2)),
    ]
    task = tree_of([*second, decided(replace(decision, action=action))]).tasks["a"]
    assert ([one.number for one in task.attempts], task.retry.remaining) == ([2], remaining)


def test_what_was_accepted_and_rewritten_since_is_asked_about_anew() -> None:
    for outcome in ("completed", "partial"):
        record, events, decision = failed()
        rewritten = record.seen("a.return.md", returned(outcome))
        accepted = decided(replace(decision, action=Action.ACCEPT))
        task = tree_of([events[0], rewritten, accepted]).tasks["a"]
        assert task.ask == "the return changed since you accepted it: look at it again, then accept or retry"


@pytest.mark.parametrize("remembers", [False, True])
def test_a_child_that_goes_on_after_a_retry_and_fails_in_the_same_words_asks_again(*, remembers: bool) -> None:
    _, (handed, result), decision = failed()
    retried = decided(read(decision, Action.RETRY, handed.digest))  # type: ignore[union-attr]
    again = [result._replace(seq=seq, at=at) for seq, at in ((7, 1_009.5), (8, 1_020.0), (9, 1_030.0))]  # type: ignore[union-attr]
    touched, failed_again, touched_again = again
    tree = tree_of([handed, result, touched, retried], remembers=remembers)
    assert tree.tasks["a"].state is State.RETRYING, "it was only touched before anybody knew of the decision"
    tree.apply(failed_again)
    mark = mark_of(tree.tasks["a"])
    task = tree.tasks["a"]
    assert [(one.number, one.state) for one in task.attempts] == [(1, State.FAILED), (2, State.FAILED)]
    assert (task.needs_operator, task.retry.remaining, stage_of(tree)) == (True, 0, Stage.ACTED)
    tree.apply(touched_again)
    assert mark_of(tree.tasks["a"]) == mark, "a mere touch is nothing new"
    late = tree_of([handed, result, failed_again, retried], remembers=remembers)
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
