"""Looked at, acknowledged and snoozed tasks, for all screens and commands, in the history's database.

Nothing of it is a decision, nothing of it is signed, and nothing of it reaches an agent or the workspace.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.background import Background
from agentwatch.delegation.events import Event, Looked, Noted
from agentwatch.delegation.task import Aside, Put
from agentwatch.disk import Directory, change_stamp
from agentwatch.errors import AgentwatchError
from agentwatch.history import OLD_NAME
from agentwatch.history.database import Database, UnusableError, select

IMPORTED_NAME: Final = "put-aside.imported.jsonl"
_LARGEST: Final = 32 * 1024 * 1024

_PAUSE_SECONDS: Final = 1.0
"""Between two looks at the file, and between two records of what was looked at."""
_MOST: Final = 100_000
"""Rows that are kept. What is older than them is not new."""

Emit = Callable[[Sequence[Event]], None]


class AcknowledgeError(AgentwatchError):
    """Nothing could be acknowledged or snoozed, and nothing was."""


class Acknowledgement(NamedTuple):
    """The acknowledgement that an undo takes back: tasks by their ids, acknowledged or snoozed at a time
    (epoch seconds)."""

    name: str
    at: float
    snoozed: bool
    tasks: list[str]

    @property
    def did(self) -> str:
        """The kind of change, in a word."""
        return "snoozed" if self.snoozed else "acknowledged"


class _Row(NamedTuple):
    """What was done to a task: acknowledge, snooze, over (it is aside no more), or seen; began and undo are of none.

    `mark` is what the task looked like. An acknowledgement or a snooze has a `name`, and the undo of it the same.
    """

    kind: str
    at: float
    task_id: str = ""
    mark: str = ""
    name: str = ""
    until: float | None = None


class Acknowledgements(Background[Sequence[Event]]):
    """Those of one workspace, in its state directory. Any thread may call it.

    Without `state`, or if it may not be written (`writes`), they count here only, for as long as this lives. From
    `start` to `stop` a thread watches the file and emits what has changed, here or elsewhere.
    """

    thread_name = "agentwatch-aside"

    def __init__(self, state: Path | None, *, writes: bool = True, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        # Without a state directory there is nothing there, and nothing is written.
        self._database = Database(state or Path(os.devnull))
        self._old = self._database.directory / OLD_NAME
        self.is_kept: Final = writes and state is not None
        """Whether they outlive this."""
        self._clock = clock
        self._own: list[_Row] = []
        """Those that count here only."""
        self._began: float | None = None
        self._known: dict[str, Aside] = {}
        self._last: Acknowledgement | None = None
        self._signs: object = None
        """Others once something may have changed."""
        self._problem = ""
        self._emit: Emit | None = None
        self._io = threading.RLock()
        self._seen: dict[str, str] = {}
        self._over: dict[str, Put] = {}

    @property
    def notice(self) -> str | None:
        """A message for the operator, one sentence."""
        return self._problem or self._database.set_aside or None

    # What a screen does

    def begin(self) -> list[Event]:
        """Read for the first time, for a screen: what is there before the first of all is not new. Blocks."""
        with self._io:
            events = self.read_changes()
            if self._began is None:
                began = self._clock()
                try:
                    events += self._add([_Row("began", began)])
                except AcknowledgeError as error:
                    self._problem, self._began = str(error), began
                    events.append(Looked(0, began))
            return events

    def start(self, emit: Emit) -> None:
        """Begin to watch. `emit` may be called in any thread."""
        self._emit = emit
        super().start(emit)

    def mark_seen(self, marks: Mapping[str, str]) -> None:
        """These tasks were looked at when they had these marks. Never blocks; it is written soon."""
        with self._news:
            self._seen |= marks

    def mark_over(self, over: Mapping[str, Put]) -> None:
        """These tasks are not any more what they were put aside as, if nobody has put them aside anew. Never blocks."""
        with self._news:
            self._over |= over

    def read_changes(self) -> list[Event]:
        """Changes since the call before. Blocks."""
        with self._io:
            signs = change_stamp(self._database.path), change_stamp(self._old), len(self._own)
            if signs == self._signs:
                return []
            try:
                rows = [*self._old_rows(), *(self._database.read(_rows) or ()), *self._own]
            except (UnusableError, OSError) as error:
                self._problem = f"what you have put aside cannot be read: {error}"
                return []
            self._signs, self._problem = signs, ""
            began, self._last, known = _fold(rows)
            before, self._known, now = self._known, known, self._clock()
            events: list[Event] = [
                Noted(0, now, one, known.get(one, Aside()))
                for one in sorted({*before, *known})
                if before.get(one, Aside()) != known.get(one, Aside())
            ]
            if began is not None and began != self._began:
                self._began = began
                events.append(Looked(0, began))
            return events

    # What the operator does. Each blocks and raises AcknowledgeError.

    def acknowledge(self, marks: Mapping[str, str], name: str = "") -> None:
        """Put these tasks aside as they are. Those of one `name` in several places belong together."""
        self._put("acknowledge", marks, name or new_name())

    def snooze(self, marks: Mapping[str, str], until: float | None) -> None:
        """The same until a time (epoch seconds), or else until they change."""
        self._put("snooze", marks, new_name(), until)

    def last(self) -> Acknowledgement | None:
        """The acknowledgement that an undo would take back now."""
        self._emit_all(self.read_changes())
        return self._last

    def undo(self) -> Acknowledgement | None:
        """Take back what was put aside last, here or elsewhere. Returns what that was, None if there was nothing."""
        if (last := self.last()) is not None:
            self._emit_all(self._add([_Row("undo", self._clock(), name=last.name)]))
        return last

    def _put(self, kind: str, marks: Mapping[str, str], name: str = "", until: float | None = None) -> None:
        now = self._clock()
        self._emit_all(self._add([_Row(kind, now, task_id, mark, name, until) for task_id, mark in marks.items()]))

    def _emit_all(self, events: Sequence[Event]) -> None:
        if self._emit is not None and events:
            # The operator has left meanwhile.
            with suppress(RuntimeError):
                self._emit(events)

    def _add(self, rows: Sequence[_Row]) -> list[Event]:
        """Add these. Returns what has changed."""
        with self._io:
            if not self.is_kept:
                self._own += rows
                return self.read_changes()
            began = [_Row("began", self._began)] if self._began is not None and not self._known else []
            try:
                self._database.write(lambda connection: _insert(connection, [*self._old_rows(), *began, *rows]))
                with suppress(FileNotFoundError):
                    self._old.rename(self._old.with_name(IMPORTED_NAME))
            except (UnusableError, OSError) as error:
                raise AcknowledgeError(f"nothing is put aside: {error}; see to that, and try again") from error
            self._problem = ""
            return self.read_changes()

    def _old_rows(self) -> list[_Row]:
        """Those of an earlier version; a strange line costs no more than itself. Raises OSError."""
        rows: list[_Row] = []
        with suppress(FileNotFoundError, NotADirectoryError), Directory.open(self._old.parent) as directory:
            for line in directory.read(OLD_NAME, _LARGEST).splitlines():
                with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
                    fields = json.loads(line)
                    until = None if fields.get("until") is None else float(fields["until"])
                    name = fields.get("undoes") or fields.get("name", "")
                    marks = fields.get("tasks") or {"": ""}
                    row = _Row(str(fields["record"]), float(fields["at"]), name=str(name), until=until)
                    rows += [row._replace(task_id=one, mark=str(mark)) for one, mark in marks.items()]
        return rows

    # The thread

    def _run(self, emit: Emit) -> None:  # noqa: ARG002  any thread tells
        is_last = False
        while not is_last:
            with self._news:
                is_last = self._news.wait_for(lambda: self._stopped, _PAUSE_SECONDS)
                seen, self._seen = self._seen, {}
                over, self._over = self._over, {}
            with self._io:
                self._emit_all(self.read_changes())
                # But for the tasks that were put aside anew since.
                gone = {one: put.mark for one, put in over.items() if self._known.get(one, Aside()).put == put}
                try:
                    if gone:
                        self._put("over", gone)
                    if seen:
                        self._put("seen", seen)
                except AcknowledgeError as error:
                    self._problem = str(error)
                    with self._news:
                        self._seen, self._over = seen | self._seen, over | self._over


def new_name() -> str:
    """A name for acknowledgements that belong together."""
    return secrets.token_hex(8)


def _fold(rows: Sequence[_Row]) -> tuple[float | None, Acknowledgement | None, dict[str, Aside]]:
    """Since when things are new, what an undo takes back, and what is known of each task."""
    undone = {row.name for row in rows if row.kind == "undo"}
    rows = [row for row in rows if row.name not in undone]
    began, known = None, dict[str, Aside]()
    for kind, at, task_id, mark, _, until in rows:
        put, seen = known.get(task_id, Aside())
        match kind:
            case "began":
                began = at
            case "seen":
                known[task_id] = Aside(put, mark)
            case "over":
                # If it comes back as it was, it is new, too.
                known[task_id] = Aside(None, "" if seen in (None, mark) else seen)
            case "acknowledge" | "snooze":
                known[task_id] = Aside(Put(mark, at, kind == "snooze", until), seen)
    name = next((row.name for row in reversed(rows) if row.name), None)
    last = [row for row in rows if name and row.name == name]
    tasks = [row.task_id for row in last]
    return began, Acknowledgement(name, last[0].at, last[0].kind == "snooze", tasks) if name else None, known


def _rows(connection: sqlite3.Connection) -> list[_Row]:
    rows = select(connection, "SELECT kind, at, task_id, mark, name, until FROM asides ORDER BY id")
    return [_Row(kind, at, str(task_id, "utf-8", "surrogatepass"), *more) for kind, at, task_id, *more in rows]


def _insert(connection: sqlite3.Connection, rows: Sequence[_Row]) -> None:
    values = [(*row[:2], row.task_id.encode("utf-8", "surrogatepass"), *row[3:]) for row in rows]
    connection.executemany(
        "DELETE FROM asides WHERE kind = 'seen' AND task_id = ?",
        [(value[2],) for value in values if value[0] == "seen"],
    )
    connection.executemany(
        "INSERT INTO asides (kind, at, task_id, mark, name, until) VALUES (?, ?, ?, ?, ?, ?)", values
    )
    many = "DELETE FROM asides WHERE id <= (SELECT max(id) FROM asides) - ?"
    if connection.execute(many, (_MOST,)).rowcount:
        connection.execute("INSERT INTO asides (kind, at) SELECT 'began', min(at) FROM asides")
