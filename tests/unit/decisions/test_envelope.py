"""The signed file: standard DSSE to others, one spelling to us."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.envelope import (
    LARGEST,
    EnvelopeError,
    SigningKey,
    UnsignedError,
    UntrustedError,
    opened,
    seal,
)

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(b"k" * 32))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"o" * 32))
KEYS = {KEY.public.keyid: KEY.public}


def changed(**fields: object) -> bytes:
    envelope = json.loads(seal(b"payload", KEY))
    return (json.dumps(envelope | fields, separators=(",", ":")) + "\n").encode()


def test_what_was_sealed_is_opened_again() -> None:
    for payload in (b"", b"x", b"\xff\x00", b'{"version":1}' * 1_000):
        found = opened(seal(payload, KEY), KEYS)
        assert found == (payload, KEY.public.keyid)


def test_a_key_that_is_not_known_is_told_from_a_fake() -> None:
    with pytest.raises(UntrustedError, match="not one of yours"):
        opened(seal(b"payload", OTHER), KEYS)
    with pytest.raises(UntrustedError, match="none is known here"):
        opened(seal(b"payload", KEY), {})
    with pytest.raises(UnsignedError, match="does not hold"):
        opened(seal(b"payload", OTHER).replace(OTHER.public.keyid.encode(), KEY.public.keyid.encode()), KEYS)


def test_a_signature_of_another_type_is_none() -> None:
    kind = "application/vnd.agentwatch.receipt.v1+json"
    signed = f"DSSEv1 {len(kind)} {kind} 7 payload".encode()
    signature = {"keyid": KEY.public.keyid, "sig": base64.b64encode(KEY.private.sign(signed)).decode()}
    with pytest.raises(UnsignedError):
        opened(changed(signatures=[signature]), KEYS)
    with pytest.raises(EnvelopeError, match="form"):
        opened(changed(signatures=[signature], payloadType=kind), KEYS)


GOOD = json.loads(seal(b"payload", KEY))["signatures"][0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null\n",
        seal(b"payload", KEY)[:-1],
        seal(b"payload", KEY) + b"\n",
        b" " + seal(b"payload", KEY),
        seal(b"payload", KEY)[:100],
        changed(signatures=[]),
        changed(signatures=[GOOD, GOOD]),
        changed(signatures=[GOOD | {"more": 1}]),
        changed(signatures=[GOOD | {"keyid": GOOD["keyid"].upper()}]),
        changed(more=1),
        changed(payload=None),
        changed(payload="cGF5bG9hZA"),
        changed(payload="cGF5bG9hZA==="),
        changed(payload="cGF5bG9hZA=\n="),
        changed(payload="cGF5bG9hZB=="),
        changed(payload="cGF5bG9hZ"),
        changed(payload="=="),
        changed(signatures=[GOOD | {"sig": GOOD["sig"][:-3] + "B=="}]),
        seal(b"x" * LARGEST, KEY),
    ],
)
def test_any_other_form_is_refused_before_its_signature_is_looked_at(data: bytes) -> None:
    with pytest.raises(EnvelopeError) as caught:
        opened(data, KEYS)
    assert type(caught.value) is EnvelopeError


def test_a_signature_that_adds_the_order_of_the_group_is_a_fake() -> None:
    """Ed25519 signatures could be spelled twice, were S not checked to be below the group's order."""
    signature = base64.b64decode(GOOD["sig"])
    order = 2**252 + 27742317777372353535851937790883648493
    again = signature[:32] + (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    with pytest.raises(UnsignedError):
        opened(changed(signatures=[GOOD | {"sig": base64.b64encode(again).decode()}]), KEYS)
