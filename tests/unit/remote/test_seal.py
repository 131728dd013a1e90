"""What is sealed is read by those whom it is for, and by nobody else."""

from __future__ import annotations

import pytest
from tests.broker import new_key

from agentwatch.remote.seal import SealedError, Sealer, Unsealer, unsealed

KIM, ALEX, EVE = new_key(), new_key(), new_key()


def test_every_reader_opens_what_is_sealed_for_several() -> None:
    sealer = Sealer([KIM.public, ALEX.public])
    for message in (b"", b"first", bytes(range(256)) * 100):
        sealed = sealer.seal(message)
        assert [Unsealer(key).open(sealed) for key in (KIM, ALEX)] == [message, message]


def test_nobody_else_opens_it_and_is_told_why() -> None:
    sealed = Sealer([KIM.public]).seal(b"return-12.md")
    assert b"return" not in sealed
    with pytest.raises(SealedError, match="sealed for others"):
        Unsealer(EVE).open(sealed)
    with pytest.raises(SealedError, match="locked"):
        Unsealer(None).open(sealed)


def test_the_same_message_never_looks_the_same_twice() -> None:
    sealer = Sealer([KIM.public])
    assert len({sealer.seal(b"the same") for _ in range(100)}) == 100


def test_what_is_not_sealed_is_read_by_everybody() -> None:
    assert Unsealer(None).open(unsealed(b"hello")) == b"hello"


def test_a_turned_bit_anywhere_is_noticed() -> None:
    sealed = Sealer([KIM.public]).seal(b"as it was")
    unsealer = Unsealer(KIM)
    for at in range(len(sealed) * 8):
        broken = bytearray(sealed)
        broken[at // 8] ^= 1 << at % 8
        try:
            assert unsealer.open(bytes(broken)) != b"as it was"
        except ValueError:
            continue
        # The first byte now says that nothing is sealed: the signature of what it would be does not hold.
        assert broken[:1] == b"0"


@pytest.mark.parametrize("data", [b"", b"1", b"1\x01", b"1\xff" + b"x" * 99, b"2x", b"1\x00" + b"x" * 80])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"sealed|no message"):
        Unsealer(KIM).open(data)
