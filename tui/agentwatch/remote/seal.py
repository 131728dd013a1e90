"""Messages as they lie with somebody who is not trusted: sealed for those who may read them, or as they are.

The first byte says which. 0: as it is. 1: sealed; then come how many may read it, for each the begin of the id of his
key, and the content's key sealed for that (X25519, made of the Ed25519 key); then a nonce, and the message in a secret
box (XSalsa20, Poly1305). Who said it is told by the signature inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentwatch.decisions.envelope import PublicKey

if TYPE_CHECKING:
    from agentwatch.decisions.envelope import SigningKey

_OPEN: Final = b"0"
_SEALED: Final = b"1"
_ID: Final = 8
_KEY: Final = 32 + 48
_MOST_READERS: Final = 255


class SealedError(ValueError):
    """A message is sealed, and not for this key."""


class Sealer:
    """Seals messages for the owners of these keys."""

    def __init__(self, readers: Iterable[PublicKey]) -> None:
        from nacl.public import SealedBox
        from nacl.secret import SecretBox
        from nacl.signing import VerifyKey
        from nacl.utils import random

        keys = list(readers)[:_MOST_READERS]
        content = random(SecretBox.KEY_SIZE)
        sealed = (SealedBox(VerifyKey(key.raw).to_curve25519_public_key()).encrypt(content) for key in keys)
        each = (bytes.fromhex(key.keyid)[:_ID] + box for key, box in zip(keys, sealed, strict=True))
        self._head = _SEALED + bytes([len(keys)]) + b"".join(each)
        self._box = SecretBox(content)

    def seal(self, message: bytes) -> bytes:
        """The message, for nobody else to read."""
        return self._head + bytes(self._box.encrypt(message))


class Unsealer:
    """Opens what is sealed for this key, and what is not sealed at all. Any thread may call it."""

    def __init__(self, key: SigningKey | None) -> None:
        self._key = key
        self._content_key = lru_cache(maxsize=256)(self._opened)

    def open(self, data: bytes) -> bytes:
        """The message. Raises SealedError where it is for others, ValueError where it is none."""
        if data[:1] == _OPEN:
            return data[1:]
        if data[:1] != _SEALED:
            raise ValueError("it is no message of ours")
        from nacl.exceptions import CryptoError
        from nacl.secret import SecretBox

        end = 2 + (_ID + _KEY) * int.from_bytes(data[1:2], "big")
        try:
            return SecretBox(self._content_key(data[2:end])).decrypt(data[end:])
        except CryptoError as error:
            raise ValueError("a sealed message is broken") from error

    def _opened(self, head: bytes) -> bytes:
        """The key of the content in what was sealed for each reader."""
        if self._key is None:
            raise SealedError("it is sealed, and the key that could open it is locked or is not there")
        from nacl.public import SealedBox
        from nacl.signing import SigningKey as NaclKey

        own = bytes.fromhex(self._key.public.keyid)[:_ID]
        for start in range(0, len(head) - _ID - _KEY + 1, _ID + _KEY):
            if head[start : start + _ID] == own:
                private = NaclKey(self._key.private.private_bytes_raw()).to_curve25519_private_key()
                return SealedBox(private).decrypt(head[start + _ID : start + _ID + _KEY])
        raise SealedError("it is sealed for others: have the host trust your key (`agentwatch keys trust`)")


def unsealed(message: bytes) -> bytes:
    """The message as it is, for everybody to read."""
    return _OPEN + message
