"""Changes a handoff packet in its text, for the next attempt: every other byte stays as its author wrote it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentwatch.contracts.json_text import Node
from agentwatch.contracts.reading import WRAPPER, contract_of, leading_contract_of, unwrapped
from agentwatch.contracts.rules import is_relative
from agentwatch.contracts.shapes import Contract
from agentwatch.decisions.errors import DecisionError

_OBJECT: Final = re.compile(r"^[ \t\ufeff]*\{", re.MULTILINE)
_MOST: Final = 50
"""Places where a packet could begin that are tried."""

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


class AmendError(DecisionError):
    """There is no packet that could be amended."""


class PacketText:
    """A text with a handoff packet in it: bare JSON, or a block of a Markdown document.

    Raises ValueError where there is no sound packet in it.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self._start = _start_of(text, name)

    @property
    def value(self) -> dict[str, Any]:
        """The packet."""
        packet: dict[str, Any] = Node(self.text, self._start).value
        return packet

    @property
    def around(self) -> tuple[str, str]:
        """What stands before the packet, and behind it."""
        return self.text[: self._start], self.text[Node(self.text, self._start).end :]

    def put(self, key: str, value: object) -> None:
        """Set a key of the packet; a new one comes last."""
        packet = Node(self.text, self._start)
        there = packet.part(key)
        if there is not None:
            self._splice(there.start, there.end, _written(value))
            return
        last = packet.parts[-1]
        colon = self.text[Node(self.text, last.begins).end : last.start]
        new = f",{self._gap(last.begins)}{_written(key)}{colon}{_written(value)}"
        self._splice(last.end, last.end, new)

    def append(self, key: str, entries: Sequence[str]) -> None:
        """Append texts to a list of the packet; a list that is missing, empty or no list is made of them alone."""
        there = Node(self.text, self._start).part(key)
        if there is None or not isinstance(there.value, list) or not there.parts:
            self.put(key, list(entries))
            return
        last = there.parts[-1]
        gap = self._gap(last.start)
        self._splice(last.end, last.end, "".join(f",{gap}{_written(entry)}" for entry in entries))

    def remove(self, key: str) -> None:
        """Take a key out, if it is there; not the only one."""
        parts = Node(self.text, self._start).parts
        index = next((index for index, part in enumerate(parts) if part.step == key), None)
        if index:
            self._splice(parts[index - 1].end, parts[index].end, "")
        elif index == 0 and len(parts) > 1:
            self._splice(parts[0].begins, parts[1].begins, "")

    def _gap(self, offset: int) -> str:
        """The white space in front of a place."""
        before = self.text[:offset]
        return before[len(before.rstrip(" \t\r\n")) :]

    def _splice(self, first: int, behind: int, new: str) -> None:
        self.text = self.text[:first] + new + self.text[behind:]


def amended(
    text: str,
    name: str,
    *,
    attempt: int,
    decision_id: str,
    note: str = "",
    retry_hint: str | None = None,
    mode: str | None = None,
) -> str:
    """The handoff of the next attempt, from the text of the last one's file, which is called `name`.

    Only the keys that must change do: `attempt`, `decision_id`, `mode` where it is escalated, and `notes`, which gets
    the operator's note and the child's hint. `session_id` goes: the next attempt has a session of its own, and a return
    of another session than the handoff's is invalid. Raises AmendError where there is no sound packet in the text.
    """
    try:
        packet = PacketText(text, name)
    except ValueError as error:
        why = "the last handoff cannot be amended: there is no sound packet in it; write a new one"
        raise AmendError(why) from error
    packet.put("attempt", attempt)
    packet.put("decision_id", decision_id)
    if mode is not None:
        packet.put("mode", mode)
    packet.remove("session_id")
    notes = [f"Operator: {note.strip()}"] if note.strip() else []
    notes += [f"Hint of attempt {attempt - 1}: {retry_hint.strip()}"] if retry_hint and retry_hint.strip() else []
    if notes:
        packet.append("notes", notes)
    return packet.text


def mended(text: str, name: str, *, task_id: str) -> tuple[str, tuple[str, ...]]:
    """The text with its packet made as sound as that can be done without a guess, and the keys that were changed.

    What is missing is filled with a sentence that says so, for the operator to edit; nothing that was said is lost.
    `name` is that of its file. Raises ValueError where there is no packet in it.
    """
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
            after[key] = [row for row in rows if is_relative(row.get("path", "a"))]
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


def _start_of(text: str, name: str) -> int:
    """The offset of the packet's brace."""
    signature = leading_contract_of
    for match in list(_OBJECT.finditer(text))[:_MOST]:
        try:
            node = Node(text, match.end() - 1)
        except (ValueError, RecursionError):
            continue
        if signature(node.value, name) is Contract.HANDOFF_PACKET:
            inner = None if unwrapped(node.value) is node.value else node.part(WRAPPER)
            return (inner or node).start
        signature = contract_of
    raise ValueError("no sound handoff packet in it")


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
