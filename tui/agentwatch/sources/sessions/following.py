"""The transcript of one run, followed: its steps as a screen shows them, one of them whole, and all of it as a text.

A program gives one function that says what stands in a record (`EntriesIn`).
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields
from agentwatch.sources.sessions.steps import Step, Steps, says_again
from agentwatch.sources.sessions.tail import LINE_LIMIT, Line, Tail, line_at, open_regular, record

EntriesIn = Callable[[Fields], Iterable[Entry]]
"""What stands in a record. Never raises for what it holds."""

_GONE: Final = "Its file is gone"
_EMPTIED: Final = "Its file holds nothing of it any more"
_WINDOW: Final = 4 * 1024 * 1024
"""Bytes at the end of a file that the first look reads; each look at older ones reads four times as many."""
_ONE_LOOK: Final = 4 * 1024 * 1024


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
    """The known part of a transcript after a look at it.

    `trouble` says why it cannot be read any more, "" where it can be: the steps are then the last that were there.
    `has_older`: there may be some before them.
    """

    steps: Sequence[Step] = ()
    has_older: bool = False
    trouble: str = ""


class WholeStep(NamedTuple):
    """The whole text of a step, and its result, None as long as there is none."""

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
        before = self._trouble
        try:
            is_new, trouble = self._read(), ""
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            is_new, trouble = False, _GONE if gone else f"It cannot be read: {error.strerror}"
        if is_new is None:
            return None
        self._trouble = trouble
        return self._look() if is_new or trouble != before else None

    def older(self) -> Look:
        """The same after reading some of what stands before the first step, where there is anything."""
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

    _stamp: object = None

    @abstractmethod
    def stamp(self) -> object: ...

    @abstractmethod
    def load(self) -> Iterable[tuple[int, Sequence[Entry]]]: ...

    def entries(self) -> Iterator[Entry]:
        with suppress(OSError, ValueError):
            for _, said in self.load():
                yield from said

    def _read(self) -> bool | None:
        stamp = self.stamp()
        if stamp == self._stamp and not self._trouble:
            return False
        steps = Steps()
        try:
            for place, said in self.load():
                steps.add(place, said)
        except ValueError:
            return None
        is_new = self._stamp is None or steps.snapshot() != self._steps.snapshot()
        self._stamp, self._steps = stamp, steps
        return is_new

    def _entries_at(self, place: int) -> Sequence[Entry]:
        with suppress(OSError, ValueError):
            return next((said for number, said in self.load() if number == place), ())
        return ()


class LinesTranscript(RunTranscript):
    """A growing file of JSON lines, read from near its end: from further back when somebody asks for that.

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
        self._window = _WINDOW
        self._before: Look | None = None
        """What was there before it is read anew, until that says something."""
        self._begin()

    def _begin(self) -> None:
        self._steps = Steps()
        self._marks: set[int] = set()
        self._tail: Tail | None = None
        self._start = 0
        """Where what has been read begins."""

    def older(self) -> Look:
        if self._start and not self._steps.is_full:
            self._window *= 4
            before = self._look()
            self._before = before if before.steps else None
            self._begin()
            with suppress(OSError):
                self._read()
        return self._look()

    def entries(self) -> Iterator[Entry]:
        marks, last = set[int](), None
        with suppress(OSError):
            for line in self._lines():
                for entry in self._entries_of(line, marks, self._entries_in) or ():
                    if last is None or not says_again(last, entry) or last.text != entry.text:
                        yield entry
                    last = entry

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        marks, entries_in = set[int](), self._own_entries()
        for line in self._lines():
            entries = self._entries_of(line, marks, entries_in)
            if entries is None:
                raise OSError(errno.EBADMSG, "a record of it cannot be read")
            yield line.offset, entries

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
            return Look(steps, self._start > 0 and not self._steps.is_full, self._trouble)
        return Look(self._before.steps, trouble=self._trouble or _EMPTIED)

    def _read(self) -> bool:
        is_new = self._tail is None
        if self._tail is None:
            self._start = self._find_start()
            self._tail = self._open_tail(self._start)
        while True:
            lines, restarted = self._tail.read(_ONE_LOOK)
            if restarted:
                self._before = self._look()
                self._begin()
                return self._read()
            for line in lines:
                entries = self._entries_of(line, self._marks, self._entries_in)
                self._steps.add(line.offset, entries or ())
                is_new |= bool(entries)
            if not self._tail.behind:
                return is_new

    def _find_start(self) -> int:
        """Where the first line in the window begins. Raises OSError."""
        with os.fdopen(open_regular(self._path), "rb") as file:
            start = file.seek(0, os.SEEK_END) - self._window
            if start <= 0:
                return 0
            file.seek(start - 1)
            file.readline(LINE_LIMIT)
            return file.tell()

    def _entries_of(self, line: Line, marks: set[int], entries_in: EntriesIn) -> list[Entry] | None:
        """What a line says that stood in none before; None where it is no record."""
        fields = record(line.data)
        if fields is None:
            return None
        mark = hash(self._once(fields) or line.offset)
        if mark in marks:
            return []
        marks.add(mark)
        return list(entries_in(fields))

    def _open_tail(self, position: int) -> Tail:
        return Tail(self._path, position=position)

    def _line_at(self, offset: int) -> bytes | None:
        return line_at(self._path, offset)

    def _entries_at(self, place: int) -> Sequence[Entry]:
        return list(self._entries_in(record(self._line_at(place) or b"") or {}))
