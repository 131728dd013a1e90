"""One process's observations written down in order, and those of another process on the same workspace recognised.

Each process knows, for each file, the row that it holds to be current. A row that another process wrote after it and
that says the same is adopted instead of written again.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentwatch.contracts.shapes import Return
from agentwatch.delegation.events import Event, Gone, Requested, Seen
from agentwatch.delegation.files import MAX_VERSIONS
from agentwatch.history.database import transaction
from agentwatch.history.outline import contracts_version, outline_of, pack
from agentwatch.history.shapes import request_fields
from agentwatch.sources.files.documents import KnownFile

_OF_ANOTHER: Final = """SELECT id FROM observations WHERE path = ? AND id > ? AND run <> ? AND digest IS ?
    AND (digest IS NULL OR at = ?) ORDER BY id LIMIT 1"""
"""The row of another process that says the same."""


_MOST_REQUESTS: Final = 1_000
"""What was asked before them is forgotten."""


class Note(NamedTuple):
    """One observation, ready to be written. `digest` is None where the file is gone."""

    ordinal: int
    at: float
    path: str
    digest: str | None = None
    outline: str | None = None
    packed: bytes | None = None
    is_return: bool = False
    """The same return written later may be that of another attempt."""


class Recorder:
    """The writing side of one process. A `Note` may be written any number of times: it becomes one row."""

    def __init__(self) -> None:
        self._run: Final = secrets.token_hex(8)
        self._ordinal = 0
        self._start = 0
        self._current: dict[str, int] = {}

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin with a history that was just opened: what is in it now is what came before. Raises sqlite3.Error."""
        self._start = _value(connection, "SELECT max(id) FROM observations") or 0
        self._current = {}

    def notes(self, events: Iterable[Event], text_of: Callable[[str], str | None]) -> list[Note]:
        """Observations ready to be written; those that say nothing of a file's content are left out."""
        notes = []
        for event in events:
            if not isinstance(event, Seen | Gone):
                continue
            self._ordinal += 1
            note = Note(self._ordinal, event.at, event.path)
            if isinstance(event, Seen):
                text = text_of(event.digest)
                packed = None if text is None else pack(text)
                note = note._replace(digest=event.digest, outline=outline_of(event), packed=packed)
                note = note._replace(is_return=isinstance(event.document, Return))
            notes.append(note)
        return notes

    def write(self, connection: sqlite3.Connection, notes: Sequence[Note], requests: Iterable[Requested] = ()) -> int:
        """Write in one transaction. Returns the bytes of the texts that are new. Raises sqlite3.Error."""
        current = dict[str, int]()
        added = 0
        with transaction(connection):
            for note in notes:
                added += self._write(connection, note, current)
            _write_requests(connection, requests)
        self._current |= current
        return added

    def index(self, connection: sqlite3.Connection, files: Mapping[str, KnownFile]) -> None:
        """Replace the index for a warm start. Raises sqlite3.Error."""
        version = contracts_version()
        rows = [
            (path, *file.fingerprint, file.shown or "", version)
            for path, file in files.items()
            # What changed so shortly before it was read may change again without a trace in its times.
            if file.fingerprint is not None and not file.racy and not file.incomplete and file.due is None
            # A file that could not be read is looked at again.
            if file.shown is None or isinstance(file.shown, str)
        ]
        with transaction(connection):
            connection.execute("DELETE FROM files")
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _write(self, connection: sqlite3.Connection, note: Note, current: dict[str, int]) -> int:
        known = current.get(note.path) or self._current.get(note.path)
        if known is None:
            before = "SELECT max(id) FROM observations WHERE path = ? AND id <= ?"
            known = _value(connection, before, note.path, self._start)
        # No row where the file was never there, no digest where it is gone.
        row = connection.execute("SELECT digest, at FROM observations WHERE id = ?", (known,)).fetchone()
        digest, at = row or (None, None)
        if note.digest == digest and not (note.is_return and isinstance(at, float) and note.at > at):
            return 0
        same = _value(connection, _OF_ANOTHER, note.path, max(known or 0, self._start), self._run, note.digest, note.at)
        if same is not None:
            current[note.path] = same
            return 0
        written = connection.execute(
            "INSERT OR IGNORE INTO observations (run, ordinal, at, path, digest, outline) VALUES (?, ?, ?, ?, ?, ?)",
            (self._run, note.ordinal, note.at, note.path, note.digest, note.outline),
        )
        ours = "SELECT id FROM observations WHERE run = ? AND ordinal = ?"
        if (row_id := _value(connection, ours, self._run, note.ordinal)) is not None:
            current[note.path] = row_id
        if not written.rowcount:
            return 0
        _forget_many(connection, note.path)
        if note.packed is None:
            return 0
        text = connection.execute(
            "INSERT OR IGNORE INTO texts (digest, packed) VALUES (?, ?)", (note.digest, note.packed)
        )
        return len(note.packed) if text.rowcount else 0


def _write_requests(connection: sqlite3.Connection, requests: Iterable[Requested]) -> None:
    rows = [
        (one.path, one.at, pack(json.dumps(request_fields(one.request)))) for one in requests if one.request is not None
    ]
    if rows:
        connection.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?, ?)", rows)
        connection.execute(
            "DELETE FROM requests WHERE request_id NOT IN (SELECT request_id FROM requests ORDER BY at DESC LIMIT ?)",
            (_MOST_REQUESTS,),
        )


def _value(connection: sqlite3.Connection, query: str, *values: object) -> Any:
    """The first column of the first row; None where there is none."""
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]


def _forget_many(connection: sqlite3.Connection, path: str) -> None:
    """Keep as many rows of one file as the tree remembers: the first, which says when it began, and the last ones."""
    if _value(connection, "SELECT count(*) FROM observations WHERE path = ?", path) <= MAX_VERSIONS:
        return
    row_id, digest = connection.execute(
        "SELECT id, digest FROM observations WHERE path = ? ORDER BY id LIMIT 1 OFFSET 1", (path,)
    ).fetchone()
    connection.execute("DELETE FROM observations WHERE id = ?", (row_id,))
    connection.execute(
        "DELETE FROM texts WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM observations WHERE digest = ?)",
        (digest, digest),
    )
