"""The desk of a host: what operators elsewhere have signed is recorded once, or refused for good, in one sentence."""

from __future__ import annotations

import errno
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.decisions.made import KIM, NOON, Quick, at
from tests.unit.remote.far import ALICE, STRANGER, Host
from tests.unit.requests.asked import request

from agentwatch.decisions.keys import Keys, Role
from agentwatch.decisions.ledger import verified
from agentwatch.decisions.reader import Verified
from agentwatch.decisions.record import Params, Subject, written
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.request import RequestStage
from agentwatch.disk import Disk
from agentwatch.remote import relay_desk
from agentwatch.remote.protocol import Outcome
from agentwatch.remote.relay_desk import Refusals, RefusedError

MINUTE = timedelta(minutes=1)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(relay_desk, "_START_SECONDS", 0.2)
    host = Host(tmp_path)
    host.fail()
    return host


def test_what_is_recorded_says_who_signed_it_and_is_told_to_the_agents(host: Host) -> None:
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
    assert result.decision_id == record.decision_id
    assert host.records() == [record]
    found = host.wait()
    assert isinstance(found, Verified)
    assert found.record == record
    copy = host.workspace / ".agentwatch" / "decisions" / f"{record.decision_id}.json"
    assert copy.read_bytes() == result.record.encode()
    assert host.desk.receipts([record])[record.decision_id][-1].stage is Stage.DELIVERED


def test_the_same_again_is_the_same_record_whatever_has_happened_since(host: Host) -> None:
    text = host.signed()
    first = host.record(text)
    assert host.record(text) == first
    # The attempt is over, the time, the decision itself, and the trust: it was recorded, and that is said.
    host.fail(attempt=2)
    assert host.record(text) == first
    host.now = NOON + timedelta(days=30)
    assert host.record(text) == first
    assert len(host.records()) == 1


def test_of_two_operators_one_is_recorded_and_the_other_told_what_holds(host: Host) -> None:
    one, other = host.signed(), host.signed(action=Action.ABORT, key=ALICE, note="")
    assert host.record(one).outcome is Outcome.RECORDED
    result = host.record(other)
    assert result.outcome is Outcome.DECIDED_OTHERWISE
    assert "already decided: kim said retry at 2030-01-01T12:00:00Z; that holds" in result.words
    assert result.record == host.record(one).record
    # Refused once, it stays so; the words are the same, and the record is not needed again.
    again = host.record(other)
    assert (again.outcome, again.words) == (result.outcome, result.words)
    assert [record.operator for record in host.records()] == ["kim"]


def test_a_return_that_changed_is_not_decided_about_and_never_will_be(host: Host) -> None:
    text = host.signed()
    before = (host.workspace / "a-1.return.md").read_text()
    (host.workspace / "a-1.return.md").write_text("as an agent made it meanwhile")
    # The tree has not seen it yet; the disk has it.
    result = host.record(text)
    assert result.outcome is Outcome.RETURN_CHANGED
    assert "the return has changed since you looked at it" in result.words
    # Nor when the very return comes back, and somebody delivers it again.
    (host.workspace / "a-1.return.md").write_text(before)
    assert host.record(text) == result
    host.forget()
    assert host.record(text) == result
    assert host.records() == []
    # What is decided anew is another thing.
    assert host.record(host.signed(at=NOON + timedelta(seconds=1))).outcome is Outcome.RECORDED


@pytest.mark.parametrize("change", ["attempt", "return", "handoff", "gone"])
def test_what_the_tree_sees_otherwise_is_not_decided_about(host: Host, change: str) -> None:
    text = host.signed()
    if change == "attempt":
        host.fail(attempt=2)
        words = "attempt 2 has begun"
    elif change == "return":
        host.fail(summary="It broke otherwise.")
        words = "the return has changed"
    elif change == "handoff":
        path = host.workspace / "a-1.handoff.json"
        path.write_text(path.read_text().replace("Build the API.", "Build another."))
        host.forget()
        words = "the handoff has changed"
    else:
        for path in host.workspace.glob("a-1.*"):
            path.unlink()
        host.forget()
        words = "the task is gone"
    result = host.record(text)
    assert result.outcome is Outcome.RETURN_CHANGED
    assert words in result.words
    assert host.records() == []


def test_what_the_policy_of_the_host_does_not_allow_is_refused(host: Host) -> None:
    result = host.record(host.signed(action=Action.ACCEPT))
    assert result.outcome is Outcome.NOT_ALLOWED
    assert result.words == "not recorded: accept is not possible: there is no result to accept"
    assert host.records() == []


@pytest.mark.parametrize(
    ("at", "record_by", "words"),
    [
        (NOON - 6 * MINUTE, NOON - timedelta(seconds=1), "its time was over at 2030-01-01T11:59:59Z"),
        (NOON - timedelta(hours=1), NOON - timedelta(minutes=55), "and it is 2030-01-01T12:00:00Z on the host"),
        (NOON + timedelta(seconds=121), NOON + 10 * MINUTE, "it is dated 2030-01-01T12:02:01Z"),
        (NOON + timedelta(hours=1), NOON + timedelta(hours=2), "set the clocks"),
    ],
)
def test_what_is_not_of_now_is_refused_and_stays_so_when_the_clock_is_set(
    host: Host, at: datetime, record_by: datetime, words: str
) -> None:
    text = host.signed(at=at, record_by=record_by)
    result = host.record(text)
    assert result.outcome is Outcome.EXPIRED
    assert words in result.words
    host.now = at
    assert host.record(text) == result
    assert host.records() == []


def test_a_key_that_is_not_trusted_decides_nothing(host: Host) -> None:
    result = host.record(host.signed(key=STRANGER))
    assert (result.outcome, result.words) == (
        Outcome.NOT_TRUSTED,
        "not recorded: this host does not trust the key that signed it",
    )
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


def test_what_is_for_another_host_or_workspace_is_refused(host: Host) -> None:
    for text, words in (
        (host.signed(host=KIM.public.keyid), "it was signed for another host, or this one has a new key"),
        (host.signed(subject=host.subject()._replace(workspace_id="w")), "another host or workspace"),
    ):
        result = host.record(text)
        assert result.outcome is Outcome.REFUSED
        assert words in result.words
    text = host.signed()
    host.desk.keys.rotate()
    assert host.record(text).outcome is Outcome.REFUSED
    assert host.records() == []


@pytest.mark.parametrize("text", ["", "{}", "x" * 100_000, "größe", "\ud800", "[" * 100_000])
def test_what_is_nothing_is_refused_in_a_sentence(host: Host, text: str) -> None:
    result = host.record(text)
    assert result.outcome is Outcome.REFUSED
    assert result.words.startswith("not recorded: ")
    # Anybody could fill the disk with those.
    assert not (host.state / "refused").exists()


def test_a_relay_that_still_reads_the_workspace_asks_for_patience(host: Host) -> None:
    text = host.signed()
    monitor = host.monitor()
    monitor.health = monitor.health._replace(mode="starting")
    result = host.record(text)
    assert result.outcome is Outcome.FAILED
    assert not Outcome(result.outcome).is_final
    assert "still reads the workspace" in result.words
    host.forget()
    assert host.record(text).outcome is Outcome.RECORDED


class Broken(Quick):
    """Fails where a decision is given its name."""

    fails = True

    def link(self, *given: Any, **more: Any) -> None:  # type: ignore[override]
        if self.fails:
            raise OSError(errno.ENOSPC, "no space")
        Disk.link(*given, **more)


def test_a_disk_that_is_full_is_no_answer_for_good(tmp_path: Path, host: Host) -> None:
    text = host.signed()
    host.disk, broken = Broken(), host.disk
    host.forget()
    result = host.record(text)
    assert result.outcome is Outcome.FAILED
    assert "free space" in result.words
    assert host.records() == []
    host.disk = broken
    host.forget()
    assert host.record(text).outcome is Outcome.RECORDED


def test_a_refusal_that_cannot_be_written_down_is_none_yet(host: Host) -> None:
    host.record(host.signed())
    text = host.signed(action=Action.ABORT, key=ALICE, note="")
    (host.state / "refused").write_text("")
    assert host.record(text).outcome is Outcome.FAILED
    (host.state / "refused").unlink()
    assert host.record(text).outcome is Outcome.DECIDED_OTHERWISE


def test_a_host_whose_clock_was_set_back_to_before_it_trusted_a_key_says_that(host: Host) -> None:
    bob = Keys(host.desk.keys.directory / "bob").create()
    with at(NOON + 10 * MINUTE):
        host.desk.keys.trust_other(Role.OPERATOR, bob.public, "bob")
    result = host.record(host.signed(key=bob))
    assert (result.outcome, result.words.endswith("set its clock")) == (Outcome.EXPIRED, True)


def test_a_relay_of_a_workspace_on_another_host_records_nothing(host: Host) -> None:
    text, clerk = host.signed(), host.monitor().clerk
    assert clerk is not None
    clerk.desk = object()  # type: ignore[misc,assignment]
    result = host.record(text)
    assert (result.outcome, "on another host" in result.words) == (Outcome.FAILED, True)


def test_a_refusal_that_another_relay_recorded_meanwhile_is_no_refusal(host: Host) -> None:
    text = host.signed()
    first = host.record(text)
    signed = relay_desk._opened(host.desk, text, first.request_sha256, NOON)
    made = relay_desk._refuse(host.desk, signed, RefusedError(Outcome.RETURN_CHANGED, "x"))
    assert made.record == host.records()[0]
    assert host.record(text) == first


# Refusals


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", b"[" * 10_000, b'{"outcome":"x","words":"y"}', b"\xff"])
def test_refusals_are_kept_for_as_long_as_they_can_be_needed_even_if_they_are_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | None
) -> None:
    monkeypatch.setattr(relay_desk, "_MOST", 3)
    refusals = Refusals(tmp_path)
    refusals.check("0" * 64)
    refused = RefusedError(Outcome.EXPIRED, "its time was over")
    old, new = written(NOON - timedelta(days=2)), written(NOON)
    for number, until in enumerate([old, new, old, new]):
        refusals.keep(str(number) * 64, refused, until, NOON)
    assert sorted(path.name[0] for path in (tmp_path / "refused").iterdir()) == ["1", "3"]
    file = tmp_path / "refused" / f"{'3' * 64}.json"
    assert file.stat().st_mode & 0o777 == 0o600
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(RefusedError, match="it was refused before" if data is not None else "its time was over"):
        refusals.check("3" * 64)


# Answers to requests of programs


def asked_now(host: Host, command: str = "touch x", **changes: Any) -> Any:
    host.now = datetime.now(UTC).replace(microsecond=0)
    return request(host.workspace, command, asked_at=time.time(), **changes)


def answer_to(host: Host, asked: Any, action: Action = Action.ALLOW, **changes: Any) -> str:
    from agentwatch.decisions.record import asked_of

    subject = Subject(host.desk.workspace_id, "a", 1, None, None, request=asked_of(asked))
    values = {"subject": subject, "action": action, "note": "", "expires_at": host.now + 8 * MINUTE} | changes
    return host.signed(**values)


def test_a_request_of_a_program_is_answered_and_its_holder_takes_that(host: Host) -> None:
    asked = asked_now(host)
    holder = host.holder()
    with holder.offer(asked) as offer:
        assert holder.look(offer) is None
        text = answer_to(host, asked)
        result = host.record(text)
        assert result.outcome is Outcome.RECORDED, result
        assert host.record(text) == result
        record = holder.look(offer)
        assert record is not None, holder.trouble
        assert (record.version, record.action, record.operator) == (3, Action.ALLOW, "kim")
        # Claimed once.
        assert host.holder().look(offer) is None
        holder.delivered(record)
        offer.end(RequestStage.DELIVERED)
    # Agents are told nothing of it.
    assert not isinstance(host.wait(), Verified)
    assert not (host.workspace / ".agentwatch" / "decisions").exists()


@pytest.mark.parametrize(
    ("spoil", "outcome", "words"),
    [
        ("nobody asks", Outcome.GONE, "nobody waits for this answer"),
        ("another input", Outcome.GONE, "nobody waits for this answer"),
        ("ended", Outcome.GONE, "nobody waits"),
        ("too late", Outcome.GONE, "its time is over"),
        ("a rule of its own", Outcome.NOT_ALLOWED, "none of the rules"),
        ("an action that it does not take", Outcome.NOT_ALLOWED, "does not take allow here"),
    ],
)
def test_an_answer_that_the_request_does_not_take_is_refused(
    host: Host, spoil: str, outcome: Outcome, words: str
) -> None:
    asked = asked_now(host, until=time.time() + 60)
    text = answer_to(host, asked)
    if spoil == "another input":
        text = answer_to(host, request(host.workspace, "rm -r /", nonce=asked.nonce, asked_at=asked.asked_at))
    elif spoil == "a rule of its own":
        text = answer_to(host, asked, params=Params(rule="Bash(*)"))
    elif spoil == "an action that it does not take":
        asked = asked_now(host, actions=(Action.DENY,))
        text = answer_to(host, asked)
    elif spoil == "too late":
        host.now += 2 * MINUTE
    offer = None if spoil == "nobody asks" else host.holder().offer(asked)
    try:
        if offer is not None and spoil == "ended":
            offer.end(RequestStage.GONE)
        result = host.record(text)
        assert (result.outcome, words in result.words) == (outcome, True), result
        assert host.record(text) == result
    finally:
        if offer is not None:
            offer.end(RequestStage.GONE)
    assert host.records() == []
