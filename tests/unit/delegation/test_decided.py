"""A decision changes what a task waits for, and binds only the attempt and the return that it was made about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.delegation.observations import BROKEN, Recorder, handoff, returned, tree_of

from agentwatch.contracts.shapes import Finding, Reading
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.export import tree_document
from agentwatch.delegation.observation import Decided, Observation, Ran, Tick
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.delegation.task import State


def failed(outcome: str = "failed", *findings: Finding) -> tuple[Recorder, list[Observation], Decision]:
    """A task that failed, and a retry of it."""
    record = Recorder()
    result = record.seen("a.return.md", returned(outcome), *findings)
    observations: list[Observation] = [record.seen("a.handoff.json", handoff("a")), result]
    recorded = (Receipt(Stage.RECORDED, 1_010.0),)
    return record, observations, Decision("d1", "a", 1, None, result.digest, Action.RETRY, 1_010.0, recorded)


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
    _, observations, decision = failed()
    tree = tree_of([*observations, decided(replace(decision, action=action))])
    task = tree.tasks["a"]
    assert (task.state, task.needs_operator, tree.asking()) == (state, False, [])
    assert task.attempts[0].state is State.FAILED
    (document,) = tree_document(tree, "/w")["tasks"]
    assert document["decision"] == {"decision_id": "d1", "action": action.value, "receipt": "recorded"}


def test_an_accepted_partial_return_stays_partial() -> None:
    _, observations, decision = failed("partial", BROKEN)
    tree = tree_of([*observations, decided(replace(decision, action=Action.ACCEPT))])
    assert tree.tasks["a"].state is State.PARTIAL


def test_a_decision_binds_only_the_return_that_it_was_made_about() -> None:
    record, observations, decision = failed()
    tree = tree_of([*observations, decided(decision), record.seen("a.return.md", returned("blocked"))])
    assert (tree.tasks["a"].state, tree.tasks["a"].decision) == (State.BLOCKED, None)


def test_a_decision_may_be_known_before_the_files_are() -> None:
    _, observations, decision = failed()
    assert tree_of([decided(decision), *observations]).tasks["a"].state is State.RETRYING


def test_the_next_attempt_shows_that_the_agent_has_acted() -> None:
    record, observations, decision = failed()
    tree = tree_of([*observations, decided(decision), record.seen("a.handoff.json", handoff("a"))])
    first, second = tree.tasks["a"].attempts
    assert first.decision is not None
    assert first.decision.receipt.stage is Stage.ACTED
    assert (second.decision, tree.tasks["a"].state) == (None, State.SUBMITTED)


def test_a_decision_that_nobody_read_in_time_binds_nobody() -> None:
    _, observations, decision = failed()
    unread = replace(decision, expires_at=2_000.0)
    tree = tree_of([*observations, decided(unread), Tick(60, 1_999.0)])
    assert tree.tasks["a"].state is State.RETRYING
    assert tree.apply(Tick(61, 2_000.0)) == {"a"}
    assert (tree.tasks["a"].state, tree.tasks["a"].needs_operator) == (State.FAILED, True)

    read = replace(unread, receipts=(*unread.receipts, Receipt(Stage.READ, 1_500.0)))
    tree = tree_of([*observations, decided(read), Tick(60, 3_000.0)])
    assert tree.tasks["a"].state is State.RETRYING


def test_a_child_that_answers_again_in_its_session_has_acted_on_the_decision_about_its_first_answer() -> None:
    first = Message(1.0, "1" * 64, "words", Reading(returned("failed")))
    second = Message(2.0, "2" * 64, "words", Reading(returned("partial")))
    root = Run("agents", "root", None, RunState.WORKING, "/store", 0.0, 3.0)
    held = replace(root, session_id="s1", parent_session="root", state=RunState.ENDED, said=first)
    again = replace(held, said=second, earlier=(first,))
    decision = Decision("d1", "s1", 1, None, first.digest, Action.RETRY, 1.5, (Receipt(Stage.RECORDED, 1.5),))
    tree = tree_of([Ran(1, 1.0, "a:root", root), Ran(2, 1.0, "a:s1", held), decided(decision)])
    assert tree.tasks["s1"].state is State.RETRYING
    tree.apply(Ran(3, 2.0, "a:s1", again))
    (attempt,) = tree.tasks["s1"].attempts
    assert attempt.decision is not None
    assert (attempt.decision.receipt.stage, attempt.binding) == (Stage.ACTED, None)
    assert tree.tasks["s1"].state is State.PARTIAL
