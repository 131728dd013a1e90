"""The reader of OpenCode and Kilo Code: the sessions of one workspace in one database, made into runs.

The database is looked at when `stat` says that it was written, each time in a connection of its own. A session of which
anything has changed is read again, from the tables that hold what is now.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run
from agentwatch.sources.opencode.database import (
    ForeignDatabase,
    SessionRow,
    Signature,
    records_in,
    records_of,
    sessions_of,
)
from agentwatch.sources.opencode.session import FRAME, Session, entries, has_words, runs_of
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import inner, text
from agentwatch.sources.sessions.following import RunTranscript, WholeTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, several, spellings
from agentwatch.sources.sessions.runs import OPEN
from agentwatch.sources.sessions.store import holds
from agentwatch.state import is_there

_RACY_SECONDS: Final = 2.0
"""A file that is written twice within one tick of its file system's clock looks the same after both."""
_BUSY_SECONDS: Final = 5.0
"""For so long it may be locked by its program, or otherwise not be read, before that is told."""


class OpenCodeReader(StoreReader):
    """Implements SessionReader. `name` tells databases apart."""

    def __init__(self, workspace: Path, database: Path, name: str = "opencode") -> None:
        super().__init__(self._texts_in)
        self.name = name
        self.progress = Progress(0, 0)
        """In bytes of the database, none of them before all sessions were read."""
        self._path = database.absolute()
        self._database = ForeignDatabase(self._path)
        self._places = spellings(workspace)
        self._seen: Signature | None = None
        self._seen_at = 0.0
        self._refusal = ""
        self._read_at = float("-inf")
        """When it could be read, on the monotonic clock."""
        self._rows: dict[str, SessionRow] = {}
        """The sessions that there are, as of the last look."""
        self._sessions: dict[str, Session] = {}
        """As far as they are read, which may be as of a row before."""
        self._runs: dict[str, Run] = {}

    @property
    def trouble(self) -> str | None:
        """What keeps sessions from being read."""
        name, unread = self._path.name, sum(session.unread for session in self._sessions.values())
        if self._refusal and time.monotonic() >= self._read_at + _BUSY_SECONDS:
            return f"{name} cannot be read: {self._refusal}."
        return f"{name} has {several(unread, 'record')} that cannot be read." if unread else None

    def read(self, seconds: float) -> Sequence[Change]:
        """The runs that have changed. Something is read, however short the time."""
        signature = self._database.signature()
        is_calm = signature == self._seen and time.monotonic() - self._seen_at > _RACY_SECONDS
        is_news = not is_calm or self.progress.done < self.progress.total
        if is_news:
            self._look(signature, time.monotonic() + seconds)
        if self._refusal:
            return ()
        if is_news or any(session.waits for session in self._sessions.values()):
            self._runs = self._fold_runs()
        runs = dict(self._runs)
        still_open = [key for key, run in runs.items() if run.state in OPEN]
        if still_open and self._database.has_users() is False:
            # A program that has ended writes nothing any more, and nobody can answer what it asks.
            runs |= {key: replace(runs[key], process_gone=True, waiting="") for key in still_open}
        return self.give(runs)

    def found(self) -> Sequence[Found]:
        if not is_there(self._path):
            return ()
        children = sum(row.parent_id is not None for row in self._rows.values())
        return [Found(self.name, str(self._path), len(self._rows) - children, self.trouble or "", children)]

    def transcript(self, run: Run) -> RunTranscript:
        """The parts of a session."""
        return PartsTranscript(run.session_id, self._path, self._database)

    def close(self) -> None:
        self._database.close()

    def _texts_in(self, message: str) -> Iterator[str]:
        """All texts of a message that a text handed over or back may be made of."""
        try:
            with self._database.look() as connection:
                parts = records_of(connection, "part", "message", message)
        except sqlite3.Error:
            return
        words = [text(part.data, "text") or "" for part in parts if has_words(part.data)]
        yield from ("\n".join(words), *words)
        for state in (inner(part.data, "state") for part in parts):
            yield text(inner(state, "input"), "prompt") or ""
            frame = FRAME.match(text(state, "output") or "")
            yield frame["body"] if frame is not None else ""

    def _look(self, signature: Signature, end: float) -> None:
        """Read what has changed, the youngest sessions first, until a time."""
        read, is_behind = dict[str, Session](), False
        try:
            with self._database.look() as connection:
                self._rows = sessions_of(connection, self._is_ours)
                for name, row in reversed(self._rows.items()):
                    if name not in self._sessions or self._sessions[name].row != row:
                        is_behind = bool(read) and time.monotonic() >= end
                        if is_behind:
                            break
                        read[name] = Session(row, *records_in(connection, name), self._tell, self._places)
        except FileNotFoundError:
            self._rows = {}
        except (sqlite3.Error, OSError) as error:
            self._seen, self._refusal = None, getattr(error, "strerror", None) or str(error)
            return
        if signature != self._seen:
            self._seen, self._seen_at = signature, time.monotonic()
        self._refusal, self._read_at = "", time.monotonic()
        self._sessions = {name: one for name, one in (self._sessions | read).items() if name in self._rows}
        size = signature[0][2] if signature[0] else 0
        self.progress = Progress(0 if is_behind else size, size)

    def _is_ours(self, directory: str) -> bool:
        return any(holds(place, directory) for place in self._places)

    def _tell(self, words: str, at: float, message: str) -> Message:
        return self.texts.message(words, at, message, key=message)

    def _fold_runs(self) -> dict[str, Run]:
        """The runs of all sessions that are read: those that began first come first, and so their parents."""
        runs: dict[str, Run] = {}
        for name, row in self._rows.items():
            above = row.parent_id or ""
            session, parent, known = self._sessions.get(name), self._sessions.get(above), runs.get(above)
            if session is not None and (parent is not None or above not in self._rows):
                state = known.state if known is not None else None
                runs |= runs_of(session, parent, state, self._rows.keys(), source=self.name, place=str(self._path))
        return runs


class PartsTranscript(WholeTranscript):
    """The parts of a session as they are now, in the order in which they were first written."""

    def __init__(self, session: str, path: Path, database: ForeignDatabase) -> None:
        super().__init__(path)
        self._session = session
        self._database = database

    @property
    def watched(self) -> Sequence[Path]:
        return [self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal", "-journal")]

    def stamp(self) -> object:
        self._path.stat()
        return self._database.signature()

    def load(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        return self._records(is_whole=False)

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        return self._records(is_whole=True)

    def _records(self, *, is_whole: bool) -> Iterator[tuple[int, Sequence[Entry]]]:
        """The place of each part, and what it says; OSError where one cannot be read and it is to be whole."""
        try:
            with self._database.look() as connection:
                places = connection.execute("SELECT directory FROM session WHERE id = ?", (self._session,)).fetchone()
                messages, parts = records_in(connection, self._session)
        except (sqlite3.Error, ValueError) as error:
            raise OSError(errno.EIO, str(error)) from error
        asked = {one.id for one in messages if one.data.get("role") == "user"}
        for part in sorted(parts, key=lambda part: part.row):
            if is_whole and not part.data:
                raise OSError(errno.EMSGSIZE, "a part of it cannot be read")
            said = entries(part.data, part.created, is_asked=part.message_id in asked)
            yield part.row, [one._replace(cwd=str(places[0])) if places else one for one in said]
