"""The agents' side: verified or not yet, from the ledger or from the mirror, and never a guess."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.delivery import mirror_missing
from agentwatch.decisions.ledger import ProblemKind
from agentwatch.decisions.reader import Forged, Pending, Place, Question, Reader, Verified
from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from agentwatch.disk import Disk
from tests.unit.decisions.made import QUICK, RETURN, Operator, Quick


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def decide(operator: Operator, task: str, **changes: Any) -> None:
    operator.decide(task, **changes)
    mirror_missing(operator.workspace, operator.ledger, operator.chain(), operator.trust)


def outside(operator: Operator, disk: Disk = QUICK, **changes: Any) -> Reader:
    """Of somebody who can see the ledger."""
    values: dict[str, Any] = {
        "state": operator.state,
        "configuration": operator.configuration,
        "environment": {},
        "disk": disk,
    }
    return Reader(operator.workspace, **(values | changes))


def inside(operator: Operator, **changes: Any) -> Reader:
    """Of somebody in a sandbox that shows the workspace and nothing else."""
    nowhere = operator.root / "nowhere"
    environment = {"AGENTWATCH_PUBLIC_KEY": operator.key.public.text}
    values = {"environment": environment, "state": nowhere, "configuration": nowhere}
    return outside(operator, **(values | changes))


def test_a_ledger_that_may_not_be_read_is_hidden(operator: Operator) -> None:
    decide(operator, "a")
    found = inside(operator, state=operator.state, disk=failing_ledger(operator)).find(Question("a"))
    assert isinstance(found, Verified)
    assert found.place is Place.MIRROR


@pytest.mark.parametrize("how", ["gone", "closed", "never there"])
def test_where_the_key_lies_in_sight_nothing_holds_without_the_ledger(operator: Operator, how: str) -> None:
    """The operator can decide the opposite by then: what lies in the workspace is what an agent kept of it."""
    decide(operator, "a")
    disk = failing_ledger(operator) if how == "closed" else QUICK
    if how == "gone":
        operator.ledger.directory.rename(operator.root / "lost")
    reader = outside(operator, disk, **({"state": operator.root / "new"} if how == "never there" else {}))
    found = reader.find(Question("a"))
    assert isinstance(found, Forged)
    assert "is gone or cannot be read: put it back, or decide again" in found.refused[0].message


def failing_ledger(operator: Operator) -> Disk:
    class Denied(Quick):
        def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
            if path == operator.ledger.directory:
                raise PermissionError(errno.EACCES, "Permission denied")
            return os.open(path, flags, mode, dir_fd=dir_fd)

    return Denied()


def test_what_was_carried_out_to_its_end_answers_no_more(operator: Operator) -> None:
    decide(operator, "a", action=Action.ESCALATE, params=Params(mode="fitter"))
    called = operator.chain().entries[0].record.decision_id
    question = Question("a", 1, RETURN, over=frozenset({called}))
    for reader in (outside(operator), inside(operator)):
        assert isinstance(reader.find(question), Pending)
    decide(operator, "a", subject=operator.subject("a")._replace(after=called))
    for reader in (outside(operator), inside(operator)):
        found = reader.find(question)
        assert isinstance(found, Verified)
        assert (found.record.action, found.record.after) == (Action.RETRY, called)
        # Only a call for the fitter ends with one: nobody takes another decision away by naming it in a handoff.
        again = question._replace(over=frozenset({called, found.record.decision_id}))
        assert reader.find(again) == found


def test_the_final_report_is_answered_by_its_abort_and_by_nothing_else(operator: Operator) -> None:
    decide(operator, "a", action=Action.ABORT)
    decide(operator, "b")
    for task, now, is_final in (("a", True, True), ("a", False, False), ("b", False, True)):
        found = outside(operator).find(Question(task, 1, "0" * 64, is_final=is_final))
        assert isinstance(found, Verified if now else Pending)


def test_without_a_key_nothing_can_be_told(operator: Operator) -> None:
    decide(operator, "a")
    blind = inside(operator, environment={})
    assert isinstance(blind.find(Question("a")), Forged)
    for path in (operator.workspace / ".agentwatch" / "decisions").iterdir():
        path.unlink()
    found = blind.find(Question("a"))
    assert isinstance(found, Pending)
    assert "AGENTWATCH_PUBLIC_KEY" in found.detail


def test_keys_that_are_hidden_do_not_hide_those_that_were_given(operator: Operator) -> None:
    decide(operator, "a")
    operator.keys.directory.chmod(0o777)
    assert isinstance(outside(operator).find(Question("a")), Forged)
    given = outside(operator, environment={"AGENTWATCH_PUBLIC_KEY": operator.key.public.text})
    assert isinstance(given.find(Question("a")), Verified)


def test_a_workspace_that_is_mounted_elsewhere_can_be_named(operator: Operator, tmp_path: Path) -> None:
    decide(operator, "a")
    mounted = tmp_path / "mounted"
    operator.workspace.rename(mounted)
    values: dict[str, Any] = {
        "state": tmp_path / "nowhere",
        "configuration": tmp_path / "nowhere",
        "environment": {"AGENTWATCH_PUBLIC_KEY": operator.key.public.text},
    }
    assert isinstance(Reader(mounted, **values).find(Question("a")), Forged)
    values["environment"]["AGENTWATCH_WORKSPACE_ID"] = operator.workspace_id
    assert isinstance(Reader(mounted, **values).find(Question("a")), Verified)


def test_a_workspace_that_cannot_be_read_is_told(operator: Operator) -> None:
    decide(operator, "a")
    (operator.workspace / ".agentwatch").rename(operator.root / "elsewhere")
    (operator.workspace / ".agentwatch").symlink_to(operator.root / "elsewhere")
    found = inside(operator).find(Question("a"))
    assert isinstance(found, Forged)
    assert found.refused[0].kind is ProblemKind.UNREADABLE
    assert "is a link or no directory" in found.refused[0].message


class Clock:
    """A clock that moves when somebody sleeps, and does something at a moment."""

    def __init__(self, moments: dict[float, Any] | None = None) -> None:
        self.now, self.slept = 0.0, 0
        self._moments = dict(moments or {})

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 0.2
        self.now += seconds
        self.slept += 1
        for moment in [one for one in self._moments if one <= self.now]:
            self._moments.pop(moment)()


@pytest.mark.parametrize("side", [outside, inside])
def test_waiting_ends_with_the_decision(operator: Operator, side: Any) -> None:
    decide(operator, "other")
    clock = Clock({5.0: lambda: decide(operator, "a", expires_at=None)})
    found = side(operator).wait(Question("a"), 60, clock=clock.clock, sleep=clock.sleep)
    assert isinstance(found, Verified)
    assert clock.now < 5.5


def test_a_time_out_is_neither_an_approval_nor_a_refusal(operator: Operator) -> None:
    decide(operator, "other")
    clock = Clock()
    found = outside(operator).wait(Question("a"), 3, clock=clock.clock, sleep=clock.sleep)
    assert isinstance(found, Pending)
    assert clock.now == pytest.approx(3)
    assert isinstance(outside(operator).wait(Question("a"), 0, clock=clock.clock, sleep=clock.sleep), Pending)


def test_a_forged_file_does_not_end_the_waiting(operator: Operator) -> None:
    decide(operator, "other")
    place = operator.workspace / ".agentwatch" / "decisions"
    forge = lambda: (place / f"{operator.subject('a').decision_id}.json").write_text("{}")  # noqa: E731
    for moments, kind in (({1.0: forge}, Forged), ({1.0: forge, 4.0: lambda: decide(operator, "a")}, Verified)):
        clock = Clock(moments)
        assert isinstance(inside(operator).wait(Question("a"), 9, clock=clock.clock, sleep=clock.sleep), kind)


def test_a_change_without_a_sign_is_seen_as_well(operator: Operator) -> None:
    """A file that is edited in place changes no directory."""
    decide(operator, "a")
    (path,) = operator.files()
    good = path.read_bytes()
    path.write_bytes(good.replace(b'"', b"'"))
    for place in (path.parent, operator.workspace / ".agentwatch" / "decisions"):
        os.utime(place, (1_000, 1_000))
    clock = Clock({1.0: lambda: path.write_bytes(good)})
    found = outside(operator).wait(Question("a"), 60, clock=clock.clock, sleep=clock.sleep)
    assert isinstance(found, Verified)
    assert 1.9 < clock.now < 4


@pytest.mark.parametrize("side", [outside, inside])
def test_a_file_system_with_a_coarse_clock_delays_no_decision(operator: Operator, side: Any) -> None:
    """Two changes of a directory within one tick of its clock leave it with the same time."""
    decide(operator, "other")
    places = [operator.workspace / ".agentwatch" / "decisions", operator.state / "decisions"]
    times = {place: place.stat().st_mtime_ns for place in places}

    def decide_in_the_same_tick() -> None:
        decide(operator, "a", expires_at=None)
        for place, at in times.items():
            os.utime(place, ns=(at, at))

    clock = Clock({0.3: decide_in_the_same_tick})
    found = side(operator).wait(Question("a"), 60, clock=clock.clock, sleep=clock.sleep)
    assert isinstance(found, Verified)
    assert clock.now < 0.8


@pytest.fixture(autouse=True)
def _the_home_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield
    assert not (tmp_path / "home").exists()
