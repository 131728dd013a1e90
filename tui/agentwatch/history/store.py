"""Every handoff and return ever observed: it outlives rewrites, deletes and restarts.

A start is a replay: what was recorded comes first, with negative `seq`; then the source reads only what has changed
since. Sessions are not copied, for that would put private transcripts into a second place.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from agentwatch.background import Part, let_others_work
from agentwatch.contracts.shapes import Return
from agentwatch.delegation.events import Event, Gone, Requested, Seen
from agentwatch.delegation.files import MAX_VERSIONS
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import Task
from agentwatch.history.database import Database, UnusableError, select, set_watched
from agentwatch.history.errors_file import Entry, append, entries_of
from agentwatch.history.recording import (
    dump_request,
    outline_of,
    pack,
    read_object,
    read_request,
    read_version,
    unpack,
)
from agentwatch.sources.files.documents import KnownFile
from agentwatch.state import record_first_watch, state_directory

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Compressed texts that are kept: some fifty thousand returns."""
MOST_REQUESTS: Final = 1_000
"""What was asked before them is forgotten."""

_WAITING: Final = 10_000
"""Events kept in memory while the disk refuses them; the oldest go first."""
_LAST: Final = """SELECT held.path, digest, at, held.id = latest FROM observations AS held JOIN
    (SELECT max(id) AS latest, max(CASE WHEN digest IS NOT NULL THEN id END) AS seen FROM observations GROUP BY path)
    ON held.id = seen"""
"""For each file the digest it held when it was last seen, since when, and whether it has been there since."""
_SHRINK: Final = f"""DELETE FROM texts WHERE digest NOT IN (SELECT digest FROM ({_LAST})) AND digest IN (
    SELECT digest FROM (SELECT digest, sum(length(packed)) OVER (ORDER BY last DESC) AS size FROM texts
    LEFT JOIN (SELECT digest, max(id) AS last FROM observations GROUP BY digest) USING (digest)) WHERE size > ?)"""  # noqa: S608
"""Drops the oldest texts beyond a size, but for the last one of each file."""

T = TypeVar("T")


class History(Database):
    """The observations of a workspace in its state directory. One thread writes, any may read. All of it blocks, and
    nothing raises: what went wrong is in `notice`."""

    def __init__(self, directory: Path, *, limit: int = LIMIT_BYTES) -> None:
        """`limit` is in bytes of compressed texts."""
        super().__init__(directory)
        self._limit = limit
        self._run: Final = secrets.token_hex(8)
        self._ordinals = count(1)
        self._start = 0
        """The last row from before."""
        self._current: dict[str, int] = {}
        """The row of each file that is current for this process."""
        self._waiting: deque[tuple[Seen | Gone | Requested, bytes | None]] = deque(maxlen=_WAITING)
        """Events with their packed texts."""
        self._problem = ""

    @property
    def notice(self) -> str | None:
        """A message about the history: set aside, not kept. May quote foreign text."""
        return self._problem or self.set_aside or None

    def begin(self) -> None:
        """Open the file for writing; it is made where there is none. Reads it through once."""
        try:
            self.open()
        except UnusableError as error:
            self._problem = f"attempts are remembered only until agentwatch ends: {error}"
        else:
            with suppress(UnusableError):
                self.write(lambda connection: connection.execute(_SHRINK, (self._limit,)))

    def check(self) -> None:
        """Read the file through for its damage. Nothing is written."""
        self._read(self.examine, 0)

    def open(self) -> None:
        """As `Database.open`. What is in it now is what came before."""
        super().open()
        self._current, self._start = {}, self._read(_last_row, 0)

    def record(self, events: Iterable[Event], text_of: Callable[[str], str | None]) -> bool:
        """Record what these say of files and of requests that have ended, in one transaction. True: it is on disk.

        `text_of` gives the text of a digest. What could not be written is tried again with the next call.
        """
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
        """When the workspace was last watched, in seconds since the epoch; None where that is not known."""
        return self._read(
            lambda connection: next((at for (at,) in select(connection, "SELECT at FROM times")), None), None
        )

    def note_watched(self) -> None:
        """The workspace is watched until now. If that cannot be written, the next start sees a little more as new."""
        with suppress(UnusableError):
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
            if not isinstance(event, Requested):
                self._append_version(connection, event, packed, current)
            elif event.request is not None:
                row = event.path, event.at, pack(json.dumps(dump_request(event.request)))
                connection.execute("INSERT OR REPLACE INTO requests VALUES (?, ?, ?)", row)
        many = "DELETE FROM requests WHERE request_id NOT IN (SELECT request_id FROM requests ORDER BY at DESC LIMIT ?)"
        connection.execute(many, (MOST_REQUESTS,))
        set_watched(connection, time.time())
        return current

    def _append_version(
        self, connection: sqlite3.Connection, event: Seen | Gone, packed: bytes | None, current: dict[str, int]
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
            connection.execute("INSERT OR IGNORE INTO texts (digest, packed) VALUES (?, ?)", (digest, packed))


def _last_row(connection: sqlite3.Connection) -> int:
    (row,) = select(connection, "SELECT coalesce(max(id), 0) FROM observations")
    return int(row[0])


def _text(connection: sqlite3.Connection, digest: str) -> str | None:
    rows = select(connection, "SELECT packed FROM texts WHERE digest = ?", digest)
    return unpack(rows[0][0]) if rows else None


def _versions(connection: sqlite3.Connection) -> Iterator[Seen | Gone]:
    """The versions that can be read, as today's contracts have them."""
    rows = select(connection, "SELECT id, at, path, digest, outline FROM observations ORDER BY id")
    for row_id, at, path, digest, outline in rows:
        seq = row_id - rows[-1][0] - 1
        if not (isinstance(at, float) and isinstance(path, str)):
            continue
        if digest is None:
            yield Gone(seq, at, path)
        elif isinstance(digest, str):
            reading = read_version(path, outline, partial(_text, connection, digest))
            if reading is not None:
                yield Seen(seq, at, path, digest, reading.fields, reading.findings, not reading.complete)


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


class Recorder(Part):
    """Records a workspace while it is watched, as a part of a worker.

    `text_of` gives the text of a digest, None where it is lost; any thread may call it. With `read_only`, nothing is
    written into the workspace: the history is the user's, but errors.json lies there.
    """

    def __init__(self, workspace: Path, text_of: Callable[[str], str | None], *, read_only: bool = False) -> None:
        self.history: Final = History(state_directory(workspace))
        self._workspace, self._text_of, self._read_only = workspace, text_of, read_only
        self._events: deque[Event] = deque()
        self._entries: deque[Entry] = deque()
        self._ended: dict[str, Request | None] = {}
        """The requests that are recorded, or soon will be."""
        self._reported: set[tuple[str, str]] = set()
        self._problem: str | None = None

    @property
    def notice(self) -> str | None:  # type: ignore[override]
        return self.history.notice or self._problem

    def recall(self) -> list[Event]:
        """Open the history for writing, and give what it tells. Blocks."""
        if not self._read_only:
            record_first_watch(state_directory(self._workspace), time.time())
        self.history.begin()
        events = self.history.events()
        self._ended = {one.path: one.request for one in events if isinstance(one, Requested)}
        return events

    def note(self, events: Iterable[Event]) -> None:
        """Record these, soon. Any thread may call it. What comes after the end is read again at the next start."""
        self._events.extend(events)

    def note_requests(self, requests: Iterable[Request], now: float) -> None:
        """Record those of these that have ended, as they stand `now`."""
        for one in requests:
            if not one.is_open and self._ended.get(one.request_id) != one.remembered:
                self._ended[one.request_id] = one.remembered
                self.note([Requested(0, one.ended_at or now, one.request_id, one.remembered)])

    def report(self, tasks: Iterable[Task]) -> None:
        """Append the returns of these tasks that break their contract to errors.json, each once."""
        for entry in [entry for task in tasks for entry in entries_of(task)]:
            if (key := (entry["task_id"], entry["digest"])) not in self._reported:
                self._reported.add(key)
                self._entries.append(entry)

    def poll(self) -> Sequence[Event]:
        """Record and report what was given. Blocks."""
        if self._events:
            let_others_work()
            events = [self._events.popleft() for _ in range(min(len(self._events), _WAITING))]
            self.history.record(events, self._text_of)
        entries = [self._entries.popleft() for _ in range(len(self._entries))]
        if entries and not self._read_only:
            self._problem = append(self._workspace, entries)
        return ()

    def close(self) -> None:
        self.history.record((), self._text_of)
        self.history.note_watched()
