"""The words in what the program writes: texts of a message, and one line for where a whole text has no room."""

from __future__ import annotations

from collections.abc import Sequence

from agentwatch.sources.sessions.fields import mapping


def texts(content: object) -> list[str]:
    """The text blocks of a message's or a tool result's content, which may be one string."""
    if isinstance(content, str):
        return [content]
    blocks = [mapping(block) for block in content] if isinstance(content, Sequence) else []
    return [said for block in blocks if block.get("type") == "text" and isinstance(said := block.get("text"), str)]


def first_line(words: str, limit: int = 300) -> str:
    """The first line that is not empty, of at most `limit` characters."""
    return next((line.strip() for line in words.splitlines() if line.strip()), "")[:limit]
