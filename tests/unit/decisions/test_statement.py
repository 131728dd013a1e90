"""Statements: an in-toto Statement in a DSSE envelope to everybody, and in one spelling to us."""

import json
import re
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement as ForeignStatement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementModel
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from agentwatch.decisions.envelope import PAYLOAD_TYPE, STATEMENT_TYPE, SigningKey, Trust, TrustedKey, seal
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.ledger import ChainEntry
from agentwatch.decisions.statement import PREDICATE_TYPE, TYPE, statement_of, subject_of, verify_statement
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import task_document
from tests.unit.decisions.made import KIM, record
from tests.unit.delegation.events import Recorder, handoff, returned, tree_of

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(b"k" * 32))
TRUST = Trust((TrustedKey(KEY.public),))
NOW = datetime(2030, 1, 2, tzinfo=UTC)


def tree() -> Tree:
    """Return a tree with a task that was tried twice; the first attempt failed."""
    record = Recorder()
    seen = [
        record.seen("a.handoff.json", handoff("a")),
        record.seen("a.return.md", returned("failed", task_id="a")),
        record.seen("a.2.handoff.json", handoff("a", attempt=2)),
        record.seen("a.2.return.md", returned("completed", task_id="a", summary="Done.", attempt=2)),
    ]
    return tree_of([*seen, record.checked("a.2.return.md", seen[-1].digest, "verified")])


def payload(decided: tuple[ChainEntry, ...] = ()) -> bytes:
    made = tree()
    task = made.tasks["a"]
    given = {"complete": True, "workspace_id": "shop-0123456789abcdef", "now": NOW}
    return statement_of(task_document(made, task).to_json(), subject_of(task), decided, **given)  # type: ignore[arg-type]


def sealed() -> bytes:
    return seal(payload(), KEY, STATEMENT_TYPE)


def foreign_key(key: SigningKey = KEY) -> SSlibKey:
    return SSlibKey(key.public.keyid, "ed25519", "ed25519", {"public": key.public.raw.hex()})


def changed(**predicate: Any) -> bytes:
    document = json.loads(payload())
    document["predicate"] |= predicate
    return seal(json.dumps(document).encode(), KEY, STATEMENT_TYPE)


def test_a_stranger_verifies_a_statement_and_reads_it_as_in_toto():
    data = sealed()
    envelope = Envelope.from_dict(json.loads(data))
    assert set(envelope.verify([foreign_key()], 1)) == {KEY.public.keyid}
    with pytest.raises(VerificationError):
        envelope.verify([foreign_key(KIM)], 1)
    statement, keyid = verify_statement(data, TRUST)
    assert (statement.task_id, statement.attempt, statement.state, keyid) == ("a", 2, "completed", KEY.public.keyid)
    read = json_format.Parse(envelope.payload, StatementModel())
    ForeignStatement.copy_from_pb(read).validate()
    assert (envelope.payload_type, read.type, read.predicate_type) == (STATEMENT_TYPE, TYPE, PREDICATE_TYPE)
    # The subjects are the documents of the latest attempt.
    assert {one.name: one.digest["sha256"] for one in read.subject} == {
        version.path: version.digest
        for attempt in tree().tasks["a"].attempts[-1:]
        for version in (attempt.handoff, attempt.returned)
        if version is not None
    }
    decided = ChainEntry(record(), "000001.json", "0" * 64, KIM.public.keyid)
    told = json.loads(payload(decided=(decided,)))["predicate"]
    assert (told["state"], told["attempt"], told["made_at"]) == ("completed", 2, "2030-01-02T00:00:00Z")
    assert [one["verdict"] for one in told["claims"]] == ["verified"]
    assert [(one["number"], one["state"]) for one in told["attempts"]] == [(1, "failed"), (2, "completed")]
    assert all(len(one["return_sha256"]) == 64 and "run" not in one for one in told["attempts"])
    about = {"sha256": "0" * 64, "keyid": KIM.public.keyid, "of_request": False, "action": "retry", "operator": "ada"}
    (decision,) = told["decisions"]
    assert (about | {"decision_id": decided.record.decision_id}).items() <= decision.items()


def respelled(data: bytes) -> bytes:
    """Return the same signature in other letters: some bits of its last base64 letter have no meaning."""
    at = data.index(b'=="}]') - 1
    return data[:at] + bytes([data[at] + 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (seal(payload(), KIM, STATEMENT_TYPE), "which is not one of yours"),
        (sealed().replace(b"A", b"B", 1), "does not hold"),
        (seal(payload(), KEY, PAYLOAD_TYPE), "not in the form of a signed statement"),
        (b'{"a":1}\n', "not in the form of a signed statement"),
        (respelled(sealed()), "its base64 is not the one that was written"),
        (seal(b"{}", KEY, STATEMENT_TYPE), "_type: Field required"),
        (seal(b"[" * 9_000, KEY, STATEMENT_TYPE), "no statement that is known here"),
        (seal(payload().replace(b"task:v1", b"task:v2"), KEY, STATEMENT_TYPE), "predicateType: Input should be"),
        (changed(made_at="yesterday"), "predicate.made_at"),
        (changed(attempt=True), "predicate.attempt"),
        (changed(task_id=""), "predicate.task_id"),
    ],
    ids=count(),
)  # fmt: skip
def test_a_refused_statement_has_a_reason(data, words):
    with pytest.raises(DecisionError, match=re.escape(words)):
        verify_statement(data, TRUST)
