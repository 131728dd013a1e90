"""Whoever carries a message can lose it, and neither make one up nor change one."""

from __future__ import annotations

import zlib

import pytest
from agentwatch.remote.frames import LARGEST
from agentwatch.remote.wire import Opener, Signer, unpack
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.decisions.envelope import SigningKey, seal

KEY, OTHER = SigningKey(Ed25519PrivateKey.generate()), SigningKey(Ed25519PrivateKey.generate())
SIGNER, OPENER = Signer(KEY), Opener([KEY.public])


@given(st.binary(max_size=3_000))
def test_a_message_opens_as_what_was_signed(frame: bytes) -> None:
    assert OPENER.open(SIGNER.wrap(frame)) == (frame, KEY.public.keyid)


@given(st.data())
def test_a_message_of_which_one_bit_is_another_does_not_open(data: st.DataObject) -> None:
    message = bytearray(SIGNER.wrap(b'{"kind":"beat"}' * data.draw(st.sampled_from([1, 100]))))
    place = data.draw(st.integers(0, len(message) * 8 - 1))
    message[place // 8] ^= 1 << place % 8
    with pytest.raises(ValueError, match="message"):
        OPENER.open(bytes(message))


@given(st.binary(max_size=200))
def test_bytes_that_nobody_signed_do_not_open(message: bytes) -> None:
    with pytest.raises(ValueError, match="message"):
        OPENER.open(message)


def test_the_key_of_somebody_else_is_named() -> None:
    with pytest.raises(ValueError, match=f"key {OTHER.public.keyid[:16]}…, which is not expected"):
        OPENER.open(Signer(OTHER).wrap(b"frame"))


def test_a_signed_decision_is_no_message_and_a_message_no_decision() -> None:
    payload = b'{"kind":"beat"}'
    signature = KEY.private.sign(b"DSSEv1 44 application/vnd.agentwatch.decision.v1+json 15 " + payload)
    with pytest.raises(ValueError, match="does not hold"):
        OPENER.open(signature + bytes.fromhex(KEY.public.keyid) + payload)
    with pytest.raises(ValueError, match="message"):
        OPENER.open(seal(payload, KEY))


def test_a_message_that_would_fill_the_memory_is_not_unpacked() -> None:
    with pytest.raises(ValueError, match="too large"):
        unpack(b"z" + zlib.compress(bytes(LARGEST * 4)))
