"""A scrolling page of blocks, drawn line by line, so that its cost is that of what is on screen."""

from collections.abc import Hashable, Sequence

from textual import events, on
from textual.content import Content
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widgets import Static

from agentwatch.app.actions import Home, bindings
from agentwatch.app.widgets.details.blocks import NOTHING, Block, Line, lay_out


def show_words(line: Static, words: Content) -> None:
    """Have a line of ours read so; Textual lays the screen out anew for an equal text, too."""
    if not (isinstance(line.content, Content) and words.is_same(line.content)):
        line.update(words)


class Page(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of blocks, laid out again when the width changes.

    Where lines belong to entries (`Line.choice`), the cursor stands on one that is in sight.
    """

    BINDINGS = bindings(Home.LINES)

    # The gutter is there before it is needed: a scrollbar that comes and goes would wrap everything anew.
    DEFAULT_CSS = """
    Page {
        height: 1fr; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
    }
    """

    chosen: reactive[Hashable] = reactive(None)  # The entry that the cursor is on, None if there are none
    max_width = 120  # Cells of a line: longer ones are hard to read back to the next

    def __init__(self) -> None:
        super().__init__()
        self._blocks: Sequence[Block] = ()
        self._lines: Sequence[Line] = ()
        self.places: dict[Hashable, int] = {}  # The first line of each entry, in their order

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

    def end_of(self, blocks: int) -> int:
        """The number of lines of the first so many blocks that begin with words."""
        ends = [number for number, line in enumerate(self.lines) if number and not line.startswith(" ")]
        return ends[blocks - 1] if len(ends) >= blocks else len(self.lines)

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
        width = min(self.scrollable_content_region.width, self.max_width)
        if width > 0:
            self._lines = lay_out(self._blocks, width)
            places: dict[Hashable, int] = {}
            for number, line in enumerate(self._lines):
                if line.choice is not None:
                    places.setdefault(line.choice, number)
            self.place(places, Size(width, len(self._lines)))

    def place(self, places: dict[Hashable, int], size: Size) -> None:
        """Put the entries into their places. A cursor whose entry has gone is on the first in sight."""
        self.places, self.virtual_size = places, size
        self._choose_in_sight()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._choose_in_sight()

    def _choose_in_sight(self) -> None:
        last = self.top + self.height - 1
        if self.height and not self.top <= self.places.get(self.chosen, -1) <= last:
            seen = [entry for entry, line in self.places.items() if self.top <= line <= last]
            below = self.places.get(self.chosen, -1) > last
            self.chosen = seen[-1 if below else 0] if seen else None

    # Moving, without animation: a held key would otherwise run ahead of what is drawn.

    def action_move_by(self, step: int) -> None:
        """Move the cursor by one entry; scroll by a line if there is no other."""
        entries = list(self.places)
        at = entries.index(self.chosen) + step if self.chosen in self.places else -1
        if 0 <= at < len(entries):
            self.choose(entries[at])
        else:
            self.scroll_relative(y=step, animate=False, immediate=True)

    def choose(self, entry: Hashable) -> None:
        """Put the cursor on an entry, and bring that into sight."""
        self.chosen = entry
        # An entry has two lines, or one.
        self.scroll_to_region(Region(0, self.places[entry], 1, 2), animate=False, immediate=True)

    def action_move_pages(self, pages: int) -> None:
        # One line less each: that line says where one was.
        self.scroll_relative(y=pages * max(self.height - 1, 1), animate=False, immediate=True)

    def action_first_line(self) -> None:
        self._go_to_end(0, 0)

    def action_last_line(self) -> None:
        self._go_to_end(-1, self.max_scroll_y)

    def _go_to_end(self, at: int, y: float) -> None:
        self.scroll_to(y=y, animate=False, immediate=True)
        if self.places:
            self.choose(list(self.places)[at])

    # Drawing

    @on(events.Focus)
    @on(events.Blur)
    def _draw_cursor(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self.refresh)

    def render_line(self, y: int) -> Strip:
        width, number = self.scrollable_content_region.width, self.top + y
        content, choice = self.line(number)
        if not content:
            return Strip.blank(width, self.visual_style.rich_style).apply_offsets(0, number)
        if span := self.text_selection.get_span(number) if self.text_selection else None:
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, span[0], len(content) if span[1] < 0 else span[1])
        if choice is not None and choice == self.chosen and self.has_focus:
            padded = content.pad_right(max(width - content.cell_length, 0))
            # Reversed colours differ from part to part: with the terminal's own, the whole row has two.
            content = (
                Content.styled("▌" + padded.plain[1:], "reverse")
                if self.app.native_ansi_color
                else Content.assemble(("▌", "$text-accent"), padded[1:]).stylize_before("on $cursor-row")
            )
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(self.lines)), "\n"
