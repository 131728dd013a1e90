"""The transcript of one run, followed: its steps as a screen shows them, one of them whole, and all of it as a text.

A program gives one function that says what stands in a record (`EntriesIn`).
"""

from __future__ import annotations

import errno
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields
from agentwatch.sources.sessions.steps import Step, Steps, says_again
from agentwatch.sources.sessions.tail import LINE_LIMIT, Line, Tail, line_at, open_regular, records

EntriesIn = Callable[[Fields], Iterable[Entry]]
"""What stands in a record. Never raises for what it holds."""

AT_ONCE: Final = 200
"""Steps that the first look gives, about, and each look at older ones."""
_GONE: Final = "Its file is gone"
_EMPTIED: Final = "Its file holds nothing of it any more"

_BLOCK: Final = 256 * 1024
_FIRST_LOOK: Final = 16 * 1024 * 1024
_ONE_LOOK: Final = 4 * 1024 * 1024
"""Bytes that are read for them at most, so that a screen need not wait; a look at older ones may be repeated."""
_SHARE: Final = 10.0
_LONG: Final = 0.02
"""Seconds that reading a transcript as a whole may take without a rest of some times as long."""
_LONGEST_RECORD: Final = 4 * 1024 * 1024
"""Bytes. A longer one is only said to be there: parsing it would keep the screen waiting."""


class Placed:
    """What records say, asked about in their order: calls have the directory that one before them has told of."""

    def __init__(self, entries_in: EntriesIn, directory_in: Callable[[Fields], str | None]) -> None:
        self._entries_in = entries_in
        self._directory_in = directory_in
        self._cwd = ""

    def __call__(self, fields: Fields) -> Iterator[Entry]:
        self._cwd = self._directory_in(fields) or self._cwd
        for entry in self._entries_in(fields):
            yield entry._replace(cwd=self._cwd) if entry.kind is EntryKind.CALL else entry


class Look(NamedTuple):
    """What is known of a transcript after a look at it.

    `trouble` says why it cannot be read any more, "" where it can be: the steps are then the last that were there.
    `has_older`: there may be some before them.
    """

    steps: Sequence[Step] = ()
    has_older: bool = False
    trouble: str = ""


class WholeStep(NamedTuple):
    """What a step says, and what came of it, None as long as there is nothing."""

    said: Entry
    result: Entry | None = None


class RunTranscript(ABC):
    """The transcript of one run. One thread calls `look` and `older`, any thread the rest. None of them raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps = Steps()
        self._trouble = ""

    @property
    def watched(self) -> Sequence[Path]:
        """The files that change when something is added: all in one directory."""
        return (self._path,)

    def look(self) -> Look | None:
        """What is there now, None where nothing has changed since the look before."""
        try:
            is_new = self._read()
        except OSError as error:
            trouble = _GONE if isinstance(error, FileNotFoundError) else f"It cannot be read: {error.strerror}"
            if trouble == self._trouble:
                return None
            self._trouble = trouble
        else:
            if is_new is None or not (is_new or self._trouble):
                return None
            self._trouble = ""
        return self._look()

    def older(self) -> Look:
        """The same after reading some of what stands before the first step."""
        return self._look()

    def whole(self, step: Step) -> WholeStep | None:
        """All that a step says, None where it is not there any more."""
        (place, number), answered = step.place, step.answered
        said = self._entries_at(place)
        if number >= len(said):
            return None
        if answered is None:
            return WholeStep(said[number])
        results = said if answered[0] == place else self._entries_at(answered[0])
        return WholeStep(said[number], results[answered[1]] if answered[1] < len(results) else None)

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """All there is, from the beginning."""

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        """The same with the place of each record, of what the agent itself did: no history that it was given.

        Raises OSError where not all of it can be read: what is missing may be what somebody looks for.
        """
        raise OSError(errno.ENOTSUP, "what it did cannot be told from here")

    @abstractmethod
    def _read(self) -> bool | None:
        """Take in what is new: whether there was any, None where that cannot be told just now. Raises OSError."""

    @abstractmethod
    def _entries_at(self, place: int) -> Sequence[Entry]:
        """What the record at a place says, nothing where it cannot be read any more."""

    def _look(self) -> Look:
        return Look(self._steps.snapshot(), trouble=self._trouble)


class WholeTranscript(RunTranscript):
    """One that is read as a whole whenever it has changed: `stamp` tells that, `load` gives (place, entries) of all its
    records. Both raise OSError; `load` raises ValueError where nothing can be told just now."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._stamp: object = None
        self._next_at = 0.0

    @abstractmethod
    def stamp(self) -> object: ...

    @abstractmethod
    def load(self) -> Iterable[tuple[int, Sequence[Entry]]]: ...

    def entries(self) -> Iterator[Entry]:
        with suppress(OSError, ValueError):
            for _, said in self.load():
                yield from said

    def _read(self) -> bool | None:
        began = time.monotonic()
        if began < self._next_at:
            return None
        stamp = self.stamp()
        if stamp == self._stamp and not self._trouble:
            return False
        steps = Steps()
        try:
            for place, said in self.load():
                steps.add(place, said)
        except ValueError:
            return None
        # One that works is written anew all the time: reading a long one may take a tenth of it.
        now = time.monotonic()
        self._next_at = now + (now - began) * _SHARE if now - began > _LONG else 0.0
        is_new = self._stamp is None or bool(self._trouble) or steps.snapshot() != self._steps.snapshot()
        self._stamp, self._steps = stamp, steps
        return is_new

    def _entries_at(self, place: int) -> Sequence[Entry]:
        with suppress(OSError, ValueError):
            return next((said for number, said in self.load() if number == place), ())
        return ()


class LinesTranscript(RunTranscript):
    """A growing file of JSON lines, read from its end: those before its last lines are read when somebody asks.

    `once` gives the mark of a record that may stand in it twice. `own_entries` gives what says of all records, one
    after the other, what the agent itself did in them.
    """

    def __init__(
        self,
        path: Path,
        entries_in: EntriesIn,
        once: Callable[[Fields], str | None] = lambda _: None,
        own_entries: Callable[[], EntriesIn] | None = None,
    ) -> None:
        super().__init__(path)
        self._entries_in = entries_in
        self._once = once
        self._own_entries = own_entries or (lambda: entries_in)
        self._before: Look | None = None
        """What was there before the file was cut short, or another one took its place, until that says something."""
        self._begin()

    def _begin(self) -> None:
        self._steps = Steps()
        self._marks: set[int] = set()
        self._tail: Tail | None = None
        self._start = 0
        """Where what has been read begins."""

    def older(self) -> Look:
        if not self._steps.is_full:
            if self._steps.was_cut:
                self._steps.was_cut, self._start = False, self._steps.snapshot()[0].place[0]
                self._marks.clear()
            with suppress(OSError):
                self._read_back(_ONE_LOOK)
        return self._look()

    def entries(self) -> Iterator[Entry]:
        marks, last = set[int](), None
        with suppress(OSError):
            for line in self._lines():
                for entry in self._entries_of(line, marks):
                    if last is None or not says_again(last, entry) or last.text != entry.text:
                        yield entry
                    last = entry

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        marks, entries_in = set[int](), self._own_entries()
        for line in self._lines():
            found = records(line.data) if len(line.data) <= _LONGEST_RECORD else ()
            if not found:
                raise OSError(errno.EMSGSIZE, "a record of it cannot be read")
            yield line.offset, self._entries_in_all(found, marks, entries_in)

    def _lines(self) -> Iterator[Line]:
        """All whole lines from the beginning. Raises OSError."""
        tail = self._open_tail(0)
        while True:
            lines, restarted = tail.read(_ONE_LOOK)
            if restarted or tail.passed_over:
                raise OSError(errno.EIO, "it was replaced, or has a line that is too long")
            yield from lines
            if not tail.behind:
                return

    def _look(self) -> Look:
        steps = self._steps.snapshot()
        if steps or self._before is None:
            self._before = None
            has_older = (self._start > 0 or self._steps.was_cut) and not self._steps.is_full
            return Look(steps, has_older, self._trouble)
        return Look(self._before.steps, trouble=self._trouble or _EMPTIED)

    def _read(self) -> bool:
        is_new = self._tail is None
        if self._tail is None:
            # The last lines there are; what comes after these is for the tail.
            self._start = position = self._find_end()
            self._read_back(_FIRST_LOOK)
            self._tail = self._open_tail(position)
        while True:
            lines, restarted = self._tail.read(_ONE_LOOK)
            if restarted:
                self._before = self._look()
                self._begin()
                return self._read()
            for line in lines:
                entries = self._entries_of(line, self._marks)
                self._steps.add(line.offset, entries)
                is_new |= bool(entries)
            if not self._tail.behind:
                return is_new

    def _find_end(self) -> int:
        """Behind the last line that has its end: what follows is not whole yet. Raises OSError."""
        with os.fdopen(open_regular(self._path), "rb", 0) as file:
            end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(end - _BLOCK, 0)
                at = os.pread(file.fileno(), end - start, start).rfind(b"\n")
                if at >= 0:
                    return start + at + 1
                end = start
        return 0

    def _read_back(self, budget: int) -> None:
        """Read lines before those that were read, until there are enough steps. Raises OSError."""
        wanted, end = AT_ONCE, self._start
        with os.fdopen(open_regular(self._path), "rb", 0) as file:
            while wanted > 0 and self._start > 0 and end - self._start < budget:
                lines, self._start = _lines_before(file.fileno(), self._start)
                wanted -= self._steps.add_before([(one.offset, self._entries_of(one, self._marks)) for one in lines])

    def _entries_of(self, line: Line, marks: set[int]) -> list[Entry]:
        if len(line.data) > _LONGEST_RECORD:
            return [Entry(0.0, EntryKind.NOTE, f"a record of {len(line.data) >> 20} MB, which is not shown")]
        return self._entries_in_all(records(line.data), marks, self._entries_in)

    def _entries_in_all(self, found: Iterable[Fields], marks: set[int], entries_in: EntriesIn) -> list[Entry]:
        entries: list[Entry] = []
        for fields in found:
            if (mark := self._once(fields)) is not None:
                if hash(mark) in marks:
                    continue
                marks.add(hash(mark))
            entries += entries_in(fields)
        return entries

    def _open_tail(self, position: int) -> Tail:
        return Tail(self._path, position=position)

    def _line_at(self, offset: int) -> bytes | None:
        return line_at(self._path, offset)

    def _entries_at(self, place: int) -> Sequence[Entry]:
        return [entry for fields in records(self._line_at(place) or b"") for entry in self._entries_in(fields)]


def _lines_before(descriptor: int, end: int) -> tuple[list[Line], int]:
    """The lines that end at an offset, or before it in one block, and where they begin. A line that is too long for the
    memory is passed over."""
    size = _BLOCK
    while True:
        start = max(end - size, 0)
        data = os.pread(descriptor, end - start, start)
        # The last byte is the end of the last of these lines.
        first = data.find(b"\n", 0, max(len(data) - 1, 0)) + 1 if start else 0
        if first or not start:
            lines, offset = [], start + first
            for part in data[first:].split(b"\n"):
                if part and not part.isspace():
                    lines.append(Line(offset, part))
                offset += len(part) + 1
            return lines, start + first
        if size > LINE_LIMIT:
            return [], start
        size *= 4
