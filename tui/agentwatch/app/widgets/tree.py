"""The widget of the delegation tree, with cursor, folds, marks and filter.

A redraw makes the lines in sight, and repaints only lines that have changed.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import zip_longest

from textual import events, on
from textual.geometry import Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.actions import Home, bindings, commands_of
from agentwatch.app.messages import NoEffect
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import Part, ThemedWidget
from agentwatch.app.widgets.task_line import (
    Columns,
    RowState,
    TimedWords,
    count_shared_beginnings,
    heading_line,
    highlighted_guide,
    task_line,
)
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.view.rows import Group, Matches, Order, Query, Row, RowId, chain_name, find_matches, has_finished
from agentwatch.view.words import local_time


class TaskTree(ThemedWidget, ScrollView, can_focus=True):
    """The tree, with a row in each line. `clock` gives epoch seconds."""

    BINDINGS = bindings(Home.TREE)

    DEFAULT_CSS = """
    TaskTree {
        width: 1fr; height: 1fr; background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    }
    """

    follows: var[bool] = var(False)
    # The id of the selected task. None if a heading is selected, or if there is no row.
    cursor_id: var[str | None] = var[str | None](None, init=False)
    row_count: var[int] = var(0, init=False)  # the number of rows, in sight or not
    # The ids of the tasks marked for the review, in the order of marking.
    marked: var[tuple[str, ...]] = var(())
    ages: var[tuple[object, ...]] = var((), init=False)  # all words in visible rows that depend on the time
    matches: var[int | None] = var[int | None](None)  # the number of rows that match the filter; None without a filter

    def __init__(self, tree: Tree, clock: Callable[[], float]):
        super().__init__()
        self.order = Order(tree)
        self.rows: list[Row] = []
        self.places: dict[RowId, int] = {}  # the index of each row, by the ids of all its tasks
        self.folds: frozenset[RowId] = frozenset({Group.HISTORY})
        self._folds_of_all: frozenset[RowId] | None = None  # the folds to restore when the filter is cleared
        self._found: Matches | None = None
        # Whether the history is open only because there is no other group.
        self._opens_history = False
        self._groups: object = None  # the groups from which the rows were made
        self._tree = tree
        self._clock = clock
        # The id of the row with the cursor, kept even while a filter matches nothing. `_row` is its index.
        self._row_id: RowId | None = None
        self._row = 0
        self._first_row_id: RowId | None = None  # the id of the row on which the cursor was put at first
        # False until the operator moves the cursor or the first scan ends. Until then, the cursor is on the first task.
        self._is_placed = False
        self._filter = Query()
        self._columns = Columns.for_width(80)
        self._width = 0
        # The lines in sight by row. A line is used again unless its task or its `RowState` has changed.
        self._line_cache: dict[RowId, tuple[RowState, Strip]] = {}
        self._top = 0
        self._lines: list[Strip] = []

    # For other modules

    @property
    def cursor_task(self) -> Task | None:
        """The selected task, or None if a heading is selected."""
        return self._tree.tasks.get(self.cursor_id or "")

    @property
    def cursor_group(self) -> Group | None:
        """The group of the selected heading, or None if a task is selected."""
        return self._row_id if isinstance(self._row_id, Group) else None

    def make_columns(self, width: int) -> Columns:
        """Return the columns of lines with `width` cells."""
        return Columns.for_width(width)

    # Changes

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        """Show the changes of the tree. `settled` tells whether the first scan is over. Rows may fold when it ends."""
        for task_id in changed:
            self._line_cache.pop(task_id, None)
        self.order.apply(changed, self._clock())
        if self._groups is not self.order.groups:
            self._rebuild_rows()
        if self._filter:
            self._apply_filter()
        if settled and not self.order.is_settled:
            self._fold_finished()
        if not self._is_placed:
            self._is_placed = settled
            self._place_cursor_first()
        self._fold_history()
        if self.follows:
            self._select_latest(changed)
        self.redraw()

    def tick(self) -> None:
        """Update all that depends on the time: the groups, and the ages in rows and headings."""
        now, tasks = self._clock(), self._tree.tasks
        self.order.tick(now)
        if self._groups is not self.order.groups:
            self._rebuild_rows()
            self.redraw()
        if any(term.key == "since" for term in self._filter.terms):
            self._apply_filter()
        in_sight = (tasks.get(row.task_id or "") for row in self.rows_in_sight(self.scroll_offset.y))
        # Headings name days, so they change with the date.
        today = here.date() if (here := local_time(now)) is not None else None
        self.ages = (today, *(TimedWords.of_task(task, tasks, now) for task in in_sight if task))

    def watch_ages(self) -> None:
        self.redraw()

    def watch_marked(self) -> None:
        self.redraw()

    def select(self, task_id: str) -> None:
        """Put the cursor on a task, and unfold the rows that hide the task. Do nothing if the task is gone."""
        if task_id in self._tree.tasks:
            self._is_placed = True
            path = [task_id, *self._tree.ancestors(task_id)]
            self.folds -= {*path[1:], *(group for group, runs in self.order.groups.items() if path[-1] in runs)}
            self._rebuild_rows()
            self._place_cursor(self.places.get(task_id, self._row), jumps=True)

    def set_filter(self, query: Query) -> None:
        """Show only the tasks that match a filter, and the tasks above them. With an empty filter, show everything."""
        self._filter, self._is_placed = query, True
        self._apply_filter(jumps=True)

    def unmark(self, task_id: str) -> None:
        """Remove the mark of a task."""
        self.marked = tuple(one for one in self.marked if one != task_id)

    def _fold_finished(self) -> None:
        """At the end of the first scan, fold until all rows fit: first finished tasks, then the group of earlier runs.
        If the history is the only group, open it."""
        self.order.is_settled = True
        is_touched, tasks = self.folds != {Group.HISTORY}, self._tree.tasks
        if sum(map(bool, self.order.groups.values())) == 1:
            self._opens_history = Group.HISTORY in self.folds
            self.folds -= {Group.HISTORY}
        self._rebuild_rows()
        roots: Sequence[RowId] = [row.row_id for row in self.rows if not row.depth]
        finished = {one for one, task in tasks.items() if has_finished(task)}
        while len(roots) == 1:
            finished -= {roots[0]}
            roots = tasks[str(roots[0])].children
        for foldable in (finished, {Group.EARLIER} if self.places.get(Group.EARLIER) else set[RowId]()):
            if not is_touched and self.row_count > self.size.height:
                self.folds |= foldable
                self._rebuild_rows()

    def _fold_history(self) -> None:
        """Fold the history again, if it was opened as the only group and now there is another group."""
        groups = self.order.groups
        if not self._opens_history or not any(groups[one] for one in (Group.NOW, Group.TODAY, Group.EARLIER)):
            return
        is_in_it = self._row > self.places.get(Group.HISTORY, self.row_count)
        if not is_in_it or self._row_id == self._first_row_id:
            self._opens_history = False
            self.folds |= {Group.HISTORY}
            self._rebuild_rows()
            if is_in_it:
                self._place_cursor_first()

    # The cursor

    def _place_cursor_first(self) -> None:
        """Put the cursor on the first task, and remember the row of this task."""
        self._place_cursor(next((place for place, row in enumerate(self.rows) if row.task_id is not None), 0))
        self._first_row_id = self._row_id

    def _place_cursor(self, row: int, *, jumps: bool = False) -> None:
        """Put the cursor on a row, and scroll the row into sight. With `jumps`, scroll it into the middle."""
        self._set_cursor(row)
        height, row, top = self.size.height, self._row, self.scroll_offset.y
        if height and not top <= row < top + height:
            top = max(row - height // 2, 0) if jumps else row if row < top else row - height + 1
        self._scroll_to_offset(top)
        self._hold_selected_run()
        self.redraw()

    def _set_cursor(self, row: int) -> None:
        self._row, rows = max(min(row, self.row_count - 1), 0), self.rows
        if rows:
            self._row_id = rows[self._row].row_id
        self.cursor_id = rows[self._row].task_id if rows else None

    def _hold_selected_run(self) -> None:
        """The run that has the cursor keeps its place in the order. Other runs may move."""
        held = self.cursor_task if self._is_placed else None
        path = [held.task_id, *self._tree.ancestors(held.task_id)] if held else []
        self.order.hold_runs(path, self._clock())
        if self._groups is not self.order.groups:
            self._rebuild_rows()

    def _rebuild_rows(self) -> None:
        """Make all rows again. The cursor stays on its task and, if possible, in the same line of the screen."""
        cursor, top, height, rows, row = self._row_id, self.scroll_offset.y, self.size.height, self.rows, self._row
        self.rows, self._groups = self.order.rows(self.folds, self._found and self._found.shown), self.order.groups
        self.row_count = len(self.rows)
        self.places = {row.row_id: place for place, row in enumerate(self.rows)}
        self.places |= {one: place for place, row in enumerate(self.rows) if row.chain for one in row.chain}
        # If the row with the cursor is gone, take the nearest remaining row above it. If there is none, look below.
        remaining = (one.row_id for one in (*rows[:row][::-1], *rows[row:]) if one.row_id in self.places)
        place = self.places.get(cursor or "")
        self._set_cursor(self.places.get(next(remaining, ""), 0) if place is None else place)
        if top <= row < top + height and (top or self._row >= height):
            top += self._row - row
        self._scroll_to_offset(top)
        if self._row_id != cursor:
            self._hold_selected_run()

    def _scroll_to_offset(self, offset: int) -> None:
        """Scroll so that the row `offset` is in the first line, but never beyond the last row."""
        height, lines = self.size.height, self.row_count
        offset = max(min(offset, lines - height), 0)
        if (lines > height) != (self.virtual_size.height > height):
            self.virtual_size = Size(0, lines)
        elif lines != self.virtual_size.height:
            # Setting `virtual_size` would lay out the whole screen, which only a new scroll bar needs.
            self.set_reactive(TaskTree.virtual_size, Size(0, lines))
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = lines
        if offset != self.scroll_offset.y:
            self.scroll_to(y=offset, animate=False, force=True)

    # Drawing

    def rows_in_sight(self, top: int) -> list[Row]:
        """Return the rows that are in sight if the row `top` is in the first line."""
        return self.rows[top : top + self.size.height]

    def redraw(self) -> None:
        """Make the lines in sight, and repaint the lines that have changed."""
        if self._palette is None or not self.is_attached:
            return
        # Read the width each time, because Textual may not report a change after the first layout.
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width, self._columns = width, self.make_columns(width)
        top = self.scroll_offset.y
        lines = self._make_lines(top, self._palette)
        if top == self._top:
            for y, (new, old) in enumerate(zip_longest(lines, self._lines)):
                if old is not new and old != new:
                    self.refresh_line(top + y)
        self._top, self._lines = top, lines

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        now, tasks, rows, before = self._clock(), self._tree.tasks, self.rows_in_sight(top), self._line_cache
        (highlighted, level), shared = highlighted_guide(rows, self._row - top), count_shared_beginnings(rows, tasks)
        lines: list[Strip] = []
        self._line_cache = {}
        for y, row in enumerate(rows):
            selected, task = top + y == self._row, tasks.get(row.task_id or "")
            mark = Part("▌", palette.accent if self.has_focus else palette.muted) if selected else Part(" ")
            if row.row_id in self.marked:
                mark = Part("◆", palette.accent)
            elif not selected and task and not task.seen:
                mark = Part("•", palette.accent)
            state = RowState(row, self._columns, palette, mark, selected)
            if isinstance(row.row_id, Group):
                lines.append(heading_line(self.order.tally(row.row_id, self._found and self._found.rows), now, state))
            elif task is None:
                # The task is gone from the tree. The next update removes its row.
                lines.append(Strip.blank(self._columns.width, palette.base))
            else:
                state = state._replace(
                    guide=level if y in highlighted else -1,
                    timed=TimedWords.of_task(task, tasks, now),
                    shared=shared[row.row_id],
                    chain=chain_name(tasks, task),
                )
                made = before.get(row.row_id)
                if made is None or made[0] != state:
                    made = state, task_line(task, state, tasks)
                self._line_cache[row.row_id] = made
                lines.append(made[1])
        return lines

    def render_line(self, y: int) -> Strip:
        if self._top != self.scroll_offset.y or len(self._lines) > self.size.height:
            self.redraw()
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, self.rich_style)

    def on_mount(self) -> None:
        self.order.apply(list(self._tree.tasks), self._clock())
        self._rebuild_rows()

    def on_resize(self) -> None:
        self._place_cursor(self._row)
        self.refresh()

    @on(events.Focus)
    @on(events.Blur)
    def _draw_focus(self) -> None:
        # Textual's own handlers run after this handler and set `has_focus`.
        self.call_next(self.redraw)

    # Keys and the mouse

    def action_move_by(self, rows: int) -> None:
        self._move_cursor(self._row + rows)

    def action_move_pages(self, pages: int) -> None:
        self._move_cursor(self._row + pages * max(self.size.height - 1, 1))

    def action_first_line(self) -> None:
        self._move_cursor(0)

    def action_last_line(self) -> None:
        self._move_cursor(self.row_count - 1)

    async def action_open(self) -> None:
        """Go to the details of the selected task. If a heading is selected, fold or unfold it."""
        if self.cursor_group is not None:
            self.action_toggle_fold()
        else:
            await self.run_action("screen.open")

    def action_cursor_left(self) -> None:
        row = self._cursor_row
        if row and row.folded is False:
            self.action_toggle_fold()
        elif row and row.above is not None:
            self._move_cursor(self.places[row.above])

    def action_cursor_right(self) -> None:
        row = self._cursor_row
        if row and row.folded:
            self.action_toggle_fold()
        elif row and row.folded is False:
            self._move_cursor(self._row + 1)

    def action_toggle_fold(self) -> None:
        row = self._cursor_row
        if row and row.folded is not None:
            self._set_folds(self.folds ^ {row.row_id})

    def action_fold_all(self, folded: bool) -> None:
        parents = {task_id for task_id, task in self._tree.tasks.items() if task.children}
        self._set_folds(self.folds | parents if folded else frozenset())
        if hidden := [one for one in self._tree.queue if one not in self.places]:
            asking = f"{len(hidden):,} tasks that need you are" if len(hidden) > 1 else "One task that needs you is"
            to_it, unfold = (commands_of(self.app)[name].key_label for name in ("needs.next", "fold.none"))
            self.notify(f"{asking} folded: {to_it} goes there, {unfold} unfolds.", markup=False)

    @property
    def _cursor_row(self) -> Row | None:
        return self.rows[self._row] if self._row < self.row_count else None

    def _set_folds(self, folds: frozenset[RowId]) -> None:
        self.folds = folds
        self._rebuild_rows()
        self._place_cursor(self._row)

    def action_history(self) -> None:
        """Go to the history and open it."""
        if Group.HISTORY not in self.places:
            self.post_message(NoEffect("There is no history: nothing here is that old."))
            return
        self._opens_history = False
        self._set_folds(self.folds - {Group.HISTORY})
        self._move_cursor(self.places[Group.HISTORY])
        # Show as much of the history as fits.
        self._scroll_to_offset(self._row)
        self.redraw()

    def action_mark(self) -> None:
        if self.cursor_id in self.marked:
            self.unmark(self.cursor_id)
        elif self.cursor_id is not None:
            self.marked = (*self.marked, self.cursor_id)

    def _move_cursor(self, row: int) -> None:
        """Move the cursor because the operator wants it, and stop following the changes."""
        self._is_placed = True
        self.follows = False
        self._place_cursor(row)
        self._fold_history()

    async def on_click(self, event: events.Click) -> None:
        place = self.scroll_offset.y + event.y
        if place < self.row_count:
            self._move_cursor(place)
            if event.chain == 2:
                await self.action_open()

    # Following, and the filter

    def _select_latest(self, changed: Collection[str]) -> None:
        """Select the latest of the changed tasks that match the filter."""
        tasks = [task for task_id in changed if (task := self._tree.tasks.get(task_id)) and not task.inferred]
        matches = (task for task in tasks if self._filter.matches(task, self._clock()))
        if (latest := max(matches, key=lambda task: (task.updated_at, task.first_seq), default=None)) is not None:
            self.select(latest.task_id)

    def _apply_filter(self, *, jumps: bool = False) -> None:
        """Show the tasks that match the filter. With `jumps`, put the cursor on one of these tasks."""
        found = find_matches(self._tree, self._filter, self._clock()) if self._filter else None
        if found and self._found is None:
            self.folds, self._folds_of_all = frozenset(), self.folds
        elif found is None and self._folds_of_all is not None:
            self.folds, self._folds_of_all = self._folds_of_all, None
        self._found = found
        self._rebuild_rows()
        if jumps:
            matches = self._tree.tasks if found is None else found.rows
            first = (place for place, row in enumerate(self.rows) if row.row_id in matches)
            self._place_cursor(self._row if self._row_id in matches else next(first, self._row), jumps=True)
        self.redraw()
        self.matches = None if found is None else len(found.rows)
