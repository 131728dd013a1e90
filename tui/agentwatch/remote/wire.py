"""Messages as they travel: what a host says is signed with its key, so that who carries it cannot make it up.

A signed message is the signature (64 bytes), the id of the key (32 bytes) and the packed frame: `=` and the frame as it
is, or `z` and the frame compressed. The signature covers what kind of thing it is, so that none passes for a decision,
nor the other way round. Nothing is unpacked before its signature was checked.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from agentwatch.decisions.envelope import PublicKey, SigningKey
from agentwatch.remote.frames import LARGEST

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PAYLOAD_TYPE: Final = b"application/vnd.agentwatch.frame.v1"
_SIGNATURE: Final = 64
_HEAD: Final = _SIGNATURE + 32
LARGEST_MESSAGE: Final = LARGEST + _HEAD + 1024
_WORTH: Final = 1024
"""Bytes from which on compressing saves something."""


class Signer:
    """Signs what a host says."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self.public: Final = key.public
        self._keyid = bytes.fromhex(key.public.keyid)

    def wrap(self, frame: bytes) -> bytes:
        """The message that says this frame."""
        packed = pack(frame)
        return self._key.private.sign(_to_sign(packed)) + self._keyid + packed


class Opener:
    """Opens what hosts with these keys say. Any thread may call it."""

    def __init__(self, expected: Iterable[PublicKey] = ()) -> None:
        self._keys: dict[str, Ed25519PublicKey] = {}
        for key in expected:
            self.expect(key)

    def expect(self, key: PublicKey) -> None:
        """Take what this key signed, too."""
        # Imported here: it takes 25 ms.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self._keys[key.keyid] = Ed25519PublicKey.from_public_bytes(key.raw)

    def open(self, message: bytes) -> tuple[bytes, str]:
        """The frame in a message, and the id of the key that signed it. Raises ValueError where none of the keys has
        signed it."""
        from cryptography.exceptions import InvalidSignature

        signature, keyid, packed = parts_of(message)
        key = self._keys.get(keyid)
        if key is None:
            raise ValueError(f"a message is signed with the key {keyid[:16]}…, which is not expected here")
        try:
            key.verify(signature, _to_sign(packed))
        except InvalidSignature as error:
            raise ValueError("the signature of a message does not hold: it is a fake, or was changed") from error
        return unpack(packed), keyid


def parts_of(message: bytes) -> tuple[bytes, str, bytes]:
    """The signature, the id of the key and the packed frame of a message, nothing of which is known to be true. Raises
    ValueError where it is none."""
    if not _HEAD < len(message) <= LARGEST_MESSAGE:
        raise ValueError("a message is not in the form of a signed one")
    return message[:_SIGNATURE], message[_SIGNATURE:_HEAD].hex(), message[_HEAD:]


def pack(frame: bytes) -> bytes:
    """A frame for the way, compressed where that saves something."""
    return b"z" + zlib.compress(frame, 1) if len(frame) >= _WORTH else b"=" + frame


def unpack(packed: bytes) -> bytes:
    """The frame that was packed. Raises ValueError; it never takes much more memory than the largest frame."""
    if packed[:1] == b"=":
        return packed[1:]
    try:
        inflater = zlib.decompressobj()
        frame = inflater.decompress(packed[1:], LARGEST + 1)
    except zlib.error as error:
        raise ValueError("a message cannot be unpacked") from error
    if packed[:1] != b"z" or not inflater.eof or inflater.unused_data:
        raise ValueError("a message cannot be unpacked: it is cut off, or too large")
    return frame


def _to_sign(packed: bytes) -> bytes:
    """DSSE's pre-authentication encoding: the lengths leave no doubt what is type and what is payload."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE, len(packed), packed)
