"""Requests signed on another machine: read by the host that they name, and believed inside of its record only."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.envelope import REQUEST_TYPE, EnvelopeError, SigningKey, Trust, TrustedKey, seal
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import ChainEntry, ChainProblem, ProblemKind, name_of, read_signed
from agentwatch.decisions.reader import Question, Reader
from agentwatch.decisions.record import (
    AHEAD,
    Asked,
    Params,
    Record,
    parse,
    read_request,
    written,
)
from agentwatch.delegation.decision import RequestKind
from agentwatch.disk import Directory
from tests.unit.decisions.made import KIM, NOON, Operator, at, record
from tests.unit.decisions.test_record import KEYS

ATTACKER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"a" * 32))
OTHER, SECOND = ProblemKind.MALFORMED, timedelta(seconds=1)
ASKED = Asked("claude", "5f0c", "nonce", RequestKind.PERMISSION, "1" * 64)


@pytest.fixture
def host(tmp_path):
    """Where the agents run. It trusts kim."""
    host = Operator(tmp_path)
    host.trust_kim()
    return host


def kept(host: Operator, **changes: Any) -> Record:
    """The record of the host about what kim has signed, with some fields changed that kim has not."""
    made = host.draft(operator="kim", signed_request=host.signed())
    return record(**{one.name: getattr(made, one.name) for one in fields(made)} | changes)


def about(host: Operator, **changes: Any) -> dict[str, Any]:
    """A request of kim about something else."""
    return {"signed_request": host.signed(subject=host.subject()._replace(**changes))}


def judged(host: Operator, made: Record, key: SigningKey | None = None) -> ChainEntry | ChainProblem:
    """As the next file of the ledger of the host."""
    host.ledger.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return read(host, name_of(made), seal(made.to_bytes(), key or host.key), host.trust)


def read(host: Operator, name: str, data: bytes, trust: Trust) -> ChainEntry | ChainProblem:
    (host.ledger.directory / name).write_bytes(data)
    with Directory.open(host.ledger.directory) as directory:
        return read_signed(directory, name, trust, host.workspace_id)


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
def test_what_is_signed_and_no_request_is_refused(host, name):
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


def test_a_record_holds_what_was_signed(host):
    made = host.decide_from_afar().record
    document = json.loads(made.to_bytes())
    assert list(document) == [*KEYS, "signed_request"]
    assert document["version"] == 3
    assert document["signed_request"] == host.signed()
    assert parse(made.to_bytes()) == made
    assert [entry.record for entry in host.chain().entries] == [made]


INSIDE: dict[str, tuple[Callable[[Operator], dict[str, Any]], ProblemKind, str]] = {
    "nobody trusts": (lambda host: {"signed_request": host.signed(key=ATTACKER)}, ProblemKind.UNTRUSTED, "not one"),
    "an attacker in kim's name": (
        lambda host: {"signed_request": host.signed(key=ATTACKER).replace(ATTACKER.public.keyid, KIM.public.keyid)},
        ProblemKind.FORGED,
        "does not hold",
    ),
    "no envelope": (lambda _: {"signed_request": "größe"}, ProblemKind.DAMAGED, "form"),
    "another return": (lambda host: about(host, return_sha256=None), OTHER, "something else"),
    "a handoff of its own": (lambda _: {"params": Params(handoff="")}, OTHER, "something else"),
    "too early": (lambda _: {"created_at": written(NOON - AHEAD - SECOND)}, OTHER, "its time was over"),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_the_host_signs_counts_only_as_the_operator_said(host, name):
    """Even the key of the host cannot say in the name of an operator what that operator did not."""
    change, kind, words = INSIDE[name]
    made = kept(host, **change(host))
    found = judged(host, made)
    assert isinstance(found, ChainProblem)
    assert (found.kind, words in found.message) == (kind, True)
    # And nobody takes it from the copy in the workspace.
    place, nowhere = host.workspace / ".agentwatch" / "decisions", host.root / "nowhere"
    place.mkdir(parents=True)
    (place / f"{made.decision_id}.json").write_bytes(seal(made.to_bytes(), host.key))
    keys = {"AGENTWATCH_PUBLIC_KEY": f"{host.key.public.text},operator:{KIM.public.text}"}
    reader = Reader(host.workspace, state=nowhere, configuration=nowhere, environment=keys)
    assert reader.find(Question("a.b")).refused


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_signed_cannot_be_left_out(host, version):
    """A record of version 3 is none of an earlier one with a key more or less."""
    spelled = kept(host).to_bytes()
    with pytest.raises(RecordError):
        parse(spelled.replace(b'"version":3', b'"version":%d' % version))
    for changes in ({"signed_request": None}, {"version": version}):
        with pytest.raises(RecordError):
            kept(host, **changes)


# Trust that is taken back


def test_what_was_recorded_before_a_key_was_distrusted_stays(host):
    made = host.decide_from_afar()
    with at(NOON):
        host.keys.distrust_other(Role.OPERATOR, KIM.public)
    assert host.chain().problems == ()
    following = {"seq": 2, "prev_sha256": made.entry.sha256}
    signed = host.signed("later")
    later = host.draft("later", operator="kim", signed_request=signed, created_at=NOON + timedelta(seconds=1))
    found = judged(host, replace(later, **following))
    assert isinstance(found, ChainProblem)
    assert found.kind is ProblemKind.UNTRUSTED
    assert "not trusted any more" in found.message
    host.keys.trust_other(Role.OPERATOR, KIM.public, "kim")
    assert isinstance(judged(host, replace(later, **following)), ChainEntry)
