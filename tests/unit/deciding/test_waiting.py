"""Which decision an agent asks for: that about what is there now, never one about an attempt before."""

from __future__ import annotations

from agentwatch.deciding.waiting import question_about
from agentwatch.decisions.record import Record
from agentwatch.delegation.tree import DelegationTree
from tests.unit.decisions.made import record
from tests.unit.decisions.test_policy import Told, returned


def told(*returns: str | None) -> DelegationTree:
    teller = Told()
    for number, text in enumerate(returns, 1):
        teller.attempt(number, text)
    return teller.tree


def digest(tree: DelegationTree, number: int) -> str:
    version = tree.tasks["x"].attempts[number - 1].returned
    assert version is not None
    return version.digest


def decision(attempt: int, return_sha256: str | None) -> Record:
    return record(task_id="x", attempt=attempt, return_sha256=return_sha256)


def test_the_decision_about_the_return_that_is_there_answers() -> None:
    tree = told(returned())
    assert question_about(tree, "x", None).fits(decision(1, digest(tree, 1)))


def test_the_decision_about_the_attempt_before_does_not_answer() -> None:
    tree = told(returned(), returned(code="E_Y"))
    question = question_about(tree, "x", None)
    assert not question.fits(decision(1, digest(tree, 1)))
    assert question.fits(decision(2, digest(tree, 2)))


def test_once_the_next_attempt_has_begun_the_old_decision_does_not_answer() -> None:
    tree = told(returned(), None)
    assert not question_about(tree, "x", None).fits(decision(1, digest(tree, 1)))


def test_the_same_failure_twice_is_not_answered_by_the_first_decision() -> None:
    tree = told(returned(), returned())
    # The two differ in their attempt only; in a sandbox without history the digests may be all that is known.
    assert not question_about(tree, "x", None).fits(decision(1, digest(tree, 2)))


def test_an_attempt_that_the_operator_counts_higher_is_answered() -> None:
    tree = told(returned())
    assert question_about(tree, "x", None).fits(decision(3, digest(tree, 1)))


def test_the_decision_about_a_return_that_was_rewritten_since_does_not_answer() -> None:
    assert not question_about(told(returned()), "x", None).fits(decision(1, "f" * 64))


def test_an_attempt_that_is_named_is_the_one_asked_for() -> None:
    tree = told(returned(), returned(code="E_Y"))
    question = question_about(tree, "x", 1)
    assert question.fits(decision(1, digest(tree, 1)))
    assert not question.fits(decision(2, digest(tree, 2)))


def test_of_an_unknown_task_any_decision_answers() -> None:
    assert question_about(DelegationTree(), "x", None).fits(decision(1, None))
