"""Typed access to what others wrote: a field of the wrong type is one that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    pass

Fields = Mapping[str, object]

_NOTHING: Fields = {}
_LARGEST = 1e15
_SAYS_NOTHING = re.compile(r"\s*(?:#{1,6}\s+\S+(?:\s+\S+){0,2}\s*|[\W_]+|<[^<>]*>\s*)")


def text(fields: Fields, key: str) -> str | None:
    """A string that is not empty."""
    value = fields.get(key)
    return value if isinstance(value, str) and value else None


def string(fields: Fields, key: str) -> str:
    """A string, an empty one where there is none."""
    return text(fields, key) or ""


def number(fields: Fields, key: str) -> float | None:
    """A number that means something; True and False are none."""
    match fields.get(key):
        case bool():
            return None
        case int() | float() as value if abs(value) < _LARGEST:
            return float(value)
    return None


def whole(fields: Fields, key: str) -> int | None:
    """A number without its fraction."""
    value = number(fields, key)
    return None if value is None else int(value)


def total(fields: Fields, *keys: str, without: str = "") -> int:
    """The sum of some numbers, less another one."""
    return sum(whole(fields, key) or 0 for key in keys) - (whole(fields, without) or 0)


def mapping(value: object) -> Fields:
    """An object, an empty one where there is none."""
    return value if isinstance(value, dict) else _NOTHING


def inner(fields: Fields, *keys: str) -> Fields:
    """The object at the end of a path of keys, an empty one where the path ends before."""
    for key in keys:
        value = fields.get(key)
        fields = value if isinstance(value, dict) else _NOTHING
    return fields


def object_in(words: object) -> Fields:
    """The object that a text holds as JSON, an empty one where it holds none."""
    try:
        return mapping(json.loads(words)) if isinstance(words, str) else _NOTHING
    except (ValueError, RecursionError):
        return _NOTHING


def listed(fields: Fields, key: str) -> Sequence[object]:
    """A list, an empty one where there is none."""
    value = fields.get(key)
    return value if isinstance(value, list) else ()


def objects(fields: Fields, key: str) -> Iterator[Fields]:
    """The items of a list; one that is no object is an empty one."""
    return map(mapping, listed(fields, key))


def moment(fields: Fields, key: str = "timestamp") -> float | None:
    """Seconds since the epoch of an ISO 8601 time; without an offset it is taken as UTC."""
    value = text(fields, key)
    try:
        time = datetime.fromisoformat(value or "")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def directory_in(record: Fields) -> str | None:
    """The working directory that a record of a program names, None where it names none, or several."""
    payload = inner(record, "payload") if record.get("type") in ("session_meta", "turn_context") else _NOTHING
    named = (text(place, "cwd") for place in (record, payload, inner(record, "data", "context")))
    places = listed(record, "directories")
    return next(filter(None, named), str(places[0]) if len(places) == 1 else None)


def first_line(words: str, limit: int = 300) -> str:
    """The first line that is not empty, of at most `limit` characters; where it is cut, the last one is `…`."""
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def first_sentence(words: str, limit: int = 300) -> str:
    """The first line that says something, no short heading, rule, fence or tag alone; else the first one."""
    lines = (line for line in words.splitlines() if line.strip() and not _SAYS_NOTHING.fullmatch(line[:limit]))
    return first_line(next(lines, words), limit)


def digest_of(text: str) -> str:
    """The sha256, in hex, that a text handed over or back is known by; half a character is one, too."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def question_in(given: Fields) -> str:
    """The questions of a tool to a human, from its `question` or `questions`."""
    asked = (text(one, "question") for one in (given, *objects(given, "questions")))
    return f"an answer: {first_line(next(filter(None, asked), ''))}".removesuffix(": ")


def parts_in(fields: Fields, key: str) -> list[str]:
    """The texts of a list of objects that may have a `text`."""
    return [words for part in objects(fields, key) if (words := text(part, "text")) is not None]


_OPENING = "<task-notification>"
_TAG = re.compile(r"<(task-id|tool-use-id|status|summary)>(.*?)</\1>", re.DOTALL)


class Notification(NamedTuple):
    """The end of a background agent as its parent was told. `said` is the agent's text, None where there is none."""

    task_id: str
    tool_use_id: str
    status: str
    summary: str
    said: str | None

    @property
    def told(self) -> str:
        """All that it says."""
        return f"{self.summary or self.status}\n\n{self.said or ''}"


def read_notification(text: str) -> Notification | None:
    """A `<task-notification>`, None for any other text."""
    # The agent's own words stand last in it, so that tags inside them are never taken for the program's.
    head, _, rest = text.partition("<result>") if text.lstrip().startswith(_OPENING) else ("", "", "")
    said = rest.rpartition("</result>")[0]
    tags = {name: value.strip() for name, value in _TAG.findall(head)}
    if not (task_id := tags.get("task-id")):
        return None
    call, status, summary = (tags.get(name, "") for name in ("tool-use-id", "status", "summary"))
    return Notification(task_id, call, status, first_line(summary), said if said.strip() else None)
