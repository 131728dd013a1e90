"""What a return says of the run it comes from, its model and its mode, against what others say of it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.run import Run


class Agreement(StrEnum):
    """Whether two of them agree. To run otherwise than asked is no lie: the child itself says so."""

    MATCHES = "matches"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class Compared(NamedTuple):
    """A model or mode as the return reports it, what others say it was, and how the two compare."""

    reported: str | None
    known: str | None
    agreement: Agreement


def model_of(reported: str | None, run: Run | None) -> Compared:
    """A model, against the one that a session store recorded, with or without its provider."""
    recorded = run.model if run else None
    known, said = ((model or "").rpartition("/")[2] for model in (recorded, reported))
    return Compared(reported, recorded, _agreement(known, said))


def mode_of(reported: str | None, packet: Handoff | None) -> Compared:
    """A mode, against the one that the handoff asked for."""
    asked = packet.mode if packet else None
    return Compared(reported, asked, _agreement(asked, reported))


def _agreement(known: str | None, reported: str | None) -> Agreement:
    if not (known and reported):
        return Agreement.UNKNOWN
    same = known.strip().casefold() == reported.strip().casefold()
    return Agreement.MATCHES if same else Agreement.DIFFERS
