"""The agents' side: verified or not yet, from the ledger or from the mirror, and never a guess."""

import errno
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.delivery import mirror_missing
from agentwatch.decisions.ledger import ProblemKind
from agentwatch.decisions.reader import MIRROR, Found, Question, Reader, question_about
from agentwatch.decisions.record import Params, Record
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.tree import Tree
from agentwatch.disk import Disk
from tests.unit.decisions.made import NOON, QUICK, RETURN, Operator, Quick, record

PLACE = Path(".agentwatch") / "decisions"
PUBLIC = "AGENTWATCH_PUBLIC_KEY"


@pytest.fixture
def operator(tmp_path):
    return Operator(tmp_path)


def decide(operator: Operator, task: str, **changes: Any) -> Record:
    made = operator.decide(task, **changes)
    mirror_missing(operator.workspace, operator.ledger, operator.chain(), operator.trust)
    return made.record


def outside(operator: Operator, **changes: Any) -> Reader:
    """Of somebody who can see the ledger."""
    values: dict[str, Any] = {"state": operator.state, "configuration": operator.configuration, "environment": {}}
    return Reader(operator.workspace, "wait", **(values | {"disk": QUICK} | changes))


def inside(operator: Operator, **changes: Any) -> Reader:
    """Of somebody in a sandbox that shows the workspace and nothing else."""
    nowhere = operator.root / "nowhere"
    values = {"environment": {PUBLIC: operator.key.public.text}, "state": nowhere, "configuration": nowhere}
    return outside(operator, **(values | changes))


def denied(operator: Operator) -> Disk:
    """A disk on which the ledger may not be read."""

    class Denied(Quick):
        def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
            if path == operator.ledger.directory:
                raise PermissionError(errno.EACCES, "Permission denied")
            return os.open(path, flags, mode, dir_fd=dir_fd)

    return Denied()


def test_a_ledger_that_may_not_be_read_is_hidden(operator):
    made = decide(operator, "a")
    found = inside(operator, state=operator.state, disk=denied(operator)).find(Question("a"))
    assert (found.record, found.place) == (made, MIRROR)


@pytest.mark.parametrize("how", ["gone", "closed", "never there"])
def test_beside_the_key_nothing_holds_without_the_ledger(operator, how):
    """The operator can decide the opposite by then: what lies in the workspace is what an agent kept of it."""
    decide(operator, "a")
    changes: dict[str, Any] = {"disk": denied(operator)} if how == "closed" else {}
    if how == "gone":
        operator.ledger.directory.rename(operator.root / "lost")
    elif how == "never there":
        changes = {"state": operator.root / "new"}
    found = outside(operator, **changes).find(Question("a"))
    assert found.decided is None
    assert "is gone or cannot be read: put it back, or decide again" in found.refused[0].message


def test_what_was_carried_out_to_its_end_answers_no_more(operator):
    called = decide(operator, "a", action=Action.ESCALATE, params=Params(mode="fitter")).decision_id
    question = Question("a", 1, (RETURN,), over=frozenset({called}))
    readers = outside(operator), inside(operator)
    assert [one.find(question).decided for one in readers] == [None, None]
    after = decide(operator, "a", subject=operator.subject("a")._replace(after=called))
    assert after.after == called
    # Only a call for the fitter ends with one: nobody takes another decision away by naming it in a handoff.
    again = question._replace(over=frozenset({called, after.decision_id}))
    assert [one.find(asked).record for one in readers for asked in (question, again)] == [after] * 4
    assert outside(operator).find(question._replace(carried_out=frozenset({after.decision_id}))).decided is None


def test_a_program_is_told_of_its_own_task_of_a_shared_id(operator):
    made = decide(operator, "a#codex")
    found = [outside(operator).find(Question("a", program=name)).record for name in ("codex", "qwen-code", "")]
    assert found == [made, None, None]


@pytest.mark.parametrize(("task", "is_final", "holds"), [("a", True, True), ("a", False, False), ("b", True, False)])
def test_only_an_abort_answers_the_final_report(operator, task, is_final, holds):
    decide(operator, "a", action=Action.ABORT)
    decide(operator, "b")
    found = outside(operator).find(Question(task, 1, ("0" * 64,), is_final=is_final))
    assert (found.record is not None) is holds


def test_without_a_key_nothing_can_be_told(operator):
    decide(operator, "a")
    blind = inside(operator, environment={})
    assert blind.find(Question("a")).refused
    for path in (operator.workspace / PLACE).iterdir():
        path.unlink()
    found = blind.find(Question("a"))
    assert (found.decided, found.refused, PUBLIC in found.detail) == (None, (), True)


def test_hidden_keys_do_not_hide_those_that_were_given(operator):
    made = decide(operator, "a")
    operator.keys.directory.chmod(0o777)
    assert outside(operator).find(Question("a")).refused
    given = outside(operator, environment={PUBLIC: operator.key.public.text})
    assert given.find(Question("a")).record == made


def test_a_workspace_that_is_mounted_elsewhere_can_be_named(operator):
    made, mounted, nowhere = decide(operator, "a"), operator.root / "mounted", operator.root / "nowhere"
    operator.workspace.rename(mounted)
    found = []
    for more in ({}, {"AGENTWATCH_WORKSPACE_ID": operator.workspace_id}):
        environment = {PUBLIC: operator.key.public.text, **more}
        reader = Reader(mounted, state=nowhere, configuration=nowhere, environment=environment)
        found.append(reader.find(Question("a")))
    assert (found[0].decided, bool(found[0].refused), found[1].record) == (None, True, made)


def test_a_workspace_that_cannot_be_read_is_told(operator):
    decide(operator, "a")
    (operator.workspace / ".agentwatch").rename(operator.root / "elsewhere")
    (operator.workspace / ".agentwatch").symlink_to(operator.root / "elsewhere")
    (problem,) = inside(operator).find(Question("a")).refused
    assert (problem.kind, "is a link or no directory" in problem.message) == (ProblemKind.UNREADABLE, True)


def waited(reader: Reader, seconds: float, at: dict[float, Callable[[], object]]) -> tuple[Found, float]:
    """The outcome of a wait for the task `a`, and after how long, when these things happen meanwhile."""
    now = 0.0

    def sleep(seconds: float):
        nonlocal now
        assert 0 < seconds <= 0.2
        now += seconds
        for moment in [one for one in at if one <= now]:
            at.pop(moment)()

    return reader.wait(Question("a"), seconds, lambda: now, sleep), now


@pytest.mark.parametrize("side", [outside, inside])
def test_waiting_ends_with_the_decision_and_with_no_fake(operator, side):
    decide(operator, "other")
    fake = operator.workspace / PLACE / f"{operator.subject('a').decision_id}.json"
    happens = {1.0: lambda: fake.write_text("{}"), 4.0: lambda: decide(operator, "a")}
    found, seconds = waited(side(operator), 60, happens)
    assert found.record is not None
    assert 4 <= seconds < 4.5


def test_a_time_out_is_neither_an_approval_nor_a_refusal(operator):
    decide(operator, "other")
    for limit in (3, 0):
        found, seconds = waited(outside(operator), limit, {})
        assert (found.decided, found.refused, seconds) == (None, (), pytest.approx(limit))


def test_without_a_place_to_write_an_agent_is_told_all_the_same(tmp_path):
    (tmp_path / ".agentwatch").touch()
    reader = Reader(tmp_path, "wait", state=tmp_path / ".agentwatch" / "state", configuration=tmp_path)
    made = record(params=Params(handoff="{}"))
    assert reader.hand_out(made) is None
    assert "can be written" in (reader.mark(Found(MIRROR, made), "agent") or "")
    reader.mark(reader.find(Question(None, decision_id=made.decision_id)), "agent", Stage.ACTED)


def test_what_is_not_seen_yet_is_asked_about_all_the_same(operator):
    assert question_about(Tree(), "x", None) == Question("x")
    assert question_about(Tree(), "x", 3) == Question("x", 3)
    old = decide(operator, "a", expires_at=NOON - timedelta(days=3_650))
    found = outside(operator).find(Question("a"))
    assert (found.record, found.expired) == (None, old)
