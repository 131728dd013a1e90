"""The history of a workspace: what was observed is recorded in a worker thread, and read at the next start.

`record` acknowledges a batch once it is committed and on disk. Whatever happens to the file, nothing here raises: what
went wrong is in `notice`, one sentence for the operator, and agentwatch goes on with what it can have.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentwatch.delegation.observation import Gone, Observation, Seen
from agentwatch.history.database import Database, UnusableError, is_damage, open_database
from agentwatch.history.outline import Content, content_of, unpack
from agentwatch.history.place import state_directory
from agentwatch.history.policy import superseded
from agentwatch.history.read_only import Snapshot, open_snapshot
from agentwatch.history.recording import IndexEntry, Note, Recorder

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Compressed texts that are kept: some fifty thousand returns."""

_WAITING: Final = 10_000
"""Observations kept in memory while the disk refuses them; the oldest go first."""

_UNSAVED: Final = "the last attempts are not saved yet"
_PAGE: Final = 500
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Stored:
    """One version that a file had. `seen.seq` is negative and rises: all of these come before what is observed now.

    At most one of the times is set: when another content took its place, or when the file was found gone.
    """

    seen: Seen
    replaced_at: float | None = None
    deleted_at: float | None = None


@dataclass(slots=True)
class _Row:
    """One row as it was recorded. `content` is None where the file was gone."""

    at: float
    path: str
    digest: str | None
    content: Content | None


class History:
    """What was ever observed of one workspace. Any thread may call it."""

    def __init__(self, directory: Path, limit: int, *, read_only: bool) -> None:
        self._directory = directory
        self._limit = limit
        self._read_only = read_only
        self._source: Database | Snapshot | None = None
        self._recorder = Recorder()
        self._waiting: deque[Note] = deque(maxlen=_WAITING)
        self._entries: dict[str, IndexEntry | None] = {}
        self._bytes = 0
        self._shrink_above = limit
        self._found: str | None = None
        self._trouble: str | None = None
        self._full: str | None = None
        self._closed = False
        self._damage: tuple[tuple[int, int], str] | None = None
        """Which file was found damaged while it was in use, and how."""
        # The screen reads texts while the worker waits for the disk: never one lock for both.
        self._writing = threading.RLock()
        self._reading = threading.RLock()

    @classmethod
    def open(cls, workspace: Path, directory: Path | None = None, *, limit: int = LIMIT_BYTES) -> History:
        """Open the history of a workspace, made where there is none; `limit` is in bytes of compressed texts.

        `directory` is the state directory, by default that of the workspace. Reads the file through once: call it in
        a worker thread.
        """
        history = cls(directory or state_directory(workspace), limit, read_only=False)
        with history._writing:
            history._open()
        return history

    @classmethod
    def open_read_only(cls, workspace: Path, directory: Path | None = None) -> History | None:
        """The history for reading, nothing at all is written; None where there is none."""
        history = cls(directory or state_directory(workspace), LIMIT_BYTES, read_only=True)
        history._open_snapshot()
        return history if history._source is not None or history.notice else None

    @property
    def notice(self) -> str | None:
        """What the operator must know of the history: set aside, not kept, too large. May quote foreign text."""
        return self._trouble or self._found or self._full

    @property
    def waiting(self) -> int:
        """Observations that are not on disk yet because the last `record` failed."""
        return len(self._waiting)

    def record(
        self,
        observations: Sequence[Observation],
        text_of: Callable[[str], str | None],
        entries: Mapping[str, IndexEntry | None] | None = None,
    ) -> bool:
        """Record observations in their order, in one transaction. True: they are on disk.

        `text_of` gives the text of a digest. `entries` are index entries of files as of these observations, None for
        a file that is not to be found in the index any more; a file that is gone leaves it by itself. What could not
        be written is tried again with the next call, an empty one as well; `notice` says why.
        """
        if self._read_only:
            raise RuntimeError("this history was opened for reading only")
        with self._writing:
            self._waiting.extend(self._recorder.notes(observations, text_of))
            self._entries.update(entries or {})
            if not self._waiting and not self._entries and self._damage is None:
                return True
            if not self._commit():
                return False
            self._waiting.clear()
            self._entries.clear()
            if self._bytes > self._shrink_above:
                self._shrink()
            return True

    def load(self) -> list[Stored]:
        """Every version that is known, in the order recorded."""
        rows = self._rows()
        versions: list[Stored] = []
        latest: dict[str, int] = {}
        for row in rows:
            position = latest.get(row.path)
            before = None if position is None else versions[position]
            if row.digest is None:
                if position is not None and before is not None and before.deleted_at is None:
                    versions[position] = Stored(before.seen, deleted_at=row.at)
                continue
            if row.content is None:
                continue
            if position is not None and before is not None:
                if before.seen.digest == row.digest and before.seen.at == row.at:
                    # Moved away and back, or not reachable for a while: the same version.
                    versions[position] = Stored(before.seen)
                    continue
                if before.deleted_at is None:
                    versions[position] = Stored(before.seen, replaced_at=row.at)
            latest[row.path] = len(versions)
            versions.append(Stored(_seen(row, row.content, row.digest, len(versions))))
        return [
            Stored(_moved(version.seen, -len(versions)), version.replaced_at, version.deleted_at)
            for version in versions
        ]

    def observations(self) -> list[Observation]:
        """Everything as it was recorded, files that were gone too: for a log and for a replay. `seq` is negative."""
        rows = self._rows()
        observations: list[Observation] = []
        for seq, row in enumerate(rows, start=-len(rows)):
            if row.digest is None:
                observations.append(Gone(seq, row.at, row.path))
            elif row.content is not None:
                observations.append(_seen(row, row.content, row.digest, seq))
        return observations

    def text(self, digest: str) -> str | None:
        """The text of a version, None where it is not kept (any more)."""
        rows = self._query("SELECT packed FROM texts WHERE digest = ?", (digest,))
        return unpack(rows[0][0]) if rows else None

    def index(self) -> Mapping[str, IndexEntry]:
        """The files as they were last read, by path."""
        found = {}
        for path, mtime_ns, ctime_ns, size, inode, digest in self._query(
            "SELECT path, mtime_ns, ctime_ns, size, inode, digest FROM files", ()
        ):
            numbers = (mtime_ns, ctime_ns, size, inode)
            if all(isinstance(number, int) for number in numbers) and isinstance(digest, str):
                found[path] = IndexEntry(mtime_ns, ctime_ns, size, inode & 0xFFFF_FFFF_FFFF_FFFF, digest)
        return found

    def close(self) -> None:
        """Give the file back. Nothing is recorded or read afterwards."""
        with self._writing, self._reading:
            self._closed = True
            if self._source is not None:
                self._source.close()
            self._source = None

    def _open(self) -> None:
        """Open, or open again after damage; what cannot be opened is told in `notice`."""
        with self._reading:
            if self._source is not None:
                self._source.close()
                self._source = None
            if self._closed:
                return
            damage, self._damage = self._damage, None
            try:
                database = open_database(self._directory, damage)
            except UnusableError as error:
                self._trouble = f"attempts are remembered only until agentwatch ends: {error}"
                return
            try:
                self._recorder.begin(database.writer)
                self._bytes = _bytes(database.writer)
            except sqlite3.Error as error:
                database.close()
                self._trouble = f"attempts are remembered only until agentwatch ends: {database.path}: {error}"
                return
            self._source = database
            self._found = database.notice or self._found
            self._trouble = None

    def _open_snapshot(self) -> None:
        with self._reading:
            if self._source is not None:
                self._source.close()
            self._source = None
            if self._closed:
                return
            try:
                self._source = open_snapshot(self._directory)
            except UnusableError as error:
                self._trouble = str(error)

    def _commit(self) -> bool:
        for _ in range(_ATTEMPTS):
            if not isinstance(self._source, Database) or self._damage is not None:
                self._open()
            database = self._source
            if not isinstance(database, Database):
                return False
            try:
                added = self._recorder.write(database.writer, self._waiting, self._entries)
            except sqlite3.Error as error:
                if is_damage(error):
                    self._damage = database.identity, str(error)
                    self._open()
                    continue
                self._trouble = f"{_UNSAVED}: {database.path}: {error}; free space or permissions"
                return False
            if database.is_in_place:
                self._bytes += added
                self._trouble = None
                return True
            # Set aside by another agentwatch, or removed: what was just written is not where it will be looked for.
            self._open()
        self._trouble = f"{_UNSAVED}: {self._directory} is damaged again and again; check the disk"
        return False

    def _shrink(self) -> None:
        """Drop texts of superseded versions. Some room is left, so that this happens rarely."""
        database = self._source
        if not isinstance(database, Database):
            return
        versions = [_seen(row, row.content, row.digest, 0) for row in self._rows() if row.content and row.digest]
        try:
            sizes = dict(database.writer.execute("SELECT digest, length(packed) FROM texts"))
            dropped = superseded(versions, sizes, self._limit - self._limit // 8)
            database.writer.execute("BEGIN IMMEDIATE")
            database.writer.executemany("DELETE FROM texts WHERE digest = ?", [(digest,) for digest in dropped])
            # Without text and outline nothing is left to tell.
            database.writer.execute(
                "DELETE FROM observations WHERE digest IS NOT NULL AND outline IS NULL"
                " AND digest NOT IN (SELECT digest FROM texts)"
            )
            database.writer.execute("COMMIT")
            self._bytes = _bytes(database.writer)
        except sqlite3.Error:
            # What was acknowledged is on disk; the next record meets the same error and tells it.
            if database.writer.in_transaction:
                database.writer.execute("ROLLBACK")
            return
        self._shrink_above = max(self._limit, self._bytes + self._limit // 8)
        self._full = None
        if self._bytes > self._limit:
            mebibytes = self._bytes / 1024 / 1024
            self._full = f"the history holds {mebibytes:.0f} MiB of latest attempts, which are never dropped"

    def _rows(self) -> list[_Row]:
        """Everything that can be read, each version read again by today's contracts."""
        for _ in range(_ATTEMPTS):
            rows = [
                _Row(at, path, digest, None if digest is None else content_of(path, unpack(packed), outline))
                for at, path, digest, outline, packed in self._pages()
                if isinstance(at, float) and isinstance(path, str)
            ]
            with self._reading:
                if not (isinstance(self._source, Snapshot) and self._source.is_torn):
                    break
                self._open_snapshot()
        return rows

    def _pages(self) -> Iterator[tuple[Any, ...]]:
        after = 0
        while True:
            page = self._query(
                "SELECT observations.id, at, path, digest, outline, packed"
                " FROM observations LEFT JOIN texts USING (digest)"
                " WHERE observations.id > ? ORDER BY observations.id LIMIT ?",
                (after, _PAGE),
            )
            yield from (row[1:] for row in page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def _query(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """The rows of a query; none where the history cannot be read."""
        with self._reading:
            source = self._source
            if source is None:
                return []
            connection = source.reader if isinstance(source, Database) else source.connection
            try:
                return connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                if isinstance(source, Database) and is_damage(error):
                    # The next record, in the worker, sets it aside.
                    self._damage = source.identity, str(error)
                self._trouble = f"the history cannot be read: {source.path}: {error}"
                return []


def _seen(row: _Row, content: Content, digest: str, seq: int) -> Seen:
    return Seen(seq, row.at, row.path, digest, content.document, content.findings, content.incomplete)


def _moved(seen: Seen, by: int) -> Seen:
    return Seen(seen.seq + by, seen.at, seen.path, seen.digest, seen.document, seen.findings, seen.incomplete)


def _bytes(connection: sqlite3.Connection) -> int:
    total = connection.execute("SELECT total(length(packed)) FROM texts").fetchone()[0]
    return int(total)
