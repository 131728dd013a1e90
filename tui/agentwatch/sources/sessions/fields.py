"""Reads records of other programs: the lines of a growing file, and typed fields. A wrong type counts as missing."""

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
    """Return the text at a key, or None if it is missing or empty."""
    value = fields.get(key)
    return value if isinstance(value, str) and value else None


def string(fields: Fields, key: str) -> str:
    """Return the text at a key, or "" if it is missing."""
    return text(fields, key) or ""


def number(fields: Fields, key: str) -> float | None:
    """Return the number at a key, or None if it is missing or absurdly large. True and False are no numbers."""
    match fields.get(key):
        case bool():
            return None
        case int() | float() as value if abs(value) < _LARGEST:
            return float(value)
    return None


def int_at(fields: Fields, key: str) -> int | None:
    """Return the number at a key without its fraction, or None if it is missing."""
    value = number(fields, key)
    return None if value is None else int(value)


def sum_of(fields: Fields, *keys: str, without: str = "") -> int:
    """Return the sum of the numbers at `keys`, less the number at the key `without`."""
    return sum(int_at(fields, key) or 0 for key in keys) - (int_at(fields, without) or 0)


def as_object(value: object) -> Fields:
    """Return a value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else _NOTHING


def nested(fields: Fields, *keys: str) -> Fields:
    """Return the object at the end of a path of keys, or an empty object if the path breaks off."""
    for key in keys:
        value = fields.get(key)
        fields = value if isinstance(value, dict) else _NOTHING
    return fields


def object_in(words: object) -> Fields:
    """Return the object in a JSON text, or an empty object if there is none."""
    try:
        return as_object(json.loads(words)) if isinstance(words, str) else _NOTHING
    except (ValueError, RecursionError):
        return _NOTHING


def list_at(fields: Fields, key: str) -> Sequence[object]:
    """Return the list at a key, or an empty list if it is missing."""
    value = fields.get(key)
    return value if isinstance(value, list) else ()


def objects(fields: Fields, key: str) -> Iterator[Fields]:
    """Return the items of the list at a key. An item that is no object becomes an empty object."""
    return map(as_object, list_at(fields, key))


def time_at(fields: Fields, key: str = "timestamp") -> float | None:
    """Return the ISO 8601 time at a key in epoch seconds, or None. A time without an offset counts as UTC."""
    value = text(fields, key)
    try:
        time = datetime.fromisoformat(value or "")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def directory_in(record: Fields) -> str | None:
    """Return the working directory that a program's record names, or None if it names none or several."""
    payload = nested(record, "payload") if record.get("type") in ("session_meta", "turn_context") else _NOTHING
    named = (text(place, "cwd") for place in (record, payload, nested(record, "data", "context")))
    places = list_at(record, "directories")
    return next(filter(None, named), str(places[0]) if len(places) == 1 else None)


def first_line(words: str, limit: int = 300) -> str:
    """Return the first line that is not blank, cut to `limit` characters with `…` at the end."""
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def first_sentence(words: str, limit: int = 300) -> str:
    """Return the first line that is more than a short heading, rule, fence or tag, or else the first line."""
    lines = (line for line in words.splitlines() if line.strip() and not _SAYS_NOTHING.fullmatch(line[:limit]))
    return first_line(next(lines, words), limit)


def digest_of(text: str) -> str:
    """Return the sha256 of a text, in hex. The text may contain lone surrogates."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def question_text(given: Fields) -> str:
    """Return in words the answer that a tool needs from a human, by its argument `question` or `questions`."""
    asked = (text(one, "question") for one in (given, *objects(given, "questions")))
    return f"an answer: {first_line(next(filter(None, asked), ''))}".removesuffix(": ")


def part_texts(fields: Fields, key: str) -> list[str]:
    """Return the texts in the list of parts at a key. Parts without a text are left out."""
    return [words for part in objects(fields, key) if (words := text(part, "text")) is not None]


_OPENING = "<task-notification>"
_TAG = re.compile(r"<(task-id|tool-use-id|status|summary)>(.*?)</\1>", re.DOTALL)


class Notification(NamedTuple):
    """A program's notification to a parent that a background agent has ended. `said` is the agent's text, or None."""

    task_id: str
    tool_use_id: str
    status: str
    summary: str
    said: str | None

    @property
    def full_text(self) -> str:
        """The summary of the notification, and the agent's text."""
        return f"{self.summary or self.status}\n\n{self.said or ''}"


def read_notification(text: str) -> Notification | None:
    """Return the `<task-notification>` in a text, or None for any other text."""
    # The agent's own words come last in a notification. So tags in the agent's words are never taken for the program's.
    head, _, rest = text.partition("<result>") if text.lstrip().startswith(_OPENING) else ("", "", "")
    said = rest.rpartition("</result>")[0]
    tags = {name: value.strip() for name, value in _TAG.findall(head)}
    if not (task_id := tags.get("task-id")):
        return None
    call, status, summary = (tags.get(name, "") for name in ("tool-use-id", "status", "summary"))
    return Notification(task_id, call, status, first_line(summary), said if said.strip() else None)


LINE_LIMIT = 32 * 1024 * 1024  # a longer line is skipped: it must not fill the memory

_WITNESS = 64
_BUFFER = 256 * 1024
# O_NONBLOCK: opening a pipe would wait for a writer for ever. O_NOCTTY: a terminal must not become ours.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

Record = dict[str, Any]


class Line(NamedTuple):
    """One line of a file, which begins at the byte `offset`. `record` is its JSON object, or None if there is none."""

    offset: int
    record: Record | None


class Lines(NamedTuple):
    """The new lines of a file, without blank lines. If `restarted`, the file was replaced: earlier lines are void."""

    lines: Sequence[Line] = ()
    restarted: bool = False


class Tail:
    """Reads the lines of one growing file, each once. A last line without its end is returned when it is complete. A
    file that was cut short or replaced is read from its beginning again. `passed_over` counts lines that were too
    long."""

    line_limit = LINE_LIMIT
    passed_over = 0
    behind = False  # whether the last read left something unread, because its budget was used up
    _seen: Fingerprint | None = None
    _witness = b""  # the bytes before the next line; they differ if the file was cut short and has grown again
    _skips = False  # the next line is the rest of a line that is too long

    def __init__(self, path: Path, *, position: int = 0, read_record: Callable[[bytes], Record | None] | None = None):
        self.path = path
        self._record = read_record or parse_record
        self.position = self._offset = position  # bytes read so far, with and without a last line that has no end yet

    def read(self, budget: int) -> Lines:
        """Return the next lines, from about `budget` bytes at most. An unchanged file costs one system call. Raise
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
    """Open a regular file for reading and return its descriptor. Raise OSError for anything else, and for a link."""
    descriptor = os.open(path, _OPEN)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file")


def record_at(path: Path, offset: int) -> Record | None:
    """Return the record in the line at a byte offset, or None if it is no longer there."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            file.seek(offset)
            return parse_record(file.readline(LINE_LIMIT + 1))
    except OSError:
        return None


def parse_json(data: bytes) -> object:
    """Return the JSON value in bytes; bytes that are not UTF-8 become U+FFFD. Raise ValueError if it is malformed."""
    from pydantic_core import from_json  # imported late, because a hook does not need it

    try:
        return from_json(data)
    except ValueError:
        # `from_json` accepts neither lone surrogates nor more than 200 levels.
        try:
            value: object = json.loads(data.decode("utf-8", "replace"))
        except RecursionError as error:
            raise ValueError from error
        return value


def parse_record(data: bytes) -> Record | None:
    """Return the JSON object in a line, or None if there is none."""
    try:
        value = parse_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_small_file(path: Path | str, most: int) -> bytes:
    """Return the bytes of a file. Raise OSError if it cannot be read, or has more than `most` bytes."""
    with Directory.open(Path(path).parent) as directory:
        return directory.read(Path(path).name, most)


def read_json(path: Path, most: int) -> object:
    """Return the JSON value in a file. Raise OSError if the file cannot be read or has more than `most` bytes, and
    ValueError if the JSON is malformed."""
    return parse_json(read_small_file(path, most))
