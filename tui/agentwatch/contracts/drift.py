"""What returns in JSON say in several ways: what blocks them, which files they made, when they were written."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from agentwatch.contracts.findings import MAX_ENTRIES, Judgement, shown
from agentwatch.contracts.shapes import Outcome
from agentwatch.text import folded

_BLOCKER_TEXTS: Final = (
    "description",
    "message",
    "issue",
    "reason",
    "summary",
    "blocker",
    "title",
    "text",
    "why_it_failed",
)
BLOCKERS: Final = ("blockers", "blocking_issues", "blocker", "blocking_issue")
_OVERCOME: Final = ("resolved", "fixed", "closed", "cleared")
_ENDED: Final = ("completed_at", "ended_at", "finished_at", "updated_at", "last_updated", "timestamp")
_BEGAN: Final = ("started_at", "created_at")
_PLACES: Final = ("metadata", "report_metadata")
_SESSION: Final = re.compile(r"sess_(\d{10})(?:_|\Z)")
"""Ids of sessions begin with the time, in seconds since the epoch."""


def blockers(top: dict[str, Any], judgement: Judgement) -> list[str] | None:
    """What blocks, from `blockers` and its kin, without what did; None where there is none of them."""
    found: list[str] = []
    there = False
    for key in BLOCKERS:
        raw = top.get(key)
        if raw is None:
            continue
        there = True
        if isinstance(raw, str):
            raw = [raw] if raw.strip() else []
        elif isinstance(raw, dict) and key in ("blocker", "blocking_issue"):
            raw = [raw]
        if not isinstance(raw, list):
            judgement.add("MET034", (key,), key=key, value=shown(raw))
            continue
        for index, entry in enumerate(raw[:MAX_ENTRIES]):
            text = _blocker_text(entry)
            if isinstance(entry, dict) and folded(str(entry.get("status", ""))) in _OVERCOME:
                continue
            if text is None:
                judgement.add("MET034", (key, index), key=key, value=shown(entry))
            else:
                found.append(text)
    return found if there else None


def blocked_by(top: dict[str, Any]) -> list[str]:
    """What blocks a return of another contract, which names it elsewhere, or in another shape, than it should."""
    return blockers(top, Judgement()) or []


def _blocker_text(entry: object) -> str | None:
    if isinstance(entry, str):
        return entry if entry.strip() else None
    if not isinstance(entry, dict):
        return None
    return next(
        (text for key in _BLOCKER_TEXTS if isinstance(text := entry.get(key), str) and text.strip()),
        next((text for text in entry.values() if isinstance(text, str) and text.strip()), None),
    )


def paths_in(raw: object) -> list[str]:
    """The paths of artifacts that were written as one string, or as an object of paths by kind."""
    values = list(raw.values())[:MAX_ENTRIES] if isinstance(raw, dict) else [raw]
    found: list[str] = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            found += [text for text in value[:MAX_ENTRIES] if isinstance(text, str)]
    return found[:MAX_ENTRIES]


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
