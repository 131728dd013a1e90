"""Since when a file holds what it holds: the one answer to when something was last alive.

What was there before agentwatch first watched the workspace was perhaps copied, cloned or checked out since: what the
document itself says, or git, comes before the time of the file. What arrives later counts from when it was seen, unless
the time of the file fits: nobody puts a failure into the past. A content that was known under another name was moved or
copied, which is no sign of life.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentwatch.contracts.shapes import Document, Outcome, Return

Committed = Callable[[str, float], float | None]
"""The name of a file and when it was written, to when the commit was made that it still holds; None: not known."""

_FIRST: Final = 1_577_836_800.0
"""2020 began: before that no agent handed work to another."""

LATE: Final = 60.0
"""Seconds after which a change that is only seen now was not made then: the file's own time was set, or kept."""


class Dating:
    """Times are seconds since the epoch. Without `committed`, what is there at first goes by the times of the files."""

    def __init__(self, committed: Committed | None = None) -> None:
        self._committed = committed
        self._looked_at: float | None = None
        self._is_watching = False
        self._known: dict[str, tuple[str, float]] = {}
        """By digest: the first file that held it, and since when."""

    def remember(self, name: str, digest: str, at: float) -> None:
        """This was known when the workspace was last looked at."""
        self._known.setdefault(digest, (name, at))

    def looked(self, at: float) -> None:
        """The workspace was watched before, until then."""
        self._looked_at = at

    def watching(self) -> None:
        """All that was there has been looked at; from now on every change is seen as it happens."""
        self._is_watching = True

    def at(self, name: str, digest: str, written: float, document: Document, now: float) -> float:
        """Since when a file holds this, which was `written` by the file's own time."""
        written = min(written, now)
        elsewhere = self._known.get(digest)
        if elsewhere is not None and elsewhere[0] != name:
            return elsewhere[1]
        at = self._first_time(name, written, now, document)
        self._known[digest] = name, at
        return at

    def _first_time(self, name: str, written: float, now: float, document: Document) -> float:
        if self._is_watching:
            return written if now - written < LATE else now
        is_first_look = self._looked_at is None
        if self._looked_at is not None and written < self._looked_at:
            written = now
        if self._committed is None or not (is_first_look or _works(document)):
            return written
        stated = document.stated_at if is_first_look and isinstance(document, Return) else None
        if stated is not None and _FIRST <= stated <= written:
            return stated
        return min(self._committed(name, written) or written, written)


def _works(document: Document) -> bool:
    return isinstance(document, Return) and document.outcome is Outcome.WORKING
