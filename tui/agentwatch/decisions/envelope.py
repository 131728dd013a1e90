"""The signed file around a record (DSSE with Ed25519), verified before its content is read; and the keys that count.

Format: https://github.com/secure-systems-lab/dsse. The signature covers the type and the bytes together, so a record
cannot pass for something else. Only one spelling of a file is accepted, so every changed bit is noticed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.decisions.errors import DecisionError, KeyProblemError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.agentwatch.decision.v1+json"
# The type of an operator's request to a host; a signature of one type is invalid for another.
REQUEST_TYPE = "application/vnd.agentwatch.request.v1+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
_NAMES = {PAYLOAD_TYPE: "decision", REQUEST_TYPE: "request", STATEMENT_TYPE: "statement"}

# Bytes of an envelope: the largest record, which holds the envelope of its request.
LARGEST = 7 * 1024 * 1024

OWN_ID = "AGENTWATCH_WORKSPACE_ID"  # names a workspace mounted at another path than the operator's
VARIABLE = "AGENTWATCH_PUBLIC_KEY"
# In that variable: the prefix of a remote operator's key, who may ask this host for a decision.
OPERATOR = "operator:"

_PUBLIC = re.compile(r"ed25519:([A-Za-z0-9+/]{43}=)\Z")

# A grammar, not a JSON parser: no parser reads an agent's text before its signature was checked.
_FORM = re.compile(
    rb'\{"payload":"([A-Za-z0-9+/]*={0,2})","payloadType":"([a-z0-9.+/-]{1,99})","signatures":'
    rb'\[\{"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}\]\}\n\Z'
)


class EnvelopeError(DecisionError):
    """The file is not an envelope of ours, or its signature is invalid."""


class UntrustedError(EnvelopeError):
    """The envelope is signed with a key that is unknown here."""


class UnsignedError(EnvelopeError):
    """The envelope names a known key, but that key did not sign this content."""


class PublicKey(NamedTuple):
    """An Ed25519 public key: 32 raw bytes."""

    raw: bytes

    @property
    def keyid(self) -> str:
        """The sha256 of the raw key, in hex."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def text(self) -> str:
        """The form for an orchestrator: `ed25519:` and 44 characters."""
        return f"ed25519:{base64.b64encode(self.raw).decode()}"


class SigningKey(NamedTuple):
    """An Ed25519 private key, which is never printed."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.private.public_key().public_bytes_raw())


class TrustedKey(NamedTuple):
    """A public key, which does not count from `retired_at` on: it was replaced or distrusted. A key of another party
    also has a `name` and the time `trusted_at`."""

    public: PublicKey
    retired_at: str | None = None
    name: str = ""
    trusted_at: str = ""


@dataclass(frozen=True)
class Trust:
    """The keys whose records are accepted, oldest first, and those of remote `operators`, who may ask for one."""

    keys: tuple[TrustedKey, ...] = ()
    operators: tuple[TrustedKey, ...] = ()

    @cached_property
    def signing(self) -> dict[str, TrustedKey]:
        """The keys by their ids, oldest first."""
        return {key.public.keyid: key for key in self.keys}

    @cached_property
    def asking(self) -> dict[str, TrustedKey]:
        """By key id: the keys that may ask for a record, including those that can sign one."""
        return {key.public.keyid: key for key in (*self.operators, *self.keys)}

    def require(self, keyid: str, created_at: str) -> None:
        """Raise UntrustedError if this known key was retired before `created_at`, the time of the record."""
        retired_at = self.asking[keyid].retired_at
        # Both have the same form, so the texts sort like the times.
        if retired_at and created_at > retired_at:
            raise UntrustedError(f"the key {keyid[:16]}… that signed it is not trusted any more, since {retired_at}")

    def with_more(self, more: Trust) -> Trust:
        """Return these keys and the others; a key in both stays as it is here."""
        both = ((self.keys, more.keys), (self.operators, more.operators))
        return Trust(*(tuple({key.public: key for key in (*own, *others, *own)}.values()) for own, others in both))


def parse_public(text: str) -> PublicKey:
    """Return a public key from the form of `PublicKey.text`; raise KeyProblemError for others."""
    match = _PUBLIC.match(text.strip())
    if match:
        key = PublicKey(base64.b64decode(match[1]))
        # The last character of the base64 has unused bits, which must be zero.
        if key.text == text.strip():
            return key
    raise KeyProblemError("a public key looks like ed25519: and 44 characters; `agentwatch keys` prints yours")


def given(text: str) -> Trust:
    """Return the keys in an environment variable, separated by spaces or commas; raise KeyProblemError."""
    keys, operators = list[TrustedKey](), list[TrustedKey]()
    for word in text.replace(",", " ").split():
        (operators if word.startswith(OPERATOR) else keys).append(TrustedKey(parse_public(word.removeprefix(OPERATOR))))
    return Trust(tuple(keys), tuple(operators))


def seal(payload: bytes, key: SigningKey, kind: str = PAYLOAD_TYPE) -> bytes:
    """Return the bytes of the file that holds a payload and its signature."""
    return _written(payload, kind, key.public.keyid, key.private.sign(to_sign(payload, kind)))


def opened(data: bytes, keys: Mapping[str, TrustedKey], kind: str = PAYLOAD_TYPE) -> tuple[bytes, str]:
    """Return a file's payload and the id of the signing key, verified with one of `keys` (by their ids).

    Raise UntrustedError for a signature by another key, UnsignedError for an invalid one, EnvelopeError for bytes that
    `seal` cannot have written.
    """
    match = _FORM.match(data) if len(data) <= LARGEST else None
    if not match or match[2] != kind.encode() or len(match[1]) % 4:
        raise EnvelopeError(f"it is not in the form of a signed {_NAMES[kind]}: cut off, edited, or something else")
    payload, keyid, signature = base64.b64decode(match[1]), match[3].decode(), base64.b64decode(match[4])
    # Base64 can spell the same bytes in several ways.
    if _written(payload, kind, keyid, signature) != data:
        raise EnvelopeError("its base64 is not the one that was written: it was edited")
    if not (key := keys.get(keyid)):
        why = "which is not one of yours" if keys else "and none is known here: `agentwatch keys` says how to give it"
        raise UntrustedError(f"it is signed with the key {keyid[:16]}…, {why}")
    if not holds(signature, to_sign(payload, kind), key.public):
        raise UnsignedError("its signature does not hold: the content was changed, or it is a fake")
    return payload, keyid


def signer_of(envelope: str) -> str:
    """Return the id of the key that an envelope names, "" if it is no envelope; nothing is verified."""
    match = _FORM.match(envelope.encode(errors="replace"))
    return match[3].decode() if match else ""


def holds(signature: bytes, signed: bytes, key: PublicKey) -> bool:
    """Tell whether this key made the signature of these bytes."""
    # Imported here: it takes 25 ms, and most workspaces hold no decision.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def to_sign(payload: bytes, kind: str) -> bytes:
    """Return DSSE's pre-authentication encoding: the lengths separate type and payload unambiguously."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _written(payload: bytes, kind: str, keyid: str, signature: bytes) -> bytes:
    values = base64.b64encode(payload), kind.encode(), keyid.encode(), base64.b64encode(signature)
    return b'{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}\n' % values
