"""Whose signature counts: the operator's public key, those before it, and those that a reader was started with."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from agentwatch.decisions.envelope import PublicKey
from agentwatch.decisions.errors import KeyProblemError

OWN_ID: Final = "AGENTWATCH_WORKSPACE_ID"
"""Names the workspace where it is mounted at another path than the operator's."""

VARIABLE: Final = "AGENTWATCH_PUBLIC_KEY"

_TEXT: Final = re.compile(r"ed25519:([A-Za-z0-9+/]{43}=)\Z")


class TrustedKey(NamedTuple):
    """A public key; `retired_at` is when another took its place: what it signed later does not count."""

    public: PublicKey
    retired_at: str | None = None


@dataclass(frozen=True)
class Trust:
    """The keys whose records are accepted, oldest first."""

    keys: tuple[TrustedKey, ...] = ()

    @cached_property
    def public(self) -> dict[str, PublicKey]:
        """By key id."""
        return {key.public.keyid: key.public for key in self.keys}

    @cached_property
    def order(self) -> dict[str, int]:
        """Which key came before which."""
        return {key.public.keyid: index for index, key in enumerate(self.keys)}

    def why_not(self, keyid: str, created_at: str) -> str | None:
        """Why a record of this time, signed with this known key, is not accepted; None where it is."""
        retired_at = self.keys[self.order[keyid]].retired_at
        # Both are written in one form, so their letters sort as the times do.
        if retired_at is not None and created_at > retired_at:
            return f"it is signed with a key that was retired at {retired_at}"
        return None

    def with_more(self, more: tuple[PublicKey, ...]) -> Trust:
        """These keys, and others that count as well."""
        return Trust(self.keys + tuple(TrustedKey(key) for key in more if key.keyid not in self.public))


def parse_public(text: str) -> PublicKey:
    """A public key as `PublicKey.text` shows it. Raises KeyProblemError."""
    match = _TEXT.match(text.strip())
    if match is not None:
        key = PublicKey(base64.b64decode(match[1], validate=True))
        # The last character of the base64 holds bits that mean nothing, and must be none.
        if key.text == text.strip():
            return key
    raise KeyProblemError(
        "a public key looks like ed25519: and 44 characters behind it; `agentwatch keys` prints yours"
    )


def parse_public_keys(text: str) -> tuple[PublicKey, ...]:
    """Public keys with spaces or commas between them, as in the environment. Raises KeyProblemError."""
    return tuple(parse_public(word) for word in text.replace(",", " ").split())
