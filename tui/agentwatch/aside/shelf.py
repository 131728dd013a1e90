"""The file of what was put aside and looked at: read, watched and written, for a screen or for one command."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from agentwatch.aside import NAME
from agentwatch.aside.records import Book, Kind, NoRecordError, Record, is_record, read, written
from agentwatch.background import Background
from agentwatch.delegation.events import Event, Looked, Noted
from agentwatch.delegation.task import Put
from agentwatch.disk import DISK, Directory, Disk
from agentwatch.errors import AgentwatchError
from agentwatch.private_directory import PrivateDirectory
from agentwatch.sources.files.bell import BELL

_LARGEST: Final = 32 * 1024 * 1024
_LONG: Final = 256 * 1024
"""Bytes from which a file may be worth writing anew."""
_PAUSE_SECONDS: Final = (1.0, 60.0)
"""Between two looks at the file: where nothing rings, and where the system tells when it is written."""
_BATCH_SECONDS: Final = 1.0
"""Between two records of what was looked at."""
_RETRY_SECONDS: Final = 10.0
"""Until what could not be written is tried again."""

Emit = Callable[[Sequence[Event]], None]


class AsideError(AgentwatchError):
    """Nothing could be put aside, and nothing was."""


class Shelf(Background[Sequence[Event]]):
    """What the operator of one workspace has put aside, in its state directory. Any thread may call it.

    Without `state`, or if it may not be written (`writes`), what is put aside counts here only, for as long as this
    lives. From `start` to `stop` a thread watches the file and hands on what has changed, here or elsewhere. When it
    stops, all is written that was looked at.
    """

    thread_name = "agentwatch-aside"

    def __init__(
        self, state: Path | None, *, writes: bool = True, clock: Callable[[], float] = time.time, disk: Disk = DISK
    ) -> None:
        super().__init__()
        self.path: Final = None if state is None else state / NAME
        self.is_kept: Final = writes and state is not None
        """Whether what is put aside outlives this."""
        self._clock = clock
        self._place = PrivateDirectory(state or Path(), disk)
        self._book = Book()
        self._began: float | None = None
        self._read = b""
        """The lines of the file that were taken in, each with its end."""
        self._is_ended = True
        """Whether the last of them has its end in the file, too."""
        self._own: list[Record] = []
        """What was put aside here and is in no file."""
        self._identity: tuple[int, ...] | None = None
        self._short = 0
        """Bytes to which the file could be shortened when that was looked at last."""
        self._faults: list[str] = []
        """Each line that is no record, and why."""
        self._torn = self._trouble = ""
        self._emit: Emit | None = None
        self._io = threading.RLock()
        self._looked_at: dict[str, str] = {}
        self._over: dict[str, Put] = {}

    @property
    def notice(self) -> str | None:
        """What the operator must know of the file, one sentence."""
        return self._trouble or "; ".join(filter(None, (self._faulty(), self._torn))) or None

    def _faulty(self) -> str:
        """Which lines are no records, "" where all are."""
        if len(self._faults) == 1:
            return f"{self._faults[0]}, so this line does not count, and all others do: mend it, or remove it"
        others = f" and {len(self._faults) - 1:,} more lines do not count, and all others do: mend or remove them"
        return f"{self._faults[0]};{others}" if self._faults else ""

    # What a screen does

    def begin(self) -> list[Event]:
        """Read the file for the first time, for a screen: what is there before the first of all is not new. Blocks."""
        with self._io:
            events = self.look()
            if self._began is None:
                self._began = self._clock()
                try:
                    events += self._write(self._beginning)[1] if self.is_kept else []
                except AsideError as error:
                    self._trouble = str(error)
                events.append(Looked(0, self._began))
            return events

    def start(self, emit: Emit) -> None:
        """Begin to watch. `emit` may be called in any thread."""
        self._emit = emit
        super().start(emit)

    def see(self, marks: Mapping[str, str]) -> None:
        """These tasks were looked at when they had these marks. Never blocks; it is written soon."""
        with self._news:
            self._looked_at |= marks
            self._news.notify()

    def end(self, over: Mapping[str, Put]) -> None:
        """These tasks are not any more what they were put aside as, if nobody has put them aside anew. Never blocks."""
        with self._news:
            self._over |= over
            self._news.notify()

    def look(self) -> list[Event]:
        """What has changed in the file since the call before. Blocks."""
        if self.path is None:
            return []
        with self._io:
            try:
                with self._place.open() as directory:
                    events = self._read_in(directory)
            except FileNotFoundError:
                self._torn = ""
                events = self._start_over(b"")
            except OSError as error:
                reason = error.strerror or str(error)
                self._trouble = f"what you have put aside cannot be read: {self.path}: {reason}; mend or remove it"
                return []
            self._trouble = ""
            return events

    # What the operator does. Each blocks and raises AsideError.

    def acknowledge(self, marks: Mapping[str, str], name: str = "") -> None:
        """Put these tasks aside as they are. Records of one `name` in several places belong together."""
        self._put(Record(Kind.ACKNOWLEDGE, self._clock(), dict(marks), name or new_name()))

    def snooze(self, marks: Mapping[str, str], until: float | None) -> None:
        """The same until a time (epoch seconds), or else until they change."""
        self._put(Record(Kind.SNOOZE, self._clock(), dict(marks), new_name(), until))

    def last(self) -> Record | None:
        """What an undo would take back now."""
        with self._io:
            self._tell(self.look())
            return self._book.last()

    def undo(self) -> Record | None:
        """Take back what was put aside last, here or elsewhere. Returns what that was, None if there was nothing."""
        return self._add(self._undoing)

    def _put(self, record: Record) -> None:
        self._add(lambda: record)

    def _undoing(self) -> Record | None:
        last = self._book.last()
        return None if last is None else Record(Kind.UNDO, self._clock(), undoes=last.name)

    def _ending(self, over: Mapping[str, Put]) -> Record | None:
        """That these are over, without those that were put aside anew since."""
        tasks = {task_id: put.mark for task_id, put in over.items() if self._book.aside(task_id).put == put}
        return Record(Kind.OVER, self._clock(), tasks) if tasks else None

    def _beginning(self) -> Record | None:
        """What the file begins with, where it does not."""
        if self._book.began is not None:
            return None
        return Record(Kind.BEGAN, self._clock() if self._began is None else self._began)

    def _tell(self, events: Sequence[Event]) -> None:
        if self._emit is not None and events:
            # The operator has left meanwhile.
            with suppress(RuntimeError):
                self._emit(events)

    # The file

    def _add(self, make: Callable[[], Record | None]) -> Record | None:
        """Add the record that is made of what is known, and hand on what has changed. Returns what could be undone
        before."""
        with self._io:
            if self.is_kept:
                last, events = self._write(make)
            else:
                events, last, record = self.look(), self._book.last(), make()
                if record is not None:
                    self._own.append(record)
                    events += self._observed(self._book.take(record))
            self._tell(events)
            return last

    def _write(self, make: Callable[[], Record | None]) -> tuple[Record | None, list[Event]]:
        """Add the record that is made of what the file holds, while nobody else writes. Returns what could be undone
        before, and what has changed. Raises AsideError."""
        try:
            with self._place.make() as directory, directory.locked():
                events = self._read_in(directory)
                last, record = self._book.last(), make()
                if record is None:
                    return last, events
                beginning = self._beginning() if record.kind is not Kind.BEGAN else None
                for one in filter(None, (beginning, record)):
                    events += self._append(directory, one)
                events += self._shorten(directory)
                self._identity = directory.identity(NAME)
        except OSError as error:
            reason = error.strerror or str(error)
            raise AsideError(
                f"nothing is put aside: {self.path} cannot be written: {reason}; see to that, and try again"
            ) from error
        self._trouble = ""
        return last, events

    def _append(self, directory: Directory, record: Record) -> list[Event]:
        line = written(record)
        end = b"" if self._is_ended else b"\n"
        directory.append(NAME, end + line, len(self._read) - len(end))
        self._torn = ""
        return self._take_in(self._read + line, is_ended=True)

    def _shorten(self, directory: Directory) -> list[Event]:
        """Write the file anew, if it is long and half of it counts no more. Returns what has changed by that."""
        if len(self._read) < max(_LONG, 2 * self._short):
            return []
        # What is no record stays: it is for the operator to look at.
        strange = [line for line in _lines(self._read) if not is_record(line)]
        data = b"".join([*map(written, self._book.shortened(self._clock())), *strange])
        self._short = len(data)
        if 2 * len(data) > len(self._read):
            return []
        directory.replace(NAME, data)
        return self._start_over(data)

    def _read_in(self, directory: Directory) -> list[Event]:
        """Take in what is new in the file. Raises OSError."""
        try:
            identity = directory.identity(NAME)
            if identity == self._identity:
                return []
            data = directory.read(NAME, _LARGEST)
        except FileNotFoundError:
            self._identity, self._torn = None, ""
            return self._start_over(b"")
        self._identity = identity
        end = data.rfind(b"\n") + 1
        # What breaks off is being written, or its writer was killed. An editor may leave out the last line's end.
        is_ended = not is_record(data[end:])
        self._torn = ""
        if is_ended and data[end:]:
            number = data.count(b"\n") + 1
            self._torn = (
                f"{self.path}, line {number} breaks off and does not count: what you put aside next replaces it"
            )
        data = data[:end] if is_ended else data + b"\n"
        take_in = self._take_in if data.startswith(self._read) else self._start_over
        return take_in(data, is_ended=is_ended)

    def _start_over(self, data: bytes, *, is_ended: bool = True) -> list[Event]:
        """Another file has taken the place of the one that was read, or none."""
        if not data and not self._read:
            return []
        before = self._book
        self._book, self._read, self._faults = Book(), b"", []
        events = [one for one in self._take_in(data, is_ended=is_ended) if isinstance(one, Looked)]
        for record in self._own:
            self._book.take(record)
        known = before.tasks() | self._book.tasks()
        return events + self._observed({one for one in known if before.aside(one) != self._book.aside(one)})

    def _take_in(self, data: bytes, *, is_ended: bool) -> list[Event]:
        """Take in what is behind the lines that were read."""
        changed: set[str] = set()
        for number, line in enumerate(_lines(data[len(self._read) :]), self._read.count(b"\n") + 1):
            try:
                changed |= self._book.take(read(line))
            except NoRecordError as error:
                self._faults.append(f"{self.path}, line {number}: {error}")
        self._read, self._is_ended = data, is_ended
        events = self._observed(changed)
        if self._book.began is not None and self._book.began != self._began:
            self._began = self._book.began
            events.append(Looked(0, self._began))
        return events

    def _observed(self, task_ids: set[str]) -> list[Event]:
        return [Noted(0, self._clock(), task_id, self._book.aside(task_id)) for task_id in sorted(task_ids)]

    # The thread

    def _run(self, emit: Emit) -> None:  # noqa: ARG002 - any thread tells
        with BELL.heard([] if self.path is None else [self.path.parent], self.ring):
            self._watch()

    def _watch(self) -> None:
        due = 0.0
        while True:
            with self._news:
                is_last = self._stopped
                looked_at, over = dict[str, str](), dict[str, Put]()
                if is_last or time.monotonic() >= due:
                    looked_at, self._looked_at = self._looked_at, {}
                    over, self._over = self._over, {}
            if looked_at or over:
                due = time.monotonic() + _BATCH_SECONDS
                try:
                    if over:
                        self._add(partial(self._ending, over))
                    if looked_at:
                        self._put(Record(Kind.SEEN, self._clock(), looked_at))
                except AsideError as error:
                    self._trouble, due = str(error), time.monotonic() + _RETRY_SECONDS
                    with self._news:
                        self._looked_at, self._over = looked_at | self._looked_at, over | self._over
            else:
                with self._io:
                    self._tell(self.look())
            with self._news:
                if is_last:
                    return
                often, seldom = _PAUSE_SECONDS
                if self._looked_at or self._over:
                    self._news.wait_for(lambda: self._stopped, min(due - time.monotonic(), often))
                elif not (self._stopped or self._rung):
                    self._news.wait(seldom if BELL.works else often)
                self._rung = False


def _lines(data: bytes) -> list[bytes]:
    """Whole lines, each with its end."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def new_name() -> str:
    """A name for records that belong together."""
    return secrets.token_hex(8)
