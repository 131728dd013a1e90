"""What one record of a chat says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    inner,
    listed,
    mapping,
    moment,
    object_in,
    read_notification,
    text,
)

_COMMAND: Final = re.compile(
    r"^Output: (?P<output>.*)^Error: .*^Exit Code: (?:(?P<code>-?\d{1,9})|\(none\))$", re.DOTALL | re.MULTILINE
)
_REFUSED: Final = re.compile(
    r"\[Operation Cancelled\] Reason: User did not allow|Qwen Code requires permission to use .{1,200} was declined"
    r"|Tool .{1,200} (?:is blocked in plan mode|is not listed in the active core tools)"
)
"""How the results of calls begin that nobody allowed, whatever their status."""
_STOPPED: Final = "[Operation Cancelled] User cancelled tool execution"
"""A call that had begun."""


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """What a record says, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(record.get("timestamp")) or at
    match record.get("type"):
        case "user" if words := words_of(record):
            by_program = "subtype" in record
            told = read_notification(words) if by_program else None
            kind = EntryKind.NOTE if by_program else EntryKind.PROMPT
            yield Entry(at, kind, told.told if told is not None else words)
        case "assistant":
            for part in _parts_of(record):
                if (said := text(part, "text")) is not None:
                    yield Entry(at, EntryKind.THOUGHT if part.get("thought") is True else EntryKind.WORDS, said)
                elif call := inner(part, "functionCall"):
                    tool, given = text(call, "name"), inner(call, "args")
                    if tool == "tool_call":
                        tool, given = (
                            text(given, "name"),
                            inner(given, "arguments") or object_in(text(given, "arguments")),
                        )
                    name, cwd = text(call, "id") or "", text(record, "cwd") or ""
                    yield Entry(at, EntryKind.CALL, "", name, tool or "", given, cwd=cwd)
        case "tool_result":
            status = inner(record, "toolCallResult").get("status")
            for part in _parts_of(record):
                answer = inner(part, "functionResponse")
                response = inner(answer, "response")
                came = text(response, "error") or text(response, "output") or ""
                refused = _REFUSED.match(came) is not None or (status == "cancelled" and not came.startswith(_STOPPED))
                failed = refused or status in ("cancelled", "error") or "error" in response
                name, ended = text(answer, "id") or "", None if refused else _ended(came)
                yield Entry(at, EntryKind.RESULT, came, name, failed=failed, refused=refused, ended=ended)


def _ended(told: str) -> Ended | None:
    """How a command came out, where this tells of one: what it printed stands between two of the lines about it."""
    match = _COMMAND.search(told)
    return Ended(int(match["code"]) if match["code"] else None, match["output"]) if match else None


def words_of(record: Fields) -> str:
    """What a message says, without what is only thought."""
    return "\n".join(
        words for part in _parts_of(record) if part.get("thought") is not True and (words := text(part, "text"))
    )


def _parts_of(record: Fields) -> Iterator[Fields]:
    return map(mapping, listed(inner(record, "message"), "parts"))
