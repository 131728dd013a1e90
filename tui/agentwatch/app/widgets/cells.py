"""Text measured in terminal cells: wide characters keep columns straight."""

import re

from rich.cells import cell_len, set_cell_size

_BOTH_ENDS = 12
"""Cells from which there is room for both ends of a name."""

_FOLDERS = r"(?<!\S)[^\s/]*/\S*/(?=[^\s/]{3})"
"""Those of a path of three parts and more."""
_LEAST_OF_SENTENCE = 2 / 3
"""How much of the room must be left for a sentence to be cut between two words."""


def clip(text: str, width: int) -> str:
    """The text in at most `width` cells; a cut is shown by `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def clip_sentence(text: str, width: int) -> str:
    """The same for a sentence: paths lose their first folders, then it is cut between two words if that leaves most."""
    more = cell_len(text) - width

    def shorten(found: re.Match[str]) -> str:
        nonlocal more
        if more <= 0:
            return found[0]
        ways = ["…" + found[0][one.start() :] for one in re.finditer("/", found[0])]
        saved = [len(found[0]) - len(way) for way in ways]
        at = next((at for at, cells in enumerate(saved) if cells >= more), -1)
        more -= saved[at]
        return ways[at]

    text = re.sub(_FOLDERS, shorten, text)
    cut = clip(text, width)
    body = cut.removesuffix("…")
    if cut == text or not body or text[len(body)].isspace():
        return cut
    words = body[: body.rfind(" ") + 1].rstrip(" ,;:(–—")
    return words + "…" if cell_len(words) >= width * _LEAST_OF_SENTENCE else cut


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
