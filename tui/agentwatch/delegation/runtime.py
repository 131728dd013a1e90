"""What a return says of the run it comes from, its mode and its model, against what others say of it."""

from __future__ import annotations

from enum import StrEnum


class Agreement(StrEnum):
    """Whether two of them agree. To run otherwise than asked is no lie: the child itself says so."""

    MATCHES = "matches"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


def mode_agreement(asked: str | None, reported: str | None) -> Agreement:
    """How a reported mode compares with the one asked for; UNKNOWN where one of them is not named."""
    return _compared(asked, reported)


def model_agreement(recorded: str | None, reported: str | None) -> Agreement:
    """How a reported model compares with the one that a session store recorded, with or without its provider."""
    return _compared(_without_provider(recorded), _without_provider(reported))


def _compared(known: str | None, reported: str | None) -> Agreement:
    if not (known and reported):
        return Agreement.UNKNOWN
    same = known.strip().casefold() == reported.strip().casefold()
    return Agreement.MATCHES if same else Agreement.DIFFERS


def _without_provider(model: str | None) -> str | None:
    return model.rpartition("/")[2] if model else None
