"""Seen, acknowledged and snoozed tasks, in the history's database; not decisions, and not shown to agents."""

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
from agentwatch.history.store import Database, UnusableError, select_rows

# The file of earlier versions, a JSON object per line; the next write imports and renames it.
OLD_NAME = "put-aside.jsonl"


class AcknowledgeError(AgentwatchError):
    """Nothing could be acknowledged or snoozed, and nothing was."""


class Acknowledgement(NamedTuple):
    """The tasks (ids) of one acknowledgement or snooze (`did`) at a time (epoch seconds), which an undo takes back."""

    name: str
    at: float
    did: str
    tasks: list[str]


class _Row(NamedTuple):
    """An operator's action on a task, as in the table `asides`; `mark` is the state that the operator saw."""

    kind: str
    at: float
    task_id: str = ""
    mark: str = ""
    name: str = ""
    until: float | None = None


class Acknowledgements(Pollable):
    """The acknowledgements of one workspace, in its state directory; any thread may call it."""

    def __init__(self, state: Path, *, clock: Callable[[], float] = time.time):
        self._database = Database(state)
        self._old = self._database.directory / OLD_NAME
        self._clock = clock
        self._began: float | None = None
        # The reported state: since when things are new, and each task's last action.
        self._known: dict[str, Aside] = {}
        self._signs: object = "none yet"  # differs from the file's stamp until it was read
        self._marked: deque[_Row] = deque()
        self._unread = self._unwritten = ""
        self._io = threading.RLock()

    @property
    def notice(self) -> str | None:  # type: ignore[override]
        return self._unread or self._unwritten or self._database.set_aside or None

    def begin(self) -> list[Event]:
        """Read for the first time, for a screen: everything before the very first time is not new. Blocks."""
        events = self.read_changes()
        if self._began is None:
            self._marked.append(_Row("began", self._clock()))
        return [*events, *self.poll()]

    def mark_seen(self, marks: Mapping[str, str]) -> None:
        """Note that these tasks were looked at with these marks; written soon."""
        self._marked.extend(_Row("seen", self._clock(), task_id, mark) for task_id, mark in marks.items())

    def poll(self) -> list[Event]:
        """Write the noted marks; return the changes since the last call, made here or elsewhere. Blocks."""
        with self._io:
            rows = [self._marked.popleft() for _ in range(len(self._marked))]
            try:
                self._add(rows)
            except AcknowledgeError as error:
                self._unwritten = str(error)
                self._marked.extendleft(reversed(rows))
            return self.read_changes()

    def read_changes(self) -> list[Event]:
        """Return the changes since the last call; blocks."""
        with self._io:
            signs = change_stamp(self._database.path)
            if signs == self._signs or (rows := self._rows()) is None:
                return []
            self._signs, before, was = signs, self._known, self._began
            self._began, self._known = began, known = _fold_rows(rows)
            changed = [one for one in sorted({*before, *known}) if known.get(one) != before.get(one)]
            events: list[Event] = [Noted(0, self._clock(), one, known.get(one, Aside())) for one in changed]
            return [*events, Looked(0, began)] if began not in (None, was) else events

    def _rows(self) -> list[_Row] | None:
        """Return all rows that were not undone; None if they cannot be read."""
        try:
            rows = [*_read_old(self._old), *(self._database.read(_select_rows) or ())]
        except (UnusableError, OSError) as error:
            self._unread = f"what you have put aside cannot be read: {error}"
            return None
        self._unread = ""
        undone = {row.name for row in rows if row.kind == "undo"}
        return [row for row in rows if row.name not in undone]

    # Actions of the operator. Each blocks and raises AcknowledgeError.

    def acknowledge(self, marks: Mapping[str, str], name: str = "") -> None:
        """Put these tasks aside as they are; calls with the same `name`, in several workspaces, belong together."""
        self._put("acknowledge", marks, name or new_name())

    def snooze(self, marks: Mapping[str, str], until: float | None) -> None:
        """Put these tasks aside until a time (epoch seconds), or else until they change."""
        self._put("snooze", marks, new_name(), until)

    def last(self) -> Acknowledgement | None:
        """Return the acknowledgement that an undo would take back now, or None."""
        rows = self._rows() or []
        name = next((row.name for row in reversed(rows) if row.name), None)
        if name is None:
            return None
        last = [row for row in rows if row.name == name]
        did = "snoozed" if last[0].kind == "snooze" else "acknowledged"
        return Acknowledgement(name, last[0].at, did, [row.task_id for row in last])

    def undo(self) -> Acknowledgement | None:
        """Take back the last acknowledgement, made here or elsewhere; return it, None if there was none."""
        if (last := self.last()) is not None:
            self._add([_Row("undo", self._clock(), name=last.name)])
        return last

    def _put(self, kind: str, marks: Mapping[str, str], name: str, until: float | None = None) -> None:
        now = self._clock()
        self._add([_Row(kind, now, task_id, mark, name, until) for task_id, mark in marks.items()])

    def _add(self, rows: Sequence[_Row]) -> None:
        if not rows:
            return
        with self._io:
            try:
                self._database.write(lambda connection: _insert_rows(connection, [*_read_old(self._old), *rows]))
                with suppress(FileNotFoundError):
                    self._old.rename(self._old.with_suffix(".imported.jsonl"))
            except (UnusableError, OSError) as error:
                raise AcknowledgeError(f"nothing is put aside: {error}; see to that, and try again") from error
            self._unwritten = ""
        self.wake()


def new_name() -> str:
    """Return a name for acknowledgements that belong together."""
    return secrets.token_hex(8)


def _read_old(path: Path) -> Iterable[_Row]:
    """Yield the rows of an earlier version's file, if any, without unreadable lines; raise OSError."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
            fields = json.loads(line)
            name, until = fields.get("undoes") or fields.get("name", ""), fields.get("until")
            for task_id, mark in (fields.get("tasks") or {"": ""}).items():
                yield _Row(fields["record"], float(fields["at"]), task_id, str(mark), str(name), until and float(until))


def _fold_rows(rows: Sequence[_Row]) -> tuple[float | None, dict[str, Aside]]:
    """Return (since when things are new, each task's last actions); `over` of earlier versions is ignored."""
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
    rows = select_rows(connection, "SELECT kind, at, task_id, mark, name, until FROM asides ORDER BY id")
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
