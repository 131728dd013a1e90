"""The scrolling page of a tab: lines drawn one by one, so that its cost is that of what is on screen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import ClassVar, Final

from textual import events, on
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from agentwatch.app.actions import Home, bindings
from agentwatch.app.markdown_safe import NOTHING
from agentwatch.app.widgets.details.blocks import Block, Line, lay_out

Source = Callable[[], Iterable[Block]]

MAX_WIDTH: Final = 120
"""Cells of a line: longer ones are hard to read back to the next."""


class CursorView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines to scroll through, with a cursor on one of them while it has the focus."""

    class Opened(Message):
        """What the cursor is on was clicked twice."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.LINES)

    # The gutter is there before it is needed: a scrollbar that comes and goes would wrap everything anew.
    DEFAULT_CSS = """
    CursorView {
        height: 1fr; text-wrap: nowrap;
        overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
    }
    """

    @property
    def height(self) -> int:
        """Lines in sight."""
        return self.scrollable_content_region.height

    @on(events.Focus)
    @on(events.Blur)
    def _draw_cursor(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self.refresh)

    def _under_cursor(self, content: Content, width: int) -> Content:
        rest = content[1:].pad_right(max(width - content.cell_length, 0))
        if self.app.native_ansi_color:
            # Reversed colours differ from part to part: the whole row in the terminal's own two.
            return Content.styled("▌" + rest.plain, "reverse")
        return Content.assemble(("▌", "$text-accent"), rest).stylize_before("on $cursor-row")


class Page(CursorView):
    """Lines of blocks. They are laid out again when the source or the width changes, at no other time.

    Where lines belong to entries (`Line.choice`), the cursor stands on one of them. It is bound to the entry, not to
    its place.
    """

    DEFAULT_CSS = """
    Page { padding: 0 0 0 1; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._source: Source | None = None
        self._laid_width = 0
        self._lines: list[Line] = []
        self._places: dict[Hashable, range] = {}
        """The lines of each entry, in their order."""
        self._chosen: Hashable = None

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def lines(self) -> tuple[str, ...]:
        """What the page says, line by line."""
        return tuple(line.content.plain for line in self._lines)

    @property
    def chosen(self) -> Hashable:
        """The entry that the cursor is on, None if there are none."""
        return self._chosen

    def show(self, source: Source, *, keep: bool, offset: float = 0) -> None:
        """Show the blocks of `source`, which is called again when the width changes.

        `keep` stays at the line now on top; otherwise the page goes to line `offset`. Nothing is drawn where the
        lines have not changed.
        """
        self._source = source
        if not keep:
            self._chosen = None
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
        self._find_places()
        self.virtual_size = Size(width, len(lines))
        return True

    def _find_places(self) -> None:
        """Where the entries are now. A cursor whose entry has gone is on the one that took its place."""
        before = list(self._places)
        self._places = {}
        for number, line in enumerate(self._lines):
            if line.choice is not None:
                first = self._places[line.choice].start if line.choice in self._places else number
                self._places[line.choice] = range(first, number + 1)
        if self._chosen not in self._places:
            at = before.index(self._chosen) if self._chosen in before else 0
            entries = list(self._places)
            self._chosen = entries[min(at, len(entries) - 1)] if entries else None

    # Without animation: a held key would otherwise run ahead of what is drawn.

    def action_move_by(self, step: int) -> None:
        """Move the cursor by one entry; scroll by a line if there is no other, or where none is in sight."""
        if not self._move_cursor(step):
            self.scroll_relative(y=step, animate=False)

    def _move_cursor(self, step: int) -> bool:
        top, height = int(self.scroll_offset.y), self.height
        entries = list(self._places)
        places = enumerate(self._places.values())
        seen = [number for number, place in places if place.start >= top and place.stop <= top + height]
        if not seen:
            return False
        at = entries.index(self._chosen)
        at = at + step if at in seen else seen[0] if step > 0 else seen[-1]
        if not 0 <= at < len(entries):
            return False
        self._choose(entries[at])
        return True

    def _choose(self, entry: Hashable) -> None:
        self._chosen = entry
        place, top, height = self._places[entry], int(self.scroll_offset.y), self.height
        if place.start < top:
            self.scroll_to(y=place.start, animate=False)
        elif place.stop > top + height:
            self.scroll_to(y=place.stop - height, animate=False)
        self.refresh()

    def action_move_pages(self, pages: int) -> None:
        # One line less each: that line says where one was.
        self.scroll_relative(y=pages * max(self.height - 1, 1), animate=False)

    def action_first_line(self) -> None:
        self._go_to_end(next(iter(self._places), None), 0)

    def action_last_line(self) -> None:
        self._go_to_end(next(reversed(self._places), None), self.max_scroll_y)

    def _go_to_end(self, entry: Hashable, y: int) -> None:
        self._chosen = entry
        self.refresh()
        self.scroll_to(y=y, animate=False)

    def on_click(self, event: events.Click) -> None:
        number = int(self.scroll_offset.y) + event.y
        choice = self._lines[number].choice if number < len(self._lines) else None
        if choice is not None:
            self._choose(choice)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_resize(self) -> None:
        if min(self.scrollable_content_region.width, MAX_WIDTH) != self._laid_width and self._lay_out():
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.scroll_offset.y + y
        line = self._lines[number] if number < len(self._lines) else Line(NOTHING)
        content = line.content
        if not content:
            # The visual style is kept ready; `rich_style` would be put together anew for every line.
            return Strip.blank(width, self.visual_style.rich_style).apply_offsets(0, number)
        span = self.text_selection.get_span(number) if self.text_selection else None
        if span:
            start, end = span
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, start, len(content) if end < 0 else end)
        if line.tint and not self.app.native_ansi_color:
            content = content.pad_right(max(width - content.cell_length, 0)).stylize_before(line.tint)
        if line.choice is not None and line.choice == self._chosen and self.has_focus:
            content = self._under_cursor(content, width)
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without the indents and gutters that the layout put in front."""
        chosen = []
        for number, (content, margin, _choice, _tint) in enumerate(self._lines):
            span = selection.get_span(number)
            if span is None or (margin and margin == len(content)):
                continue
            start, end = span
            chosen.append(content.plain[max(start, margin) : len(content) if end < 0 else end])
        return "\n".join(chosen), "\n"


def _same(lines: list[Line], others: list[Line]) -> bool:
    return len(lines) == len(others) and all(
        line.content.is_same(other.content) and (line.choice, line.tint) == (other.choice, other.tint)
        for line, other in zip(lines, others, strict=True)
    )
