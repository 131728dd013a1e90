"""Reads what a growing file of JSON lines got since the last look: by byte offset, whole lines only, bounded."""

import errno
import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentwatch.disk import Directory, Fingerprint, fingerprint

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

    def __init__(
        self,
        path: Path,
        *,
        line_limit: int = LINE_LIMIT,
        position: int = 0,
        read_record: Callable[[bytes], Record | None] | None = None,
    ) -> None:
        self.path = path
        self._record = read_record or record
        self.position = self._offset = position  # bytes read so far, with and without the beginning of a line
        self.passed_over = 0
        self.behind = False  # whether the last look left something unread, because its budget was used up
        self._line_limit = line_limit
        self._seen: Fingerprint | None = None
        self._witness = b""  # the bytes before the next line: others where the file was cut short and has grown
        self._skips = False  # the next line is the rest of one that is too long

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
                line = file.readline(self._line_limit + 1)
                is_whole, self.position = line.endswith(b"\n"), self._offset + len(line)
                if not is_whole and len(line) <= self._line_limit:
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
