"""The words in what the program writes: texts of a message, and one line for where a whole text has no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentwatch.sources.sessions.fields import mapping, text

_WORDLESS: Final = ("thinking", "tool_use", "tool_result")
"""How the types of blocks end that are no part of what is said: `redacted_thinking`, `server_tool_use`."""


def texts(content: object) -> list[str]:
    """The text blocks of a message's or a tool result's content, which may be one string."""
    if isinstance(content, str):
        return [content]
    blocks = [mapping(block) for block in content] if isinstance(content, Sequence) else []
    return [said for block in blocks if block.get("type") == "text" and isinstance(said := block.get("text"), str)]


def is_understood(content: object) -> bool:
    """Whether the content of a message is written as is known, so that there are no other words in it than `texts`."""
    if isinstance(content, str):
        return True
    if not isinstance(content, list):
        return False
    return all(
        isinstance(block.get("text"), str) if kind == "text" else (kind or "").endswith(_WORDLESS)
        for block in map(mapping, content)
        for kind in [text(block, "type")]
    )
