"""The reader of OpenCode and Kilo Code: the sessions of one workspace in one database, made into runs.

The database is looked at when `stat` says that it was written, each time in a connection of its own. What has changed
is told by the numbers of the program's events, or by the times of all records where it keeps none; it is then read
from the tables, which hold what is now. So whatever was missed between two looks does not matter.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Run
from agentwatch.sources.opencode.database import ForeignDatabase, Signature, is_passing
from agentwatch.sources.opencode.entries import PartsTranscript
from agentwatch.sources.opencode.family import Family
from agentwatch.sources.opencode.runs import Made, Maker, PartsPlace
from agentwatch.sources.opencode.tables import TableColumns, Tables, columns_of
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, Texts, several, spellings
from agentwatch.sources.worktrees import worktrees_below
from agentwatch.state import is_there

_RACY_SECONDS: Final = 2.0
"""A file that is written twice within one tick of its file system's clock looks the same after both."""
_LOOK_SECONDS: Final = 0.05
"""The longest look while there is much to read: a program without a log cannot write meanwhile."""
_BUSY_SECONDS: Final = 5.0
"""For so long a database may be locked by its program before that is told."""


class OpenCodeReader(StoreReader):
    """Implements SessionReader. `name` tells databases apart; `clock` gives seconds since the epoch."""

    def __init__(
        self, workspace: Path, database: Path, name: str = "opencode", clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(name, Texts(self._texts_in))
        self._path = database.absolute()
        self._database = ForeignDatabase(self._path)
        self._directories = spellings(workspace)
        self._workspace = os.path.realpath(workspace)
        self._clock = clock
        self._lock = threading.Lock()
        self._made: Made = {}
        self._family = Family(self._directories)
        self._columns = TableColumns({})
        self._identity: tuple[object, ...] = ()
        """Of the file and its schema: other ones mean that nothing which is known holds any more."""
        self._seen: Signature | None = None
        self._is_calm = False
        self._size = 0
        self._refusal = ""
        self._busy_since: float | None = None
        self._later_sessions = 0

    @property
    def trouble(self) -> str | None:
        """What keeps sessions from being read."""
        later, elsewhere = (several(count, "session") for count in (self._later_sessions, len(self._family.elsewhere)))
        unread = sum(len(session.unread) for session in self._family.sessions.values())
        troubles = {
            f"cannot be read: {self._refusal}.": self._refusal,
            "is locked by another process: not read yet.": self._busy_since is not None and self._seen is None,
            f"has {later} of OpenCode 2 that agentwatch does not read.": self._later_sessions,
            f"is of a version that is not known, without {self._columns.lacking}.": self._columns.lacking,
            f"has {elsewhere} with messages as OpenCode 2 keeps them: not read.": self._family.elsewhere,
            f"has {several(unread, 'record')} that cannot be read.": unread,
        }
        return next((f"{self._path.name} {trouble}" for trouble, applies in troubles.items() if applies), None)

    @property
    def progress(self) -> Progress:
        """In bytes of the database, as if all sessions were equally large."""
        sessions = len(self._family.sessions)
        done = sessions - len(self._family.behind)
        return Progress(self._size * done // sessions if sessions else self._size, self._size)

    def read(self, seconds: float) -> Sequence[Change]:
        """The runs that have changed. Something is read, however short the time."""
        end = time.monotonic() + seconds
        with self._lock:
            while self._has_to_look():
                self._look(min(end, time.monotonic() + _LOOK_SECONDS))
                if self._refusal or self._busy_since is not None or not self._family.behind or time.monotonic() >= end:
                    break
            if self._family.unfinished and not self._refusal:
                # A program that has ended writes nothing any more.
                users = self._database.has_users()
                self._family.abandon(None if users is None else not users)
            return self._family.take()

    def found(self) -> Sequence[Found]:
        if not is_there(self._path):
            return ()
        sessions = self._family.sessions.values()
        children = sum(self._family.parent_id(session.row) is not None for session in sessions)
        return [Found(self.name, str(self._path), len(sessions) - children, self.trouble or "", children)]

    def transcript(self, run: Run) -> RunTranscript:
        """The parts of a session."""
        return PartsTranscript(run.session_id, self._path, self._tables)

    @contextmanager
    def _tables(self) -> Iterator[Tables]:
        """One look, which any thread may have. Raises OSError and sqlite3.Error."""
        with self._lock, self._database.look() as connection:
            yield Tables(connection, columns_of(connection))

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _texts_in(self, place: PartsPlace) -> Iterator[str]:
        try:
            with self._tables() as tables:
                text = place.read(tables)
        except sqlite3.Error:
            return
        if text is not None:
            yield text

    def _has_to_look(self) -> bool:
        if self._seen is None or self._family.behind or not self._is_calm or self._family.due(self._clock()):
            return True
        return self._database.signature() != self._seen

    def _look(self, end: float) -> None:
        signature = self._database.signature()
        if signature[0] is None and not is_there(self._path):
            self._vanish(signature)
            return
        newest = max((attributes[3] for attributes in signature if attributes is not None), default=0) / 1e9
        is_calm = time.time() - newest > _RACY_SECONDS  # the file system's clock, not that of the records
        try:
            with self._database.look() as connection:
                self._read(connection, signature, end)
        except (sqlite3.Error, OSError) as error:
            self._refuse(error)
            return
        self._refusal, self._busy_since = "", None
        self._seen, self._is_calm, self._size = signature, is_calm, signature[0][2] if signature[0] else 0

    def _read(self, connection: sqlite3.Connection, signature: Signature, end: float) -> None:
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        file = signature[0]
        identity = (*file[:2], version) if file is not None else ()
        if identity != self._identity:
            self._columns = columns_of(connection)
            self._family.forget()
            self._made.clear()
            self._identity = identity
        tables = Tables(connection, self._columns)
        if signature != self._seen or not self._is_calm:
            self._later_sessions = tables.later_sessions(self._directories)
            others = worktrees_below(self._workspace)
            self._family.compare(tables.sessions(self._directories, self._family.rows, others))
        for _ in self._family.load(tables):
            if time.monotonic() >= end:
                break
        maker = Maker(self.name, str(self._path), tables, self._texts, self._made)
        self._family.judge(maker, self._clock())

    def _vanish(self, signature: Signature) -> None:
        self._refusal, self._busy_since, self._columns, self._later_sessions = "", None, TableColumns({}), 0
        self._identity, self._seen, self._is_calm, self._size = (), signature, True, 0
        self._family.forget()
        self._family.compare(())

    def _refuse(self, error: Exception) -> None:
        """A database is busy now and then; only for how long is of interest."""
        self._is_calm = False
        now = time.monotonic()
        if is_passing(error):
            self._busy_since = self._busy_since if self._busy_since is not None else now
            if now - self._busy_since < _BUSY_SECONDS:
                return
        self._refusal = (error.strerror if isinstance(error, OSError) else None) or str(error)
