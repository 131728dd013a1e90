"""Both desks: the host records its operators' signed decisions, once, and gives the reason for each refusal; operators
are told the truth."""

import asyncio
import errno
import fcntl
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
from agentwatch.decisions.ledger import DecisionMade, verify_record
from agentwatch.decisions.record import AlreadyDecidedError, Params, Subject, format_time, to_asked
from agentwatch.delegation.decision import Action, RequestStage, Stage
from agentwatch.monitor import Monitor
from agentwatch.remote.desk import RemoteDesk, record_signed
from agentwatch.remote.protocol import Outcome, Result
from agentwatch.sources import CombinedSource
from tests.unit.decisions.made import NOON, QUICK, Quick, at
from tests.unit.remote.far import Host, Line
from tests.unit.requests.asked import request

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path)
    host.fail()
    return host


@pytest.fixture
def line(host):
    return Line(host)


@pytest.fixture
def kim(line):
    return line.desk()


def decide(of: RemoteDesk, host: Host, action: Action = Action.RETRY) -> DecisionMade:
    return of.decide(host.subject(), action, note="once more", find_digest=lambda: "whatever")


def test_a_decision_is_recorded_by_the_host_and_shown(host, line, kim):
    assert kim.unreachable is None
    made = decide(kim, host)
    assert made.fresh
    assert (made.doubt, made.undelivered) == (None, None)
    assert host.records() == [made.record]
    assert made.record.operator == "kim"
    assert made.entry == host.chain().entries[0]
    # Sending it once is enough: the same decision by another operator is the same record.
    host.now += MINUTE
    again = decide(line.desk("alice"), host)
    assert (again.fresh, again.record) == (False, made.record)
    with pytest.raises(AlreadyDecidedError) as error:
        decide(kim, host, Action.ABORT)
    assert error.value.existing == made.record


def test_deciding_again_without_an_answer_is_safe(host, line, kim):
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


def test_if_the_host_cannot_be_reached_nothing_is_decided(host, line, kim):
    line.lost_since = time.time() - 180
    words = "“build1” cannot be reached: the connection is refused; nothing can be decided there"
    assert kim.unreachable == words
    with pytest.raises(UnreachableError, match=f"^not recorded: {words}$"):
        decide(kim, host)
    assert line.sent == []


def test_a_refusal_of_the_host_is_an_error_in_its_words(host, line, kim):
    with pytest.raises(NotAllowedError, match="there is no result to accept"):
        decide(kim, host, Action.ACCEPT)
    with pytest.raises(NotRecordedError) as error:
        decide(line.desk("stranger"), host)
    assert f"on “build1”: agentwatch keys trust {host.keys['stranger'].public.text} --name NAME" in str(error.value)
    seen = host.subject()._replace(return_sha256="0" * 64)
    with pytest.raises(ReturnChangedError, match="the task has changed since you looked at it"):
        kim.decide(seen, Action.RETRY, find_digest=lambda: None)
    assert host.records() == []


def test_a_host_that_could_not_record_it_is_asked_again(host, kim):
    host.desk.keys.protect("secret")
    with pytest.raises(UncertainError, match=r"nobody can type its passphrase on the host; nobody knows yet"):
        decide(kim, host)
    assert host.records() == []
    host.desk.keys.protect(None, lambda: "secret")
    assert decide(kim, host).fresh
    assert len(host.records()) == 1


LIES: dict[str, Callable[[Host], str | None]] = {
    "nothing": lambda _host: None,
    "no record": lambda _host: "x",
    "a record of another key": lambda host: seal(host.records()[0].to_bytes(), host.keys["stranger"]).decode(),
    "another decision": lambda host: host.record(host.signed("b", Action.ABORT)).record,
}


@pytest.mark.parametrize("name", LIES)
def test_a_record_that_the_host_does_not_show_is_uncertain(host, line, kim, name):
    host.fail("b")
    line.bent = lambda true: true.model_copy(update={"record": LIES[name](host)})
    with pytest.raises(UncertainError):
        decide(kim, host)
    line.bent = lambda true: true
    assert decide(kim, host).fresh


def test_a_request_is_answered_from_afar_and_claimed_once(host, kim):
    asked = asked_now(host)
    holder = host.holder()
    where = {"task_id": "a", "attempt": 1, "why_gone": lambda: None}
    with holder.store.offer(asked) as offer:
        assert holder.take_answer(offer) is None
        with pytest.raises(NotAllowedError, match="none of the rules"):
            kim.answer(asked, Action.ALLOW, Params(rule="x"), **where)
        with pytest.raises(RequestGoneError, match="it is gone here"):
            kim.answer(asked, Action.ALLOW, **(where | {"why_gone": lambda: "it is gone here"}))
        made = kim.answer(asked, Action.DENY, note="Use build/.", **where)
        assert made.fresh
        assert (made.record.note, made.record.operator) == ("Use build/.", "kim")
        assert holder.take_answer(offer) == made.record
        assert host.holder().take_answer(offer) is None
    host.now += MINUTE
    again = kim.answer(asked, Action.DENY, note="Use build/.", **where)
    assert (again.fresh, again.record) == (False, made.record)
    # Agents get no decision from this answer.
    assert host.wait().record is None
    assert not (host.workspace / ".agentwatch" / "decisions").exists()


# Answers of the host


def refused(host: Host, text: str, outcome: Outcome, words: str) -> Result:
    """Check that the host refuses a request, each time in the same words."""
    result = host.record(text)
    assert (result.outcome, words in result.words) == (outcome, True), result
    assert host.record(text) == result
    assert host.records() == []
    return result


def test_a_record_says_who_signed_it_and_reaches_the_agents(host):
    host.now = NOON + MINUTE
    text = host.signed(at=NOON)
    result = host.record(text)
    assert (result.outcome, result.words) == (Outcome.RECORDED, "recorded")
    assert result.record is not None
    record, keyid = verify_record(result.record.encode(), host.desk.keys.trust(), host.desk.workspace_id)
    assert keyid == host.key.public.keyid
    assert (record.version, record.operator, record.signed_request) == (3, "kim", text)
    # The host sets the time of the record, and the operator when it expires.
    assert (record.created_at, record.expires_at) == (format_time(host.now), format_time(NOON + timedelta(days=7)))
    assert (result.decision_id, host.records()) == (record.decision_id, [record])
    assert host.wait().record == record
    copy = host.workspace / ".agentwatch" / "decisions" / f"{record.decision_id}.json"
    assert copy.read_bytes() == result.record.encode()
    assert host.desk.receipts([record])[record.decision_id][-1].stage is Stage.DELIVERED
    # The same request gives the same record, even after another attempt or after the record has expired.
    assert host.record(text) == result
    host.fail(attempt=2)
    assert host.record(text) == result
    host.now = NOON + timedelta(days=30)
    assert host.record(text) == result
    assert len(host.records()) == 1


def test_the_second_operator_gets_the_decision_that_holds(host):
    one, other = host.signed(), host.signed(action=Action.ABORT, by="alice")
    assert host.record(one).outcome is Outcome.RECORDED
    (host.state / "refused").write_text("")
    assert host.record(other).outcome is Outcome.FAILED, "a refusal that cannot be written down is none yet"
    (host.state / "refused").unlink()
    result = host.record(other)
    assert result.outcome is Outcome.DECIDED_OTHERWISE
    assert "already decided: kim said retry at 2030-01-01T12:00:00Z; that holds" in result.words
    assert result.record == host.record(one).record
    # A refusal is final: it has the same words again, and needs no record.
    again = host.record(other)
    assert (again.outcome, again.words) == (result.outcome, result.words)
    assert [record.operator for record in host.records()] == ["kim"]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", b"[" * 10_000, b'{"outcome":"x","words":"y"}', b"\xff"])
def test_a_refusal_of_a_changed_return_stays_for_good(host, data):
    text, path = host.signed(), host.workspace / "a-1.return.md"
    before = path.read_text()
    path.write_text("as an agent made it meanwhile")
    # The tree has not seen the change yet, but the disk has it.
    result = refused(host, text, Outcome.RETURN_CHANGED, "the return has changed since you looked at it")
    (file,) = (host.state / "refused").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    # It stays refused when the same return comes back, even if the file with the words is broken.
    path.write_text(before)
    if data is not None:
        file.write_bytes(data)
        refused(host, text, Outcome.REFUSED, "not recorded: it was refused before")
    host.forget()
    refused(host, text, Outcome.REFUSED if data is not None else result.outcome, "not recorded")
    # A new decision is independent of the refusal.
    assert host.record(host.signed(at=NOON + SECOND)).outcome is Outcome.RECORDED


CHANGES: dict[str, Callable[[Host], object]] = {
    "attempt": lambda host: host.fail(attempt=2),
    "return": lambda host: host.fail(summary="It broke otherwise."),
    "handoff": lambda host: (host.workspace / "a-1.handoff.json").write_text('{"task_id": "a", "attempt": 1}'),
    "gone": lambda host: [path.unlink() for path in host.workspace.glob("a-1.*")],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_task_that_has_changed_is_not_decided_about(host, change):
    text = host.signed()
    CHANGES[change](host)
    host.forget()
    refused(host, text, Outcome.RETURN_CHANGED, "the task is gone" if change == "gone" else "the task has changed")


@pytest.mark.parametrize(
    ("at", "record_by", "words"),
    [
        (NOON - 6 * MINUTE, NOON - SECOND, "its time is over at 2030-01-01T11:59:59Z"),
        (NOON + 121 * SECOND, NOON + 10 * MINUTE, "it was signed at 2030-01-01T12:02:01Z"),
        (NOON + 60 * MINUTE, NOON + 120 * MINUTE, "set the clocks"),
    ],
)
def test_a_request_signed_too_early_or_late_is_refused_for_good(host, at, record_by, words):
    text = host.signed(at=at, record_by=record_by)
    result = refused(host, text, Outcome.EXPIRED, words)
    host.now = at
    assert host.record(text) == result


def test_a_key_that_is_not_trusted_decides_nothing(host):
    text, key = host.signed(by="stranger"), host.keys["alice"].public
    refused(host, text, Outcome.NOT_TRUSTED, "not recorded: this host does not trust the key that signed it")
    forged = text.replace(host.keys["stranger"].public.keyid, host.keys["kim"].public.keyid)
    refused(host, forged, Outcome.NOT_TRUSTED, "")
    with at(NOON):
        host.desk.keys.distrust_key(Role.OPERATOR, key)
    text = host.signed(by="alice")
    refused(host, text, Outcome.NOT_TRUSTED, "any more, since 2030-01-01T12:00:00Z")
    # A request signed before the key was trusted again does not count, as somebody else may have had the key.
    with at(NOON + MINUTE):
        host.desk.keys.trust_key(Role.OPERATOR, key, "alice")
    host.now = NOON + MINUTE
    refused(host, text, Outcome.NOT_TRUSTED, "signed before this host trusted its key")
    assert host.record(host.signed(by="alice")).outcome is Outcome.RECORDED


def test_a_request_for_another_host_or_workspace_is_refused(host):
    text, elsewhere = host.signed(), host.signed(subject=host.subject()._replace(workspace_id="w"))
    refused(host, elsewhere, Outcome.REFUSED, "for another workspace")
    host.desk.keys.rotate()
    refused(host, text, Outcome.REFUSED, "it was signed for another host, or this one has a new key")


@pytest.mark.parametrize("text", ["", "{}", "x" * 100_000, "größe", "\ud800", "[" * 100_000])
def test_a_text_that_is_no_request_is_refused_in_a_sentence(host, text):
    refused(host, text, Outcome.REFUSED, "not recorded: ")
    # Such refusals are not stored, as anybody could fill the disk with them.
    assert not (host.state / "refused").exists()


class Broken(Quick):
    """A disk that fails when a decision is given its name."""

    def link(self, *given: Any, **more: Any):  # type: ignore[override]
        raise OSError(errno.ENOSPC, "no space")


def test_a_disk_that_is_full_is_no_answer_for_good(host):
    text = host.signed()
    host.disk = Broken()
    host.forget()
    assert not refused(host, text, Outcome.FAILED, "free space").outcome.is_final
    host.disk = QUICK
    host.forget()
    assert host.record(text).outcome is Outcome.RECORDED


class Late(Quick):
    """A disk that lets others act before it gets a lock, once."""

    def __init__(self):
        self.others: list[Callable[[], object]] = []

    def flock(self, descriptor: int, how: int):  # type: ignore[override]
        while self.others:
            self.others.pop()()
        fcntl.flock(descriptor, how)


def test_a_record_of_another_relay_meanwhile_counts(host):
    host.disk = late = Late()
    host.forget()
    # This relay sees another return than the operator, and would refuse.
    relay = host.monitor()
    host.disk = QUICK
    host.fail(summary="It broke otherwise.")
    text, results = host.signed(), list[Result]()
    late.others = [lambda: results.append(host.record(text))]
    results.append(asyncio.run(record_signed(relay, text, host.now)))
    assert [one.outcome for one in results] == [Outcome.RECORDED] * 2
    assert len(host.records()) == 1


# Answers to requests of programs


def asked_now(host: Host, **changes: Any) -> Any:
    host.now = datetime.now(UTC).replace(microsecond=0)
    return request(host.workspace, asked_at=time.time(), **changes)


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
    subject = to_asked(about if spoil == "another input" else asked)
    changes = {"at": host.now + MINUTE, "expires_at": host.now + 11 * MINUTE} if spoil.startswith("a time") else {}
    values = {"action": Action.ALLOW, "expires_at": host.now + 8 * MINUTE} | changes
    text = host.signed(subject=Subject(host.desk.workspace_id, "a", 1, None, None, request=subject), **values)
    host.now += 2 * MINUTE if spoil == "too late" else timedelta()
    with ExitStack() as stack:
        offer = None if spoil == "nobody asks" else stack.enter_context(host.holder().store.offer(asked))
        if offer is not None and spoil == "ended":
            offer.end(RequestStage.GONE)
        refused(host, text, outcome, words)


def test_a_host_without_a_ledger_of_the_workspace_says_so(tmp_path):
    monitor = Monitor(tmp_path, Settings(), CombinedSource([]), time.time)
    result = asyncio.run(record_signed(monitor, "{}", NOON))
    assert (result.outcome, "no ledger of this workspace" in result.words) == (Outcome.FAILED, True)
