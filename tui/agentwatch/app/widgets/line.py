"""Lines of styled text, measured in terminal cells, and the base class of header, footer and similar widgets."""

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

_BOTH_ENDS = 12  # cells: from this width on, a shortened name keeps both ends

_FOLDERS = r"(?<!\S)[^\s/]*/\S*/(?=[^\s/]{3})"  # the folders of a path with three parts or more
_LEAST_OF_SENTENCE = 2 / 3  # a sentence is cut between words only if the kept words fill this share of the room


def clip(text: str, width: int) -> str:
    """Return the text in at most `width` cells. If it is cut, it ends with `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def clip_sentence(text: str, width: int) -> str:
    """Cut a sentence to `width` cells. First shorten folders in paths. Then cut the end, after a word if possible."""
    more = cell_len(text) - width

    def shorten(found: re.Match[str]) -> str:
        nonlocal more
        if more <= 0:
            return found[0]
        shortened = ["…" + found[0][one.start() :] for one in re.finditer("/", found[0])]
        saved = [len(found[0]) - len(way) for way in shortened]
        at = next((at for at, cells in enumerate(saved) if cells >= more), -1)
        more -= saved[at]
        return shortened[at]

    text = re.sub(_FOLDERS, shorten, text)
    cut = clip(text, width)
    body = cut.removesuffix("…")
    if cut == text or not body or text[len(body)].isspace():
        return cut
    words = body[: body.rfind(" ") + 1].rstrip(" ,;:(–—")
    return words + "…" if cell_len(words) >= width * _LEAST_OF_SENTENCE else cut


def clip_name(text: str, width: int) -> str:
    """Cut a name to `width` cells. An id keeps both ends, because ids of siblings often differ only at the end."""
    if len(text) <= width or width < _BOTH_ENDS or " " in text or not text.isascii():
        return clip(text, width)
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def align_left(text: str, width: int) -> str:
    """Return the text in exactly `width` cells, aligned left."""
    text = clip(text, width)
    return text + " " * (width - cell_len(text))


def align_right(text: str, width: int) -> str:
    """Return the text in exactly `width` cells, aligned right."""
    text = clip(text, width)
    return " " * (width - cell_len(text)) + text


class Part(NamedTuple):
    """Safe text in one style. A click on the text runs `action`."""

    text: str
    style: Style = Style.null()
    action: str = ""

    @property
    def width(self) -> int:
        """The width in cells."""
        return cell_len(self.text)


Parts = list[Part]


def width_of(parts: Iterable[Part]) -> int:
    """Return the cells of all parts together."""
    return sum(part.width for part in parts)


def join_ends(left: Parts, right: Parts, width: int) -> Parts:
    """Return a line of `width` cells with parts at its left and right ends."""
    return [*left, Part(" " * max(width - width_of(left) - width_of(right), 0)), *right]


def make_strip(parts: Iterable[Part], width: int, palette: Palette, *, selected: bool = False) -> Strip:
    """Return parts as a strip of exactly `width` cells."""
    base = palette.base + palette.cursor if selected else palette.base
    if selected and palette.ansi:
        # All parts of a reversed row need the same colours.
        parts = [part._replace(style=Style(bold=part.style.bold)) for part in parts]
    return Strip([Segment(part.text, base + part.style) for part in parts]).adjust_cell_length(width, base)


class Canvas:
    """A line of cells, each with a glyph in a style. A glyph outside of the line is dropped."""

    def __init__(self, width: int, glyph: str = " ", style: Style = Style.null()):  # noqa: B008 - a constant
        self.width = width
        self._cells = [(glyph, style)] * width

    def put_glyph(self, x: int, glyph: str, style: Style) -> None:
        """Set one cell."""
        if 0 <= x < self.width:
            self._cells[x] = glyph, style

    def write(self, x: int, text: str, style: Style) -> None:
        """Write a text that begins at the cell `x`."""
        for glyph in text:
            self.put_glyph(x, glyph, style)
            x += cell_len(glyph)

    def styled_pieces(self) -> Iterator[tuple[str, Style]]:
        """Yield the text in pieces of one style each."""
        for style, cells in groupby(self._cells, itemgetter(1)):
            yield "".join(glyph for glyph, _ in cells), style


class ThemedWidget(Widget):
    """A widget that draws with the colours of the theme, and redraws when the theme changes."""

    _palette: Palette | None = None

    def redraw(self) -> None:
        """Draw again, and repaint the parts of the screen that have changed."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._load_palette())
        self._load_palette()

    def _load_palette(self) -> None:
        self._palette = Palette.from_variables(self.app.theme_variables, ansi=self.app.native_ansi_color)
        self.redraw()


class LineWidget(ThemedWidget):
    """Shows the lines that `make` returns (by default `make_lines`). Call `redraw` if the lines may have changed."""

    DEFAULT_CSS = """
    LineWidget { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, make: Callable[[int, Palette], list[Parts]] | None = None):
        super().__init__()
        self._make = make or self.make_lines
        self._parts: list[Parts] = []
        self._strips: list[Strip] = []

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        """Return the lines. A line that is wider than `width` cells is cut."""
        raise NotImplementedError

    def redraw(self) -> None:
        width, before = self.size.width, self._strips
        if (palette := self._palette) is None or not width:
            return
        self._parts = self._make(width, palette)
        self._strips = [make_strip(parts, width, palette) for parts in self._parts]
        if self._strips != before:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if not self._strips or self._strips[0].cell_length != self.size.width:
            # The first paint comes before the resize event that makes the strips.
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
