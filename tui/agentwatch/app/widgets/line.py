"""A few lines of styled parts, measured in cells: the base of header, footer and the like."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from agentwatch.app.theming import Palette

_BOTH_ENDS = 12  # Cells from which there is room for both ends of a name

_FOLDERS = r"(?<!\S)[^\s/]*/\S*/(?=[^\s/]{3})"  # Those of a path of three parts and more
_LEAST_OF_SENTENCE = 2 / 3  # How much of the room must be left for a sentence to be cut between two words


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


class Part(NamedTuple):
    """Safe text in one style. A click on it runs `action`."""

    text: str
    style: Style = Style.null()
    action: str = ""

    @property
    def width(self) -> int:
        """Cells."""
        return cell_len(self.text)


Parts = list[Part]


def width_of(parts: Iterable[Part]) -> int:
    """Cells of all parts."""
    return sum(part.width for part in parts)


def apart(left: Parts, right: Parts, width: int) -> Parts:
    """Parts at both ends of a line."""
    return [*left, Part(" " * max(width - width_of(left) - width_of(right), 0)), *right]


def strip_of(parts: Iterable[Part], width: int, palette: Palette, *, selected: bool = False) -> Strip:
    """Parts as a line of exactly `width` cells."""
    base = palette.base + palette.cursor if selected else palette.base
    if selected and palette.ansi:
        # Reversed colours differ from part to part: the whole row in the terminal's own two.
        parts = [part._replace(style=Style(bold=part.style.bold)) for part in parts]
    return Strip([Segment(part.text, base + part.style) for part in parts]).adjust_cell_length(width, base)


class Canvas:
    """A line of cells, each a glyph in a style, that is written upon. Later writing covers earlier, or is cut off."""

    def __init__(self, width: int, glyph: str = " ", style: Style = Style.null()):  # noqa: B008 - a constant
        self.width = width
        self._cells = [(glyph, style)] * width

    def put(self, x: int, glyph: str, style: Style) -> None:
        """Draw one cell."""
        if 0 <= x < self.width:
            self._cells[x] = glyph, style

    def write(self, x: int, text: str, style: Style) -> None:
        """Write words from a cell on."""
        for glyph in text:
            self.put(x, glyph, style)
            x += cell_len(glyph)

    def runs(self) -> Iterator[tuple[str, Style]]:
        """Its text, style by style."""
        for style, cells in groupby(self._cells, itemgetter(1)):
            yield "".join(glyph for glyph, _ in cells), style


class Painted(Widget):
    """Draws with the colours of the theme, again whenever these are others."""

    _palette: Palette | None = None

    def redraw(self) -> None:
        """Paint it anew where it reads differently now."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._use_colors())
        self._use_colors()

    def _use_colors(self) -> None:
        self._palette = Palette.of(self.app.theme_variables, ansi=self.app.native_ansi_color)
        self.redraw()


class LineWidget(Painted):
    """Shows `make_lines`, or what another one makes. Call `redraw` when something that it shows may have changed."""

    DEFAULT_CSS = """
    LineWidget { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, make: Callable[[int, Palette], list[Parts]] | None = None):
        super().__init__()
        self._make = make or self.make_lines
        self._parts: list[Parts] = []
        self._strips: list[Strip] = []

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        """The lines at this width; what is longer is cut."""
        raise NotImplementedError

    def redraw(self) -> None:
        width, before = self.size.width, self._strips
        if (palette := self._palette) is None or not width:
            return
        self._parts = self._make(width, palette)
        self._strips = [strip_of(parts, width, palette) for parts in self._parts]
        if self._strips != before:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if not self._strips or self._strips[0].cell_length != self.size.width:
            # The first paint comes before the event that tells the size: it would show nothing.
            self.redraw()
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def on_resize(self) -> None:
        self.redraw()

    async def on_click(self, event: events.Click) -> None:
        x, y = event.get_content_offset_capture(self)
        for part in self._parts[y] if 0 <= y < len(self._parts) else ():
            if 0 <= x < part.width and part.action:
                await self.run_action(part.action)
            x -= part.width
