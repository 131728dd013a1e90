"""One file of the ledger: what it is refused for, and in which words."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.chain import ChainEntry, ChainProblem, ProblemKind, entry_of, name_of
from agentwatch.decisions.envelope import SigningKey, Trust, TrustedKey, seal
from tests.unit.decisions.made import record

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(b"k" * 32))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"o" * 32))
TRUST = Trust((TrustedKey(KEY.public),))
GOOD = record()
NAME = name_of(GOOD)


def judged(data: bytes, name: str = NAME, trust: Trust = TRUST) -> ChainEntry | ChainProblem:
    return entry_of(name, data, trust, GOOD.workspace_id)


def payload(**changes: Any) -> bytes:
    """What the operator's key signed, and what is no decision."""
    document = GOOD.document() | changes
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def without(key: str) -> bytes:
    document = GOOD.document()
    del document[key]
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def params(**changes: Any) -> bytes:
    return payload(params=GOOD.document()["params"] | changes)


def signature_of(data: bytes, change: Callable[[str], str]) -> bytes:
    return re.sub(rb'"sig":"([^"]*)"', lambda match: b'"sig":"%s"' % change(match[1].decode()).encode(), data)


def turned(text: str) -> str:
    """Base64 that spells the same bytes in another way: the last character holds bits that mean nothing."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    kept = text.rstrip("=")
    return kept[:-1] + letters[letters.index(kept[-1]) + 1] + "=" * (len(text) - len(kept))


def flipped(text: str) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[0] ^= 1
    return base64.b64encode(raw).decode()


SEALED = seal(GOOD.to_bytes(), KEY)


def test_a_good_file_is_an_entry() -> None:
    found = judged(SEALED)
    assert isinstance(found, ChainEntry)
    assert (found.record, found.name, found.keyid) == (GOOD, NAME, KEY.public.keyid)


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (
            b"{}",
            ProblemKind.DAMAGED,
            "it is not in the form of a signed decision: cut off, edited, or something else",
        ),
        (
            SEALED.replace(b'"payload":"eyJ2', b'"payload":"yJ2'),
            ProblemKind.DAMAGED,
            "its base64 is broken: cut off or edited",
        ),
        (
            signature_of(SEALED, turned),
            ProblemKind.DAMAGED,
            "its base64 is not the one that was written: it was edited",
        ),
        (
            signature_of(SEALED, flipped),
            ProblemKind.FORGED,
            "its signature does not hold: the content was changed, or it is a fake",
        ),
        (
            seal(GOOD.to_bytes(), OTHER),
            ProblemKind.UNTRUSTED,
            f"it is signed with the key {OTHER.public.keyid[:16]}…, which is not one of yours",
        ),
        (
            seal(record(workspace_id="other-0123456789abcdef").to_bytes(), KEY),
            ProblemKind.ANOTHER_WORKSPACE,
            "it is a decision about another workspace, “other-0123456789abcdef”",
        ),
    ],
    ids=["no envelope", "broken base64", "other base64", "turned bit", "other key", "other workspace"],
)
def test_a_file_is_refused_with_its_kind_and_its_reason(data: bytes, kind: ProblemKind, words: str) -> None:
    assert judged(data) == ChainProblem(NAME, kind, f"“{NAME}”: {words}")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "it is not JSON as a decision has it"),
        (payload(attempt=float("nan")), "NaN is not JSON"),
        (GOOD.to_bytes()[:-1] + b',"seq":2}', "a key stands in it twice"),
        (without("note"), "the record must be an object with exactly version, workspace_id, seq, prev_sha256, "),
        (payload(params=[]), "params must be an object with exactly mitigation, handoff, mode, "),
        (params(answers={}), "params.answers must be a list"),
        (params(answers=[{"question": None}]), "an answer must be an object with exactly question, answer"),
        (params(mode=1), "params.mode must be a text"),
        (params(report=1), "params.report must be a text"),
        (params(handoff=1), "params.handoff must be a text"),
        (payload(action="x" * 80), f"'{'x' * 40}' is none of retry, escalate, abort, respond, accept"),
        (GOOD.to_bytes() + b" ", "it is not spelled as agentwatch spells it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_signed_and_is_no_decision_is_refused_with_the_reason(data: bytes, words: str) -> None:
    found = judged(seal(data, KEY))
    assert isinstance(found, ChainProblem)
    assert (found.name, found.kind) == (NAME, ProblemKind.MALFORMED)
    assert f"“{NAME}”: it is signed, and no decision: " in found.message
    assert words in found.message


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ({"question": 1, "answer": "yes"}, "a question must be a text"),
        ({"question": None, "answer": 1}, "an answer must be a text"),
    ],
)
def test_an_answer_that_is_no_text_is_refused(one: dict[str, object], words: str) -> None:
    found = judged(seal(payload(action="respond", params=GOOD.document()["params"] | {"answers": [one]}), KEY))
    assert isinstance(found, ChainProblem)
    assert words in found.message


def test_a_copy_under_another_name_is_refused() -> None:
    name = f"000009-{GOOD.decision_id}.json"
    assert judged(SEALED, name) == ChainProblem(
        name, ProblemKind.MISPLACED, f"“{name}”: a copy of {NAME} under another name"
    )


def test_what_a_retired_key_signed_later_is_refused() -> None:
    trust = Trust((TrustedKey(KEY.public, retired_at="2029-12-31T00:00:00Z"),))
    found = judged(SEALED, trust=trust)
    assert isinstance(found, ChainProblem)
    assert found.kind is ProblemKind.UNTRUSTED
    assert found.message == f"“{NAME}”: it is signed with a key that was retired at 2029-12-31T00:00:00Z"
