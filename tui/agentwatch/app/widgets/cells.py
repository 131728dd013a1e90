"""Text measured in terminal cells: wide characters keep columns straight."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size

from agentwatch.text import clean

# Variation selectors change the width of the character before them, and terminals do not agree how.
_SELECTORS: Final = dict.fromkeys(range(0xFE00, 0xFE10))

_BOTH_ENDS: Final = 12
"""Cells from which there is room for both ends of a name."""


def shown(text: str, limit: int = 200) -> str:
    """Foreign text for one line of the screen: safe, and of a width that terminals agree on."""
    return clean(text, limit).translate(_SELECTORS)


def clip(text: str, width: int) -> str:
    """The text in at most `width` cells; a cut is shown by `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def clip_name(text: str, width: int) -> str:
    """The same for a name: of an id both ends are kept, for siblings often differ at the end only."""
    if len(text) <= width or width < _BOTH_ENDS or " " in text or not text.isascii():
        return clip(text, width)
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def left(text: str, width: int) -> str:
    """The text in exactly `width` cells, at the left."""
    text = clip(text, width)
    return text + " " * (width - cell_len(text))


def right(text: str, width: int) -> str:
    """The text in exactly `width` cells, at the right."""
    text = clip(text, width)
    return " " * (width - cell_len(text)) + text
