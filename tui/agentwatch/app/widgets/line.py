"""A few lines of styled parts: the base of header, footer and the like."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from agentwatch.app.theming import Palette


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

    def __init__(self, width: int, glyph: str = " ", style: Style = Style.null()) -> None:  # noqa: B008 - a constant
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
        """What is on it, style by style."""
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

    def __init__(self, make: Callable[[int, Palette], list[Parts]] | None = None) -> None:
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
