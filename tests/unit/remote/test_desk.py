"""Both desks: the host records what its operators signed, once, and says of everything else why it does not; operators
are told what is so."""

import asyncio
import errno
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentwatch.config import Settings
from agentwatch.decisions.envelope import seal
from agentwatch.decisions.errors import (
    NotAllowedError,
    NotRecordedError,
    RequestGoneError,
    ReturnChangedError,
    UncertainError,
    UnreachableError,
)
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import DecisionMade, verified
from agentwatch.decisions.record import AlreadyDecidedError, Params, Subject, asked_of, written
from agentwatch.delegation.decision import Action, RequestStage, Stage
from agentwatch.monitor import Monitor
from agentwatch.remote.desk import RemoteDesk, record_signed
from agentwatch.remote.protocol import Outcome, Result
from agentwatch.sources import CombinedSource
from tests.unit.decisions.made import KIM, NOON, Quick, at
from tests.unit.remote.far import ALICE, STRANGER, Host, Line
from tests.unit.requests.asked import request

MINUTE = timedelta(minutes=1)


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path / "host")
    host.fail()
    return host


@pytest.fixture
def line(host):
    return Line(host)


@pytest.fixture
def kim(line, tmp_path):
    return line.desk(tmp_path / "kim")


def decide(of: RemoteDesk, host: Host, action: Action = Action.RETRY, note: str = "once more") -> DecisionMade:
    task = host.monitor().tree.tasks["a"]
    return of.decide(of.subject(task), action, note=note, returned=lambda: "whatever")


def test_a_decision_is_recorded_by_the_host_and_shown(host, line, kim, tmp_path):
    assert kim.unreachable is None
    made = decide(kim, host)
    assert made.fresh
    assert (made.doubt, made.undelivered) == (None, None)
    assert host.records() == [made.record]
    assert made.record.operator == "kim"
    assert made.entry == host.chain().entries[0]
    # Once is enough, and the very same is the same, whoever says it.
    host.now += MINUTE
    again = decide(line.desk(tmp_path / "alice", ALICE), host)
    assert (again.fresh, again.record) == (False, made.record)
    with pytest.raises(AlreadyDecidedError) as error:
        decide(kim, host, Action.ABORT, "")
    assert error.value.existing == made.record


def test_to_decide_the_same_again_is_safe_where_nobody_answers(host, line, kim):
    line.is_deaf = True
    with pytest.raises(
        UncertainError, match="nobody knows yet whether retry of “a” is recorded: “build1” has not said"
    ):
        decide(kim, host)
    assert len(host.records()) == 1
    line.lost_since = time.time()
    with pytest.raises(UncertainError, match="it counts once"):
        decide(kim, host)
    line.is_deaf, line.lost_since = False, None
    host.now += MINUTE
    made = decide(kim, host)
    assert (made.fresh, host.records()) == (False, [made.record])


def test_where_the_host_cannot_be_reached_nothing_is_decided(host, line, kim):
    line.lost_since = time.time() - 180
    words = "“build1” cannot be reached: the connection is refused; nothing can be decided there"
    assert kim.unreachable == words
    with pytest.raises(UnreachableError) as error:
        decide(kim, host)
    assert str(error.value) == f"not recorded: {words}"
    assert line.sent == []


def test_what_the_host_refuses_is_an_error_in_its_words(host, line, tmp_path):
    kim, stranger = line.desk(tmp_path / "kim"), line.desk(tmp_path / "stranger", STRANGER)
    with pytest.raises(NotAllowedError, match="there is no result to accept"):
        decide(kim, host, Action.ACCEPT)
    with pytest.raises(NotRecordedError) as error:
        decide(stranger, host)
    assert f"on “build1”: agentwatch keys trust {STRANGER.public.text} --name NAME" in str(error.value)
    seen = host.subject()._replace(return_sha256="0" * 64)
    with pytest.raises(ReturnChangedError, match="the task has changed since you looked at it"):
        kim.decide(seen, Action.RETRY, returned=lambda: None)
    assert host.records() == []


def test_a_host_that_could_not_record_it_is_asked_again(host, kim):
    host.desk.keys.protect("secret")
    with pytest.raises(UncertainError, match=r"nobody can type its passphrase on the host; nobody knows yet"):
        decide(kim, host)
    assert host.records() == []
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
def test_a_record_that_the_host_does_not_show_is_uncertain(host, line, kim, monkeypatch, name):
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


def test_a_request_is_answered_from_afar_and_claimed_once(host, kim):
    asked = asked_now(host)
    holder = host.holder()
    where: dict[str, Any] = {"task_id": "a", "attempt": 1, "gone": lambda: None}
    with holder.store.offer(asked) as offer:
        assert holder.look(offer) is None
        with pytest.raises(NotAllowedError, match="none of the rules"):
            kim.answer(asked, Action.ALLOW, Params(rule="x"), **where)
        with pytest.raises(RequestGoneError, match="it is gone here"):
            kim.answer(asked, Action.ALLOW, **(where | {"gone": lambda: "it is gone here"}))
        made = kim.answer(asked, Action.DENY, note="Use build/.", **where)
        assert made.fresh
        assert (made.record.note, made.record.operator) == ("Use build/.", "kim")
        assert holder.look(offer) == made.record
        assert host.holder().look(offer) is None
    host.now += MINUTE
    again = kim.answer(asked, Action.DENY, note="Use build/.", **where)
    assert (again.fresh, again.record) == (False, made.record)
    # Agents are told nothing of it.
    assert host.wait().record is None
    assert not (host.workspace / ".agentwatch" / "decisions").exists()


# What the host says


def test_a_record_says_who_signed_it_and_reaches_the_agents(host):
    host.now = NOON + MINUTE
    text = host.signed(at=NOON)
    result = host.record(text)
    assert (result.outcome, result.words) == (Outcome.RECORDED, "recorded")
    assert result.record is not None
    record, keyid = verified(result.record.encode(), host.desk.keys.trust(), host.desk.workspace_id)
    assert keyid == host.key.public.keyid
    assert (record.version, record.operator, record.signed_request) == (3, "kim", text)
    # The host says when; the operator, until when it holds.
    assert (record.created_at, record.expires_at) == (written(host.now), written(NOON + timedelta(days=7)))
    assert (result.decision_id, host.records()) == (record.decision_id, [record])
    found = host.wait()
    assert found.record is not None
    assert found.record == record
    copy = host.workspace / ".agentwatch" / "decisions" / f"{record.decision_id}.json"
    assert copy.read_bytes() == result.record.encode()
    assert host.desk.receipts([record])[record.decision_id][-1].stage is Stage.DELIVERED
    # The same again is the same record. The attempt is over, the time, the decision itself: that is said all the same.
    assert host.record(text) == result
    host.fail(attempt=2)
    assert host.record(text) == result
    host.now = NOON + timedelta(days=30)
    assert host.record(text) == result
    assert len(host.records()) == 1


def test_of_two_operators_the_second_is_told_what_holds(host):
    one, other = host.signed(), host.signed(action=Action.ABORT, key=ALICE, note="")
    assert host.record(one).outcome is Outcome.RECORDED
    (host.state / "refused").write_text("")
    assert host.record(other).outcome is Outcome.FAILED, "a refusal that cannot be written down is none yet"
    (host.state / "refused").unlink()
    result = host.record(other)
    assert result.outcome is Outcome.DECIDED_OTHERWISE
    assert "already decided: kim said retry at 2030-01-01T12:00:00Z; that holds" in result.words
    assert result.record == host.record(one).record
    # Refused once, it stays so; the words are the same, and the record is not needed again.
    again = host.record(other)
    assert (again.outcome, again.words) == (result.outcome, result.words)
    assert [record.operator for record in host.records()] == ["kim"]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", b"[" * 10_000, b'{"outcome":"x","words":"y"}', b"\xff"])
def test_a_refusal_of_a_changed_return_stays_for_good(host, data):
    text = host.signed()
    before = (host.workspace / "a-1.return.md").read_text()
    (host.workspace / "a-1.return.md").write_text("as an agent made it meanwhile")
    # The tree has not seen it yet; the disk has it.
    result = host.record(text)
    assert result.outcome is Outcome.RETURN_CHANGED
    assert "the return has changed since you looked at it" in result.words
    (file,) = (host.state / "refused").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    # Nor when the very return comes back, and somebody delivers it again, whatever became of the words.
    (host.workspace / "a-1.return.md").write_text(before)
    if data is not None:
        file.write_bytes(data)
        assert host.record(text).words == "not recorded: it was refused before"
    else:
        assert host.record(text) == result
    host.forget()
    assert host.record(text).outcome is (Outcome.REFUSED if data is not None else Outcome.RETURN_CHANGED)
    assert host.records() == []
    # What is decided anew is another thing.
    assert host.record(host.signed(at=NOON + timedelta(seconds=1))).outcome is Outcome.RECORDED


@pytest.mark.parametrize(
    ("change", "words"),
    [*((part, "the task has changed") for part in ("attempt", "return", "handoff")), ("gone", "the task is gone")],
)
def test_what_the_tree_sees_otherwise_is_not_decided_about(host, change, words):
    text = host.signed()
    if change == "attempt":
        host.fail(attempt=2)
    elif change == "return":
        host.fail(summary="It broke otherwise.")
    elif change == "handoff":
        path = host.workspace / "a-1.handoff.json"
        path.write_text(path.read_text().replace("Build the API.", "Build another."))
    else:
        for path in host.workspace.glob("a-1.*"):
            path.unlink()
    host.forget()
    result = host.record(text)
    assert (result.outcome, words in result.words) == (Outcome.RETURN_CHANGED, True)
    assert host.records() == []


@pytest.mark.parametrize(
    ("at", "record_by", "words"),
    [
        (NOON - 6 * MINUTE, NOON - timedelta(seconds=1), "its time is over at 2030-01-01T11:59:59Z"),
        (NOON + timedelta(seconds=121), NOON + 10 * MINUTE, "it was signed at 2030-01-01T12:02:01Z"),
        (NOON + timedelta(hours=1), NOON + timedelta(hours=2), "set the clocks"),
    ],
)
def test_what_is_not_of_now_is_refused_for_good(host, at, record_by, words):
    text = host.signed(at=at, record_by=record_by)
    result = host.record(text)
    assert (result.outcome, words in result.words) == (Outcome.EXPIRED, True)
    host.now = at
    assert host.record(text) == result
    assert host.records() == []


def test_a_key_that_is_not_trusted_decides_nothing(host):
    result = host.record(host.signed(key=STRANGER))
    words = "not recorded: this host does not trust the key that signed it"
    assert (result.outcome, result.words) == (Outcome.NOT_TRUSTED, words)
    forged = host.signed(key=STRANGER).replace(STRANGER.public.keyid, KIM.public.keyid)
    assert host.record(forged).outcome is Outcome.NOT_TRUSTED
    with at(NOON):
        host.desk.keys.distrust_other(Role.OPERATOR, ALICE.public)
    text = host.signed(key=ALICE)
    result = host.record(text)
    assert result.outcome is Outcome.NOT_TRUSTED
    assert "any more, since 2030-01-01T12:00:00Z" in result.words
    # Trusted again, what was signed before does not count: who knows who had the key.
    with at(NOON + MINUTE):
        host.desk.keys.trust_other(Role.OPERATOR, ALICE.public, "alice")
    host.now = NOON + MINUTE
    assert "signed before this host trusted its key" in host.record(text).words
    assert host.records() == []
    assert host.record(host.signed(key=ALICE)).outcome is Outcome.RECORDED


def test_what_is_for_another_host_or_workspace_is_refused(host):
    for text, words in (
        (host.signed(host=KIM.public.keyid), "it was signed for another host, or this one has a new key"),
        (host.signed(subject=host.subject()._replace(workspace_id="w")), "for another workspace"),
    ):
        result = host.record(text)
        assert (result.outcome, words in result.words) == (Outcome.REFUSED, True)
    text = host.signed()
    host.desk.keys.rotate()
    assert host.record(text).outcome is Outcome.REFUSED
    assert host.records() == []


@pytest.mark.parametrize("text", ["", "{}", "x" * 100_000, "größe", "\ud800", "[" * 100_000])
def test_what_is_nothing_is_refused_in_a_sentence(host, text):
    result = host.record(text)
    assert result.outcome is Outcome.REFUSED
    assert result.words.startswith("not recorded: ")
    # Anybody could fill the disk with those.
    assert not (host.state / "refused").exists()


class Broken(Quick):
    """Fails where a decision is given its name."""

    def link(self, *given: Any, **more: Any):  # type: ignore[override]
        raise OSError(errno.ENOSPC, "no space")


def test_a_disk_that_is_full_is_no_answer_for_good(host):
    text = host.signed()
    host.disk, disk = Broken(), host.disk
    host.forget()
    result = host.record(text)
    assert (result.outcome, result.outcome.is_final, "free space" in result.words) == (Outcome.FAILED, False, True)
    assert host.records() == []
    host.disk = disk
    host.forget()
    assert host.record(text).outcome is Outcome.RECORDED


# Answers to requests of programs


def asked_now(host: Host, command: str = "touch x", **changes: Any) -> Any:
    host.now = datetime.now(UTC).replace(microsecond=0)
    return request(host.workspace, command, asked_at=time.time(), **changes)


@pytest.mark.parametrize(
    ("spoil", "outcome", "words"),
    [
        ("nobody asks", Outcome.GONE, "nobody waits for this answer"),
        ("another input", Outcome.GONE, "nobody waits for this answer"),
        ("ended", Outcome.GONE, "nobody waits"),
        ("too late", Outcome.GONE, "its time is over"),
        ("an action that it does not take", Outcome.NOT_ALLOWED, "does not take allow here"),
        ("a time that is too long on the host", Outcome.REFUSED, "within ten minutes"),
    ],
)
def test_an_answer_that_the_request_does_not_take_is_refused(host, spoil, outcome, words):
    actions = {"actions": (Action.DENY,)} if spoil == "an action that it does not take" else {}
    asked = asked_now(host, until=time.time() + 60, **actions)
    about = request(host.workspace, "rm -r /", nonce=asked.nonce, asked_at=asked.asked_at)
    subject = asked_of(about if spoil == "another input" else asked)
    changes = {"at": host.now + MINUTE, "expires_at": host.now + 11 * MINUTE} if spoil.startswith("a time") else {}
    values = {"action": Action.ALLOW, "note": "", "expires_at": host.now + 8 * MINUTE} | changes
    text = host.signed(subject=Subject(host.desk.workspace_id, "a", 1, None, None, request=subject), **values)
    host.now += 2 * MINUTE if spoil == "too late" else timedelta()
    with ExitStack() as stack:
        offer = None if spoil == "nobody asks" else stack.enter_context(host.holder().store.offer(asked))
        if offer is not None and spoil == "ended":
            offer.end(RequestStage.GONE)
        result = host.record(text)
        assert (result.outcome, words in result.words) == (outcome, True), result
        assert host.record(text) == result
    assert host.records() == []


def test_what_another_relay_records_meanwhile_is_recorded(host, monkeypatch):
    host.fail()
    text, results = host.signed(), list[Result]()

    def refuse(*_: object) -> str:
        monkeypatch.undo()
        host.forget()
        other = threading.Thread(target=lambda: results.append(host.record(text)))
        other.start()
        other.join()
        return "there is another relay"

    monkeypatch.setattr("agentwatch.decisions.policy.refusal", refuse)
    results.append(host.record(text))
    assert [one.outcome for one in results] == [Outcome.RECORDED] * 2
    assert len(host.records()) == 1


def test_a_host_without_a_ledger_of_the_workspace_says_so(tmp_path):
    monitor = Monitor(tmp_path, Settings(), CombinedSource([]), time.time)
    result = asyncio.run(record_signed(monitor, "{}", NOON))
    assert (result.outcome, "no ledger of this workspace" in result.words) == (Outcome.FAILED, True)
