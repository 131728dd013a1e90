"""Every handoff and return ever observed: it outlives rewrites, deletes and restarts.

A start is a replay: what was recorded comes first, with negative `seq`; then the source reads only what has changed
since. Sessions are not copied, for that would put private transcripts into a second place.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from agentwatch.background import let_others_work
from agentwatch.contracts.shapes import Return
from agentwatch.delegation.events import Event, Gone, Requested, Seen
from agentwatch.delegation.files import MAX_VERSIONS
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.history.database import (
    SCHEMA_VERSION,
    Database,
    UnusableError,
    select,
    set_watched,
    version_of,
)
from agentwatch.history.errors_file import Failure, append, failures
from agentwatch.history.recording import (
    dump_request,
    outline_of,
    pack,
    read_object,
    read_outline,
    read_request,
    read_version,
    unpack,
)
from agentwatch.sources.files.documents import KnownFile
from agentwatch.state import state_directory

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Compressed texts that are kept: some fifty thousand returns."""
MOST_REQUESTS: Final = 1_000
"""What was asked before them is forgotten."""

_WAITING: Final = 10_000
"""Events kept in memory while the disk refuses them; the oldest go first."""
_PAGE: Final = 500
"""Rows read at once: nobody can write meanwhile."""
_LAST: Final = """SELECT held.path, digest, at, held.id = latest FROM observations AS held JOIN
    (SELECT max(id) AS latest, max(CASE WHEN digest IS NOT NULL THEN id END) AS seen FROM observations GROUP BY path)
    ON held.id = seen"""
"""For each file the digest it held when it was last seen, since when, and whether it has been there since."""

T = TypeVar("T")


class History(Database):
    """The observations of a workspace in its state directory. Any thread may call it. All of it blocks, and nothing
    raises: what went wrong is in `notice`."""

    def __init__(self, directory: Path, *, limit: int = LIMIT_BYTES) -> None:
        """`limit` is in bytes of compressed texts."""
        super().__init__(directory)
        self._limit = self._shrink_above = limit
        self._run: Final = secrets.token_hex(8)
        self._ordinals = count(1)
        self._start = 0
        """The last row from before."""
        self._current: dict[str, int] = {}
        """The row of each file that is current for this process."""
        self._size = 0
        self._waiting: deque[tuple[Event, bytes | None]] = deque(maxlen=_WAITING)
        """Events with their packed texts."""
        self._problem = self._full = ""
        self._writing = threading.Lock()

    @property
    def notice(self) -> str | None:
        """A message about the history: set aside, not kept, too large. May quote foreign text."""
        return self._problem or self.set_aside or self._full or None

    def begin(self) -> None:
        """Open the file for writing; it is made where there is none. Reads it through once."""
        with self._writing:
            try:
                self.open()
            except UnusableError as error:
                self._problem = f"attempts are remembered only until agentwatch ends: {error}"

    def check(self) -> None:
        """Read the file through for its damage. Nothing is written."""
        self._read(self.examine, 0)

    def open(self) -> None:
        """As `Database.open`. What is in it now is what came before."""
        super().open()
        self._current = {}
        self._start, self._size = self._read(_measure, (0, 0))

    def record(self, events: Sequence[Event], text_of: Callable[[str], str | None]) -> bool:
        """Record what these say of files and of requests that have ended, in one transaction. True: it is on disk.

        `text_of` gives the text of a digest. What could not be written is tried again with the next call.
        """
        with self._writing:
            for event in events:
                if isinstance(event, Seen | Gone | Requested):
                    text = text_of(event.digest) if isinstance(event, Seen) else None
                    self._waiting.append((event, None if text is None else pack(text)))
            if not self._waiting and self.damage is None:
                return True
            try:
                self._current = self.write(self._append)
            except UnusableError as error:
                self._problem = f"the last attempts are not saved yet: {error}"
                return False
            self._waiting.clear()
            self._problem = ""
            return True

    def events(self) -> list[Event]:
        """Everything as it was recorded, files that were gone too, and the requests that have ended."""
        return self._read(lambda connection: [*_versions(connection), *_requests(connection)], [])

    def text(self, digest: str) -> str | None:
        """The text of a version, None where it is not kept (any more)."""
        return self._read(lambda connection: _text(connection, digest), None)

    def files(self) -> dict[str, KnownFile]:
        """By file, the document that it held last, and whether it was there when agentwatch ended."""
        return self._read(_files, {})

    def watched_at(self) -> float | None:
        """When the workspace was last watched, in seconds since the epoch; None where it never was."""

        def read(connection: sqlite3.Connection) -> float | None:
            # Of older versions the file's own time says it.
            is_old = version_of(connection) < SCHEMA_VERSION
            times = [(self.path.stat().st_mtime,)] if is_old else select(connection, "SELECT at FROM times")
            return next((at for (at,) in times), None)

        return self._read(read, None)

    def note_watched(self) -> None:
        """The workspace is watched until now. If that cannot be written, the next start sees a little more as new."""
        with self._writing, suppress(UnusableError):
            self.write(lambda connection: set_watched(connection, time.time()))

    def _read(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        try:
            found = self.read(work)
        except UnusableError as error:
            self._problem = str(error)
            return nothing
        return nothing if found is None else found

    def _append(self, connection: sqlite3.Connection) -> dict[str, int]:
        """Write what waits. Returns the rows that are current then, by file."""
        current = dict(self._current)
        for event, packed in self._waiting:
            if isinstance(event, Requested):
                if event.request is not None:
                    row = event.path, event.at, pack(json.dumps(dump_request(event.request)))
                    connection.execute("INSERT OR REPLACE INTO requests VALUES (?, ?, ?)", row)
            elif isinstance(event, Seen | Gone):
                self._append_version(connection, event, packed, current)
        connection.execute(
            "DELETE FROM requests WHERE request_id NOT IN (SELECT request_id FROM requests ORDER BY at DESC LIMIT ?)",
            (MOST_REQUESTS,),
        )
        set_watched(connection, time.time())
        if self._size > self._shrink_above:
            self._shrink(connection)
        return current

    def _append_version(
        self,
        connection: sqlite3.Connection,
        event: Seen | Gone,
        packed: bytes | None,
        current: dict[str, int],
    ) -> None:
        path, digest = event.path, event.digest if isinstance(event, Seen) else None
        known = "SELECT id, digest, at FROM observations WHERE path = ? AND id <= ? ORDER BY id DESC LIMIT 1"
        row = connection.execute(known, (path, current.get(path, self._start))).fetchone()
        row_id, before, at = row or (0, None, None)
        # The same return written later may be that of another attempt.
        is_later = isinstance(event, Seen) and isinstance(event.document, Return) and at is not None and event.at > at
        if digest == before and not is_later:
            return
        # Another process that watches the workspace says the same: its row is adopted.
        same = connection.execute(
            "SELECT id FROM observations WHERE path = ? AND id > ? AND run <> ? AND digest IS ?"
            " AND (digest IS NULL OR at = ?) ORDER BY id LIMIT 1",
            (path, max(row_id, self._start), self._run, digest, event.at),
        ).fetchone()
        if same is not None:
            current[path] = same[0]
            return
        outline = outline_of(event) if isinstance(event, Seen) else None
        added = connection.execute(
            "INSERT INTO observations (run, ordinal, at, path, digest, outline) VALUES (?, ?, ?, ?, ?, ?)",
            (self._run, next(self._ordinals), event.at, path, digest, outline),
        )
        current[path] = added.lastrowid or 0
        # As many rows of one file as the tree remembers: the first, which says when it began, and the last ones.
        rows = select(connection, "SELECT id FROM observations WHERE path = ? ORDER BY id", path)
        connection.executemany("DELETE FROM observations WHERE id = ?", rows[1 : max(len(rows) - MAX_VERSIONS + 1, 1)])
        if packed is not None:
            self._size += len(packed)
            connection.execute("INSERT OR IGNORE INTO texts (digest, packed) VALUES (?, ?)", (digest, packed))

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Drop texts, the oldest first, but for the last one of each file. Some room is left: this happens rarely."""
        _, self._size = _measure(connection)
        last = {digest for _, digest, _, _ in connection.execute(_LAST)}
        oldest_first = select(
            connection,
            "SELECT digest, length(packed), max(observations.id) AS last FROM texts"
            " LEFT JOIN observations USING (digest) GROUP BY digest ORDER BY last",
        )
        for digest, size, _ in oldest_first:
            if self._size <= self._limit * 7 // 8:
                break
            if digest not in last:
                connection.execute("DELETE FROM texts WHERE digest = ?", (digest,))
                self._size -= size
        is_full = self._size > self._limit
        held = f"the history holds {self._size / 1024 / 1024:.0f} MiB of latest attempts, which are never dropped"
        self._full = held if is_full else ""
        self._shrink_above = max(self._limit, self._size + self._limit // 8)


def _measure(connection: sqlite3.Connection) -> tuple[int, int]:
    """The last row, and the bytes of all texts."""
    measure = "SELECT (SELECT coalesce(max(id), 0) FROM observations), coalesce(sum(length(packed)), 0) FROM texts"
    return next(((last, size) for last, size in select(connection, measure)), (0, 0))


def _text(connection: sqlite3.Connection, digest: str) -> str | None:
    rows = select(connection, "SELECT packed FROM texts WHERE digest = ?", digest)
    return unpack(rows[0][0]) if rows else None


def _versions(connection: sqlite3.Connection) -> Iterator[Seen | Gone]:
    """The versions that can be read, as today's contracts have them."""
    last, _ = _measure(connection)
    after = 0
    page = "SELECT id, at, path, digest, outline FROM observations WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
    while rows := select(connection, page, after, last, _PAGE):
        after = rows[-1][0]
        for row_id, at, path, digest, outline in rows:
            if not (isinstance(at, float) and isinstance(path, str)):
                continue
            seq = row_id - last - 1
            if digest is None:
                yield Gone(seq, at, path)
            elif isinstance(digest, str):
                reading = read_outline(outline, current=True)
                reading = reading or read_version(path, _text(connection, digest), outline)
                if reading is not None:
                    yield Seen(seq, at, path, digest, reading.document, reading.findings, not reading.complete)


def _requests(connection: sqlite3.Connection) -> Iterator[Requested]:
    for request_id, at, packed in select(connection, "SELECT request_id, at, packed FROM requests ORDER BY at"):
        with suppress(ValueError):
            request = read_request(read_object(unpack(packed) or ""))
            if request.request_id == request_id and isinstance(at, float):
                yield Requested(-1, at, request_id, request)


def _files(connection: sqlite3.Connection) -> dict[str, KnownFile]:
    return {
        path: KnownFile(digest=digest, shown=digest if is_there else None, at=at if isinstance(at, float) else None)
        for path, digest, at, is_there in select(connection, _LAST)
        if digest and isinstance(digest, str)
    }


class Recalled(NamedTuple):
    """The state when agentwatch last ended: every event in its order, the files as they were then, and when."""

    events: Sequence[Event] = ()
    files: Mapping[str, KnownFile] = {}
    notice: str | None = None
    watched_at: float | None = None


def recall(workspace: Path) -> Recalled:
    """The history of a workspace, for those who look once. Blocks, and writes nothing."""
    history = History(state_directory(workspace))
    history.check()
    return Recalled(history.events(), history.files(), history.notice, history.watched_at())


class HistoryWorker:
    """Records a workspace while it is watched, in a thread of its own, from `start` to `stop`.

    `text_of` gives the text of a digest, None where it is lost; any thread may call it. With `read_only`, nothing is
    written into the workspace: the history is the user's, but errors.json lies there.
    """

    def __init__(self, workspace: Path, text_of: Callable[[str], str | None], *, read_only: bool = False) -> None:
        self._workspace, self._text_of, self._read_only = workspace, text_of, read_only
        self._history = History(state_directory(workspace))
        self.text: Final = self._history.text
        """A text that was recorded, None where it is not (any more). Any thread may call it."""
        self._ended: dict[str, Request | None] = {}
        """The requests that are recorded, or soon will be."""
        self._unrecorded: deque[Event] = deque()
        self._reported: set[tuple[str, str]] = set()
        self._problem: str | None = None
        self._recalled: Future[Recalled] | None = None
        self._stopped = False
        # One thread, so that everything is recorded in its order.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="agentwatch-history")

    @property
    def notice(self) -> str | None:
        """A message about the history: set aside, not kept, too large. May quote foreign text."""
        return self._history.notice or self._problem

    def start(self, tree: Tree) -> Future[Recalled]:
        """Open the history, soon, and have the tree apply it; nobody else looks at that meanwhile."""
        self._recalled = self._worker.submit(self._open, tree)
        return self._recalled

    def record(self, events: Sequence[Event]) -> None:
        """Record these, in the order of the calls. What comes after the end is read again at the next start."""
        self._unrecorded.extend(events)
        with suppress(RuntimeError):
            self._worker.submit(self._record)

    def record_requests(self, requests: Iterable[Request], now: float) -> None:
        """Record those of these that have ended, as they stand `now`."""
        ended = {one.request_id: one.remembered for one in requests if not one.is_open}
        if new := [one for name, one in ended.items() if self._ended.get(name) != one]:
            self._ended |= ended
            self.record([Requested(0, one.ended_at or now, one.request_id, one) for one in new])

    def report(self, tasks: Iterable[Task]) -> None:
        """Append the returns of these tasks that break their contract to errors.json, each once."""
        if self._read_only:
            return
        found = [one for task in tasks for one in failures(task)]
        if new := [one for one in found if (one.task_id, one.digest) not in self._reported]:
            self._reported |= {(one.task_id, one.digest) for one in new}
            self._worker.submit(self._report, new)

    def stop(self) -> None:
        """Record what was given. Blocks, but for a history that is still being opened, which another process may keep
        from it."""
        self._stopped = True
        if self._recalled is not None and self._recalled.done():
            self._worker.submit(self._history.note_watched)
        self._worker.shutdown(wait=self._recalled is None or self._recalled.done())

    def _open(self, tree: Tree) -> Recalled:
        history = self._history
        history.begin()
        events, watched_at = history.events(), history.watched_at()
        self._ended = {one.path: one.request for one in events if isinstance(one, Requested)}
        # Who leaves meanwhile does not wait for it.
        tree.apply(*takewhile(lambda _: not self._stopped, events))
        return Recalled(events, history.files(), history.notice, watched_at)

    def _record(self) -> None:
        # Nobody waits for it. What came while the last was written is written together.
        if self._unrecorded:
            let_others_work()
        given = [self._unrecorded.popleft() for _ in range(min(len(self._unrecorded), _WAITING))]
        self._history.record(given, self._text_of)

    def _report(self, new: Sequence[Failure]) -> None:
        self._problem = append(self._workspace, new)
