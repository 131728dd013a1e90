"""What a relay answers to who looks at a text: in parts, for it may be long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentwatch.delegation.run import Message
from agentwatch.monitor import Monitor
from agentwatch.remote.frames import Ask, Reply
from agentwatch.remote.transcripts import Shown

PART: Final = 128 * 1024
"""Characters of one part."""


def answers(monitor: Monitor, transcripts: Shown, ask: Ask) -> Iterator[Reply]:
    """The parts of the answer. Blocks."""
    if ask.what == "text":
        text = monitor.content(Message(0.0, ask.key, ""))
    else:
        text = transcripts.answer(ask.screen, ask.key, ask.place)
    if text is None:
        yield Reply(ask.id)
        return
    parts = max((len(text) + PART - 1) // PART, 1)
    for part in range(parts):
        yield Reply(ask.id, part, parts, text[part * PART : (part + 1) * PART])
