"""The row above a group of runs: its name, and what it holds."""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len
from textual.strip import Strip

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip
from agentwatch.app.widgets.line import Part, cursor_mark, strip_of
from agentwatch.view.groups import Group


class Headline(NamedTuple):
    """What a heading says: what its group holds, in `words` of several lengths, the fullest first; how many of its
    tasks ask."""

    group: Group
    words: tuple[str, ...]
    asking: int
    folded: bool
    selected: bool
    focused: bool


def heading_line(what: Headline, width: int, palette: Palette) -> Strip:
    """The line of a heading, exactly `width` cells wide."""
    mark = cursor_mark(palette, selected=what.selected, focused=what.focused)
    name = what.group.upper()
    parts = [mark, Part("▸ " if what.folded else "▾ ", palette.muted), Part(name, palette.muted + palette.strong)]
    room = width - 3 - len(name) - 2
    if what.folded and what.asking:
        asking = f"{what.asking:,} need you" if what.asking > 1 else "1 needs you"
        parts += [Part("  "), Part(clip(asking, room), palette.needs)]
        room -= min(cell_len(asking), room) + 2
    # What is open to be seen need not be counted.
    elif not what.folded and what.group in (Group.NOW, Group.TODAY):
        room = 0
    if words := next((way for way in what.words if cell_len(way) <= room), ""):
        parts += [Part("  "), Part(words, palette.muted)]
    return strip_of(parts, width, palette, selected=what.selected)
