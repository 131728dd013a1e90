"""A database of OpenCode or Kilo Code, read without leaving a trace: no lock that lasts, no file, no byte. A connection
is opened for one look and closed again: one that stays open keeps the program from removing its log. Beside a log with
its shared memory, `readonly_shm=1` makes no file. Without a log or journal the file is read as if nobody could write
it, and the look is void where somebody did. To a log alone, as in a copy, SQLite adds its memory."""

import fcntl
import json
import os
import sqlite3
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from agentwatch.sources.sessions.fields import Fields, object_in
from agentwatch.sources.sessions.processes import is_of_this_system
from agentwatch.sources.sessions.tail import Stamp

LARGEST_RECORD = 16 * 1024 * 1024  # characters of JSON: only attached files are larger
_LATEST = 1 << 43  # milliseconds, in the year 2248. No program has written anything later.

_BUSY_SECONDS = 0.1
_LONGEST_LOOK = 5.0  # seconds: a crafted database can keep a query busy for ever
_STEPS = 100_000  # of SQLite's machine between two looks at the clock: a few milliseconds
_USERS_LOCK = 128  # byte of `-shm` that everybody locks who has the database open: UNIX_SHM_DMS
_ASK_FOR_LOCK: int | None = getattr(fcntl, "F_OFD_GETLK", None)
"""Asks for the locks of all processes, this one included. Only Linux has it."""
_LOCK = "hhqqi"  # struct flock: kind, origin, first byte, length, process

Signature = tuple[Stamp | None, ...]


class SessionRow(NamedTuple):
    """A session. Times are in epoch seconds; `mark` changes with whatever belongs to it."""

    id: str
    parent_id: str | None
    title: str
    created: float
    mark: tuple[object, ...]


class Record(NamedTuple):
    """A message, or a part of `message_id`, which is "" for a message. Times are in epoch seconds, 0 for none. `data`
    is empty where it is no JSON object or too large; `row` rises in the order in which they were first written."""

    id: str
    message_id: str
    created: float
    updated: float
    data: Fields
    row: int


class ForeignDatabase:
    """A database of another program."""

    def __init__(self, path: Path) -> None:
        self._given = path
        self._shared: int | None = None  # of `-shm`; closing it would drop the locks that this process has on it

    @property
    def _path(self) -> str:
        """Where a link leads: its program finds the log there."""
        return os.path.realpath(self._given)

    def signature(self) -> Signature:
        """Of the database, its log and its journal; None for each that is not there. It changes with each write, unless
        it comes in the same tick of the clock as another."""
        return tuple(_stamp(self._path + suffix) for suffix in ("", "-wal", "-journal"))

    @contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """One consistent look, which any thread may have. Raises OSError and sqlite3.Error."""
        path, before = self._path, self.signature()
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            raise OSError("it is no regular file")
        is_closed = before[1:] == (None, None)
        is_shared = before[1] is not None and os.path.exists(f"{path}-shm")
        options = "&immutable=1" if is_closed else "&readonly_shm=1" if is_shared else ""
        address = f"file:{quote(os.fsencode(path))}?mode=ro{options}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        try:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            end = time.monotonic() + _LONGEST_LOOK
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            # Not `trusted_schema = OFF`: Kilo has an index on json_extract, and its schema would be called malformed.
            connection.executescript("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; BEGIN")
            yield connection
        finally:
            connection.close()
        if is_closed and self.signature() != before:
            raise OSError("it changed while it was read")

    def has_users(self) -> bool | None:
        """Whether some process has the database open; None where that cannot be told."""
        path = self._path
        try:
            if _ASK_FOR_LOCK is None:
                return None
            if not os.path.exists(f"{path}-shm"):
                # The last one who closes it removes what belongs to the log; a file without one says nothing.
                with open(path, "rb") as file:  # noqa: PTH123
                    return False if file.read(19)[18:] == b"\2" else None
            if self._shared is None or not os.path.samestat(os.fstat(self._shared), os.stat(f"{path}-shm")):  # noqa: PTH116
                self.close()
                self._shared = os.open(f"{path}-shm", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _USERS_LOCK, 1, 0)
            kind: int = struct.unpack(_LOCK, fcntl.fcntl(self._shared, _ASK_FOR_LOCK, asked))[0]
        except OSError:
            return None
        # Who opened it on another machine has locks there.
        return True if kind != fcntl.F_UNLCK else False if is_of_this_system(Path(path)) else None

    def close(self) -> None:
        if self._shared is not None:
            os.close(self._shared)
            self._shared = None


def directories_in(connection: sqlite3.Connection) -> list[tuple[str, float]]:
    """In which directories sessions work, and when one of each was last alive."""
    rows = connection.execute("SELECT directory, max(time_updated) FROM session GROUP BY directory")
    return [(place, seconds(at)) for place, at in rows if isinstance(place, str)]


def sessions_of(connection: sqlite3.Connection, is_ours: Callable[[str], bool]) -> dict[str, SessionRow]:
    """The sessions of some directories, and their children wherever those work, in the order in which they began."""
    ours = [place for place, _ in directories_in(connection) if is_ours(place)]
    is_numbered = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'event_sequence'").fetchone()
    mark = "(SELECT seq FROM event_sequence WHERE aggregate_id = session.id)" if is_numbered else "NULL"
    rows = connection.execute(
        "WITH RECURSIVE ours(id) AS (SELECT id FROM session WHERE directory IN (SELECT value FROM json_each(?)) "  # noqa: S608
        "UNION SELECT session.id FROM session JOIN ours ON session.parent_id = ours.id) "
        f"SELECT id, parent_id, title, time_created, time_updated, {mark} "
        "FROM session WHERE id IN ours ORDER BY time_created, id",
        (json.dumps(ours),),
    )
    found = {}
    for row in rows:
        name, parent, title = (value if isinstance(value, str) else "" for value in row[:3])
        if name:
            found[name] = SessionRow(name, parent or None, title, seconds(row[3]), row)
    return found


def records_in(connection: sqlite3.Connection, session: str) -> tuple[list[Record], list[Record]]:
    """The messages of a session, and its parts, each ordered by their ids, which is by time."""

    def read(table: str, above: str) -> list[Record]:
        rows = connection.execute(
            f"SELECT id, {above}, time_created, time_updated, rowid, "  # noqa: S608
            f"CASE WHEN length(data) <= {LARGEST_RECORD} THEN data END FROM {table} WHERE session_id = ? ORDER BY id",
            (session,),
        )
        return [
            Record(str(key), str(message), seconds(created), seconds(updated), object_in(data), row)
            for key, message, created, updated, row, data in rows
        ]

    return read("message", "''"), read("part", "message_id")


def seconds(value: object) -> float:
    """A time in milliseconds as one in seconds; 0 where there is none in our centuries."""
    return value / 1000 if type(value) in (int, float) and 0 < value < _LATEST else 0.0  # type: ignore[operator]


def _stamp(path: str) -> Stamp | None:
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116
        # Not its ctime: SQLite changes that when root reads.
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return None
