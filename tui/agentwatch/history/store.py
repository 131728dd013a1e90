"""The history of a workspace: what was observed is recorded in a worker thread, and read at the next start.

`record` acknowledges a batch once it is committed and on disk. Whatever happens to the file, nothing here raises: what
went wrong is in `notice`, one sentence for the operator, and agentwatch goes on with what it can have.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.delegation.events import Event, Gone, Requested, Seen
from agentwatch.history.database import Database, UnusableError, is_damage, open_database, transaction
from agentwatch.history.outline import Content, content_of, contracts_version, current, unpack
from agentwatch.history.read_only import Snapshot, open_snapshot
from agentwatch.history.recording import Note, Recorder
from agentwatch.history.room import superseded
from agentwatch.history.shapes import parsed, request_of
from agentwatch.sources.files.documents import KnownFile
from agentwatch.sources.files.scan import fingerprint_of, numbers_in
from agentwatch.state import state_directory

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Compressed texts that are kept: some fifty thousand returns."""

_WAITING: Final = 10_000
"""Observations kept in memory while the disk refuses them; the oldest go first."""

_UNSAVED: Final = "the last attempts are not saved yet"
_PAGE: Final = 500
_FILES: Final = "SELECT path, digest, mtime_ns, ctime_ns, size, inode FROM files WHERE contracts = ?"
_HELD: Final = """SELECT held.path, digest, at, held.id = latest FROM observations AS held JOIN
    (SELECT max(id) AS latest, max(CASE WHEN digest IS NOT NULL THEN id END) AS seen FROM observations GROUP BY path)
    ON held.id = seen"""
"""What each file held when it was last seen, and whether it has been there since."""

_ATTEMPTS: Final = 3


class _Row(NamedTuple):
    """One row as it was recorded. `content` is None where the file was gone."""

    at: float
    path: str
    digest: str | None
    content: Content | None


class History:
    """What was ever observed of one workspace. Any thread may call it."""

    def __init__(
        self, workspace: Path, directory: Path | None = None, *, limit: int = LIMIT_BYTES, read_only: bool = False
    ) -> None:
        """`directory` is the state directory, by default that of the workspace; `limit` is in bytes of compressed
        texts. With `read_only`, nothing at all is written."""
        self._directory = directory or state_directory(workspace)
        self._limit = limit
        self._read_only = read_only
        self._source: Database | Snapshot | None = None
        self._recorder = Recorder()
        self._waiting: deque[Note] = deque(maxlen=_WAITING)
        self._ended: dict[str, Requested] = {}
        """The requests that wait to be recorded."""
        self._bytes = 0
        self._shrink_above = limit
        self._set_aside: str | None = None
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
        """Open the history of a workspace, made where there is none."""
        history = cls(workspace, directory, limit=limit)
        history.begin()
        return history

    @classmethod
    def open_read_only(cls, workspace: Path, directory: Path | None = None) -> History:
        """The history for reading, nothing at all is written; empty where there is none."""
        history = cls(workspace, directory, read_only=True)
        history.begin()
        return history

    def begin(self) -> None:
        """Open the file. Reads it through once: call it in a worker thread."""
        if self._read_only:
            self._open_snapshot()
            return
        with self._writing:
            self._open()

    @property
    def notice(self) -> str | None:
        """What the operator must know of the history: set aside, not kept, too large. May quote foreign text."""
        return self._trouble or self._set_aside or self._full

    @property
    def waiting(self) -> int:
        """Observations that are not on disk yet because the last `record` failed."""
        return len(self._waiting)

    def record(self, events: Sequence[Event], text_of: Callable[[str], str | None]) -> bool:
        """Record observations in their order, in one transaction. True: they are on disk.

        `text_of` gives the text of a digest. What could not be written is tried again with the next call, an empty one
        as well; `notice` says why.
        """
        if self._read_only:
            raise RuntimeError("this history was opened for reading only")
        with self._writing:
            self._waiting.extend(self._recorder.notes(events, text_of))
            self._ended |= {one.path: one for one in events if isinstance(one, Requested)}
            if not self._waiting and not self._ended and self._damage is None:
                return True
            if not self._commit():
                return False
            self._waiting.clear()
            self._ended.clear()
            if self._bytes > self._shrink_above:
                self._shrink()
            return True

    def events(self) -> list[Event]:
        """Everything as it was recorded, files that were gone too, and the requests that have ended."""
        rows = self._rows()
        events = (
            Gone(seq, row.at, row.path) if row.digest is None else _seen(row, seq)
            for seq, row in enumerate(rows, start=-len(rows))
        )
        return [*(event for event in events if event is not None), *self._requests()]

    def text(self, digest: str) -> str | None:
        """The text of a version, None where it is not kept (any more)."""
        rows = self._query("SELECT packed FROM texts WHERE digest = ?", (digest,))
        return unpack(rows[0][0]) if rows else None

    def files(self) -> dict[str, KnownFile]:
        """The files that were there when agentwatch ended, and what tells whether they have changed since; of those
        that were gone, what they held."""
        rows = self._query(_FILES, (contracts_version(),))
        index = {
            path: (fingerprint_of(*numbers), digest)
            for path, digest, *numbers in rows
            if all(isinstance(number, int) for number in numbers)
        }
        files = {path: KnownFile(fingerprint, digest="") for path, (fingerprint, digest) in index.items() if not digest}
        for path, digest, at, is_there in self._query(_HELD, ()):
            if digest and isinstance(digest, str):
                fingerprint, indexed = index.get(path, (None, None))
                known = fingerprint if indexed == digest and is_there else None
                since = at if isinstance(at, float) else None
                written = None if known is None else numbers_in(known)[0]
                shown = digest if is_there else None
                files[path] = KnownFile(known, digest=digest, shown=shown, at=since, written_ns=written)
        return files

    def keep_files(self, files: Mapping[str, KnownFile]) -> None:
        """Remember the files for the next start, in place of those from before. Nothing is told if that fails: it
        costs time at the next start, and no more."""
        with self._writing:
            if isinstance(self._source, Database) and self._damage is None:
                with suppress(sqlite3.Error):
                    self._recorder.index(self._source.writer, files)

    def close(self) -> None:
        """Give the file back. Nothing is recorded or read afterwards."""
        with self._writing, self._reading:
            self._closed = True
            self._let_go()

    def _let_go(self) -> bool:
        """Give the file back. Returns whether it may be opened again."""
        if self._source is not None:
            self._source.close()
            self._source = None
        return not self._closed

    def _open(self) -> None:
        """Open, or open again after damage; what cannot be opened is told in `notice`."""
        with self._reading:
            if not self._let_go():
                return
            damage, self._damage = self._damage, None
            try:
                database = open_database(self._directory, damage)
                try:
                    self._recorder.begin(database.writer)
                    self._bytes = _bytes(database.writer)
                except sqlite3.Error as error:
                    database.close()
                    raise UnusableError(f"{database.path}: {error}") from error
            except UnusableError as error:
                self._trouble = f"attempts are remembered only until agentwatch ends: {error}"
                return
            self._source = database
            self._set_aside = database.notice or self._set_aside
            self._trouble = None

    def _open_snapshot(self) -> None:
        with self._reading:
            if not self._let_go():
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
                added = self._recorder.write(database.writer, self._waiting, self._ended.values())
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
        versions = [seen for row in self._rows() if (seen := _seen(row, 0)) is not None]
        try:
            sizes = dict(database.writer.execute("SELECT digest, length(packed) FROM texts"))
            dropped = superseded(versions, sizes, self._limit - self._limit // 8)
            with transaction(database.writer):
                database.writer.executemany("DELETE FROM texts WHERE digest = ?", [(digest,) for digest in dropped])
                # Without text and outline nothing is left to tell.
                database.writer.execute(
                    "DELETE FROM observations WHERE digest IS NOT NULL AND outline IS NULL"
                    " AND digest NOT IN (SELECT digest FROM texts)"
                )
            self._bytes = _bytes(database.writer)
        except sqlite3.Error:
            # What was acknowledged is on disk; the next record meets the same error and tells it.
            return
        self._shrink_above = max(self._limit, self._bytes + self._limit // 8)
        self._full = None
        if self._bytes > self._limit:
            size = f"{self._bytes / 1024 / 1024:.0f} MiB"
            self._full = f"the history holds {size} of latest attempts, which are never dropped"

    def _rows(self) -> list[_Row]:
        """Everything that can be read, each version read again by today's contracts."""
        for _ in range(_ATTEMPTS):
            rows = [
                _Row(at, path, digest, self._content(path, digest, outline))
                for at, path, digest, outline in self._pages()
                if isinstance(at, float) and isinstance(path, str) and isinstance(digest, str | None)
            ]
            with self._reading:
                if not (isinstance(self._source, Snapshot) and self._source.is_torn):
                    break
                self._open_snapshot()
        return rows

    def _requests(self) -> Iterator[Requested]:
        for request_id, at, packed in self._query("SELECT request_id, at, packed FROM requests ORDER BY at", ()):
            with suppress(ValueError):
                request = request_of(parsed(unpack(packed) or ""))
                if request.request_id == request_id and isinstance(at, float):
                    yield Requested(-1, at, request_id, request)

    def _content(self, path: str, digest: str | None, outline: object) -> Content | None:
        """A version again: as it was judged then, where today's contracts are the same, else from its text."""
        if digest is None:
            return None
        written = outline if isinstance(outline, str) else None
        return current(written) or content_of(path, self.text(digest), written)

    def _pages(self) -> Iterator[tuple[Any, ...]]:
        after = 0
        while True:
            page = self._query(
                # The texts are looked up, though not read, so that damage of their index is found now.
                "SELECT observations.id, at, path, digest, outline, texts.id"
                " FROM observations LEFT JOIN texts USING (digest)"
                " WHERE observations.id > ? ORDER BY observations.id LIMIT ?",
                (after, _PAGE),
            )
            yield from (row[1:5] for row in page)
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
                if isinstance(source, Snapshot) and str(error).startswith("no such"):
                    # An older agentwatch wrote it, which did not keep that.
                    return []
                if isinstance(source, Database) and is_damage(error):
                    # The next record, in the worker, sets it aside.
                    self._damage = source.identity, str(error)
                self._trouble = f"the history cannot be read: {source.path}: {error}"
                return []


def _seen(row: _Row, seq: int) -> Seen | None:
    if row.digest is None or row.content is None:
        return None
    return Seen(seq, row.at, row.path, row.digest, *row.content)


def _bytes(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT total(length(packed)) FROM texts").fetchone()[0])
