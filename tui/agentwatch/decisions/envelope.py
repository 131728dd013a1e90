"""The signed envelope around a decision (DSSE with Ed25519), and the keys whose signatures are accepted.

Format: https://github.com/secure-systems-lab/dsse. The signature covers the content and its type, so no other content
can pass for a decision. The signature is verified before the content is parsed. An envelope has only one valid
spelling, so every changed bit is noticed.
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
# The type of a request: an operator asks another machine (a host) to record a decision.
REQUEST_TYPE = "application/vnd.agentwatch.request.v1+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
_NAMES = {PAYLOAD_TYPE: "decision", REQUEST_TYPE: "request", STATEMENT_TYPE: "statement"}

# The most bytes of an envelope. The largest decisions contain the envelope of a signed request.
LARGEST = 7 * 1024 * 1024

ID_ENV = "AGENTWATCH_WORKSPACE_ID"  # the id of the workspace, if a sandbox mounts it at another path
KEYS_ENV = "AGENTWATCH_PUBLIC_KEY"
# In KEYS_ENV, this prefix marks the key of an operator on another machine, who may ask this host for decisions.
OPERATOR = "operator:"

_PUBLIC = re.compile(r"ed25519:([A-Za-z0-9+/]{43}=)\Z")

# The only form of an envelope. No JSON parser reads a text before its signature is verified.
_FORM = re.compile(
    rb'\{"payload":"([A-Za-z0-9+/]*={0,2})","payloadType":"([a-z0-9.+/-]{1,99})","signatures":'
    rb'\[\{"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}\]\}\n\Z'
)


class EnvelopeError(DecisionError):
    """The file is not an envelope that agentwatch wrote, or its signature is invalid."""


class UntrustedError(EnvelopeError):
    """The key that signed the envelope is unknown, or not trusted any more."""


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
        """The key as text, for users to copy: `ed25519:` and 44 characters."""
        return f"ed25519:{base64.b64encode(self.raw).decode()}"


class SigningKey(NamedTuple):
    """An Ed25519 private key, which is never printed."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.private.public_key().public_bytes_raw())


class TrustedKey(NamedTuple):
    """A public key that is trusted, or was trusted until `retired_at`. The key of another person or host also has a
    `name`, and is trusted since `trusted_at`."""

    public: PublicKey
    retired_at: str | None = None
    name: str = ""
    trusted_at: str = ""


@dataclass(frozen=True)
class Trust:
    """The trusted keys. `keys` may sign decisions, oldest first. `operators` may only ask this host for decisions."""

    keys: tuple[TrustedKey, ...] = ()
    operators: tuple[TrustedKey, ...] = ()

    @cached_property
    def signers(self) -> dict[str, TrustedKey]:
        """The keys that may sign decisions, by key id, oldest first."""
        return {key.public.keyid: key for key in self.keys}

    @cached_property
    def requesters(self) -> dict[str, TrustedKey]:
        """The keys whose owners may ask this machine to record a decision, by key id: also all that may sign one."""
        return {key.public.keyid: key for key in (*self.operators, *self.keys)}

    def require_trusted(self, keyid: str, created_at: str) -> None:
        """Raise UntrustedError if this known key was retired before `created_at`, the time of the decision."""
        retired_at = self.requesters[keyid].retired_at
        # Both times have the same form, so their texts sort like the times.
        if retired_at and created_at > retired_at:
            raise UntrustedError(f"the key {keyid[:16]}… that signed it is not trusted any more, since {retired_at}")

    def merged_with(self, more: Trust) -> Trust:
        """Return the keys of both objects. If both have the same key, this object's entry is used."""
        both = ((self.keys, more.keys), (self.operators, more.operators))
        return Trust(*(tuple({key.public: key for key in (*own, *others, *own)}.values()) for own, others in both))


def parse_public(text: str) -> PublicKey:
    """Return the public key that a text such as `ed25519:…` spells. Raise KeyProblemError for any other text."""
    match = _PUBLIC.match(text.strip())
    if match:
        key = PublicKey(base64.b64decode(match[1]))
        # The last character of the base64 has unused bits, which must be zero.
        if key.text == text.strip():
            return key
    raise KeyProblemError("a public key looks like ed25519: and 44 characters; `agentwatch keys` prints yours")


def parse_trust(text: str) -> Trust:
    """Parse a value of KEYS_ENV: keys, separated by spaces or commas. Raise KeyProblemError if a key is malformed."""
    keys, operators = list[TrustedKey](), list[TrustedKey]()
    for word in text.replace(",", " ").split():
        (operators if word.startswith(OPERATOR) else keys).append(TrustedKey(parse_public(word.removeprefix(OPERATOR))))
    return Trust(tuple(keys), tuple(operators))


def seal(payload: bytes, key: SigningKey, kind: str = PAYLOAD_TYPE) -> bytes:
    """Sign a payload, and return the bytes of its envelope."""
    return _envelope_bytes(payload, kind, key.public.keyid, key.private.sign(bytes_to_sign(payload, kind)))


def open_envelope(data: bytes, keys: Mapping[str, TrustedKey], kind: str = PAYLOAD_TYPE) -> tuple[bytes, str]:
    """Verify an envelope with the `keys` (by their ids), and return its payload and the id of the signing key.

    Raise UntrustedError if another key signed it, and UnsignedError if the signature is invalid. Raise EnvelopeError
    for bytes that `seal` cannot have written.
    """
    match = _FORM.match(data) if len(data) <= LARGEST else None
    if not match or match[2] != kind.encode() or len(match[1]) % 4:
        raise EnvelopeError(f"it is not in the form of a signed {_NAMES[kind]}: cut off, edited, or something else")
    payload, keyid, signature = base64.b64decode(match[1]), match[3].decode(), base64.b64decode(match[4])
    # Accept only one spelling: base64 can spell the same bytes in several ways.
    if _envelope_bytes(payload, kind, keyid, signature) != data:
        raise EnvelopeError("its base64 is not the one that was written: it was edited")
    if not (key := keys.get(keyid)):
        why = "which is not one of yours" if keys else "and none is known here: `agentwatch keys` says how to give it"
        raise UntrustedError(f"it is signed with the key {keyid[:16]}…, {why}")
    if not is_valid_signature(signature, bytes_to_sign(payload, kind), key.public):
        raise UnsignedError("its signature does not hold: the content was changed, or it is a fake")
    return payload, keyid


def signer_of(envelope: str) -> str:
    """Return the id of the key that an envelope names, or "" if the text is no envelope. Nothing is verified."""
    match = _FORM.match(envelope.encode(errors="replace"))
    return match[3].decode() if match else ""


def is_valid_signature(signature: bytes, signed: bytes, key: PublicKey) -> bool:
    """Tell whether this key made this signature of the bytes `signed`."""
    # Imported late because the import takes 25 ms, and most workspaces hold no decision.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def bytes_to_sign(payload: bytes, kind: str) -> bytes:
    """Return the bytes that a signature covers: the type and the payload (DSSE's pre-authentication encoding)."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _envelope_bytes(payload: bytes, kind: str, keyid: str, signature: bytes) -> bytes:
    values = base64.b64encode(payload), kind.encode(), keyid.encode(), base64.b64encode(signature)
    return b'{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}\n' % values
