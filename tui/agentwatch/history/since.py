"""What of a history somebody has recalled, and what has come into it since then."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from sqlite3 import Error
from typing import Any, Final, NamedTuple, Protocol

from agentwatch.history.database import UnusableError
from agentwatch.history.outline import unpack
from agentwatch.history.read_only import open_snapshot

_MOST: Final = 1_000
"""New rows, above which to recall anew costs less."""

_NEW: Final = """SELECT path, observations.digest, outline, packed FROM observations LEFT JOIN texts USING (digest)
    WHERE observations.id > ? ORDER BY observations.id LIMIT ?"""

Query = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]


class Part(NamedTuple):
    """What was recalled, as JSON can say it: the latest row then, which no other history has, the paths whose rows were
    taken, and the digest of what there was of them."""

    latest: tuple[int, str, int]
    paths: Sequence[str]
    digest: str


class Came(NamedTuple):
    """What a file holds since then, None: it is gone; and all that is kept of what it says."""

    path: str
    digest: str | None
    said: str


class Sieve(Protocol):
    """Who needs a part of a history only."""

    def recalls(self, path: str, digest: str | None, said: str, text_of: Callable[[str], str | None]) -> bool:
        """Whether it matters that a file of this path held this, which says so much; None: that it was gone."""

    def recalled(self, part: Part | None) -> None:
        """This was what it took; None: that cannot be told."""


def latest_of(query: Query) -> tuple[int, str, int] | None:
    """The latest row, None where there is none."""
    rows = query("SELECT id, run, ordinal FROM observations ORDER BY id DESC LIMIT 1", ())
    return rows[0] if rows else None


def digest_of(query: Query, latest: int, paths: Sequence[str]) -> str:
    """Of what there is of these paths up to a row, and of all requests."""
    rows = query(
        "SELECT observations.id, run, ordinal, texts.id FROM observations LEFT JOIN texts USING (digest)"
        " WHERE path IN (SELECT value FROM json_each(?)) AND observations.id <= ? ORDER BY observations.id",
        (json.dumps(paths), latest),
    )
    requests = query("SELECT request_id, at, packed FROM requests ORDER BY request_id", ())
    return sha256(repr((rows, requests)).encode("utf-8", "surrogatepass")).hexdigest()


def came_since(history: str, part: Part | None) -> Sequence[Came] | None:
    """What has come into the history in this file, None where what was recalled is perhaps not there as it was, or too
    much has come."""
    if part is None:
        return None
    latest, paths, digest = part
    try:
        snapshot = open_snapshot(Path(history).parent)
        if snapshot is None:
            return None
        with closing(snapshot):
            connection = snapshot.connection

            def query(statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
                return connection.execute(statement, values).fetchall()

            query("BEGIN", ())
            known = query("SELECT id, run, ordinal FROM observations WHERE id = ?", latest[:1])
            if known != [tuple(latest)] or digest_of(query, latest[0], paths) != digest:
                return None
            rows = query(_NEW, (latest[0], _MOST))
            if snapshot.is_torn or len(rows) == _MOST:
                return None
    except (UnusableError, Error):
        return None
    return [Came(path, held, f"{outline or ''}\n{unpack(packed) or ''}") for path, held, outline, packed in rows]
