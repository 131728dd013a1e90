"""Records that others wrote: the lines of a growing file, and typed access to what stands in one, where a field of the
wrong type is one that is not there."""

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


LINE_LIMIT = 32 * 1024 * 1024  # a longer line is passed over: it must not fill the memory

_WITNESS = 64
_BUFFER = 256 * 1024
# O_NONBLOCK: opening a pipe would wait for a writer for ever. O_NOCTTY: a terminal must not become ours.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

Record = dict[str, Any]


class Line(NamedTuple):
    """One line, which begins at `offset` of the file, with the JSON object that it holds; None where it holds none."""

    offset: int
    record: Record | None


class Lines(NamedTuple):
    """The lines that are new, but for blank ones. `restarted`: it is another file, and all read before is void."""

    lines: Sequence[Line] = ()
    restarted: bool = False


class Tail:
    """The lines of one file, in order and each once. A last line without its end waits for the rest. A file that was
    cut short or replaced is read from its beginning again. Lines that are too long are counted in `passed_over`."""

    line_limit = LINE_LIMIT
    passed_over = 0
    behind = False  # whether the last look left something unread, because its budget was used up
    _seen: Fingerprint | None = None
    _witness = b""  # the bytes before the next line: others where the file was cut short and has grown
    _skips = False  # the next line is the rest of one that is too long

    def __init__(self, path: Path, *, position: int = 0, read_record: Callable[[bytes], Record | None] | None = None):
        self.path = path
        self._record = read_record or record
        self.position = self._offset = position  # bytes read so far, with and without the beginning of a line

    def read(self, budget: int) -> Lines:
        """The next lines, out of at most about `budget` bytes. Raises OSError where the file is not there, not readable
        or no regular file. A file that has not changed costs one call of the system."""
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
    """A descriptor to read a regular file with; raises OSError for anything else, symbolic links included."""
    descriptor = os.open(path, _OPEN)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file")


def record_at(path: Path, offset: int) -> Record | None:
    """The record in the line that begins at a byte offset; None where there is none to be had any more."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            file.seek(offset)
            return record(file.readline(LINE_LIMIT + 1))
    except OSError:
        return None


def parse(data: bytes) -> object:
    """JSON in bytes; those that are not UTF-8 become U+FFFD. Raises ValueError where it is none."""
    from pydantic_core import from_json  # a hook that asks needs none of it

    try:
        return from_json(data)
    except ValueError:
        # That one knows neither half a character nor more than 200 levels.
        try:
            value: object = json.loads(data.decode("utf-8", "replace"))
        except RecursionError as error:
            raise ValueError from error
        return value


def record(data: bytes) -> Record | None:
    """A line as the JSON object it holds, None where it holds none."""
    try:
        value = parse(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_small(path: Path | str, most: int) -> bytes:
    """A whole file. Raises OSError, also for more than `most` bytes."""
    with Directory.open(Path(path).parent) as directory:
        return directory.read(Path(path).name, most)


def document(path: Path, most: int) -> object:
    """The JSON document in a file. Raises OSError, also for more than `most` bytes, and ValueError where it is none."""
    return parse(read_small(path, most))
