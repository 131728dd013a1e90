"""Texts as messages, and the texts again by digest: they are not kept, but found in the lines where they stand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message
from agentwatch.sources.claude_code.frames import handed_back, read_notification
from agentwatch.sources.claude_code.session import NAME
from agentwatch.sources.claude_code.wording import texts
from agentwatch.sources.sessions.fields import inner, listed, mapping
from agentwatch.sources.sessions.reader import digest_of
from agentwatch.sources.sessions.reader import message as make_message
from agentwatch.sources.sessions.tail import line_at, record

_MOST: Final = 200_000
_JUDGED: Final = 2000


class Texts:
    """Where the texts stand, by digest: file and offset of the line. Any thread may call it."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}
        self._made: dict[str, Message] = {}
        self._lock = threading.Lock()

    def message(self, path: str, text: str, at: float, offset: int) -> Message:
        """A text of the line at an offset as a message. The same text, in the parent's copy, is judged once only."""
        digest = digest_of(text)
        made = self._made.pop(digest, None)
        made = make_message(text, at, key=NAME) if made is None else replace(made, at=at)
        self._made[digest] = made
        if len(self._made) > _JUDGED:
            del self._made[next(iter(self._made))]
        with self._lock:
            self._places.setdefault(digest, (path, offset))
            if len(self._places) > _MOST:
                del self._places[next(iter(self._places))]
        return made

    def get(self, digest: str) -> str | None:
        """The text, None where its line is no longer there or was never known."""
        with self._lock:
            place = self._places.get(digest)
        line = line_at(Path(place[0]), place[1]) if place is not None else None
        found = record(line) if line is not None else None
        there = _texts_of(found) if found is not None else ()
        return next((text for text in there if digest_of(text) == digest), None)


def _texts_of(line: Mapping[str, object]) -> Iterator[str]:
    message = inner(line, "message")
    content = message.get("content")
    yield "\n".join(texts(content))
    for item in listed(message, "content"):
        block = mapping(item)
        prompt = inner(block, "input").get("prompt")
        if isinstance(prompt, str):
            yield prompt
        if block.get("type") == "tool_result":
            yield handed_back(texts(block.get("content")), inner(line, "toolUseResult")) or ""
    told = (line.get("content"), inner(line, "attachment").get("prompt"), content)
    for text in told:
        notification = read_notification(text) if isinstance(text, str) else None
        if notification is not None and notification.said is not None:
            yield notification.said
