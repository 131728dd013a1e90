"""The words in what the program writes, and the frames that it puts around an agent's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from agentwatch.sources.sessions.fields import Fields, first_line, mapping, text, whole

_FRAME: Final = "[Subagent hand-back]"
_INDENT: Final = "  "
_TRAILER: Final = re.compile(r"^agentId: ([\w@.-]{1,128})(?= |$)", re.MULTILINE)
_COMMAND: Final = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_LIMIT: Final = re.compile(r"^ *NOTE: (this agent stopped at its \d{1,9}-turn limit[^.\n]{0,100})", re.MULTILINE)
_NOTHING: Final = frozenset({"", "(Subagent completed but returned no output.)"})
_WORDLESS: Final = ("thinking", "tool_use", "tool_result")
"""How the types of blocks end that are no part of what is said: `redacted_thinking`, `server_tool_use`."""


def handed_back(blocks: list[str], result: Fields) -> str | None:
    """An agent's words out of the parent's copy, None where it has none.

    `blocks` are the texts of the tool result, `result` its structured form, which nested agents' parents do not have.
    """
    if isinstance(result.get("content"), list):
        parts = texts(result.get("content"))
        behind = len(parts) - (whole(result, "harnessTailCount") or 0)
        report = "\n".join(parts[(whole(result, "harnessNoteCount") or 0) : behind])
    else:
        report = _unframed("\n".join(block for block in blocks if not _TRAILER.match(block)))
    return report if report.strip() not in _NOTHING else None


def cut_short(blocks: list[str], result: Fields) -> str:
    """What the program notes above an agent's words where it did not let it finish, "" where it did."""
    if isinstance(result.get("content"), list):
        notes = "\n".join(texts(result.get("content"))[: whole(result, "harnessNoteCount") or 0])
    else:
        notes, framed, _ = "\n".join(blocks).partition(_FRAME)
        notes = notes if framed else ""
    match = _LIMIT.search(notes)
    return match[1] if match is not None else ""


def named_agent(blocks: list[str]) -> str | None:
    """The agent that a tool result names in the program's own line, which is never indented."""
    return next(reversed(_TRAILER.findall(blocks[-1])), None) if blocks else None


def typed(prompt: str) -> str:
    """One line of what a human typed: a slash command is written into the transcript as tags."""
    if prompt.startswith("<command-"):
        parts = dict(_COMMAND.findall(prompt))
        return first_line(f"{parts.get('name', '')} {first_line(parts.get('args', ''))}")
    return first_line(prompt)


def _unframed(text: str) -> str:
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines, 1) if line.startswith(_FRAME)), None)
    if start is None:
        return text
    framed = takewhile(lambda line: not line or line.startswith(_INDENT), lines[start:])
    return "\n".join(line.removeprefix(_INDENT) for line in framed)


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
