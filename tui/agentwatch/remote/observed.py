"""Observations as JSON, and strictly back: all that a relay tells of a workspace.

What the operator has put aside is the operator's own and never travels. Documents and findings are those that the
host's contracts have read: nobody reads them again.
"""

from __future__ import annotations

from typing import Any, Final, cast

from agentwatch.delegation.events import Checked, Decided, Event, Gone, Ran, Requested, Seen, Unreadable
from agentwatch.remote.codec import decoder, encoder

Told = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested
"""What is told; of all that a tree takes, the rest is the operator's own."""

_TOLD: Final = (Seen, Gone, Unreadable, Checked, Ran, Decided, Requested)


def is_told(event: Event) -> bool:
    """Whether a host tells it."""
    return isinstance(event, _TOLD)


def fields_of(event: Told) -> dict[str, Any]:
    """An observation, as JSON takes it."""
    return cast("dict[str, Any]", encoder(Told)(event))


def observation_of(fields: object) -> Told:
    """An observation as it was written. Raises ValueError with the reason."""
    told = cast("Told", decoder(Told)(fields))
    # The return of a session stands in its run: a host tells of no other.
    return told._replace(stored=False) if isinstance(told, Seen) else told
