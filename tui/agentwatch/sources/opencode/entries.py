"""What one part of a message says, and the transcript of a session: its parts, as they are now, in the database."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from agentwatch.sources.opencode.tables import RecordRow, Tables
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, inner, text, whole
from agentwatch.sources.sessions.following import WholeTranscript

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


class PartsTranscript(WholeTranscript):
    """`open_tables` gives one look at the database, which any thread may have, and `signature` changes with it."""

    def __init__(
        self,
        session: str,
        path: Path,
        open_tables: Callable[[], AbstractContextManager[Tables]],
        signature: Callable[[], object],
    ) -> None:
        super().__init__(path)
        self._session = session
        self._open_tables = open_tables
        self._signature = signature

    @property
    def watched(self) -> Sequence[Path]:
        return [self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal", "-journal")]

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        try:
            with self._open_tables() as tables:
                cwd, parts = tables.directory(self._session), self._parts(tables)
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error)) from error
        for part, said in parts:
            if not part.data:
                raise OSError(errno.EMSGSIZE, "a part of it cannot be read")
            yield part.row, [one._replace(cwd=cwd) for one in said]

    def stamp(self) -> object:
        self._path.stat()
        return self._signature()

    def load(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        try:
            with self._open_tables() as tables:
                parts = self._parts(tables)
        except (OSError, sqlite3.Error) as error:
            # One that its program writes just now is looked at again.
            raise ValueError from error
        return ((part.row, said) for part, said in parts)

    def _parts(self, tables: Tables) -> list[tuple[RecordRow, list[Entry]]]:
        """The parts in the order in which they were first written; nothing where rows have no numbers."""
        asked = {one.id for one in tables.records("message", self._session) if one.data.get("role") == "user"}
        parts = [part for part in tables.records("part", self._session) if part.row]
        parts.sort(key=lambda part: part.row)
        return [
            (part, list(entries(part.data, part.created / 1000, is_asked=part.message_id in asked))) for part in parts
        ]
