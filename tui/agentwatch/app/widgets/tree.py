"""The delegation tree under the operator's keys: cursor, folds, marks, a filter, and following the latest change.

Every draw compares the lines in sight with the ones on screen and repaints those that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.actions import Home, bindings
from agentwatch.app.messages import KeysChanged, Missing
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.filter_bar import find
from agentwatch.app.widgets.rows import HISTORY, Heading, Outline, Row, RowId
from agentwatch.app.widgets.task_line import (
    Columns,
    RowState,
    age_of,
    decided_of,
    heading_line,
    lit_guide,
    task_line,
    tell_apart,
)
from agentwatch.delegation.task import Task
from agentwatch.view.order import Group, Present
from agentwatch.view.query import Query

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_LOOKS_BACK: Final = 5.0
"""Seconds after which a filter by time is searched again, though nothing has changed."""
_SMALL: Final = 2_000
"""Tasks up to which each change is searched at once; in a larger tree within a second."""


class TaskTree(ScrollView, can_focus=True):
    """The tree. `clock` gives seconds since the epoch."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.TREE)

    DEFAULT_CSS = """
    TaskTree {
        width: 1fr; height: 1fr; background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    }
    """

    follows: var[bool] = var(False)

    @dataclass
    class Selected(Message):
        """The cursor is on another row now; None if that is a heading, or there is no row left."""

        task_id: str | None

    class Opened(Message):
        """A row was clicked twice."""

    @dataclass
    class Filtered(Message):
        """A search has ended; so many tasks match by themselves. None if no filter is on."""

        matches: int | None

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        super().__init__()
        self.outline = Outline(tree, clock)
        self._tree = tree
        self._clock = clock
        # The cursor is bound to a row's id; `_row` is its place.
        self._cursor: RowId | None = None
        self._row = 0
        self._cursor_before: RowId | None = None
        """The cursor before there was no row, as where a filter matches nothing."""
        self._is_placed = False
        """Whether the cursor is where it is for a reason: until then it stays on the first task, whatever comes."""
        self._marked: dict[str, None] = {}
        self._filter = Query()
        self._searched_at = 0.0
        self._is_outdated = False
        """Whether tasks have changed since the last search."""
        self._palette: Palette | None = None
        self._columns = Columns.of(80)
        self._width = 0
        self._made: dict[str, tuple[RowState, Strip]] = {}
        """The lines in sight by task: one that would read as before is not made again."""
        self._changed: set[str] = set()
        """The tasks that have changed since."""
        self._top = 0
        self._lines: list[Strip] = []

    # For others

    @property
    def cursor_id(self) -> str | None:
        """The id of the selected task."""
        return None if isinstance(self._cursor, Heading) else self._cursor

    @property
    def cursor_task(self) -> Task | None:
        """The selected task."""
        return self._tree.tasks.get(self.cursor_id or "")

    @property
    def cursor_group(self) -> Group | None:
        """The group of the heading on which the cursor is."""
        return self._cursor.group if isinstance(self._cursor, Heading) else None

    @property
    def row_count(self) -> int:
        """Rows, visible on screen or not."""
        return len(self.outline.rows)

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the tasks that are marked for the review, in the order in which they were."""
        return tuple(task_id for task_id in self._marked if task_id in self._tree.tasks)

    def row_ids(self) -> list[str]:
        """The task ids of the rows in order; headings have none."""
        return [row.task_id for row in self.outline.rows if row.task_id is not None]

    def group_roots(self) -> tuple[str, ...]:
        """The ids of the runs of the group on whose heading the cursor is; none where it is on no heading."""
        return () if self.cursor_group is None else tuple(self.outline.order.groups[self.cursor_group])

    def count_now(self) -> tuple[int, Present]:
        """How many tasks go on now, and what they are, to be counted in the header."""
        tally = self.outline.order.tally(Group.NOW)
        return tally.tasks, tally.present

    def make_columns(self, width: int) -> Columns:
        """The columns of its lines when it is `width` cells wide."""
        return Columns.of(width)

    # Changes

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        """Show the changes of the tree. `settled`: the first scan is over, nothing folds by itself any more."""
        self._changed.update(changed)
        self.outline.apply(changed)
        if settled:
            self.outline.settle(self.size.height)
        self._rebuild()
        if not self._is_placed:
            self._put(next((place for place, row in enumerate(self.outline.rows) if row.task_id is not None), 0))
            self._is_placed = settled
            self._hold()
        if self.follows:
            self._follow(changed)
        if self._filter and changed:
            self._is_outdated = True
            if len(self._tree.tasks) <= _SMALL:
                self._search()
        self._draw()

    def tick(self) -> None:
        """Time has passed: runs change their group, and rows whose elapsed time reads differently are drawn."""
        if self.outline.order.tick(self._clock()):
            self._rebuild()
        looks_back = self._filter.looks_back and abs(self._clock() - self._searched_at) >= _LOOKS_BACK
        if self._filter and (self._is_outdated or looks_back):
            self._search()
        self._draw()

    def undo(self, task_ids: Collection[str]) -> None:
        """The operator has taken back what was done to these tasks: each goes where it belongs."""
        if self.cursor_id in task_ids:
            self.outline.hold(None)

    def select(self, task_id: str) -> None:
        """Put the cursor on a task and unfold all that hides it; nothing if the filter hides it, or it is gone."""
        if task_id in self._tree.tasks:
            self._is_placed = True
            self._reveal(task_id)

    def set_filter(self, sought: Query) -> None:
        """Show only the tasks that the filter matches, and those above them. An empty one shows everything."""
        self._filter, self._is_placed = sought, True
        if sought:
            self._search(jumps=True)
            return
        self.workers.cancel_group(self, "search")
        self.outline.show_only(None)
        self._rebuild()
        self._draw()
        self.post_message(self.Filtered(None))

    def unmark(self, task_id: str) -> None:
        """Take the mark of a task away."""
        if task_id in self._marked:
            del self._marked[task_id]
            self._draw()
            self.post_message(KeysChanged())

    # The cursor

    def _put(self, row: int, *, jumps: bool = False) -> None:
        """Put the cursor on a row, the nearest that there is. One that `jumps` out of sight gets rows around it."""
        if self.outline.rows:
            self._set_cursor(min(max(row, 0), self.row_count - 1))
            self._scroll_to_row(jumps=jumps)
            self._hold()
        self._draw()

    def _set_cursor(self, row: int | None) -> None:
        before, self._row = self._cursor, row or 0
        self._cursor = None if row is None else self.outline.rows[row].row_id
        self._cursor_before = (before or self._cursor_before) if row is None else None
        if before != self._cursor:
            self.post_message(self.Selected(self.cursor_id))

    def _hold(self) -> None:
        """Rows that the cursor has left go where they belong; the one it is on now stays where it is."""
        if self.outline.hold(self._cursor if self._is_placed else None):
            self._rebuild()

    def _rebuild(self) -> bool:
        """Make the rows anew; returns whether they are others.

        The cursor stays on its task. What comes at the top is in sight while the top is and the cursor stays in sight;
        else its task stays in its line, and where that is out of sight, the first row does.
        """
        outline, cursor, top = self.outline, self._cursor, self.scroll_offset.y
        before, places, row = outline.rows, outline.places, self._row
        outline.build()
        if outline.rows == before and (cursor is None or cursor in places):
            return False
        places = outline.places
        if cursor is not None and cursor in places:
            self._row = places[cursor]
        elif not outline.rows:
            self._set_cursor(None)
        elif cursor is not None and row < len(before):
            self._set_cursor(outline.successor(row, before))
        else:
            self._set_cursor(places.get(self._cursor_before or "", 0))
        if self._cursor == cursor and 0 <= row - top < self.size.height:
            top += self._row - row if top or self._row >= self.size.height else 0
        elif top:
            left = (place for place, one in enumerate(before) if place >= top and one.row_id in places)
            first = next(left, None)
            top += places[before[first].row_id] - first if first is not None else 0
        self._scroll_to_offset(top)
        if self._cursor != cursor:
            self._hold()
        return True

    # The rows in sight

    def _scroll_to_row(self, *, jumps: bool = False) -> None:
        height, row, top = self.size.height, self._row, self.scroll_offset.y
        if height and not top <= row < top + height:
            top = max(row - height // 2, 0) if jumps else row if row < top else row - height + 1
        self._scroll_to_offset(top)

    def _scroll_to_offset(self, offset: int) -> None:
        """Have this row in the first line, or one above it: no room is left below while rows are hidden above."""
        height, lines = self.size.height, self.row_count
        offset = max(min(offset, lines - height), 0)
        if (lines > height) != (self.virtual_size.height > height):
            self.virtual_size = Size(0, lines)
        elif lines != self.virtual_size.height:
            # Setting it lays the whole screen out, 9 ms, which only a scroll bar that comes or goes needs.
            self.set_reactive(TaskTree.virtual_size, Size(0, lines))
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = lines
        if offset != self.scroll_offset.y:
            self.scroll_to(y=offset, animate=False, force=True)

    def rows_in_sight(self, top: int) -> list[Row]:
        """The rows in the lines of the viewport from `top` on."""
        return self.outline.rows[top : top + self.size.height]

    def _draw(self) -> None:
        """Make the lines of the viewport and repaint those that are not on screen like this."""
        if self._palette is None or not self.is_attached:
            return
        # Textual may lay out for the first time and not tell the width.
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width, self._columns, self._made = width, self.make_columns(width), {}
        top = self.scroll_offset.y
        lines = self._make_lines(top, self._palette)
        if top == self._top:
            for y, (new, old) in enumerate(zip_longest(lines, self._lines)):
                if old is not new and old != new:
                    self.refresh_line(top + y)
        self._top, self._lines = top, lines

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        """The lines of the rows from `top` on that are in sight."""
        now, tasks, order = self._clock(), self._tree.tasks, self.outline.order
        rows, columns = self.rows_in_sight(top), self._columns
        first, last, level = lit_guide(rows, self._row - top)
        apart = tell_apart(rows, tasks)
        made: dict[str, tuple[RowState, Strip]] = {}
        lines: list[Strip] = []
        for y, row in enumerate(rows):
            selected = top + y == self._row
            state = RowState(row.depth, row.folded, selected=selected, focused=selected and self.has_focus)
            if isinstance(row.row_id, Heading):
                lines.append(
                    heading_line(row.row_id.group, order.tally(row.row_id.group), now, state, columns, palette)
                )
                continue
            task = tasks.get(row.row_id)
            if task is None:
                # Gone from the tree a moment ago; the row goes with the next update.
                lines.append(Strip.blank(columns.width, palette.base))
                continue
            shared, chain = apart[row.row_id]
            state = state._replace(
                guide=level if first <= y < last else -1,
                age=age_of(task, now),
                decided=decided_of(task, now),
                marked=row.row_id in self._marked,
                shared=shared,
                chain=chain,
            )
            before = None if row.row_id in self._changed else self._made.get(row.row_id)
            if before is None or before[0] != state:
                before = state, task_line(task, state, columns, palette, tasks)
            made[row.row_id] = before
            lines.append(before[1])
        self._made = made
        self._changed.clear()
        return lines

    def render_line(self, y: int) -> Strip:
        if self._top != self.scroll_offset.y or len(self._lines) > self.size.height:
            self._draw()
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, self.rich_style)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._use_colors())
        self._use_colors()
        # A copy knows the order already: the tree has told both of the same changes.
        if not any(self.outline.order.groups.values()):
            self.outline.apply(list(self._tree.tasks))
        self._rebuild()

    def _use_colors(self) -> None:
        self._palette = Palette.of(self.app.theme_variables, ansi=self.app.native_ansi_color)
        self._made = {}
        self._draw()
        self.refresh()

    def on_resize(self) -> None:
        self._draw()
        self._scroll_to_row()
        self.refresh()

    @on(events.Focus)
    @on(events.Blur)
    def _draw_focus(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self._draw)

    # Keys and the mouse

    def action_move_by(self, rows: int) -> None:
        self._walk(self._row + rows)

    def action_move_pages(self, pages: int) -> None:
        self._walk(self._row + pages * max(self.size.height - 1, 1))

    def action_first_line(self) -> None:
        self._walk(0)

    def action_last_line(self) -> None:
        self._walk(self.row_count - 1)

    def action_open(self) -> None:
        """Show a task's details, or the rows below a heading."""
        if self.cursor_group is not None:
            self.action_toggle_fold()
        else:
            self.post_message(self.Opened())

    def action_cursor_left(self) -> None:
        row = self.outline.get(self._cursor)
        if row is not None and row.folded is False:
            self.action_toggle_fold()
        elif row is not None and row.above is not None:
            self._walk(self.outline.places[row.above])

    def action_cursor_right(self) -> None:
        row = self.outline.get(self._cursor)
        if row is not None and row.folded:
            self.action_toggle_fold()
        elif row is not None and row.folded is False:
            self._walk(self._row + 1)

    def action_toggle_fold(self) -> None:
        row = self.outline.get(self._cursor)
        if row is not None and row.folded is not None:
            self.outline.fold(row.row_id, folded=not row.folded)
            self._refold()

    def action_fold_all(self, folded: bool) -> None:
        self.outline.fold_all(folded=folded)
        self._refold()

    def _refold(self) -> None:
        self._scroll_to_row()
        self._rebuild()
        self._scroll_to_row()
        self._draw()

    def action_history(self) -> None:
        """Go to the history and open it."""
        if HISTORY not in self.outline.places:
            words = "All that is here is history." if self.outline.order.groups[Group.HISTORY] else ""
            self.post_message(Missing(words or "There is no history: nothing here is that old."))
            return
        self._walk(self.outline.places[HISTORY])
        self.outline.fold(HISTORY, folded=False)
        self._rebuild()
        # As much of it as there is room for.
        self._scroll_to_offset(self._row)
        self._draw()

    def action_mark(self) -> None:
        if self.cursor_id in self._marked:
            self.unmark(self.cursor_id)
        elif self.cursor_id is not None:
            self._marked[self.cursor_id] = None
            self._draw()
            self.post_message(KeysChanged())

    def _walk(self, row: int) -> None:
        """Move the cursor because the operator says so."""
        self._is_placed = True
        if self.follows:
            self.follows = False
            self.post_message(KeysChanged())
        self._put(row)

    def on_click(self, event: events.Click) -> None:
        place = self.scroll_offset.y + event.y
        if place < self.row_count:
            row = self.outline.rows[place]
            arrow = self._columns.indent(max(row.depth, 0))
            self._walk(place)
            if arrow <= event.x < arrow + 2 and row.folded is not None:
                self.action_toggle_fold()
            elif event.chain == 2:
                self.action_open()

    # Following, and the filter

    def _follow(self, changed: Collection[str]) -> None:
        """Go to the task that gave the last sign of life of its own."""
        tasks = [task for task_id in changed if (task := self._tree.tasks.get(task_id)) and not task.inferred]
        latest = max(tasks, key=lambda task: (task.updated_at, task.first_seq), default=None)
        if latest is not None and self._filter.matches(latest, self._clock()):
            self._reveal(latest.task_id)

    def _reveal(self, task_id: str) -> None:
        self.outline.reveal(task_id)
        self._rebuild()
        if task_id in self.outline.places:
            self._put(self.outline.places[task_id], jumps=True)

    @work(group="search", exclusive=True)
    async def _search(self, *, jumps: bool = False) -> None:
        """Look for the matches of the filter. It `jumps` to the first one, unless the operator goes to a task
        meanwhile: the next key is about that one."""
        self._is_outdated, self._searched_at, before = False, self._clock(), self._cursor
        shown, matches = await find(self._tree, self._filter, self._searched_at, self.outline.row_of)
        jumps &= self._cursor == before
        self.outline.show_only(shown)
        self._rebuild()
        if jumps and not ((row := self.outline.get(self._cursor)) and self._is_match(row)):
            place = next((place for place, row in enumerate(self.outline.rows) if self._is_match(row)), self._row)
            self._put(place, jumps=True)
        elif jumps:
            self._scroll_to_row()
        self._draw()
        self.post_message(self.Filtered(matches))

    def _is_match(self, row: Row) -> bool:
        """Whether the filter matches one of a row's tasks by itself."""
        tasks = map(self._tree.tasks.get, (row.task_id or "", *row.chain))
        return any(task is not None and self._filter.matches(task, self._clock()) for task in tasks)
