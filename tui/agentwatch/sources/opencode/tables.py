"""The tables of OpenCode and Kilo Code, of any version: rows in one shape, with nothing where a column is missing.

`session`, `message`, `part` and `todo` hold what is now, in `message` and `part` as JSON in `data`. `event` holds what
has happened, numbered by `seq` without gaps in each session, and `event_sequence` the last numbers; the first versions
lack both. OpenCode 2 has `session_v2`, and the newer API of OpenCode 1 `session_message`: these are only counted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple

from agentwatch.sources.sessions.fields import Fields, text

RecordKind = Literal["message", "part"]

LATEST: Final = 1 << 43
"""Milliseconds, in the year 2248. No program has written anything later."""
LARGEST_RECORD: Final = 4 * 1024 * 1024
"""Characters of JSON. What was handed over or back is a few KiB; only attached files are larger."""

_USED: Final = {
    "session": ("id", "parent_id", "directory", "title", "agent", "time_created", "time_updated"),
    "message": ("id", "session_id", "time_created", "time_updated", "data"),
    "part": ("id", "session_id", "message_id", "time_created", "time_updated", "data"),
    "todo": ("session_id", "content", "status", "position", "time_updated"),
    "event": ("aggregate_id", "seq", "type", "data"),
    "event_sequence": ("aggregate_id", "seq"),
    "session_v2": ("directory",),
    "session_message": ("session_id",),
}
_ROW: Final = "rowid"
_KEYS: Final = {
    "session": frozenset({"id", "directory"}),
    "message": frozenset({"id", "session_id", "data"}),
    "part": frozenset({"id", "session_id", "message_id", "data"}),
}
"""Without these columns nothing can be made of a table."""
_KINDS: Final[tuple[RecordKind, ...]] = ("message", "part")

_MOST_TODOS: Final = 500


class TableColumns(NamedTuple):
    """Which columns a database has, by table: only those that are used."""

    tables: dict[str, frozenset[str]]

    def has(self, table: str) -> bool:
        """Whether there is enough of a table to make something of it."""
        return _KEYS[table] <= self.tables[table]

    @property
    def has_words(self) -> bool:
        """Whether what sessions say can be read."""
        return all(map(self.has, _KINDS))

    @property
    def lacking(self) -> str:
        """What is not where it is known to be, "session.agent, part" for a column and a table; "" where all is."""
        lacking: list[str] = []
        for table in _KEYS if self.tables else ():
            columns = [f"{table}.{column}" for column in _USED[table] if column not in self.tables[table]]
            lacking += columns if self.has(table) else [table]
        return ", ".join(lacking)

    @property
    def has_events(self) -> bool:
        """Whether changes can be told by their numbers."""
        return all(self.tables.get(table, frozenset()) >= {*_USED[table]} for table in ("event", "event_sequence"))

    def of(self, table: str) -> list[str]:
        """The columns of a row that is selected, in one order, with NULL for those that are not there."""
        there = self.tables.get(table, frozenset())
        return [f"{table}.{column}" if column in there else "NULL" for column in _USED[table]]


class SessionRow(NamedTuple):
    """A session. Times are in milliseconds; `version` changes with whatever belongs to it, `seq` is its last event."""

    id: str
    parent_id: str | None
    title: str | None
    agent: str | None
    created: int
    updated: int
    seq: int | None
    version: tuple[object, ...]


class RecordRow(NamedTuple):
    """A message, or a part of `message_id`. Times are in milliseconds. `is_lost`: its `data` are no JSON object, and
    empty here; `is_cut`: it was too large to be read whole. `row` rises in the order in which they were written."""

    id: str
    message_id: str | None
    updated: int
    created: int
    data: Fields
    is_lost: bool = False
    is_cut: bool = False
    row: int = 0


def columns_of(connection: sqlite3.Connection) -> TableColumns:
    """Look which tables and columns there are."""
    tables = {}
    for table, used in _USED.items():
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        tables[table] = frozenset(column for column in used if column in there)
        with suppress(sqlite3.OperationalError):  # a table may have none
            connection.execute(f"SELECT rowid FROM {table} LIMIT 0")  # noqa: S608
            tables[table] |= {_ROW}
    return TableColumns(tables)


class Tables:
    """Queries in one look. All of them raise sqlite3.Error."""

    def __init__(self, connection: sqlite3.Connection, columns: TableColumns) -> None:
        self.columns = columns
        self._connection = connection

    def sessions(
        self,
        directories: Sequence[str],
        others: Sequence[str] = (),
    ) -> Sequence[SessionRow]:
        """The sessions of some directories and what is below them, but for `others` and what is below those; and their
        children wherever those work."""
        if not self.columns.has("session"):
            return ()
        there = self.columns.tables
        places, bounds = _within(directories)
        if others:
            beyond, more = _within(others)
            places, bounds = f"({places}) AND NOT ({beyond})", [*bounds, *more]
        ours = f"SELECT id FROM session WHERE {places}"  # noqa: S608
        if "parent_id" in there["session"]:
            ours += " UNION SELECT session.id FROM session JOIN ours ON session.parent_id = ours.id"
        numbered = self.columns.has_events
        last = "(SELECT seq FROM event_sequence WHERE aggregate_id = session.id)" if numbered else "NULL"
        marks = [_sum_of(kind, "time_updated" in there[kind]) for kind in _KINDS if self.columns.has(kind)]
        alive = _ALIVE if "time_updated" in there["session"] else "TRUE"
        marks = [last, *(f"CASE WHEN {last} IS NULL AND {alive} THEN {mark} END" for mark in marks)]
        if "session_id" in there["todo"]:
            marks.append(_sum_of("todo", "time_updated" in there["todo"]))
        rows = self._connection.execute(
            f"WITH RECURSIVE ours(id) AS ({ours}) "  # noqa: S608 (names of columns, all from here)
            f"SELECT {', '.join([*self.columns.of('session'), *marks])} FROM session WHERE id IN ours",
            bounds,
        )
        return [session for row in rows if (session := _session(row)) is not None]

    def later_sessions(self, directories: Sequence[str]) -> int:
        """How many sessions of some directories, and below, are those of OpenCode 2."""
        if "directory" not in self.columns.tables["session_v2"]:
            return 0
        places, bounds = _within(directories)
        count: int = self._connection.execute(f"SELECT count(*) FROM session_v2 WHERE {places}", bounds).fetchone()[0]  # noqa: S608
        return count

    def has_later_messages(self, session: str) -> bool:
        """Whether the messages of a session are kept as OpenCode 2 keeps them."""
        if "session_id" not in self.columns.tables["session_message"]:
            return False
        rows = self._connection.execute("SELECT 1 FROM session_message WHERE session_id = ? LIMIT 1", (session,))
        return rows.fetchone() is not None

    def has_session(self, session: str) -> bool:
        """Whether there is such a session, of any directory."""
        return self._connection.execute("SELECT 1 FROM session WHERE id = ?", (_sound(session),)).fetchone() is not None

    def directory(self, session: str) -> str:
        """Where a session works, "" where that is not told."""
        if not self.columns.has("session"):
            return ""
        row = self._connection.execute("SELECT directory FROM session WHERE id = ?", (_sound(session),)).fetchone()
        return row[0] if row is not None and isinstance(row[0], str) else ""

    def records(self, kind: RecordKind, session: str) -> list[RecordRow]:
        """All messages, or parts, of a session, in the order of their ids, which is that of time."""
        if not self.columns.has(kind):
            return []
        try:
            found = self._records(kind, "session_id = ?", session)
        except sqlite3.DataError:
            # One of them is larger than SQLite was allowed to hold.
            query = f"SELECT id FROM {kind} WHERE session_id = ?"  # noqa: S608
            ids = [row[0] for row in self._connection.execute(query, (session,)) if isinstance(row[0], str)]
            found = [one for name in ids if (one := self.record(kind, name)) is not None]
        return sorted(found)

    def record(self, kind: RecordKind, name: str) -> RecordRow | None:
        """A message or a part as it is now, None where it is not there any more."""
        try:
            return next(iter(self._records(kind, "id = ?", name)), None)
        except sqlite3.DataError:
            return RecordRow(name, None, 0, 0, {}, is_lost=True, is_cut=True)

    def _records(self, kind: RecordKind, where: str, name: str) -> list[RecordRow]:
        *columns, data = self.columns.of(kind)
        place = _ROW if _ROW in self.columns.tables[kind] else "0"
        rows = self._connection.execute(
            f"SELECT {', '.join(columns)}, {_CUT.format(data=data)}, length({data}) > {LARGEST_RECORD}, {place} "  # noqa: S608
            f"FROM {kind} WHERE {where}",
            (_sound(name),),
        )
        found: list[RecordRow] = []
        for row in rows:
            *_, created, updated, text, is_cut, number = row
            message, fields = row[2] if kind == "part" else row[0], _object(text)
            if isinstance(row[0], str):
                message_id = message if isinstance(message, str) else None
                times, is_lost = (_time(updated), _time(created)), fields is None
                found.append(RecordRow(row[0], message_id, *times, fields or {}, is_lost, bool(is_cut), number))
        return found

    def todos(self, session: str) -> list[tuple[str, str]]:
        """(text, status) of the checklist of a session, in its order."""
        there = self.columns.tables["todo"]
        if not {"session_id", "content", "status"} <= there:
            return []
        order = "position" if "position" in there else "rowid"
        rows = self._connection.execute(
            f"SELECT content, status FROM todo WHERE session_id = ? ORDER BY {order} LIMIT {_MOST_TODOS}",  # noqa: S608
            (session,),
        )
        return [(words, status) for words, status in rows if isinstance(words, str) and isinstance(status, str)]


def _sound(name: str) -> str:
    """A name that may hold half a character, which SQLite does not take."""
    return name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _within(directories: Sequence[str]) -> tuple[str, list[str]]:
    """The condition that a directory is one of some or below, and its parameters."""
    places = " OR ".join("directory = ? OR (directory >= ? AND directory < ?)" for _ in directories)
    bounds = [bound for place in directories for bound in (place, f"{place.rstrip('/')}/", f"{place.rstrip('/')}0")]
    return places, bounds


_CUT: Final = (
    f"CASE WHEN length({{data}}) <= {LARGEST_RECORD} THEN {{data}} WHEN json_valid({{data}}) THEN "
    "json_object('type', json_extract({data}, '$.type'), 'tool', json_extract({data}, '$.tool')) END"
)


_ALIVE: Final = "time_updated > (SELECT max(time_updated) FROM session) - 86400000"
"""Sessions that were touched within a day of the last one: without events, only these are looked through."""


def _sum_of(table: str, is_timed: bool) -> str:
    """What differs after any change of the rows of a session, for all one can tell without reading them."""
    times = "sum(time_updated % 1000000007)" if is_timed else "0"
    return f"(SELECT count(*) || ' ' || {times} FROM {table} WHERE session_id = session.id)"  # noqa: S608


def _session(row: tuple[object, ...]) -> SessionRow | None:
    fields = dict(zip((*_USED["session"], "seq"), row, strict=False))
    name, seq = fields["id"], fields["seq"]
    if not isinstance(name, str):
        return None
    parent_id, title, agent = (text(fields, key) for key in ("parent_id", "title", "agent"))
    created, updated = _time(fields["time_created"]), _time(fields["time_updated"])
    return SessionRow(name, parent_id, title, agent, created, updated, seq if isinstance(seq, int) else None, row)


def _time(value: object) -> int:
    """Milliseconds; 0 where there are none. What is far from our days is none."""
    return value if isinstance(value, int) and 0 <= value < LATEST else 0


def _object(data: object) -> Fields | None:
    try:
        value = json.loads(data) if isinstance(data, (str, bytes)) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
