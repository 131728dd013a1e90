"""The SQLite file of a workspace: made, migrated, read and written in one transaction each; set aside when damaged.

Each operation opens the file anew, for another agentwatch may have replaced it. It has a rollback journal: a reader
leaves nothing beside the file, and may be another user's sandbox.

observations  in the order recorded. `digest` is null for a file that is gone; `run` and `ordinal` say nothing.
texts         zlib of the document, once for each digest. The oldest are dropped first.
checks        since when a return, in a file or of a session, has a false claim (a JSON list of these), or none (null).
times         `watched`: when the workspace was watched last.
asides        append-only: tasks that were acknowledged, snoozed or were looked at (`seen`). `began`: nothing before it
              is new; `undo` takes back those of its `name`. `over` is of earlier versions. Ids of tasks are UTF-8.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from agentwatch.disk import Directory
from agentwatch.state import HISTORY

APPLICATION_ID = 0x61677768  # `agwh`

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE observations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, ordinal INTEGER NOT NULL, at REAL NOT NULL,
        path TEXT NOT NULL, digest TEXT, outline TEXT, UNIQUE (run, ordinal)
    );
    CREATE INDEX observations_path ON observations (path, id);
    CREATE INDEX observations_digest ON observations (digest);
    CREATE TABLE texts (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, packed BLOB NOT NULL);
    """,
    # The tables of these three are not used any more.
    "",
    "",
    "",
    """
    CREATE TABLE times (name TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE asides (
        id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, at REAL NOT NULL, task_id BLOB NOT NULL DEFAULT x'',
        mark TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '', until REAL
    );
    CREATE INDEX asides_task ON asides (task_id);
    """,
    """
    CREATE TABLE checks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL, claims TEXT
    );
    CREATE INDEX checks_path ON checks (path, id);
    """,
)  # Never edit one: append. `PRAGMA user_version` counts those that were applied.

SCHEMA_VERSION: Final = len(MIGRATIONS)

_NEWEST = 50  # no version has a larger number: that is damage
_BUSY_SECONDS = 5.0
_TRIES = 3
_WAY_OUT = "free space or permissions"
_SETTINGS = """PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;
    PRAGMA synchronous = EXTRA"""
"""The file may be damaged, or have been swapped: nothing in its schema may run, its cells are checked, and SQLite makes
no files in a directory that is shared."""

T = TypeVar("T")


class UnusableError(Exception):
    """The file cannot be read or written; the message says why and what to do."""


class Database:
    """The file in a state directory. Any thread may call it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / HISTORY
        self.set_aside = ""  # that a damaged file was set aside, in a sentence
        self._examined: tuple[int, int] | None = None  # device and inode of the file that is known to be sound

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Read from the file as it is, None where there is none. Raises UnusableError."""
        try:
            self.path.stat()
            with self._connected() as connection:
                return work(connection)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnusableError(f"the history cannot be read: {self.path}: {reason}") from error

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Write in one transaction, into a new file where this one is gone or damaged. Raises UnusableError."""
        try:
            # Two that find the same damage at once: the second would set the first one's new file aside.
            with Directory.make(self.directory) as directory, directory.locked():
                for _ in range(_TRIES):
                    try:
                        return self._write(work)
                    except sqlite3.Error as error:
                        if not _is_damage(error):
                            raise UnusableError(f"{self.path}: {error}; {_WAY_OUT}, then start again") from error
                        aside = f"history.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.db"
                        # Those beside it go first: a journal that stays would be played into the new file.
                        for suffix in ("-journal", "-wal", "-shm", ""):
                            with suppress(FileNotFoundError):
                                directory.move(f"{HISTORY}{suffix}", directory, f"{aside}{suffix}")
                        why = f"the history was damaged ({error}) and set aside as {aside}"
                        self.set_aside = f"{why}; a new one was begun"
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnusableError(f"{self.directory}: {reason}; make it a directory that you may write to") from error
        raise UnusableError(f"{self.directory}: a new history is damaged at once; check the disk")

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # Made here, so that its mode, which the journal takes over, does not depend on the umask. Never opened where it
        # is there: closing it would give up the locks that another thread holds by SQLite.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with self._connected() as connection:
            status = self.path.stat()
            if self._examined != (status.st_dev, status.st_ino):
                if (version := examine(connection)) < SCHEMA_VERSION:
                    with connection:
                        _migrate(connection, version)
                # Where an earlier version is running, it keeps its log.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA journal_mode = DELETE")
                self._examined = status.st_dev, status.st_ino
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        address = f"file:{quote(os.fsencode(self.path.absolute()))}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.executescript(_SETTINGS)
            if SCHEMA_VERSION < version_of(connection) <= _NEWEST:
                raise UnusableError(f"{self.path} was written by a newer agentwatch; update this one")
            yield connection
        except UnicodeDecodeError as error:
            # SQLite quotes what it found in place of the schema.
            raise sqlite3.DatabaseError("its structure is broken") from error
        finally:
            connection.close()


def examine(connection: sqlite3.Connection) -> int:
    """The version of a sound file, 0 for an empty one. Raises sqlite3.Error."""
    application, version = _value(connection, "PRAGMA application_id"), version_of(connection)
    if not application and not version and not _value(connection, "SELECT count(*) FROM sqlite_master"):
        return 0
    if application != APPLICATION_ID or not 0 < version <= _NEWEST:
        raise sqlite3.DatabaseError("it is not a history of agentwatch")
    if _value(connection, "PRAGMA quick_check(1)") != "ok":
        raise sqlite3.DatabaseError("its structure is broken")
    return version


def select(connection: sqlite3.Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of a query, none where an older version did not keep that. Raises sqlite3.Error."""
    try:
        return connection.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if str(error).startswith("no such") and version_of(connection) < SCHEMA_VERSION:
            return []
        raise


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in "".join(MIGRATIONS[version:]).split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _value(connection: sqlite3.Connection, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


def version_of(connection: sqlite3.Connection) -> int:
    """How many migrations were applied. Raises sqlite3.Error."""
    return int(_value(connection, "PRAGMA user_version"))


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is broken, and not the disk full, busy or gone."""
    # Our statements do not change: one that is wrong meets tables that are not ours.
    is_wrong = getattr(error, "sqlite_errorcode", 0) & 0xFF in (0, sqlite3.SQLITE_ERROR)
    return isinstance(error, sqlite3.DatabaseError) and (is_wrong or not isinstance(error, sqlite3.OperationalError))
