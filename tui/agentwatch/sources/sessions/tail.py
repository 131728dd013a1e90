"""Reads what a growing file of JSON lines got since the last look: by byte offset, whole lines only, bounded."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

LINE_LIMIT: Final = 32 * 1024 * 1024
"""A longer line is passed over: nobody wrote it to be read, and it must not fill the memory."""

_CHUNK: Final = 256 * 1024

_WITNESS: Final = 64
_DECODER: Final = json.JSONDecoder()
_TRIES: Final = 64
"""Places at which an object may begin that are tried in a broken line."""
_BLANK: Final = b" \t\r\v\f"
_RETURN: Final = ord(b"\r")
# O_NONBLOCK: opening a pipe would wait for a writer for ever. O_NOCTTY: a terminal must not become ours.
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

Stamp = tuple[int, int, int, int]


class Line(NamedTuple):
    """One line without its end, or several: `buffer[start:end]`, uncopied. It begins at `offset` of the file."""

    offset: int
    buffer: bytes
    start: int
    end: int

    @property
    def data(self) -> bytes:
        return self.buffer[self.start : self.end]


class Lines(NamedTuple):
    """What one look gave: stretches of whole lines. `restarted`: it is another file, and all read before is void."""

    stretches: Sequence[Line] = ()
    restarted: bool = False

    @property
    def lines(self) -> Sequence[Line]:
        """The lines, one by one, those that are blank left out."""
        return [line for stretch in self.stretches for line in lines_of(stretch)]


class Tail:
    """The lines of one file, in order and each once. A last line without its end waits for the rest.

    The file may grow between two looks, be cut short, or be replaced: then it is read from its beginning again.
    What is passed over because it is too long is counted in `passed_over`. It begins at `position`, where a line does.
    """

    def __init__(self, path: Path, *, line_limit: int = LINE_LIMIT, position: int = 0) -> None:
        self.path = path
        self.size = size_of(path)
        """Bytes the file had at the last look."""
        self.passed_over = 0
        self._name = os.fspath(path)
        self._line_limit = line_limit
        self._seen: Stamp | None = None
        self._written_at = 0
        """When it was written last, as the system says."""
        self._position = position
        self._witness = b""
        self._partial: list[bytes] = []
        self._partial_bytes = 0

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._position

    @property
    def behind(self) -> bool:
        """Whether the last look left something unread, because its budget was used up."""
        return self._position < self.size

    def read(self, budget: int) -> Lines:
        """The next lines, out of at most about `budget` bytes.

        Raises OSError where the file is not there, not readable or no regular file. A file that has not changed costs
        one call of the system.
        """
        status = os.stat(self._name, follow_symlinks=False)  # noqa: PTH116  asked of hundreds of files at a time
        if stamp_of(status) == self._seen and not self.behind:
            return Lines()
        descriptor = open_regular(self.path)
        try:
            status = os.fstat(descriptor)
            restarted = self._is_another(descriptor, status)
            if restarted:
                self._restart()
            self.size = status.st_size
            stretches = self._take(descriptor, budget)
        finally:
            os.close(descriptor)
        self._seen, self._written_at = stamp_of(status), status.st_mtime_ns
        return Lines(stretches, restarted)

    def _is_another(self, descriptor: int, status: os.stat_result) -> bool:
        if status.st_size < self._position:
            return True
        seen = self._seen
        if seen is not None and seen[:2] != (status.st_dev, status.st_ino):
            return True
        if seen is not None and seen[2] == status.st_size == self._position and status.st_mtime_ns != self._written_at:
            # Written, and not longer: somebody has put a line right.
            return True
        # Cut short and grown past the old length between two looks: the bytes before the position are others.
        return os.pread(descriptor, len(self._witness), self._position - len(self._witness)) != self._witness

    def _restart(self) -> None:
        self._position, self._witness = 0, b""
        self._drop_partial()

    def _take(self, descriptor: int, budget: int) -> list[Line]:
        stretches: list[Line] = []
        end = self._position + max(budget, 1)
        # No longer than a line may be, so that only lines of several chunks can be too long.
        chunk = min(_CHUNK, self._line_limit)
        while self._position < end:
            data = os.pread(descriptor, min(chunk, end - self._position), self._position)
            if not data:
                # Cut short since it was looked at: the next look sees it.
                self.size = self._position
                break
            self._split(data, stretches)
            self._position += len(data)
            self._witness = (self._witness + data[-_WITNESS:])[-_WITNESS:]
        self.size = max(self.size, self._position)
        return stretches

    def _split(self, data: bytes, stretches: list[Line]) -> None:
        start = 0
        if self._partial_bytes:
            start = data.find(b"\n") + 1
            if start:
                self._complete(data[: start - 1], stretches)
        end = data.rfind(b"\n", start)
        if end >= 0:
            stretches.append(Line(self._position + start, data, start, end))
            start = end + 1
        if start < len(data):
            self._partial_bytes += len(data) - start
            if self._partial_bytes > self._line_limit:
                self._partial.clear()
            else:
                self._partial.append(data[start:])

    def _complete(self, rest: bytes, stretches: list[Line]) -> None:
        """The end of a line that began in a chunk before."""
        if self._partial_bytes + len(rest) > self._line_limit:
            self.passed_over += 1
        else:
            whole = b"".join([*self._partial, rest])
            stretches.append(Line(self._position - self._partial_bytes, whole, 0, len(whole)))
        self._drop_partial()

    def _drop_partial(self) -> None:
        self._partial.clear()
        self._partial_bytes = 0


def lines_of(stretch: Line) -> Iterator[Line]:
    """The lines of a stretch, without those that are blank."""
    offset, buffer, start, stop = stretch
    while start < stop:
        end = buffer.find(b"\n", start, stop)
        if end < 0:
            end = stop
        if end > start and (buffer[start] not in _BLANK or buffer[start:end].strip()):
            yield Line(offset, buffer, start, end - (buffer[end - 1] == _RETURN))
        offset += end + 1 - start
        start = end + 1


def open_regular(path: Path) -> int:
    """A descriptor to read a regular file with; raises OSError for anything else, symbolic links included."""
    descriptor = os.open(path, _OPEN)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file")


def refusal_of(path: Path) -> str:
    """Why a file cannot be read, "" where it can be or is not there."""
    try:
        os.close(open_regular(path))
    except OSError as error:
        return words_of_refusal(error)
    return ""


def words_of_refusal(error: OSError) -> str:
    """Why a file cannot be read, "" where it is not there."""
    return "" if isinstance(error, FileNotFoundError) else error.strerror or "unreadable"


def line_at(path: Path, offset: int, limit: int = LINE_LIMIT) -> bytes | None:
    """The line that begins at a byte offset, without its end; None where there is none to be had any more."""
    try:
        with os.fdopen(open_regular(path), "rb", _CHUNK) as file:
            file.seek(offset)
            line = file.readline(limit + 1)
    except OSError:
        return None
    return line.removesuffix(b"\n") or None if len(line) <= limit else None


def record(data: bytes) -> Mapping[str, object] | None:
    """A line as the JSON object it holds, None where it holds none. Bytes that are not UTF-8 become U+FFFD."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def records(data: bytes) -> list[Mapping[str, object]]:
    """The JSON objects of a line, usually one. Behind half an object, of a program that was killed while it wrote it,
    the next one writes a whole one; nothing in it can pass for that, as it does not end with the line."""
    whole = record(data)
    if whole is not None:
        return [whole]
    words = data.decode("utf-8", "replace").rstrip()
    found, end = _objects(words)
    start = len(words)
    for _ in range(_TRIES if end < len(words) else 0):
        start = words.rfind('{"', end, start)
        if start < 0:
            break
        more, until = _objects(words, start)
        if until == len(words):
            return found + more
    return found


def _objects(words: str, start: int = 0) -> tuple[list[Mapping[str, object]], int]:
    """The objects that follow one another from an index on, and where the last of them ends."""
    found: list[Mapping[str, object]] = []
    with suppress(ValueError, RecursionError):
        while start < len(words):
            value, start = _DECODER.raw_decode(words, start)
            if isinstance(value, dict):
                found.append(value)
    return found, start


def document(path: Path, most: int) -> object:
    """The JSON document in a file. Raises OSError, also for more than `most` bytes, and ValueError where it is none."""
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    try:
        value: object = json.loads(data.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError from error
    return value


def size_of(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        return path.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def stamp_of(status: os.stat_result) -> Stamp:
    """What tells that a file has changed: its ctime does so, also when reading is allowed again."""
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns
