"""Makes the packet of a handoff sound where that can be done without a guess. Pure.

What is missing is filled with a sentence that says so, for the operator to edit; nothing that was said is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agentwatch.contracts.paths import why_not_relative
from agentwatch.decisions.packet_text import PacketText

UNSTATED: Final = "Not stated in the handoff before: fill it in."

_TEXTS: Final = ("success_criteria", "constraints", "dependencies", "notes")
_ROWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "evidence": {"path": "", "purpose": UNSTATED, "required": True},
    "risks": {"risk": UNSTATED, "mitigation": UNSTATED},
    "deliverables": {"path": "", "description": UNSTATED, "must_create": True},
}
"""By key, what a row of its list needs, and what stands there where it is missing; a bare text is the first of it."""

_MISSING: Final[Mapping[str, Any]] = {
    "objective": UNSTATED,
    "evidence": [],
    "success_criteria": [UNSTATED],
    "risks": [dict(_ROWS["risks"])],
}
_NO: Final = frozenset({"", "0", "false", "no", "none", "null"})


def mended(text: str, name: str, *, task_id: str) -> tuple[str, tuple[str, ...]]:
    """The same text with a sound packet, as far as possible, and the keys that were filled in or corrected. `name` is
    that of its file. Raises ValueError where there is no packet in it."""
    packet = PacketText(text, name)
    before, lost = packet.value, list[str]()
    after = {**_MISSING, **before, "task_id": task_id}
    if not isinstance(after["objective"], str) or not after["objective"].strip():
        after["objective"] = _text(after["objective"]) or UNSTATED
    for key in _TEXTS:
        if key in after:
            after[key] = [said for one in _listed(after[key]) if (said := _text(one))]
    for key, fields in _ROWS.items():
        if key in after:
            rows = [_row(one, fields) for one in _listed(after[key])]
            after[key] = [row for row in rows if not why_not_relative(row.get("path", "a"))]
            lost += [f"{key}: {_text(row)}" for row in rows if row not in after[key]]
    if lost:
        after["notes"] = [*after.get("notes", []), *lost]
    changed = tuple(key for key, value in after.items() if value != before.get(key, after))
    for key in changed:
        packet.put(key, after[key])
    return packet.text, changed


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return (value or "").strip()
    return json.dumps(value, ensure_ascii=False)


def _row(value: object, fields: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with all that it needs, and whatever else it has."""
    row = dict(value) if isinstance(value, dict) else {next(iter(fields)): _text(value)}
    for key, default in fields.items():
        given = row.get(key)
        if isinstance(default, bool):
            row[key] = (
                given if isinstance(given, bool) else default if given is None else _text(given).lower() not in _NO
            )
        elif not isinstance(given, str) or not given.strip():
            row[key] = _text(given) or default
    return row
