"""Records of other programs: the lines of a growing file, and typed access, to which a wrong type counts as missing."""

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
from typing import TYPE_CHECKING, Any, NamedTuple

from agentwatch.disk import Directory, Fingerprint, fingerprint

if TYPE_CHECKING:
    pass

Fields = Mapping[str, object]

_NOTHING: Fields = {}
_LARGEST = 1e15
_SAYS_NOTHING = re.compile(r"\s*(?:#{1,6}\s+\S+(?:\s+\S+){0,2}\s*|[\W_]+|<[^<>]*>\s*)")


def text(fields: Fields, key: str) -> str | None:
    """Return a string that is not empty, or None."""
    value = fields.get(key)
    return value if isinstance(value, str) and value else None


def string(fields: Fields, key: str) -> str:
    """Return a string, "" if missing."""
    return text(fields, key) or ""


def number(fields: Fields, key: str) -> float | None:
    """Return a number of a sensible size, or None; True and False are no numbers."""
    match fields.get(key):
        case bool():
            return None
        case int() | float() as value if abs(value) < _LARGEST:
            return float(value)
    return None


def integer(fields: Fields, key: str) -> int | None:
    """Return a number without its fraction, or None."""
    value = number(fields, key)
    return None if value is None else int(value)


def sum_of(fields: Fields, *keys: str, without: str = "") -> int:
    """Return the sum of the numbers at `keys`, less the number at `without`."""
    return sum(integer(fields, key) or 0 for key in keys) - (integer(fields, without) or 0)


def as_object(value: object) -> Fields:
    """Return an object, an empty one if it is none."""
    return value if isinstance(value, dict) else _NOTHING


def nested(fields: Fields, *keys: str) -> Fields:
    """Return the object at the end of a path of keys, an empty one if the path ends before."""
    for key in keys:
        value = fields.get(key)
        fields = value if isinstance(value, dict) else _NOTHING
    return fields


def object_in(words: object) -> Fields:
    """Return the object that a text holds as JSON, an empty one if it holds none."""
    try:
        return as_object(json.loads(words)) if isinstance(words, str) else _NOTHING
    except (ValueError, RecursionError):
        return _NOTHING


def list_at(fields: Fields, key: str) -> Sequence[object]:
    """Return a list, an empty one if missing."""
    value = fields.get(key)
    return value if isinstance(value, list) else ()


def objects(fields: Fields, key: str) -> Iterator[Fields]:
    """Return the items of a list; an item that is no object becomes an empty one."""
    return map(as_object, list_at(fields, key))


def time_at(fields: Fields, key: str = "timestamp") -> float | None:
    """Return the epoch seconds of an ISO 8601 time, in UTC if it has no offset; None if there is none."""
    value = text(fields, key)
    try:
        time = datetime.fromisoformat(value or "")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def directory_in(record: Fields) -> str | None:
    """Return the working directory in a record of a program, None if it names none, or several."""
    payload = nested(record, "payload") if record.get("type") in ("session_meta", "turn_context") else _NOTHING
    named = (text(place, "cwd") for place in (record, payload, nested(record, "data", "context")))
    places = list_at(record, "directories")
    return next(filter(None, named), str(places[0]) if len(places) == 1 else None)


def first_line(words: str, limit: int = 300) -> str:
    """Return the first line that is not empty, cut to `limit` characters with `…` at the end."""
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def first_sentence(words: str, limit: int = 300) -> str:
    """Return the first line that is more than a short heading, rule, fence or tag; else the first line."""
    lines = (line for line in words.splitlines() if line.strip() and not _SAYS_NOTHING.fullmatch(line[:limit]))
    return first_line(next(lines, words), limit)


def digest_of(text: str) -> str:
    """Return the sha256 (hex) by which a text is known; lone surrogates are allowed."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def question_text(given: Fields) -> str:
    """Return the questions of a tool to a human, from its `question` or `questions`."""
    asked = (text(one, "question") for one in (given, *objects(given, "questions")))
    return f"an answer: {first_line(next(filter(None, asked), ''))}".removesuffix(": ")


def part_texts(fields: Fields, key: str) -> list[str]:
    """Return the texts of a list of objects that may have a `text`."""
    return [words for part in objects(fields, key) if (words := text(part, "text")) is not None]


_OPENING = "<task-notification>"
_TAG = re.compile(r"<(task-id|tool-use-id|status|summary)>(.*?)</\1>", re.DOTALL)


class Notification(NamedTuple):
    """A notification to a parent that a background agent ended; `said` is the agent's text, None if there is none."""

    task_id: str
    tool_use_id: str
    status: str
    summary: str
    said: str | None

    @property
    def full_text(self) -> str:
        """All of its text."""
        return f"{self.summary or self.status}\n\n{self.said or ''}"


def read_notification(text: str) -> Notification | None:
    """Return a `<task-notification>`, None for any other text."""
    # The agent's own words stand last in it, so that tags inside them are never taken for the program's.
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
    """One line, which begins at `offset` of the file, with its JSON object, or None."""

    offset: int
    record: Record | None


class Lines(NamedTuple):
    """The new lines without blank ones; `restarted`: it is another file, and all earlier lines are void."""

    lines: Sequence[Line] = ()
    restarted: bool = False


class Tail:
    """The lines of one file, in order and each once; a last line without its end waits for the rest. A file that was
    cut short or replaced is read from its beginning again. Lines that are too long are counted in `passed_over`."""

    line_limit = LINE_LIMIT
    passed_over = 0
    behind = False  # whether the last look left something unread, because its budget was used up
    _seen: Fingerprint | None = None
    _witness = b""  # the bytes before the next line, which differ if the file was cut short and has grown
    _skips = False  # the next line is the rest of one that is too long

    def __init__(self, path: Path, *, position: int = 0, read_record: Callable[[bytes], Record | None] | None = None):
        self.path = path
        self._record = read_record or parse_record
        self.position = self._offset = position  # bytes read so far, with and without the beginning of a line

    def read(self, budget: int) -> Lines:
        """Return the next lines, from at most about `budget` bytes; a file that has not changed costs one system call.
        Raise OSError if the file is missing, unreadable or no regular file."""
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
    """Return a descriptor for reading a regular file; raise OSError for anything else, including symbolic links."""
    descriptor = os.open(path, _OPEN)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file")


def record_at(path: Path, offset: int) -> Record | None:
    """Return the record in the line that begins at a byte offset; None if it is no longer there."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            file.seek(offset)
            return parse_record(file.readline(LINE_LIMIT + 1))
    except OSError:
        return None


def parse_json(data: bytes) -> object:
    """Return the JSON value in bytes, with U+FFFD for bytes that are not UTF-8; raise ValueError if it is malformed."""
    from pydantic_core import from_json  # a hook that asks needs none of it

    try:
        return from_json(data)
    except ValueError:
        # That parser accepts neither lone surrogates nor more than 200 levels.
        try:
            value: object = json.loads(data.decode("utf-8", "replace"))
        except RecursionError as error:
            raise ValueError from error
        return value


def parse_record(data: bytes) -> Record | None:
    """Return the JSON object in a line, or None."""
    try:
        value = parse_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_small_file(path: Path | str, most: int) -> bytes:
    """Return a whole file; raise OSError, also for more than `most` bytes."""
    with Directory.open(Path(path).parent) as directory:
        return directory.read(Path(path).name, most)


def read_json(path: Path, most: int) -> object:
    """Return the JSON value in a file; raise OSError (also for over `most` bytes), or ValueError if it is malformed."""
    return parse_json(read_small_file(path, most))
