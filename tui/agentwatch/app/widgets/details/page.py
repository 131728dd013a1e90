"""The scrolling page of a tab: lines drawn one by one, so that its cost is that of what is on screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from agentwatch.app.markdown_safe import NOTHING
from agentwatch.app.widgets.details.blocks import Block, Line, lay_out

Source = Callable[[], Iterable[Block]]

MAX_WIDTH: Final = 120
"""Cells of a line: longer ones are hard to read back to the next."""


class Page(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of blocks. They are laid out again when the source or the width changes, at no other time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move_by(1)", "Down", show=False),
        Binding("up,k", "move_by(-1)", "Up", show=False),
        Binding("pagedown,space,ctrl+d", "move_pages(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "move_pages(-1)", "Page up", show=False),
        Binding("home,g", "first_line", "Top", show=False),
        Binding("end,G", "last_line", "End", show=False),
    ]

    # The gutter is there before it is needed: a scrollbar that comes and goes would wrap everything anew.
    DEFAULT_CSS = """
    Page {
        height: 1fr;
        padding: 0 0 0 1;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._source: Source | None = None
        self._laid_width = 0
        self._lines: list[Line] = []

    @property
    def allow_select(self) -> bool:
        """The text can be selected with the mouse; `is_container` of the base says so only for widgets in it."""
        return True

    @property
    def lines(self) -> tuple[str, ...]:
        """What the page says, line by line."""
        return tuple(line.content.plain for line in self._lines)

    def show(self, source: Source, *, keep: bool, offset: float = 0) -> None:
        """Show the blocks of `source`, which is called again when the width changes.

        `keep` stays at the line now on top; otherwise the page goes to line `offset`. Nothing is drawn where the
        lines have not changed.
        """
        self._source = source
        changed = self._lay_out()
        top = min(self.scroll_offset.y if keep else offset, self.max_scroll_y)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)
        if changed:
            self.refresh()

    def _lay_out(self) -> bool:
        width = min(self.scrollable_content_region.width, MAX_WIDTH)
        if self._source is None or width <= 0:
            return False
        lines = lay_out(self._source(), width)
        if width == self._laid_width and _same(lines, self._lines):
            return False
        self._laid_width = width
        self._lines = lines
        self.virtual_size = Size(width, len(lines))
        return True

    # Without animation: a held key would otherwise run ahead of what is drawn.

    def action_move_by(self, lines: int) -> None:
        """Scroll by so many lines."""
        self.scroll_relative(y=lines, animate=False)

    def action_move_pages(self, pages: int) -> None:
        """Scroll by so many pages, one line less each: that line says where one was."""
        self.scroll_relative(y=pages * max(self.scrollable_content_region.height - 1, 1), animate=False)

    def action_first_line(self) -> None:
        """Scroll to the top."""
        self.scroll_to(y=0, animate=False)

    def action_last_line(self) -> None:
        """Scroll to the end."""
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def on_resize(self) -> None:
        if min(self.scrollable_content_region.width, MAX_WIDTH) != self._laid_width and self._lay_out():
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.scroll_offset.y + y
        content = self._lines[number].content if number < len(self._lines) else NOTHING
        if not content:
            # The visual style is kept ready; `rich_style` would be put together anew for every line.
            return Strip.blank(width, self.visual_style.rich_style).apply_offsets(0, number)
        span = self.text_selection.get_span(number) if self.text_selection else None
        if span:
            start, end = span
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, start, len(content) if end < 0 else end)
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without the indents and gutters that the layout put in front."""
        chosen = []
        for number, (content, margin) in enumerate(self._lines):
            span = selection.get_span(number)
            if span is None or (margin and margin == len(content)):
                continue
            start, end = span
            chosen.append(content.plain[max(start, margin) : len(content) if end < 0 else end])
        return "\n".join(chosen), "\n"


def _same(lines: list[Line], others: list[Line]) -> bool:
    return len(lines) == len(others) and all(
        line.content.is_same(other.content) for line, other in zip(lines, others, strict=True)
    )
