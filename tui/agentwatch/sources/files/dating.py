"""Since when a file holds what it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Document, Outcome, Return

Committed = Callable[[str, float], float | None]
"""The name of a file and when it was written, to when the commit was made that it still holds; None: not known."""

_FIRST: Final = 1_577_836_800.0
"""2020 began: before that no agent handed work to another."""

LATE: Final = 60.0
"""Seconds before now that the time of a new change may say; one that is older was set, or kept."""


class _Dated(NamedTuple):
    """What a file held, since when, and of what time the file was then; None where that is not known."""

    name: str
    digest: str
    at: float
    written: float | None = None


_UNKNOWN: Final = _Dated("", "", 0.0)


class Dating:
    """Since when a file holds what it holds, in seconds since the epoch: the one answer to when something was alive.

    What was there before the first look was perhaps copied, cloned or checked out: what the document itself says, or
    git (`committed`), comes before the time of the file. What arrives later counts from when it was seen, unless the
    time of the file fits: nobody puts a failure into the past. A content that was known under another name was moved or
    copied, which is no sign of life.
    """

    def __init__(self, committed: Committed | None = None) -> None:
        self._committed = committed
        self._looked_at: float | None = None
        self._is_watching = False
        self._known: dict[str, _Dated] = {}
        """By digest: the first file that held it."""
        self._last: dict[str, _Dated] = {}
        """By file: what it held last; as a rule these are the same."""

    @property
    def looked_ns(self) -> int | None:
        """Until when the workspace was watched before, in nanoseconds since the epoch; None where it was not."""
        return None if self._looked_at is None else int(self._looked_at * 1e9)

    def remember(self, name: str, digest: str, at: float, *, is_gone: bool = False) -> None:
        """A file held this when the workspace was last looked at, or had held it before it was gone."""
        self._last[name] = dated = _Dated(name, digest, at)
        if not is_gone:
            self._known.setdefault(digest, dated)

    def looked(self, at: float) -> None:
        """The workspace was watched before, until then."""
        self._looked_at = at

    def watching(self) -> None:
        """All that was there has been looked at; from now on every change is seen as it happens."""
        self._is_watching = True

    def at(
        self, name: str, digest: str, written: float, document: Document, now: float, *, is_again: bool = False
    ) -> float:
        """Since when a file holds this, which was `written` by the file's own time; `is_again`: once more."""
        written = min(written, now)
        _, before, since, written_before = self._last.get(name, _UNKNOWN)
        if before == digest and not is_again:
            known_at = since if self._is_watching or self._looked_at is None else max(since, self._looked_at)
            if written <= known_at or written == written_before:
                return since
        elsewhere = self._known.get(digest)
        if elsewhere is not None and elsewhere.name != name and before != digest:
            self._last[name] = dated = _Dated(name, digest, elsewhere.at, written)
            return dated.at
        self._last[name] = dated = _Dated(name, digest, self._first_time(name, written, now, document), written)
        if before != digest:
            self._known[digest] = dated
        return dated.at

    def _first_time(self, name: str, written: float, now: float, document: Document) -> float:
        if self._is_watching:
            return written if now - written < LATE else now
        is_first_look = self._looked_at is None
        if self._looked_at is not None and written < self._looked_at:
            written = now
        answer = document if isinstance(document, Return) else None
        is_working = answer is not None and answer.outcome is Outcome.WORKING
        if self._committed is None or not (is_first_look or is_working):
            return written
        stated = answer.stated_at if is_first_look and answer is not None else None
        if stated is not None and _FIRST <= stated <= written:
            return stated
        committed = self._committed(name, written)
        return written if committed is None else min(committed, written)
