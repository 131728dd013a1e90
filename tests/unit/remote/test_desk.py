"""The desk of an operator whose workspace is on a host: one decision is recorded there or none, and it says which."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.decisions.made import NOON
from tests.unit.remote.far import ALICE, STRANGER, Host, Line
from tests.unit.requests.asked import request

from agentwatch.cli.answer import answer_request
from agentwatch.cli.command import parse
from agentwatch.config import Settings
from agentwatch.decisions.envelope import seal
from agentwatch.decisions.errors import (
    DecisionError,
    NotAllowedError,
    NotRecordedError,
    RequestGoneError,
    ReturnChangedError,
    UncertainError,
    UnreachableError,
)
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import AlreadyDecidedError, Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Requested
from agentwatch.monitor import Monitor
from agentwatch.remote import desk as module
from agentwatch.remote.desk import RemoteDesk
from agentwatch.remote.protocol import Result
from agentwatch.sources import Batch, CombinedSource, Health

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.1)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path / "host")
    host.fail()
    return host


@pytest.fixture
def line(host: Host) -> Line:
    return Line(host)


@pytest.fixture
def kim(line: Line, tmp_path: Path) -> RemoteDesk:
    return line.desk(tmp_path / "kim")


def decide(of: RemoteDesk, host: Host, action: Action = Action.RETRY, note: str = "once more") -> DecisionMade:
    task = host.monitor().tree.tasks["a"]
    return of.decide(of.subject(task), action, note=note, returned=lambda: "whatever")


def test_a_decision_is_recorded_by_the_host_and_shown(host: Host, line: Line, kim: RemoteDesk) -> None:
    assert kim.unreachable is None
    made = decide(kim, host)
    assert made.fresh
    assert (made.doubt, made.undelivered) == (None, None)
    assert host.records() == [made.record]
    assert made.record.operator == "kim"
    assert made.entry == host.chain().entries[0]
    assert kim.notice is None
    # Once is enough, and the very same is the same.
    assert len(line.sent) == 1
    host.now += MINUTE
    again = decide(kim, host)
    assert (again.fresh, again.record) == (False, made.record)


def test_what_is_lost_on_the_way_is_sent_again(host: Host, line: Line, kim: RemoteDesk) -> None:
    line.loses_requests = line.loses_results = 1
    assert decide(kim, host).fresh
    assert len(line.sent) == 3
    assert len(set(line.sent)) == 1
    assert len(host.records()) == 1


def test_where_nobody_answers_nobody_knows_and_to_decide_the_same_again_is_safe(
    host: Host, line: Line, kim: RemoteDesk, tmp_path: Path
) -> None:
    line.loses_results = 100
    with pytest.raises(
        UncertainError, match="nobody knows yet whether retry of “a” is recorded: “build1” has not said"
    ):
        decide(kim, host)
    assert len(host.records()) == 1
    line.lost_since = time.time()
    with pytest.raises(UncertainError, match="it counts once"):
        decide(kim, host)
    line.loses_results, line.lost_since = 0, None
    host.now += MINUTE
    made = decide(kim, host)
    assert (made.fresh, host.records()) == (True, [made.record])
    assert len(set(line.sent)) == 1
    # Another screen signs it anew, and is told that it was so before.
    again = decide(line.desk(tmp_path / "kim"), host)
    assert (again.fresh, again.record) == (False, made.record)


def test_where_the_host_cannot_be_reached_nothing_is_decided(host: Host, line: Line, kim: RemoteDesk) -> None:
    line.lost_since = time.time() - 180
    words = "“build1” cannot be reached (last heard 3m ago): the connection is refused; nothing can be decided there"
    assert kim.unreachable == words
    with pytest.raises(UnreachableError) as error:
        decide(kim, host)
    assert str(error.value) == f"not recorded: {words}"
    assert line.sent == []
    # Not even who signs for it is known at first.
    line.lost_since, line.key = None, None
    line.why = "the connection is being made"
    assert kim.unreachable == "“build1” cannot be reached: the connection is being made; nothing can be decided there"


def test_what_the_host_refuses_is_an_error_in_its_words(host: Host, line: Line, tmp_path: Path) -> None:
    kim, stranger = line.desk(tmp_path / "kim"), line.desk(tmp_path / "stranger", STRANGER)
    with pytest.raises(NotAllowedError, match="there is no result to accept"):
        decide(kim, host, Action.ACCEPT)
    with pytest.raises(NotRecordedError) as error:
        decide(stranger, host)
    assert f"on “build1”: agentwatch keys trust {STRANGER.public.text} --name NAME" in str(error.value)
    seen = host.subject()._replace(return_sha256="0" * 64)
    with pytest.raises(ReturnChangedError, match="the return has changed since you looked at it"):
        kim.decide(seen, Action.RETRY, returned=lambda: None)
    assert host.records() == []


def test_of_two_operators_the_second_is_told_what_holds(host: Host, line: Line, tmp_path: Path) -> None:
    kim, alice = line.desk(tmp_path / "kim"), line.desk(tmp_path / "alice", ALICE)
    made = decide(kim, host)
    with pytest.raises(AlreadyDecidedError) as error:
        decide(alice, host, Action.ABORT, "")
    assert error.value.existing == made.record
    same = decide(alice, host)
    assert (same.fresh, same.record) == (False, made.record)


def test_a_host_that_could_not_record_it_is_asked_again(host: Host, line: Line, kim: RemoteDesk) -> None:
    host.desk.keys.protect("secret")
    with pytest.raises(UncertainError, match=r"nobody can type its passphrase on the host.*; nobody knows yet"):
        decide(kim, host)
    host.desk.keys.protect(None, lambda: "secret")
    assert decide(kim, host).fresh
    assert len(host.records()) == 1


LIES: dict[str, Callable[[Host, Result], str | None]] = {
    "nothing": lambda _host, _true: None,
    "no record": lambda _host, _true: "x",
    "a record of another key": lambda host, _true: seal(host.records()[0].to_bytes(), STRANGER).decode(),
    "another decision": lambda host, _true: host.record(host.signed("b", Action.ABORT, note="")).record,
}


@pytest.mark.parametrize("name", LIES)
def test_what_the_host_does_not_show_is_not_said_to_be_recorded(
    host: Host, line: Line, kim: RemoteDesk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    host.fail("b")
    record = host.record

    def lies(text: str) -> Result:
        true = record(text)
        monkeypatch.setattr(host, "record", record)
        return true.model_copy(update={"record": LIES[name](host, true)})

    monkeypatch.setattr(host, "record", lies)
    with pytest.raises(UncertainError):
        decide(kim, host)
    assert decide(kim, host).fresh


def test_the_first_decision_makes_the_key_which_the_host_does_not_know(line: Line, host: Host, tmp_path: Path) -> None:
    desk = line.desk(tmp_path / "new")
    for path in desk.keys.directory.iterdir():
        path.unlink()
    with pytest.raises(NotRecordedError, match="agentwatch keys trust ed25519:"):
        decide(desk, host)
    host.desk.keys.trust_other(Role.OPERATOR, desk.keys.show(), "new", NOON.replace(year=2020))
    host.now += MINUTE
    assert decide(desk, host).record.operator == "new"


# What a clerk asks


# Answers


def test_the_request_of_a_program_is_answered_from_afar(host: Host, line: Line, kim: RemoteDesk) -> None:
    host.now = datetime.now(UTC).replace(microsecond=0)
    asked = request(host.workspace, asked_at=time.time())
    holder = host.holder()
    where: dict[str, Any] = {"task_id": "a", "attempt": 1, "gone": lambda: None}
    with holder.offer(asked) as offer:
        with pytest.raises(NotAllowedError, match="none of the rules"):
            kim.answer(asked, Action.ALLOW, Params(rule="x"), **where)
        with pytest.raises(RequestGoneError, match="it is gone here"):
            kim.answer(asked, Action.ALLOW, **(where | {"gone": lambda: "it is gone here"}))
        made = kim.answer(asked, Action.DENY, note="Use build/.", **where)
        assert made.fresh
        record = holder.look(offer)
        assert record == made.record
        assert record is not None
        assert (record.note, record.operator) == ("Use build/.", "kim")
    host.now += MINUTE
    again = kim.answer(asked, Action.DENY, note="Use build/.", **where)
    assert (again.fresh, again.record) == (False, made.record)


def test_the_command_answers_a_request_that_is_on_a_host(
    host: Host, line: Line, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.now = datetime.now(UTC).replace(microsecond=0)
    asked = request(host.workspace, asked_at=time.time())
    given: dict[str, Any] = {"open_desk": lambda: line.desk(tmp_path / "kim"), "host": "build1"}
    monitor = Monitor(Path("/ssh:build1:/shop"), Settings(), CombinedSource([]), time.time, **given)
    monitor._open_parts()
    monitor.load(Batch([Requested(1, time.time(), asked.request_id, asked)], Health("live", "")))
    options = parse("answer", ["--deny", "Use build/.", "--yes", asked.request_id[:8]])
    holder = host.holder()
    with holder.offer(asked) as offer:
        assert answer_request(options, monitor) == 0
        record = holder.look(offer)
        assert record is not None
        assert (record.operator, record.note) == ("kim", "Use build/.")
    assert "`agentwatch pending` says when its program has it" in capsys.readouterr().out
    line.lost_since = time.time()
    with pytest.raises(DecisionError, match="cannot be reached"):
        answer_request(options, monitor)
