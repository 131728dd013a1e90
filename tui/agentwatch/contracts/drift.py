"""Values of return-meta that come in several shapes: lists or strings, strings or objects, numbers or lists."""

from __future__ import annotations

from typing import Any, Final

from agentwatch.contracts.findings import MAX_ENTRIES, Judgement, shown
from agentwatch.contracts.validation import whole
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
_BLOCKERS: Final = ("blockers", "blocking_issues", "blocker", "blocking_issue")
_OVERCOME: Final = ("resolved", "fixed", "closed", "cleared")
_MAX_PHASES: Final = 1_000_000


def blockers(top: dict[str, Any], judgement: Judgement) -> list[str] | None:
    """What blocks, from `blockers` and its kin, without what did; None where there is none of them."""
    found: list[str] = []
    there = False
    for key in _BLOCKERS:
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


def next_steps(top: dict[str, Any], judgement: Judgement) -> str | None:
    """The next steps, those of a list one a line."""
    raw = top.get("next_steps")
    if raw is None or isinstance(raw, str):
        return raw
    judgement.add("MET032", ("next_steps",), value=shown(raw))
    return "\n".join(strings(raw) or ()) or None


def phases(top: dict[str, Any], key: str, judgement: Judgement) -> int | None:
    """A number of phases, at top level or in the metadata; a list counts by its length."""
    metadata = top.get("metadata")
    inside = isinstance(metadata, dict) and key not in top and key in metadata
    raw = whole(metadata[key] if inside and isinstance(metadata, dict) else top.get(key))
    if raw is None:
        return None
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= _MAX_PHASES:
        return raw
    judgement.add("MET033", ("metadata", key) if inside else (key,), key=key, value=shown(raw))
    return len(raw) if isinstance(raw, list) else None


def strings(raw: object) -> list[str] | None:
    """The strings of a list, None where it is no list."""
    return [text for text in raw[:MAX_ENTRIES] if isinstance(text, str)] if isinstance(raw, list) else None


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
