"""Stores in the history which tasks the operator has seen, acknowledged or snoozed. Agents never see this."""

import json
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentwatch.background import Pollable
from agentwatch.delegation.events import Aside, Event, Looked, Noted, Put
from agentwatch.disk import change_stamp
from agentwatch.errors import AgentwatchError
from agentwatch.history.store import Database, UnusableError, query

# Earlier versions wrote this file, with one JSON object a line. The next write imports and renames it.
OLD_NAME = "put-aside.jsonl"


class AcknowledgeError(AgentwatchError):
    """An acknowledgement could not be written. No task was acknowledged or snoozed."""


class Acknowledgement(NamedTuple):
    """The ids of tasks that were acknowledged or snoozed together at a time. `did` is the action."""

    name: str
    at: float
    did: str
    tasks: list[str]


class _Row(NamedTuple):
    """A row of the table `asides`: an action of the operator on a task. `mark` is the state that the operator saw."""

    kind: str
    at: float
    task_id: str = ""
    mark: str = ""
    name: str = ""
    until: float | None = None


class Acknowledgements(Pollable):
    """The acknowledgements of one workspace. Any thread may call the methods."""

    def __init__(self, state: Path, *, clock: Callable[[], float] = time.time):
        self._database = Database(state)
        self._old = self._database.directory / OLD_NAME
        self._clock = clock
        # The last reported state: the time since which tasks are new, and the last action on each task.
        self._began: float | None = None
        self._known: dict[str, Aside] = {}
        self._stamp: object = "none yet"  # differs from every stamp of a file
        self._unwritten_rows: deque[_Row] = deque()
        self._read_problem = self._write_problem = ""
        self._lock = threading.RLock()

    @property
    def notice(self) -> str | None:  # type: ignore[override]
        return self._read_problem or self._write_problem or self._database.set_aside or None

    def read_first(self) -> list[Event]:
        """Return the stored acknowledgements. The very first start records a time: older tasks are not new. Blocks."""
        events = self.read_changes()
        if self._began is None:
            self._unwritten_rows.append(_Row("began", self._clock()))
        return [*events, *self.poll()]

    def mark_seen(self, marks: Mapping[str, str]) -> None:
        """Remember that the operator looked at these tasks. `poll` writes this to the disk."""
        self._unwritten_rows.extend(_Row("seen", self._clock(), task_id, mark) for task_id, mark in marks.items())

    def poll(self) -> list[Event]:
        """Write the remembered rows. Return the changes since the last call, also those by other processes. Blocks."""
        with self._lock:
            rows = [self._unwritten_rows.popleft() for _ in range(len(self._unwritten_rows))]
            try:
                self._write_rows(rows)
            except AcknowledgeError as error:
                self._write_problem = str(error)
                self._unwritten_rows.extendleft(reversed(rows))
            return self.read_changes()

    def read_changes(self) -> list[Event]:
        """Return the changes since the last call, also changes by other processes. Blocks."""
        with self._lock:
            stamp = change_stamp(self._database.path)
            if stamp == self._stamp or (rows := self._read_rows()) is None:
                return []
            self._stamp, before, was = stamp, self._known, self._began
            self._began, self._known = began, known = _fold_rows(rows)
            changed = [one for one in sorted({*before, *known}) if known.get(one) != before.get(one)]
            events: list[Event] = [Noted(0, self._clock(), one, known.get(one, Aside())) for one in changed]
            return [*events, Looked(0, began)] if began not in (None, was) else events

    def _read_rows(self) -> list[_Row] | None:
        """Return all rows that were not undone. Return None if the rows cannot be read."""
        try:
            rows = [*_read_old(self._old), *(self._database.read(_select_rows) or ())]
        except (UnusableError, OSError) as error:
            self._read_problem = f"what you have put aside cannot be read: {error}"
            return None
        self._read_problem = ""
        undone = {row.name for row in rows if row.kind == "undo"}
        return [row for row in rows if row.name not in undone]

    # Actions of the operator. Each method blocks, and may raise AcknowledgeError.

    def acknowledge(self, marks: Mapping[str, str], name: str = "") -> None:
        """Acknowledge these tasks in their current state. Calls with the same `name` are undone together."""
        self._put_aside("acknowledge", marks, name or new_name())

    def snooze(self, marks: Mapping[str, str], until: float | None) -> None:
        """Snooze these tasks until a time in epoch seconds. If `until` is None, snooze them until they change."""
        self._put_aside("snooze", marks, new_name(), until)

    def find_last(self) -> Acknowledgement | None:
        """Return the latest acknowledgement or snooze that was not undone. Return None if there is none."""
        rows = self._read_rows() or []
        name = next((row.name for row in reversed(rows) if row.name), None)
        if name is None:
            return None
        last = [row for row in rows if row.name == name]
        did = "snoozed" if last[0].kind == "snooze" else "acknowledged"
        return Acknowledgement(name, last[0].at, did, [row.task_id for row in last])

    def undo(self) -> Acknowledgement | None:
        """Undo the latest acknowledgement or snooze, and return it. Return None if there was none."""
        if (last := self.find_last()) is not None:
            self._write_rows([_Row("undo", self._clock(), name=last.name)])
        return last

    def _put_aside(self, kind: str, marks: Mapping[str, str], name: str, until: float | None = None) -> None:
        now = self._clock()
        self._write_rows([_Row(kind, now, task_id, mark, name, until) for task_id, mark in marks.items()])

    def _write_rows(self, rows: Sequence[_Row]) -> None:
        if not rows:
            return
        with self._lock:
            try:
                self._database.write(lambda connection: _insert_rows(connection, [*_read_old(self._old), *rows]))
                with suppress(FileNotFoundError):
                    self._old.rename(self._old.with_suffix(".imported.jsonl"))
            except (UnusableError, OSError) as error:
                raise AcknowledgeError(f"nothing is put aside: {error}; see to that, and try again") from error
            self._write_problem = ""
        self.wake()


def new_name() -> str:
    """Return a new random name for acknowledgements that are undone together."""
    return secrets.token_hex(8)


def _read_old(path: Path) -> Iterable[_Row]:
    """Yield the readable rows of the file that earlier versions wrote. Raise OSError if the file cannot be read."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
            fields = json.loads(line)
            name, until = fields.get("undoes") or fields.get("name", ""), fields.get("until")
            for task_id, mark in (fields.get("tasks") or {"": ""}).items():
                yield _Row(fields["record"], float(fields["at"]), task_id, str(mark), str(name), until and float(until))


def _fold_rows(rows: Sequence[_Row]) -> tuple[float | None, dict[str, Aside]]:
    """Return the time since which tasks are new, and the last actions on each task."""
    began, known = None, dict[str, Aside]()
    for kind, at, task_id, mark, _, until in rows:
        put, seen = known.get(task_id, Aside())
        match kind:
            case "began":
                began = at if began is None else began
            case "seen":
                known[task_id] = Aside(put, mark)
            case "acknowledge" | "snooze":
                known[task_id] = Aside(Put(mark, at, kind == "snooze", until), seen)
    return began, known


def _select_rows(connection: sqlite3.Connection) -> list[_Row]:
    rows = query(connection, "SELECT kind, at, task_id, mark, name, until FROM asides ORDER BY id")
    return [_Row(kind, at, str(task_id, "utf-8", "surrogatepass"), *more) for kind, at, task_id, *more in rows]


def _insert_rows(connection: sqlite3.Connection, rows: Sequence[_Row]) -> None:
    values = [(*row[:2], row.task_id.encode("utf-8", "surrogatepass"), *row[3:]) for row in rows]
    connection.executemany(
        "DELETE FROM asides WHERE kind = 'seen' AND task_id = ?",
        [(value[2],) for value in values if value[0] == "seen"],
    )
    connection.executemany(
        "INSERT INTO asides (kind, at, task_id, mark, name, until) VALUES (?, ?, ?, ?, ?, ?)", values
    )
