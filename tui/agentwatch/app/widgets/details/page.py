"""A scrolling page of blocks, drawn line by line, so that its cost is that of what is on screen."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
from agentwatch.app.markdown_safe import NOTHING, Line
from agentwatch.app.widgets.details.blocks import Block, lay_out

MAX_WIDTH: Final = 120
"""Cells of a line: longer ones are hard to read back to the next."""


class Page(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of blocks, laid out again when the width changes.

    Where lines belong to entries (`Line.choice`), the cursor stands on one of them while the page has the focus. It is
    bound to the entry, not to its place.
    """

    class Opened(Message):
        """The entry under the cursor was clicked twice."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.LINES)

    # The gutter is there before it is needed: a scrollbar that comes and goes would wrap everything anew.
    DEFAULT_CSS = """
    Page {
        height: 1fr; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._blocks: Sequence[Block] = ()
        self._lines: Sequence[Line] = ()
        self.places: dict[Hashable, int] = {}
        """The first line of each entry, in their order."""
        self.chosen: Hashable = None
        """The entry that the cursor is on, None if there are none."""

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def lines(self) -> tuple[str, ...]:
        """The words of the page, line by line."""
        return tuple(self.line(number).content.plain for number in range(self.virtual_size.height))

    @property
    def height(self) -> int:
        """Lines in sight."""
        return self.scrollable_content_region.height

    @property
    def top(self) -> int:
        """The first line in sight."""
        return int(self.scroll_offset.y)

    def line(self, number: int) -> Line:
        """One line of the page; a blank one behind its end."""
        return self._lines[number] if number < len(self._lines) else Line(NOTHING)

    def show(self, blocks: Sequence[Block], *, keep: bool) -> None:
        """Show blocks: `keep` stays at the line now on top; otherwise the page goes to its beginning."""
        self._blocks = blocks
        if not keep:
            self.chosen = None
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()

    def lay_out(self) -> None:
        """Lay the lines out in the width that there is now."""
        width = min(self.scrollable_content_region.width, MAX_WIDTH)
        if width > 0:
            self._lines = lay_out(self._blocks, width)
            places: dict[Hashable, int] = {}
            for number, line in enumerate(self._lines):
                if line.choice is not None:
                    places.setdefault(line.choice, number)
            self.place(places, Size(width, len(self._lines)))

    def place(self, places: dict[Hashable, int], size: Size) -> None:
        """Put the entries into their places. A cursor whose entry has gone is on the one that took its place."""
        before, self.places = list(self.places), places
        if self.chosen not in places:
            at = before.index(self.chosen) if self.chosen in before else 0
            self.chosen = list(places)[min(at, len(places) - 1)] if places else None
        self.virtual_size = size
        self.refresh()

    # Moving, without animation: a held key would otherwise run ahead of what is drawn.

    def action_move_by(self, step: int) -> None:
        """Move the cursor by one entry; scroll by a line if there is no other, or where none is in sight."""
        entries, top = list(self.places), self.top
        seen = [at for at, first in enumerate(self.places.values()) if top <= first < top + self.height]
        at = entries.index(self.chosen) if seen else -1
        at = at + step if at in seen else seen[0 if step > 0 else -1] if seen else -1
        if 0 <= at < len(entries):
            self.choose(entries[at])
        else:
            self.scroll_relative(y=step, animate=False)

    def choose(self, entry: Hashable) -> None:
        """Put the cursor on an entry, and bring that into sight."""
        self.chosen = entry
        first = last = self.places[entry]
        while self.line(last + 1).choice == entry:
            last += 1
        top = min(max(self.top, last - self.height + 1), first)
        self.scroll_to(y=top, animate=False, immediate=True)
        self.refresh()

    def action_move_pages(self, pages: int) -> None:
        # One line less each: that line says where one was.
        self.scroll_relative(y=pages * max(self.height - 1, 1), animate=False)

    def action_first_line(self) -> None:
        self._go_to_end(next(iter(self.places), None), 0)

    def action_last_line(self) -> None:
        self._go_to_end(next(reversed(self.places), None), self.max_scroll_y)

    def _go_to_end(self, entry: Hashable, y: float) -> None:
        self.chosen = entry
        self.refresh()
        self.scroll_to(y=y, animate=False)

    def on_click(self, event: events.Click) -> None:
        entry = self.line(self.top + event.y).choice
        if entry is not None:
            self.choose(entry)
            if event.chain == 2:
                self.post_message(self.Opened())

    # Drawing

    @on(events.Focus)
    @on(events.Blur)
    def _draw_cursor(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self.refresh)

    def render_line(self, y: int) -> Strip:
        width, number = self.scrollable_content_region.width, self.top + y
        line = self.line(number)
        content = line.content
        if not content:
            # The visual style is kept ready; `rich_style` would be put together anew for every line.
            return Strip.blank(width, self.visual_style.rich_style).apply_offsets(0, number)
        if span := self.text_selection.get_span(number) if self.text_selection else None:
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, span[0], len(content) if span[1] < 0 else span[1])
        ansi = self.app.native_ansi_color
        padded = content.pad_right(max(width - content.cell_length, 0))
        if line.tint and not ansi:
            content = padded.stylize_before(line.tint)
        if line.choice is not None and line.choice == self.chosen and self.has_focus:
            # Reversed colours differ from part to part: with the terminal's own, the whole row has two.
            content = (
                Content.styled("▌" + padded.plain[1:], "reverse")
                if ansi
                else Content.assemble(("▌", "$text-accent"), padded[1:]).stylize_before("on $cursor-row")
            )
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without the indents and gutters that the layout put in front."""
        chosen = []
        for number, line in enumerate(self._lines):
            span = selection.get_span(number)
            if span is not None and not (line.margin and line.margin == len(line.content)):
                end = len(line.content) if span[1] < 0 else span[1]
                chosen.append(line.content.plain[max(span[0], line.margin) : end])
        return "\n".join(chosen), "\n"
