"""When a return says that it was written: no contract has a key for it, and many returns have one all the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from agentwatch.contracts.shapes import Outcome

_ENDED: Final = ("completed_at", "ended_at", "finished_at", "updated_at", "last_updated", "timestamp")
_BEGAN: Final = ("started_at", "created_at")
_PLACES: Final = ("metadata", "report_metadata")
_SESSION: Final = re.compile(r"sess_(\d{10})(?:_|\Z)")
"""Ids of sessions begin with the time, in seconds since the epoch."""


def stated_at(top: dict[str, Any], outcome: Outcome | None) -> float | None:
    """The latest time in the keys that say when it ended, in seconds since the epoch; None where there is none.

    While it works, when it began is its last sign of life.
    """
    places = [top, *(inside for key in _PLACES if isinstance(inside := top.get(key), dict))]
    keys = _ENDED if outcome is not Outcome.WORKING else (*_ENDED, *_BEGAN)
    found = [at for place in places for key in keys if (at := _moment(place.get(key))) is not None]
    if not found and outcome is Outcome.WORKING:
        ids = (place.get("session_id") for place in places)
        found = [float(match[1]) for one in ids if isinstance(one, str) and (match := _SESSION.match(one))]
    return max(found, default=None)


def _moment(value: object) -> float | None:
    """ISO 8601; without a zone it is taken as UTC."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
