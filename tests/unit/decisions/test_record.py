"""Records of decisions, of answers and of requests signed elsewhere: one spelling, and no other text is accepted."""

import base64
import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.decisions.envelope import REQUEST_TYPE, EnvelopeError, SigningKey, Trust, TrustedKey, seal
from agentwatch.decisions.errors import DecisionError, RecordError, RequestGoneError
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import ChainEntry, ChainProblem, ProblemKind, file_name, read_entry, verify_record
from agentwatch.decisions.reader import Question, Reader
from agentwatch.decisions.record import (
    AHEAD,
    LARGEST,
    LARGEST_SIGNED,
    Answer,
    Mitigation,
    Params,
    Record,
    Subject,
    format_time,
    parse,
    parse_time,
    read_request,
    why_unanswerable,
)
from agentwatch.decisions.service import DecisionWatcher
from agentwatch.delegation.decision import Action, Decision, Stage
from agentwatch.delegation.events import Decided, Gone, Unreadable
from agentwatch.disk import Directory
from tests.unit.decisions.made import ASKED, HANDOFF, KIM, NOON, RETURN, Operator, answer, at, record
from tests.unit.requests.asked import ANSWERED, place, question, request

__all__ = ["place"]

KEYS = [
    *("version", "workspace_id", "seq", "prev_sha256", "decision_id", "task_id", "attempt", "handoff_sha256"),
    *("return_sha256", "action", "params", "note", "operator", "created_at", "expires_at"),
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def test_the_id_is_a_hash_of_the_subject():
    spelled = f'["w","größe",2,null,"{RETURN}"]'
    assert Subject("w", "größe", 2, None, RETURN).decision_id == hashlib.sha256(spelled.encode()).hexdigest()[:32]


def test_a_decision_after_the_fitter_says_after_which():
    before = record().decision_id
    again = record(after=before)
    assert (again.subject.after, again.decision_id == before) == (before, False)
    assert [*again.document()] == [*KEYS, "after"]
    assert parse(again.to_bytes()) == again
    for after in (None, "", "d" * 31, before.upper()):
        with pytest.raises(RecordError):
            parse(compact(again.document() | {"after": after}))


@given(TEXTS, TEXTS, st.lists(st.tuples(st.none() | TEXTS, TEXTS), min_size=1))
def test_a_record_is_read_as_it_was_written(note, task_id, answers):
    made = record(
        task_id=task_id or "a",
        note=note,
        action=Action.RESPOND,
        params=Params(answers=tuple(Answer(*answer) for answer in answers)),
        expires_at="2030-01-08T12:00:00Z",
    )
    assert parse(made.to_bytes()) == made


@pytest.mark.parametrize(
    ("action", "params", "words"),
    [
        (Action.ACCEPT, Params(mitigation=Mitigation.REDUCED_SCOPE), "mitigation means nothing for"),
        (Action.ACCEPT, Params(handoff=""), "handoff means nothing for"),
        (Action.RETRY, Params(mode="x"), "mode means nothing for"),
        (Action.RETRY, Params(report="x"), "report means nothing for"),
        (Action.RETRY, Params(answers=(Answer(None, "x"),)), "answers means nothing for"),
        (Action.ESCALATE, Params(), "escalate needs mode"),
        (Action.ESCALATE, Params(mode=""), "at least 1 character"),
        (Action.RESPOND, Params(), "respond needs answers"),
        (Action.RETRY, Params(handoff="\ud800"), "half a character"),
        (Action.RESPOND, Params(answers=(Answer("\ud800", "x"),)), "half a character"),
        (Action.RESPOND, Params(answers=(Answer(None, "\ud800"),)), "half a character"),
    ],
)
def test_a_parameter_that_does_not_fit_the_action_is_refused(action, params, words):
    with pytest.raises(RecordError, match=words):
        record(action=action, params=params).to_bytes()


PARAMS = record().document()["params"]
WRONG: dict[str, tuple[object, ...]] = {
    "version": (0, True, 1.0, "1"),
    "workspace_id": ("", 1),
    "seq": (0, 2.0, 2**53),
    "prev_sha256": (None, "A" * 64),
    "decision_id": ("0" * 32, None),
    "task_id": ("", None),
    "attempt": (0, "1"),
    "handoff_sha256": ("0" * 63,),
    "return_sha256": (5, "٠" * 64),
    "action": ("approve",),
    "note": (None,),
    "operator": ("",),
    "created_at": (None, "2030-01-01T12:00:00+00:00", "2030-02-30T12:00:00Z", "2030-1-01T12:00:00Z"),
    "expires_at": ("soon",),
    "params": (None, {}, PARAMS | {"answers": None}, PARAMS | {"mitigation": "hope"}),
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_a_field_that_is_not_what_it_must_be_is_refused(field, value):
    with pytest.raises(RecordError):
        parse(compact(record().document() | {field: value}))


def compact(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def test_a_later_version_is_no_broken_record():
    with pytest.raises(RecordError, match=r"version .* update agentwatch"):
        parse(b'{"version":7,"something":"new"}')


def test_a_record_that_is_too_large_is_neither_written_nor_read():
    fits = record(params=Params(handoff="x" * (LARGEST - 1_000)))
    assert parse(fits.to_bytes()) == fits
    with pytest.raises(RecordError, match="shorten the handoff"):
        record(params=Params(handoff="x" * LARGEST)).to_bytes()
    with pytest.raises(RecordError, match="larger"):
        parse(b" " * (LARGEST_SIGNED + 1))


def test_a_record_holds_until_it_expires():
    made, end = record(expires_at="2030-01-08T12:00:00Z"), parse_time("2030-01-08T12:00:00Z")
    assert [made.is_expired(one) for one in (end - timedelta(seconds=1), end)] == [False, True]
    assert format_time(datetime(2030, 1, 1, 21, 0, 0, 999_999, timezone(timedelta(hours=9)))) == "2030-01-01T12:00:00Z"


ABOUT = (
    '"workspace_id":"shop-0123456789abcdef","seq":2,"prev_sha256":"' + "0" * 64 + '","decision_id":"{id}",'
    '"task_id":"a.b","attempt":1,"handoff_sha256":"249215fed826e1cff9368c2c7490760a16f7bd49f875d39a9f23eaf1505d076d",'
    '"return_sha256":"7187f0675eb3827939741acf7342ba78836ecec21a31ecf3f34a55309d3bee8a","action":"retry",'
)
BY = '"note":"once more","operator":"ada","created_at":"2030-01-01T12:00:00Z","expires_at":'
STORED = {
    "b58ad291ba5a0fc69a075580a864a3f20eb5ae2fd18c18a29de457a25bda30d4": '{"version":1,'
    + ABOUT.replace("{id}", "9ad9e99ef1d163d13825dc3041b6aee7")
    + '"params":{"mitigation":"reduced_scope","handoff":"{\\"task_id\\": \\"größe\\"}","mode":null,"answers":[],'
    + f'"report":null}},{BY}"2030-01-08T12:00:00Z"}}',
    "69b9e2ac4345e5f4152bed46604ca401e6ea865123be8c80d9a60c31f63cd7c7": '{"version":1,'
    + ABOUT.replace("{id}", "9e91101df0e058fe13ba95352e747ba2")
    + '"params":{"mitigation":null,"handoff":null,"mode":null,"answers":[],"report":null},'
    + f'{BY}null,"after":"9ad9e99ef1d163d13825dc3041b6aee7"}}',
}


@pytest.mark.parametrize("digest", STORED)
def test_an_earlier_record_is_the_same_to_the_byte(digest):
    """The signed file around the record is the same, too."""
    text = STORED[digest]
    made = parse(text.encode())
    assert made.to_bytes() == text.encode()
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(b"k" * 32))
    file = seal(made.to_bytes(), key)
    assert hashlib.sha256(file).hexdigest() == digest
    trust = Trust((TrustedKey(key.public),))
    assert verify_record(file, trust, "shop-0123456789abcdef") == (made, key.public.keyid)
    with pytest.raises(EnvelopeError, match="none is known here"):
        verify_record(file, Trust(), None)
    # Without a check that S is below the group's order, an Ed25519 signature would have a second spelling.
    document = json.loads(file)
    signature = base64.b64decode(document["signatures"][0]["sig"])
    again = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493
    document["signatures"][0]["sig"] = base64.b64encode(signature[:32] + again.to_bytes(32, "little")).decode()
    with pytest.raises(EnvelopeError, match="does not hold"):
        verify_record(compact(document) + b"\n", trust, None)


# Requests signed on another machine

ATTACKER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"a" * 32))
OTHER, SECOND = ProblemKind.MALFORMED, timedelta(seconds=1)


@pytest.fixture
def host(tmp_path):
    """Return the host of the agents, which trusts kim."""
    host = Operator(tmp_path)
    host.trust_kim()
    return host


def kept(host: Operator, **changes: Any) -> Record:
    """Return the host's record of a request that kim has signed, with some fields changed that kim has not signed."""
    made = host.draft(operator="kim", signed_request=host.signed())
    return record(**{one.name: getattr(made, one.name) for one in fields(made)} | changes)


def judged(host: Operator, made: Record) -> ChainEntry | ChainProblem:
    """Read the record as the next file of the host's ledger, and return the entry or the problem."""
    return read(host, file_name(made), seal(made.to_bytes(), host.key), host.trust)


def read(host: Operator, name: str, data: bytes, trust: Trust) -> ChainEntry | ChainProblem:
    host.ledger.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (host.ledger.directory / name).write_bytes(data)
    with Directory.open(host.ledger.directory) as directory:
        return read_entry(directory, name, trust, host.workspace_id)


# The request


def test_a_decision_is_no_request_and_a_request_is_no_decision(host):
    request, _ = read_request(host.signed(), host.trust)
    with pytest.raises(EnvelopeError, match="form"):
        read_request(seal(request.to_bytes(), KIM).decode(), host.trust)
    made = host.decide()
    trust = replace(host.trust, keys=(TrustedKey(KIM.public),))
    assert isinstance(read(host, made.entry.name, host.signed().encode(), trust), ChainProblem)


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "a list": lambda data: b"[]",
    "no version": lambda data: data.replace(b'"version":1,', b""),
    "a version to come": lambda data: data.replace(b'"version":1', b'"version":2'),
    "no host": lambda data: data.replace(b'"host"', b'"h"'),
    "a time that is none": lambda data: data.replace(b"T12:05:00Z", b"T12:05"),
    "a time before it was signed": lambda data: data.replace(b"T12:05:00Z", b"T11:59:59Z"),
    "a number": lambda data: data.replace(b'"decision_id"', b'"seq":1,"decision_id"'),
    "white space": lambda data: data.replace(b":", b": ", 1),
    "no action": lambda data: data.replace(b'"retry"', b'"approve"'),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_signed_text_that_is_no_request_is_refused(host, name):
    before = read_request(host.signed(), host.trust)[0].to_bytes()
    after = SPOILED[name](before)
    assert after != before
    with pytest.raises(RecordError):
        read_request(seal(after, KIM, REQUEST_TYPE).decode(), host.trust)


def test_nothing_is_signed_that_a_host_would_not_read(host):
    with pytest.raises(RecordError):
        host.signed(record_by=NOON - timedelta(seconds=1))
    with pytest.raises(RecordError, match="holds no more"):
        host.signed(expires_at=NOON + timedelta(minutes=5), record_by=NOON + timedelta(minutes=6))


# The record of the host


INSIDE: dict[str, tuple[Callable[[Operator], dict[str, Any]], ProblemKind, str]] = {
    "an attacker in kim's name": (
        lambda host: {"signed_request": host.signed(key=ATTACKER).replace(ATTACKER.public.keyid, KIM.public.keyid)},
        ProblemKind.FORGED,
        "does not hold",
    ),
    "another return": (
        lambda host: {"signed_request": host.signed(subject=host.subject()._replace(return_sha256=None))},
        OTHER,
        "something else",
    ),
    "too early": (lambda _: {"created_at": format_time(NOON - AHEAD - SECOND)}, OTHER, "its time was over"),
}


@pytest.mark.parametrize("name", INSIDE)
def test_the_host_can_only_record_what_the_operator_signed(host, name):
    """Even the host's key cannot sign a decision in an operator's name that the operator has not signed."""
    change, kind, words = INSIDE[name]
    made = kept(host, **change(host))
    found = judged(host, made)
    assert isinstance(found, ChainProblem)
    assert (found.kind, words in found.message) == (kind, True)
    # Agents do not accept it from the copy in the workspace either.
    place, nowhere = host.workspace / ".agentwatch" / "decisions", host.root / "nowhere"
    place.mkdir(parents=True)
    (place / f"{made.decision_id}.json").write_bytes(seal(made.to_bytes(), host.key))
    keys = {"AGENTWATCH_PUBLIC_KEY": f"{host.key.public.text},operator:{KIM.public.text}"}
    reader = Reader(host.workspace, state=nowhere, configuration=nowhere, environment=keys)
    assert reader.find(Question("a.b")).refused


@pytest.mark.parametrize("version", [1, 2])
def test_the_signed_request_cannot_be_left_out(host, version):
    """Adding or removing a key does not turn a record of version 3 into one of an earlier version."""
    spelled = kept(host).to_bytes()
    with pytest.raises(RecordError):
        parse(spelled.replace(b'"version":3', b'"version":%d' % version))
    for changes in ({"signed_request": None}, {"version": version}):
        with pytest.raises(RecordError):
            kept(host, **changes)


# Trust that is taken back


def test_a_distrusted_key_decides_nothing_until_trusted_again(host):
    made = host.decide_from_afar()
    with at(NOON):
        host.keys.distrust_key(Role.OPERATOR, KIM.public)
    assert host.chain().problems == ()
    later = host.draft("later", operator="kim", signed_request=host.signed("later"), created_at=NOON + SECOND)
    later = replace(later, seq=2, prev_sha256=made.entry.sha256)
    found = judged(host, later)
    assert isinstance(found, ChainProblem)
    assert (found.kind, "not trusted any more" in found.message) == (ProblemKind.UNTRUSTED, True)
    host.keys.trust_key(Role.OPERATOR, KIM.public, "kim")
    assert isinstance(judged(host, later), ChainEntry)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 1},
        {"version": 3},
        {"request": None},
        {"action": Action.RETRY},
        {"action": Action.ANSWER, "params": Params(answers=(Answer("q", "a"),))},
        {"action": Action.DENY, "params": Params(rule="Bash(ls)")},
        {"note": "words that nobody hears"},
        {"return_sha256": HANDOFF},
        {"expires_at": None},
        {"expires_at": "2030-01-01T12:10:01Z"},
        {"decision_id": "0" * 32},
        {"request": replace(ASKED, program="")},
        {"request": replace(ASKED, nonce="\ud800")},
    ],
)
def test_an_answer_that_is_not_one_throughout_is_refused(changes):
    with pytest.raises(RecordError):
        answer(**changes)


def test_neither_kind_of_record_takes_the_keys_of_the_other():
    decided, answered = record().document(), answer(params=Params(rule="Bash(ls)")).document()
    assert parse(compact(answered)) == answer(params=Params(rule="Bash(ls)"))
    assert [*answered] == [*KEYS, "request"]
    for document in (
        decided | {"request": None},
        decided | {"params": decided["params"] | {"rule": None}},
        {name: value for name, value in answered.items() if name != "request"},
        answered | {"params": decided["params"]},
    ):
        with pytest.raises(RecordError):
            parse(compact(document))


def test_an_answer_holds_ten_minutes_or_until_the_request_ends(place):
    with at(NOON):
        assert place.answer(request(place.workspace, asked_at=0.0)).record.expires_at == "2030-01-01T12:10:00Z"
        until = NOON.timestamp() + 5.5
        made = place.answer(request(place.workspace, asked_at=0.0, until=until))
    assert made.record.expires_at == "2030-01-01T12:00:06Z"


def test_agents_are_not_told_of_answers(place):
    asked = request(place.workspace)
    made = place.answer(asked)
    reader = Reader(place.workspace, state=place.state, configuration=place.configuration, environment={})
    for wanted in (Question("a.b"), Question(None, decision_id=asked.request_id)):
        assert reader.find(wanted)[1:4] == (None, None, ())
    # Agents are told nothing either if a copy lies among the decisions, and the ledger is hidden.
    mirror, nowhere = place.workspace / ".agentwatch" / "decisions", place.root / "nowhere"
    mirror.mkdir(parents=True)
    (file,) = (place.state / "decisions").glob("*.json")
    shutil.copy(file, mirror / f"{made.record.decision_id}.json")
    environment = {"AGENTWATCH_PUBLIC_KEY": place.key.public.text}
    hidden = Reader(place.workspace, state=nowhere, configuration=nowhere, environment=environment)
    found = [one.find(Question("a.b")) for one in (reader, hidden)]
    assert [(one.any_record, len(one.refused)) for one in found] == [(None, 1)] * 2
    assert len(place.desk().update_mirror().foreign) == 1


def test_a_monitor_sees_an_answer_and_how_far_it_got(place):
    asked = request(place.workspace)
    clerk = DecisionWatcher(place.desk())

    def told() -> list[Decision]:
        return [one.decision for one in clerk.read_changes() if isinstance(one, Decided)]

    clerk.desk.answer(asked, Action.DENY, None, task_id="a.b", attempt=1, why_gone=lambda: None, note="No.")
    (decision,) = told()
    assert (decision.request_id, decision.waits, decision.note) == (asked.request_id, "", "No.")
    holder = place.holder()
    with holder.store.offer(asked) as offer:
        taken = holder.take_answer(offer)
        assert taken is not None
        # The answer is claimed, and no agent has read it.
        assert told() == []
        holder.record_delivered(taken)
    assert [one.receipt.stage for one in told()] == [Stage.DELIVERED]
    place.desk().record_acted(decision, "the program says so")
    assert [one.receipt.stage for one in told()] == [Stage.ACTED]
    assert list(place.workspace.iterdir()) == []


def test_a_request_that_nobody_waits_for_is_not_answered(place):
    with pytest.raises(RequestGoneError, match="its holder has ended"):
        place.answer(request(place.workspace), gone="its holder has ended")
    with pytest.raises(RequestGoneError, match="its time is over"):
        place.answer(request(place.workspace, until=time.time() - 5))
    assert place.chain().entries == ()


@pytest.mark.parametrize(
    ("changes", "action", "params", "note", "words"),
    [
        ({"actions": ()}, Action.ALLOW, Params(), "", "does not take allow here"),
        ({"actions": (), "why_not": "only in its terminal"}, Action.ALLOW, Params(), "", "only in its terminal"),
        ({}, Action.ANSWER, ANSWERED, "", "does not take answer here; it takes allow and deny"),
        ({}, Action.ALLOW, Params(), "words", "no words"),
        ({"words": False}, Action.DENY, Params(), "words", "no words"),
        ({"rules": ("Bash(ls)",)}, Action.ALLOW, Params(rule="Bash(*)"), "", "none of the rules"),
    ],
)
def test_a_request_says_which_answers_it_takes(place, *, changes, action, params, note, words):
    asked = request(place.workspace, **changes)
    assert words in (why_unanswerable(asked, action, params, note) or "")
    with pytest.raises(DecisionError):
        place.answer(asked, action, params, note=note)
    assert place.chain().entries == ()


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((Answer("Which store?", "SQLite"),), "all of its questions"),
        ((*ANSWERED.answers, Answer("Which day?", "x")), "does not ask"),
        ((*ANSWERED.answers, Answer("Which store?", "Redis")), "one answer"),
        ((*ANSWERED.answers, Answer("Which checks?", "x")), "given twice"),
        ((*ANSWERED.answers, Answer("Which checks?", " ")), "empty"),
    ],
)
def test_each_question_is_answered_as_it_was_asked(place, answers, words):
    asked = question(place.workspace)
    assert why_unanswerable(asked, Action.ANSWER, ANSWERED) is None
    assert words in (why_unanswerable(asked, Action.ANSWER, Params(answers=answers)) or "")
    twice = question(place.workspace, queries=(*asked.queries, asked.queries[0]))
    assert "twice" in (why_unanswerable(twice, Action.ANSWER, ANSWERED) or "")


def test_a_forged_decision_is_reported_while_it_is_there(place):
    clerk, mirror = DecisionWatcher(place.desk()), place.workspace / ".agentwatch" / "decisions"
    clerk.read_changes()
    mirror.mkdir(parents=True)
    forged = mirror / f"{'0' * 32}.json"
    forged.write_text("{}", "utf-8")
    told = clerk.read_changes()
    forged.unlink()
    assert [type(one) for one in (*told, *clerk.read_changes(), *clerk.read_changes())] == [Unreadable, Gone]


def test_half_a_character_in_a_task_id_is_refused():
    with pytest.raises(RecordError, match="half a character"):
        record(task_id="\ud800")
