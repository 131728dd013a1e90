"""Reads the JSON files of other programs: the lines of a growing file, and fields whose types may be wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from agentwatch.disk import Directory, Fingerprint, fingerprint

Fields = Mapping[str, object]

_NOTHING: Fields = {}
_LARGEST = 1e15
_SAYS_NOTHING = re.compile(r"\s*(?:#{1,6}\s+\S+(?:\s+\S+){0,2}\s*|[\W_]+|<[^<>]*>\s*)")


def text(fields: Fields, key: str) -> str | None:
    """Return the text at a key, or None if the value is missing, empty or not a text."""
    value = fields.get(key)
    return value if isinstance(value, str) and value else None


def string(fields: Fields, key: str) -> str:
    """Return the text at a key, or "" if the value is missing or not a text."""
    return text(fields, key) or ""


def number(fields: Fields, key: str) -> float | None:
    """Return the number at a key, or None if the value is missing, not a number, or far too large."""
    match fields.get(key):
        case bool():
            return None
        case int() | float() as value if abs(value) < _LARGEST:
            return float(value)
    return None


def int_at(fields: Fields, key: str) -> int | None:
    """Return the number at a key without its fraction, or None if `number` returns None."""
    value = number(fields, key)
    return None if value is None else int(value)


def sum_of(fields: Fields, *keys: str, without: str = "") -> int:
    """Add the numbers at `keys`, and subtract the number at the key `without`. A missing number counts as 0."""
    return sum(int_at(fields, key) or 0 for key in keys) - (int_at(fields, without) or 0)


def as_object(value: object) -> Fields:
    """Return the value if it is a JSON object, otherwise an empty object."""
    return value if isinstance(value, dict) else _NOTHING


def nested(fields: Fields, *keys: str) -> Fields:
    """Follow the keys through nested objects. Return the last object, or an empty object if one is missing."""
    for key in keys:
        value = fields.get(key)
        fields = value if isinstance(value, dict) else _NOTHING
    return fields


def object_in(words: object) -> Fields:
    """Parse a JSON text. Return its object, or an empty object if the text is no JSON object."""
    try:
        return as_object(json.loads(words)) if isinstance(words, str) else _NOTHING
    except (ValueError, RecursionError):
        return _NOTHING


def list_at(fields: Fields, key: str) -> Sequence[object]:
    """Return the list at a key, or an empty tuple if the value is missing or not a list."""
    value = fields.get(key)
    return value if isinstance(value, list) else ()


def objects(fields: Fields, key: str) -> Iterator[Fields]:
    """Return the items of the list at a key. An item that is not a JSON object becomes an empty object."""
    return map(as_object, list_at(fields, key))


def time_at(fields: Fields, key: str = "timestamp") -> float | None:
    """Return the ISO 8601 time at a key in epoch seconds, or None. A time without an offset is taken as UTC."""
    value = text(fields, key)
    try:
        time = datetime.fromisoformat(value or "")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def directory_in(record: Fields) -> str | None:
    """Return the first `cwd` in a line of a transcript, else the only entry of `directories`, else None."""
    payload = nested(record, "payload") if record.get("type") in ("session_meta", "turn_context") else _NOTHING
    named = (text(place, "cwd") for place in (record, payload, nested(record, "data", "context")))
    places = list_at(record, "directories")
    return next(filter(None, named), str(places[0]) if len(places) == 1 else None)


def first_line(words: str, limit: int = 300) -> str:
    """Return the first line that is not blank. A line longer than `limit` characters is cut and ends with `…`."""
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def first_sentence(words: str, limit: int = 300) -> str:
    """Return the first line with real content. If possible, skip short headings, separators, fences and tags."""
    lines = (line for line in words.splitlines() if line.strip() and not _SAYS_NOTHING.fullmatch(line[:limit]))
    return first_line(next(lines, words), limit)


def digest_of(text: str) -> str:
    """Return the sha256 of a text in hex. The text may contain lone surrogates."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def question_text(given: Fields) -> str:
    """Return the first question in a tool's arguments, in the form "an answer: Which one?"."""
    asked = (text(one, "question") for one in (given, *objects(given, "questions")))
    return f"an answer: {first_line(next(filter(None, asked), ''))}".removesuffix(": ")


def part_texts(fields: Fields, key: str) -> list[str]:
    """Return the field `text` of each object in the list at a key. Objects without a text are left out."""
    return [words for part in objects(fields, key) if (words := text(part, "text")) is not None]


_OPENING = "<task-notification>"
_TAG = re.compile(r"<(task-id|tool-use-id|status|summary)>(.*?)</\1>", re.DOTALL)


class Notification(NamedTuple):
    """A program's message to a parent: a background agent has ended. `said` is the agent's answer, or None."""

    task_id: str
    tool_use_id: str
    status: str
    summary: str
    said: str | None

    @property
    def full_text(self) -> str:
        """The summary of the notification, and the agent's answer."""
        return f"{self.summary or self.status}\n\n{self.said or ''}"


def read_notification(text: str) -> Notification | None:
    """Parse a text that begins with `<task-notification>`. Return None for any other text."""
    # The agent's answer comes last, in `<result>`. Only tags before the answer are read, so no agent can forge them.
    head, _, rest = text.partition("<result>") if text.lstrip().startswith(_OPENING) else ("", "", "")
    said = rest.rpartition("</result>")[0]
    tags = {name: value.strip() for name, value in _TAG.findall(head)}
    if not (task_id := tags.get("task-id")):
        return None
    call, status, summary = (tags.get(name, "") for name in ("tool-use-id", "status", "summary"))
    return Notification(task_id, call, status, first_line(summary), said if said.strip() else None)


LINE_LIMIT = 32 * 1024 * 1024  # bytes; a longer line is skipped, because it could fill the memory

_WITNESS = 64
_BUFFER = 256 * 1024
# Without O_NONBLOCK, opening a pipe may wait for ever. Without O_NOCTTY, opening a terminal may make it our terminal.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

Record = dict[str, Any]


class Line(NamedTuple):
    """A line of a file. It begins at the byte `offset`. `record` is the JSON object in the line, or None if invalid."""

    offset: int
    record: Record | None


class Lines(NamedTuple):
    """The new lines of a file, without blank lines. If `restarted`, the file was replaced: earlier lines are void."""

    lines: Sequence[Line] = ()
    restarted: bool = False


class Tail:
    """Reads each line of a growing file once. A half-written last line is returned later, when it is complete. A file
    that was cut short or replaced is read again from its beginning. `passed_over` counts the lines that were skipped
    because they were too long."""

    line_limit = LINE_LIMIT
    passed_over = 0
    behind = False  # whether the last read stopped before the end of the file, because its budget was used up
    _seen: Fingerprint | None = None
    _witness = b""  # the bytes before the next line; if they change, the file was rewritten
    _skips = False  # whether the next read begins inside a line that is too long

    def __init__(self, path: Path, *, position: int = 0, read_record: Callable[[bytes], Record | None] | None = None):
        self.path = path
        self._record = read_record or parse_record
        self.position = self._offset = position  # bytes read so far; `_offset` excludes a half-written last line

    def read(self, budget: int) -> Lines:
        """Return the next lines, about `budget` bytes at most. For an unchanged file, make only one system call. Raise
        OSError if the file is missing, unreadable or not regular."""
        if fingerprint(self.path.lstat()) == self._seen and not self.behind:
            return Lines()
        lines: list[Line] = []
        with os.fdopen(open_regular(self.path), "rb", buffering=_BUFFER) as file:
            status = os.fstat(file.fileno())
            witness = os.pread(file.fileno(), len(self._witness), self._offset - len(self._witness))
            is_same = self._seen is None or self._seen[-1] == status.st_ino
            restarted = not is_same or status.st_size < self.position or witness != self._witness
            if restarted:
                self._offset, self._skips = 0, False
            file.seek(self._offset)
            end, self.behind = self._offset + max(budget, 1), True
            while self._offset < end:
                line = file.readline(self.line_limit + 1)
                is_whole, self.position = line.endswith(b"\n"), self._offset + len(line)
                if not is_whole and len(line) <= self.line_limit:
                    self.behind = False
                    break
                if is_whole and self._skips:
                    self.passed_over += 1
                elif is_whole and not line.isspace():
                    lines.append(Line(self._offset, self._record(line)))
                self._skips, self._offset = not is_whole, self.position
            start = max(self._offset - _WITNESS, 0)
            self._witness = os.pread(file.fileno(), self._offset - start, start)
        self.behind = self.behind and self.position < status.st_size
        self._seen = fingerprint(status)
        return Lines(lines, restarted)


def open_regular(path: Path | str) -> int:
    """Open a regular file for reading and return its descriptor. Raise OSError if it is a link, a pipe or the like."""
    descriptor = os.open(path, _OPEN)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file")


def record_at(path: Path, offset: int) -> Record | None:
    """Return the JSON object in the line that begins at a byte offset, or None if there is no such line."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            file.seek(offset)
            return parse_record(file.readline(LINE_LIMIT + 1))
    except OSError:
        return None


def parse_json(data: bytes) -> object:
    """Parse JSON. Bytes that are not UTF-8 become U+FFFD. Raise ValueError if the JSON is malformed."""
    from pydantic_core import from_json  # imported late, so that a hook starts fast

    try:
        return from_json(data)
    except ValueError:
        # `from_json` rejects lone surrogates, and JSON with more than 200 nested levels.
        try:
            value: object = json.loads(data.decode("utf-8", "replace"))
        except RecursionError as error:
            raise ValueError from error
        return value


def parse_record(data: bytes) -> Record | None:
    """Return the JSON object in a line, or None if the line is no JSON object."""
    try:
        value = parse_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_small_file(path: Path | str, most: int) -> bytes:
    """Return the bytes of a file. Raise OSError if the file cannot be read or has more than `most` bytes."""
    with Directory.open(Path(path).parent) as directory:
        return directory.read(Path(path).name, most)


def read_json(path: Path, most: int) -> object:
    """Return the JSON value in a file. Raise OSError if the file cannot be read or has more than `most` bytes. Raise
    ValueError if the JSON is malformed."""
    return parse_json(read_small_file(path, most))
