"""A block of ours in a Markdown file, between two comments that nobody sees when it is shown. Pure."""

from __future__ import annotations

import re
from typing import Final

_BEGIN: Final = "<!-- agentwatch: begin -->"
_END: Final = "<!-- agentwatch: end -->"
_BLOCK: Final = re.compile(rf"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WITH_GAP: Final = re.compile(rf"(?:\r?\n)*{re.escape(_BEGIN)}.*?{re.escape(_END)}(?:\r?\n)?", re.DOTALL)


def with_block(text: str, block: str) -> str:
    """The text with the block: where it was before, else at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    new = newline.join((_BEGIN, *block.strip().split("\n"), _END))
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _found: new, text, count=1)
    if not text:
        return new + newline
    gap = newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{new}{newline}"


def without_block(text: str) -> str:
    """The text without the block."""
    found = _WITH_GAP.search(text)
    if found is None:
        return text
    before, behind = text[: found.start()], text[found.end() :]
    newline = "\r\n" if "\r\n" in text else "\n"
    return before + (newline if before else "") + behind
