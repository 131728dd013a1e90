"""The private key as the bytes of its file: PKCS8, encrypted where there is a passphrase.

A module of its own because what it imports takes 25 ms, and most runs sign nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import KeyProblemError


def generated() -> SigningKey:
    """A new key."""
    return SigningKey(Ed25519PrivateKey.generate())


def from_pem(data: bytes, passphrase: Callable[[], str] | None, path: Path) -> SigningKey:
    """The key in a file. `passphrase` is asked where it is encrypted. Raises KeyProblemError."""
    try:
        try:
            private = load_pem_private_key(data, None)
        except TypeError:
            if passphrase is None:
                raise KeyProblemError(f"{path} is encrypted; run this where it can ask for the passphrase") from None
            private = load_pem_private_key(data, passphrase().encode() or b"\0")
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyProblemError(
            f"{path} cannot be opened: the passphrase is wrong, or the file is damaged; try again, or put it back from"
            " a backup"
        ) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyProblemError(f"{path} is a key of another kind than Ed25519; put the right one back, or rotate")
    return SigningKey(private)


def to_pem(key: SigningKey, passphrase: str | None) -> bytes:
    """The bytes of the file of a key."""
    encryption: KeySerializationEncryption = (
        BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    )
    return key.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
