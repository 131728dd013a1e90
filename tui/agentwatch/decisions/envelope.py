"""The signed file around a record (DSSE with Ed25519), verified before anything in it is read; and whose keys count.

Format: https://github.com/secure-systems-lab/dsse. The signature covers the type and the bytes together, so a record
cannot pass for something else. A file is accepted in one spelling only, so no bit of it can be turned unnoticed.
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
# Of an operator's request to a host. No signature of one type passes for one of another.
REQUEST_TYPE = "application/vnd.agentwatch.request.v1+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
_NAMES = {PAYLOAD_TYPE: "decision", REQUEST_TYPE: "request", STATEMENT_TYPE: "statement"}

# Bytes of an envelope: of the largest record, which holds the envelope of a request for it.
LARGEST = 7 * 1024 * 1024

OWN_ID = "AGENTWATCH_WORKSPACE_ID"  # Names the workspace where it is mounted at another path than the operator's
VARIABLE = "AGENTWATCH_PUBLIC_KEY"
# In there, stands before the key of an operator on another machine, who may ask this host for a decision.
OPERATOR = "operator:"

_PUBLIC = re.compile(r"ed25519:([A-Za-z0-9+/]{43}=)\Z")

# A grammar instead of a JSON parser: an agent's text meets no parser before its signature was checked.
_FORM = re.compile(
    rb'\{"payload":"([A-Za-z0-9+/]*={0,2})","payloadType":"([a-z0-9.+/-]{1,99})","signatures":'
    rb'\[\{"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}\]\}\n\Z'
)


class EnvelopeError(DecisionError):
    """The file is no envelope of ours, or its signature does not hold."""


class UntrustedError(EnvelopeError):
    """It is an envelope of ours, signed with a key that is not known here."""


class UnsignedError(EnvelopeError):
    """It names a known key, and is not what that key signed."""


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
    """An Ed25519 private key. It never shows itself."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.private.public_key().public_bytes_raw())


class TrustedKey(NamedTuple):
    """A public key; from `retired_at` on it does not count: another took its place, or it is trusted no more. That of
    somebody else has a `name`, and the time since which it is trusted."""

    public: PublicKey
    retired_at: str | None = None
    name: str = ""
    trusted_at: str = ""


@dataclass(frozen=True)
class Trust:
    """The keys whose records are accepted, oldest first, and those of `operators` who may ask for one from afar."""

    keys: tuple[TrustedKey, ...] = ()
    operators: tuple[TrustedKey, ...] = ()

    @cached_property
    def signing(self) -> dict[str, TrustedKey]:
        """The keys by their ids, oldest first."""
        return {key.public.keyid: key for key in self.keys}

    @cached_property
    def asking(self) -> dict[str, TrustedKey]:
        """By key id: who may ask for a record, as those that can sign one."""
        return {key.public.keyid: key for key in (*self.operators, *self.keys)}

    def require(self, keyid: str, created_at: str) -> None:
        """Raises UntrustedError where a record of this time, signed or asked for with this known key, is not
        accepted."""
        retired_at = self.asking[keyid].retired_at
        # Both are written in one form, so their letters sort as the times do.
        if retired_at and created_at > retired_at:
            raise UntrustedError(f"the key {keyid[:16]}… that signed it is not trusted any more, since {retired_at}")

    def with_more(self, more: Trust) -> Trust:
        """These keys, and others that count as well."""
        both = ((self.keys, more.keys), (self.operators, more.operators))
        # One that is among both stays as it is here.
        return Trust(*(tuple({key.public: key for key in (*own, *others, *own)}.values()) for own, others in both))


def parse_public(text: str) -> PublicKey:
    """A public key as `PublicKey.text` shows it. Raises KeyProblemError."""
    match = _PUBLIC.match(text.strip())
    if match:
        key = PublicKey(base64.b64decode(match[1]))
        # The last character of the base64 holds bits that mean nothing, and must be none.
        if key.text == text.strip():
            return key
    raise KeyProblemError("a public key looks like ed25519: and 44 characters; `agentwatch keys` prints yours")


def given(text: str) -> Trust:
    """The keys in a text as the environment has it, with spaces or commas between them. Raises KeyProblemError."""
    keys, operators = list[TrustedKey](), list[TrustedKey]()
    for word in text.replace(",", " ").split():
        (operators if word.startswith(OPERATOR) else keys).append(TrustedKey(parse_public(word.removeprefix(OPERATOR))))
    return Trust(tuple(keys), tuple(operators))


def seal(payload: bytes, key: SigningKey, kind: str = PAYLOAD_TYPE) -> bytes:
    """The bytes of the file that holds a payload and its signature."""
    return _written(payload, kind, key.public.keyid, key.private.sign(to_sign(payload, kind)))


def opened(data: bytes, keys: Mapping[str, TrustedKey], kind: str = PAYLOAD_TYPE) -> tuple[bytes, str]:
    """The payload of a file and the id of the key that signed it, verified with one of `keys` (by their ids).

    Raises UntrustedError for a signature by another key, UnsignedError for one that does not hold, EnvelopeError for
    bytes that `seal` cannot have written.
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
    """The id of the key that an envelope says it is signed with, "" for what is none; nothing is verified."""
    match = _FORM.match(envelope.encode(errors="replace"))
    return match[3].decode() if match else ""


def holds(signature: bytes, signed: bytes, key: PublicKey) -> bool:
    """Whether this key made the signature of these bytes."""
    # Imported here: it takes 25 ms, and most workspaces hold no decision.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def to_sign(payload: bytes, kind: str) -> bytes:
    """DSSE's pre-authentication encoding: the lengths leave no doubt what is type and what is payload."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _written(payload: bytes, kind: str, keyid: str, signature: bytes) -> bytes:
    values = base64.b64encode(payload), kind.encode(), keyid.encode(), base64.b64encode(signature)
    return b'{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}\n' % values
