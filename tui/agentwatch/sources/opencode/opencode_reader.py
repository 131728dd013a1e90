"""The reader of OpenCode and Kilo Code: the sessions of one workspace in one database, made into runs.

The database is looked at when `stat` says that it was written, each time in a connection of its own. A session of which
anything has changed is read again, from the tables that hold what is now.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run
from agentwatch.sources.opencode import records
from agentwatch.sources.opencode.database import ForeignDatabase, Signature, is_passing
from agentwatch.sources.opencode.entries import PartsTranscript
from agentwatch.sources.opencode.session import LATER, OVER, Session, read_session, runs_of
from agentwatch.sources.opencode.tables import SessionRow, TableColumns, Tables, columns_of
from agentwatch.sources.sessions.fields import text
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, several, spellings
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
        super().__init__(self._texts_in)
        self.name = name
        self._path = database.absolute()
        self._database = ForeignDatabase(self._path)
        self._directories = spellings(workspace)
        self._workspace = os.path.realpath(workspace)
        self._clock = clock
        self._lock = threading.RLock()
        """Transcripts look into the database from threads of their own."""
        self._columns = TableColumns({})
        self._identity: tuple[object, ...] = ()
        """Of the file and its schema: other ones mean that nothing which is known holds any more."""
        self._seen: Signature | None = None
        self._is_calm = False
        self._size = self._later = 0
        self._refusal = ""
        self._busy_since: float | None = None
        self._is_abandoned = False
        """No process has the database open."""
        self._rows: dict[str, SessionRow] = {}
        """The sessions that there are, as of the last look."""
        self._sessions: dict[str, Session] = {}
        """As far as they are read, which may be as of a row before."""
        self._runs: dict[str, dict[str, Run]] = {}
        """By session: its run, and those of its calls that have no session, by key."""
        self._due: dict[str, float] = {}
        """When time alone changes a session."""
        self._touched: set[str] = set()
        """Sessions that were read since their families were judged."""

    @property
    def trouble(self) -> str | None:
        """What keeps sessions from being read."""
        elsewhere = sum(run.reason == LATER for run in self.given.values())
        unread = sum(len(session.unread) for session in self._sessions.values())
        troubles = {
            f"cannot be read: {self._refusal}.": self._refusal,
            "is locked by another process: not read yet.": self._busy_since is not None and self._seen is None,
            f"has {several(self._later, 'session')} of OpenCode 2 that agentwatch does not read.": self._later,
            f"is of a version that is not known, without {self._columns.lacking}.": self._columns.lacking,
            f"has {several(elsewhere, 'session')} with messages as OpenCode 2 keeps them: not read.": elsewhere,
            f"has {several(unread, 'record')} that cannot be read.": unread,
        }
        return next((f"{self._path.name} {trouble}" for trouble, applies in troubles.items() if applies), None)

    @property
    def progress(self) -> Progress:
        """In bytes of the database, as if all sessions were equally large."""
        count = len(self._rows)
        return Progress(self._size * (count - len(self._behind())) // count if count else self._size, self._size)

    def read(self, seconds: float) -> Sequence[Change]:
        """The runs that have changed. Something is read, however short the time."""
        end = time.monotonic() + seconds
        with self._lock:
            while self._has_to_look():
                self._look(min(end, time.monotonic() + _LOOK_SECONDS))
                if self._refusal or self._busy_since is not None or not self._behind() or time.monotonic() >= end:
                    break
            runs = {key: run for mine in self._runs.values() for key, run in mine.items()}
            if not self._refusal and any(run.state not in OVER for run in runs.values()):
                self._is_abandoned = self._database.has_users() is False
            if self._is_abandoned:
                # A program that has ended writes nothing any more, and nobody can answer what it asks.
                gone = {key: replace(run, process_gone=True, waiting="") for key, run in runs.items()}
                runs = {key: run if run.state in OVER else gone[key] for key, run in runs.items()}
            return self.give(runs)

    def found(self) -> Sequence[Found]:
        if not is_there(self._path):
            return ()
        children = sum(parent is not None for parent in self._parents().values())
        return [Found(self.name, str(self._path), len(self._rows) - children, self.trouble or "", children)]

    def transcript(self, run: Run) -> RunTranscript:
        """The parts of a session."""
        return PartsTranscript(run.session_id, self._path, self._tables, self._database.signature)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    @contextmanager
    def _tables(self) -> Iterator[Tables]:
        """One look, which any thread may have. Raises OSError and sqlite3.Error."""
        with self._lock, self._database.look() as connection:
            yield Tables(connection, columns_of(connection))

    def _texts_in(self, *parts: str) -> Iterator[str]:
        """All texts that a message may be made of, in one or more parts."""
        try:
            with self._tables() as tables:
                found = [record for part in parts if (record := tables.record("part", part)) is not None]
        except sqlite3.Error:
            return
        if len(found) == len(parts):
            yield "\n".join(text(record.data, "text") or "" for record in found)
        for record in found:
            yield from (records.prompt_in(record) or "", records.output_in(record) or "")

    def _message(self, words: str, at: int, parts: tuple[str, ...]) -> Message:
        return self.texts.message(words, at / 1000, *parts, key=parts[0])

    def _behind(self) -> list[str]:
        """Sessions that are to be read, as they are not known or have changed."""
        known = self._sessions
        return [name for name, row in self._rows.items() if name not in known or known[name].row.version != row.version]

    def _parents(self) -> Mapping[str, str | None]:
        """The parent of each session: the one it names, else the first whose task call names it."""
        askers: defaultdict[str, list[str]] = defaultdict(list)
        for name, session in self._sessions.items():
            for child in session.asked - {name}:
                askers[child].append(name)
        return {name: row.parent_id or min(askers.get(name, ()), default=None) for name, row in self._rows.items()}

    def _has_to_look(self) -> bool:
        if self._seen is None or not self._is_calm or self._behind():
            return True
        now = self._clock()
        return any(now >= at for at in self._due.values()) or self._database.signature() != self._seen

    def _look(self, end: float) -> None:
        signature = self._database.signature()
        if signature[0] is None and not is_there(self._path):
            self._forget()
            self._rows, self._runs, self._columns, self._identity = {}, {}, TableColumns({}), ()
            self._refusal, self._busy_since, self._seen, self._is_calm = "", None, signature, True
            self._size = self._later = 0
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

    def _forget(self) -> None:
        self._sessions.clear()
        self._due.clear()

    def _refuse(self, error: Exception) -> None:
        """A database is busy now and then; only for how long is of interest."""
        self._is_calm = False
        now = time.monotonic()
        if is_passing(error):
            self._busy_since = self._busy_since if self._busy_since is not None else now
            if now - self._busy_since < _BUSY_SECONDS:
                return
        self._refusal = (error.strerror if isinstance(error, OSError) else None) or str(error)

    def _read(self, connection: sqlite3.Connection, signature: Signature, end: float) -> None:
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        identity = (*signature[0][:2], version) if signature[0] is not None else ()
        if identity != self._identity:
            self._columns, self._identity = columns_of(connection), identity
            self._forget()
        tables = Tables(connection, self._columns)
        if signature != self._seen or not self._is_calm:
            self._later = tables.later_sessions(self._directories)
            rows = tables.sessions(self._directories, worktrees_below(self._workspace))
            self._rows = {row.id: row for row in rows}
            for name in self._sessions.keys() - self._rows.keys():
                # Its parent, and its children, are otherwise without it.
                session = self._sessions.pop(name)
                self._touched |= {name, session.row.parent_id or "", *session.asked}
        parents = self._parents()
        for name in self._in_order(parents):
            self._sessions[name] = read_session(self._rows[name], tables, self._directories, self._message)
            self._touched.add(name)
            if time.monotonic() >= end:
                break
        self._judge(tables)

    def _in_order(self, parents: Mapping[str, str | None]) -> list[str]:
        """The sessions that are behind: the youngest families first, and parents before their children."""
        lines = {name: _line(name, parents) for name in self._behind()}
        youngest: defaultdict[str, int] = defaultdict(int)
        for name, line in lines.items():
            youngest[line[-1]] = max(youngest[line[-1]], self._rows[name].updated)

        def order(name: str) -> tuple[int, str, int, int, str]:
            root = lines[name][-1]
            return -youngest[root], root, len(lines[name]), self._rows[name].created, name

        return sorted(lines, key=order)

    def _judge(self, tables: Tables) -> None:
        """Make the runs of the families of which something was read, or is due, parents before their children."""
        parents, now, behind = self._parents(), self._clock(), set(self._behind())
        touched = self._touched | {name for name, at in self._due.items() if now >= at}
        lines = {name: _line(name, parents) for name in self._rows}
        roots = {lines[name][-1] for name in touched if name in lines} | touched
        self._runs = {name: runs for name, runs in self._runs.items() if name in self._rows}
        for name in sorted(self._rows, key=lambda name: len(lines[name])):
            parent_id = parents[name]
            parent = self._sessions.get(parent_id or "")
            # What it comes to depends on its parent, where there is one.
            if lines[name][-1] not in roots or {name, *([parent_id] if parent_id in self._rows else [])} & behind:
                continue
            above = self._runs.get(parent_id or "", {}).get(parent_id or "") if parent is not None else None
            self._runs[name], due = runs_of(
                self._sessions[name],
                parent_id,
                parent,
                above.state if above is not None else None,
                now,
                source=self.name,
                place=str(self._path),
                has_words=self._columns.has_words,
                has_session=lambda child: child in self._rows or tables.has_session(child),
            )
            self._due.pop(name, None)
            if due is not None:
                self._due[name] = due
        self._touched &= behind


def _line(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """A session and those above it; a circle ends where it closes."""
    line = [name]
    while (parent := parents.get(line[-1])) is not None and parent not in line:
        line.append(parent)
    return line
