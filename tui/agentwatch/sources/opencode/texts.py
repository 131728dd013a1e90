"""The texts that were handed over and back: read when they are needed, kept as messages, found again by digest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.delegation.run import Message
from agentwatch.sources.opencode.records import Words, output_in, prompt_in, text_in
from agentwatch.sources.opencode.tables import Record, Tables
from agentwatch.sources.sessions.reader import digest_of, message

_WAYS: Final[dict[str, Callable[[Record], str | None]]] = {"text": text_in, "prompt": prompt_in, "output": output_in}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a text is: parts whose texts stand one below the other, and what of each of them."""

    way: str
    parts: tuple[str, ...]


class Texts:
    """Messages made of parts. Only the thread that reads asks for one; any thread may ask for its place."""

    def __init__(self) -> None:
        self._messages: dict[_Place, tuple[tuple[int, ...], Message | None]] = {}
        self._places: dict[str, _Place] = {}

    def said(self, tables: Tables, words: Sequence[Words], at: int) -> Message | None:
        """What some texts of a message say together; None where they are gone."""
        place = _Place("text", tuple(one.id for one in words))
        return self._message(tables, place, tuple(one.updated for one in words), at)

    def given(self, tables: Tables, part: str, updated: int, at: int) -> Message | None:
        """What a task call handed over."""
        return self._message(tables, _Place("prompt", (part,)), (updated,), at)

    def answered(self, tables: Tables, part: str, updated: int, at: int) -> Message | None:
        """What a task call was answered."""
        return self._message(tables, _Place("output", (part,)), (updated,), at)

    def find(self, tables: Tables, digest: str) -> str | None:
        """A text by its digest; None where the database has another one there by now. Raises sqlite3.Error."""
        place = self._places.get(digest)
        text = _read(tables, place) if place is not None else None
        return text if text is not None and digest_of(text) == digest else None

    def has(self, digest: str) -> bool:
        """Whether there was such a text."""
        return digest in self._places

    def clear(self) -> None:
        """Forget all of it: the database is another one."""
        self._messages.clear()
        self._places.clear()

    def _message(self, tables: Tables, place: _Place, version: tuple[int, ...], at: int) -> Message | None:
        version = (*version, at)
        known = self._messages.get(place)
        if known is not None and known[0] == version:
            return known[1]
        text = _read(tables, place)
        made = message(text, at / 1000, key=place.parts[0]) if text is not None else None
        if made is not None:
            self._places[made.digest] = place
        self._messages[place] = version, made
        return made


def _read(tables: Tables, place: _Place) -> str | None:
    texts: list[str] = []
    for part in place.parts:
        record = tables.record("part", part)
        text = _WAYS[place.way](record) if record is not None else None
        if text is None:
            return None
        texts.append(text)
    return "\n".join(texts) if texts else None
