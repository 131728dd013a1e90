"""What one part of a message says, and the transcript of a session: its parts, as they are now, in the database."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final

from agentwatch.sources.opencode.tables import MAX_ROW, SaidPart, Tables
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, inner, text, whole
from agentwatch.sources.sessions.following import AT_ONCE, Look, RunTranscript

_CHUNK: Final = 500
_REFUSED: Final = ("The user rejected", "The user dismissed", "The user has specified a rule")
"""How the errors of calls begin that nobody allowed."""


def entries(part: Fields, at: float, *, is_asked: bool = False) -> Iterator[Entry]:
    """What the data of a part say, in their order; of a call, what came of it as well.

    `at` is when the part was made, in seconds since the epoch. `is_asked`: the message is a human's, or the parent's.
    """
    words = text(part, "text") or ""
    match part.get("type"):
        case "text" if words.strip():
            is_own = part.get("synthetic") is True or part.get("ignored") is True
            kind = EntryKind.NOTE if is_own else EntryKind.PROMPT if is_asked else EntryKind.WORDS
            yield Entry(at, kind, words)
        case "reasoning" if words.strip():
            yield Entry(at, EntryKind.THOUGHT, words)
        case "tool":
            yield from _call(part, at)
        case "retry":
            error = inner(part, "error")
            words = text(inner(error, "data"), "message") or text(error, "message") or text(error, "name") or "an error"
            yield Entry(at, EntryKind.NOTE, words, failed=True)


def _call(part: Fields, at: float) -> Iterator[Entry]:
    state, call = inner(part, "state"), text(part, "callID") or "call"
    began, ended = (whole(inner(state, "time"), key) or 0 for key in ("start", "end"))
    at = began / 1000 or at
    yield Entry(at, EntryKind.CALL, "", call, text(part, "tool") or "", inner(state, "input"))
    if state.get("status") not in ("completed", "error"):
        return
    error = text(state, "error") or ""
    refused = error.startswith(_REFUSED)
    metadata = inner(state, "metadata")
    failed = state.get("status") == "error" or bool(whole(metadata, "exit"))
    words = error or text(state, "output") or ""
    printed = text(metadata, "output") or words
    came = Ended(whole(metadata, "exit"), printed, metadata.get("truncated") is True)
    is_over = not (refused or state.get("status") == "error")
    yield Entry(
        ended / 1000 or at,
        EntryKind.RESULT,
        words,
        call,
        failed=failed,
        refused=refused,
        ended=came if is_over else None,
    )


class PartsTranscript(RunTranscript):
    """`open_tables` gives one look at the database, which any thread may have."""

    def __init__(self, session: str, path: Path, open_tables: Callable[[], AbstractContextManager[Tables]]) -> None:
        super().__init__(path)
        self._session = session
        self._open_tables = open_tables
        self._first = MAX_ROW
        """From here on all parts are known, 0 where there are none before."""
        self._last = 0
        self._changed = 0

    @property
    def watched(self) -> Sequence[Path]:
        return [self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal", "-journal")]

    def older(self) -> Look:
        with suppress(OSError, sqlite3.Error), self._open_tables() as tables:
            self._take_before(tables)
        return self._look()

    def entries(self) -> Iterator[Entry]:
        with suppress(OSError, sqlite3.Error):
            for part in self._parts():
                yield from _entries(part)

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        try:
            with self._open_tables() as tables:
                cwd = tables.directory(self._session)
            for part in self._parts():
                if not part.data:
                    raise OSError(errno.EMSGSIZE, "a part of it cannot be read")
                yield part.row, [one._replace(cwd=cwd) for one in _entries(part)]
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error)) from error

    def _parts(self) -> Iterator[SaidPart]:
        """All there are. Raises OSError and sqlite3.Error."""
        with self._open_tables() as tables:
            rows = tables.said_rows(self._session)
        # In several looks: its program cannot write meanwhile where it keeps no log.
        for first in range(0, len(rows), _CHUNK):
            chunk = rows[first : first + _CHUNK]
            yield from self._between(chunk[0], chunk[-1])

    def _read(self) -> bool | None:
        before = self._steps.snapshot()
        try:
            with self._open_tables() as tables:
                if self._first == MAX_ROW:
                    self._take_before(tables)
                    return True
                parts = tables.said(self._session, after=self._last, since=self._changed)
        except (OSError, sqlite3.Error) as error:
            # One that its program writes just now is looked at again.
            if isinstance(error, FileNotFoundError) or not self._path.exists():
                raise FileNotFoundError from error
            return None
        self._take(parts)
        return self._steps.snapshot() != before

    def _take_before(self, tables: Tables) -> None:
        parts = tables.said(self._session, before=self._first, most=AT_ONCE)
        self._first = parts[0].row if len(parts) == AT_ONCE else 0
        self._take(parts)

    def _take(self, parts: Sequence[SaidPart]) -> None:
        # Of those before the first, some change long after: they are read with their neighbours.
        self._steps.put((part.row, _entries(part)) for part in parts if part.row >= self._first)
        self._last = max(self._last, *(part.row for part in parts), 0)
        self._changed = max(self._changed, *(part.updated for part in parts), 0)

    def _between(self, first: int, last: int) -> list[SaidPart]:
        with self._open_tables() as tables:
            return tables.said(self._session, before=last + 1, after=first - 1, since=MAX_ROW)

    def _entries_at(self, place: int) -> Sequence[Entry]:
        try:
            return [entry for part in self._between(place, place) for entry in _entries(part)]
        except (OSError, sqlite3.Error):
            return ()

    def _look(self) -> Look:
        return super()._look()._replace(has_older=0 < self._first < MAX_ROW and not self._steps.is_full)


def _entries(part: SaidPart) -> Iterator[Entry]:
    return entries(part.data, part.created / 1000, is_asked=part.is_asked)
