"""Texts as messages, and the texts again by digest: they are not kept, but found again where they stand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message
from agentwatch.sources.sessions.fields import Fields
from agentwatch.sources.sessions.reader import digest_of
from agentwatch.sources.sessions.reader import message as make_message
from agentwatch.sources.sessions.tail import line_at, record

_MOST: Final = 200_000
_JUDGED: Final = 2000

Find = Callable[[Path, int], Iterable[str]]
"""All texts that stand in a file, in the line at an offset: among them the one that is looked for."""


class Texts:
    """Where the texts of one store stand. Any thread may call it; what `find` raises as OSError or ValueError is no
    text."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._places: dict[str, tuple[Path, int]] = {}
        self._made: dict[tuple[str, str], Message] = {}
        self._lock = threading.Lock()

    def message(self, text: str, at: float, path: Path, offset: int = 0, *, key: str) -> Message:
        """A text of a file as a message; `key` is as in `reader.message`. A copy of it is not judged again."""
        digest = digest_of(text)
        made = self._made.pop((digest, key), None)
        made = make_message(text, at, key=key, digest=digest) if made is None else replace(made, at=at)
        self._made[digest, key] = made
        if len(self._made) > _JUDGED:
            del self._made[next(iter(self._made))]
        with self._lock:
            self._places.pop(digest, None)
            self._places[digest] = path, offset
            if len(self._places) > _MOST:
                del self._places[next(iter(self._places))]
        return made

    def get(self, digest: str) -> str | None:
        """The text, None where it is no longer there or was never known."""
        with self._lock:
            place = self._places.get(digest)
        try:
            texts = self._find(*place) if place is not None else ()
            return next((text for text in texts if digest_of(text) == digest), None)
        except (OSError, ValueError):
            return None


def in_lines(texts_of: Callable[[Fields], Iterable[str]]) -> Find:
    """Finds texts in the records of files of JSON lines."""
    return lambda path, offset: texts_of(record(line_at(path, offset) or b"") or {})
