"""Which decision an agent asks for: that about what is there now, never one about an attempt before."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentwatch.commands.wait import claim, wait
from agentwatch.config import Settings
from agentwatch.decisions.asking import question_about
from agentwatch.decisions.delivery import mirror_missing
from agentwatch.decisions.record import Params, Record, Subject
from agentwatch.delegation.tree import DelegationTree
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.homes import live_in
from tests.unit.decisions.made import QUICK, Operator, record
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


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    operator = Operator(tmp_path)
    live_in(tmp_path / "home", monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", operator.key.public.text)
    return operator


def decide(operator: Operator, task_id: str, attempt: int, return_sha256: str) -> None:
    subject = Subject(operator.workspace_id, task_id, attempt, None, return_sha256)
    operator.decide(returned=lambda: return_sha256, subject=subject, created_at=datetime.now(UTC))


Looks = list[bool]
"""For each look at the workspace, whether it was at the agents' sessions as well."""


def waits(
    operator: Operator,
    looks: Looks,
    tree: Callable[[], DelegationTree] = DelegationTree,
    timeout: float = 0.0,
    settings: Settings | None = None,
) -> int:
    def load(workspace: Path, settings: Settings, **_: object) -> Monitor:
        looks.append(settings.sessions)
        monitor = Monitor(workspace, settings, FilesSource(workspace), clock=lambda: 0.0)
        monitor.tree = tree()
        return monitor

    return wait(operator.workspace, settings or Settings(), load, "x", None, timeout=timeout, indent=None)


def test_without_a_decision_the_sessions_are_not_read(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    looks: Looks = []
    decide(operator, "another task", 1, "f" * 64)
    assert waits(operator, looks) == 3
    assert looks == [False]
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["pending"], found["state"]) == (True, None)
    assert "no such task is seen" in found["do_now"]
    assert "is seen in the files of" in told.err


def test_with_one_what_is_there_is_looked_at_once_and_says_whether_it_answers(operator: Operator) -> None:
    tree = told(returned())
    decide(operator, "x", 1, digest(tree, 1))
    looks: Looks = []
    assert waits(operator, looks, lambda: tree) == 0
    assert looks == [True]
    assert waits(operator, [], lambda: told(returned(), returned())) == 3
    assert waits(operator, [], lambda: told(returned(code="E_Y"))) == 3


def test_a_child_that_returned_while_somebody_waited_is_answered_as_soon_as_it_is_decided(operator: Operator) -> None:
    first, second = told(returned()), told(returned(), returned(code="E_Y"))
    trees, looks = [first], Looks()
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(waits, operator, looks, lambda: trees[-1], 60.0)
        trees.append(second)
        decide(operator, "x", 2, digest(second, 2))
        assert waiting.result(60.0) == 0
    assert looks in ([True], [False, True])


def test_a_task_that_asks_nothing_is_not_waited_for(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    looks: Looks = []
    assert waits(operator, looks, lambda: told(returned("SUCCESS")), timeout=60.0) == 8
    assert looks == [False, True]
    found = json.loads(capsys.readouterr().out)
    assert (found["pending"], found["unasked"], found["state"]) == (True, True, "completed")
    assert "nothing is asked" in found["detail"]
    assert "nothing is asked of the operator, so do not wait" in found["do_now"]


@pytest.mark.parametrize(("tree", "state"), [(told(None), "submitted"), (told(returned()), "failed")])
def test_one_that_has_not_returned_or_has_failed_is(
    operator: Operator, capsys: pytest.CaptureFixture[str], tree: DelegationTree, state: str
) -> None:
    assert waits(operator, [], lambda: tree) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["unasked"], found["state"]) == (False, state)
    assert "call `agentwatch wait` again" in found["do_now"]


@pytest.mark.parametrize("place", ["ledger", "mirror"])
def test_a_wait_that_may_write_nothing_into_the_workspace_does_not(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    operator.decide("x", params=Params(handoff="{}"), created_at=datetime.now(UTC))
    if place == "mirror":
        mirror_missing(operator.workspace, operator.chain(), operator.ledger.bytes_of, operator.trust, disk=QUICK)
        monkeypatch.setenv("XDG_STATE_HOME", str(operator.root / "nowhere"))
    before = sorted(operator.workspace.rglob("*"))
    assert waits(operator, [], settings=Settings(read_only=True)) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["place"], told["handoff_path"]) == (place, None)
    assert sorted(operator.workspace.rglob("*")) == before
    assert claim(operator.workspace, Settings(read_only=True), told["decision_id"], "me") == 0
    assert sorted(operator.workspace.rglob("*")) == before


def test_who_gives_the_same_name_again_may_claim_again(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.decide("x", created_at=datetime.now(UTC))
    claimed = operator.chain().entries[0].record.decision_id
    assert [claim(operator.workspace, Settings(), claimed, by) for by in ("w3", "w3", "w4")] == [0, 0, 6]
    told = capsys.readouterr()
    assert "already yours: w3 claimed it" in told.err
    assert [(one["won"], one["again"]) for one in map(json.loads, told.out.splitlines())] == [
        (True, False),
        (True, True),
        (False, False),
    ]
