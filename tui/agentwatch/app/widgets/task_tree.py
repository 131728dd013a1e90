"""The delegation tree on screen: virtual rows, drawn line by line, with a cursor that is bound to a task.

Every draw compares the lines of the viewport with the ones on screen and repaints those that differ: the cost of an
update does not grow with the tree, and where nothing visible changed, nothing is written to the terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, work
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.commands import Home, bindings
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cursor import Cursor
from agentwatch.app.widgets.outline import Outline, Splice
from agentwatch.app.widgets.search import Filter, find
from agentwatch.app.widgets.task_line import Columns
from agentwatch.app.widgets.tree_lines import TreeLines
from agentwatch.delegation.task import Task

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_SEARCH_PAUSE: Final = 0.5
"""Seconds between two searches while a filter is on and a large tree keeps changing."""

_SMALL: Final = 2_000
"""Tasks up to which a search is over in a slice, so that none has to be saved."""


class TaskTree(ScrollView, can_focus=True):
    """The tree. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = """
    TaskTree {
        width: 1fr;
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        background: $background;
        color: $foreground;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.TREE)

    follows: var[bool] = var(False)

    class Selected(Message):
        """The cursor is on another task now; None where there is no task left."""

        def __init__(self, task_id: str | None) -> None:
            super().__init__()
            self.task_id = task_id

    class Opened(Message):
        """A row was clicked twice."""

    class Filtered(Message):
        """A search has ended; `found` tasks match by themselves. None where no filter is on."""

        def __init__(self, found: int | None) -> None:
            super().__init__()
            self.found = found

    class Marked(Message):
        """A task was marked for the review, or is so no more."""

    class FollowEnded(Message):
        """The operator moved the cursor, so it no longer follows."""

    def __init__(self, tree: DelegationTree, clock: Callable[[], float], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._tree = tree
        self._clock = clock
        self._outline = Outline(tree)
        self._cursor = Cursor(tree)
        self._marked: dict[str, None] = {}
        self._filter = Filter()
        self._is_searching = False
        self._search_again = False
        self._palette: Palette | None = None
        self._tree_lines = TreeLines(tree, clock)
        self._width = 0
        """Cells that the columns were made for."""
        self._top = 0
        self._lines: list[Strip] = []

    # What others ask and tell

    @property
    def cursor_id(self) -> str | None:
        """The id of the selected task."""
        return self._cursor.task_id

    @property
    def cursor_task(self) -> Task | None:
        """The selected task."""
        return None if self._cursor.task_id is None else self._tree.tasks.get(self._cursor.task_id)

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the tasks that are marked for the review, in the order in which they were."""
        return tuple(task_id for task_id in self._marked if task_id in self._tree.tasks)

    @property
    def row_count(self) -> int:
        """Rows, visible on screen or not."""
        return len(self._outline.rows)

    def row_ids(self, start: int = 0, stop: int | None = None) -> list[str]:
        """The task ids of the rows in order."""
        rows = self._outline.rows
        return [row.task_id for row in rows.slice(start, len(rows) if stop is None else stop)]

    def copy_outline(self) -> Outline:
        """Its rows and folds, for another view of the same tree."""
        return self._outline.copy()

    def make_columns(self, width: int) -> Columns:
        """The columns of its lines when it is `width` cells wide."""
        return Columns.of(width)

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        """Show what changed in the tree. `settled`: the first scan is over, nothing folds by itself any more."""
        self._tree_lines.forget(changed)
        splices = self._outline.apply(changed)
        if settled:
            splices += self._outline.settle(self.size.height)
        self._take_splices(splices)
        if self.follows:
            self._follow(changed)
        if self._filter and changed:
            self._search(later=True)
        self._draw()

    def select(self, task_id: str) -> None:
        """Put the cursor on a task and unfold what hides it; where the filter hides it, the filter goes."""
        if task_id not in self._tree.tasks:
            return
        splices = self._outline.reveal(task_id)
        if task_id not in self._outline.rows and self._filter:
            self.set_filter(Filter())
            splices = self._outline.reveal(task_id)
        self._take_splices(splices)
        self._go(self._outline.rows.index(task_id))

    def set_filter(self, sought: Filter) -> None:
        """Show only what the filter matches, and what is above it. An empty one shows everything."""
        self._filter = sought
        if sought:
            self._search(later=False)
            return
        self.workers.cancel_group(self, "search")
        self._is_searching = False
        self._take_splices(self._outline.show_only(None))
        self._draw()
        self.post_message(self.Filtered(None))

    def tick(self) -> None:
        """Time has passed: redraw the rows whose elapsed time reads differently now."""
        self._draw()

    # Keys

    def action_cursor_up(self) -> None:
        self._walk(self._cursor.row - 1)

    def action_cursor_down(self) -> None:
        self._walk(self._cursor.row + 1)

    def action_page_up(self) -> None:
        self._walk(self._cursor.row - max(self.size.height - 1, 1))

    def action_page_down(self) -> None:
        self._walk(self._cursor.row + max(self.size.height - 1, 1))

    def action_first(self) -> None:
        self._walk(0)

    def action_last(self) -> None:
        self._walk(len(self._outline.rows) - 1)

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def action_cursor_left(self) -> None:
        task = self.cursor_task
        if task is None:
            return
        if self._outline.has_children(task.task_id) and not self._outline.is_folded(task.task_id):
            self._fold(task.task_id)
        elif task.parent_id is not None and task.parent_id in self._outline.rows:
            self._walk(self._outline.rows.index(task.parent_id))

    def action_cursor_right(self) -> None:
        task = self.cursor_task
        if task is None or not self._outline.has_children(task.task_id):
            return
        if self._outline.is_folded(task.task_id):
            self._unfold(task.task_id)
        else:
            self._walk(self._cursor.row + 1)

    def action_toggle_fold(self) -> None:
        if self._cursor.task_id is not None:
            self._toggle(self._cursor.task_id)

    def action_mark(self) -> None:
        """Mark the selected task for the review, or take the mark away."""
        if self._cursor.task_id is not None:
            if self._cursor.task_id in self._marked:
                del self._marked[self._cursor.task_id]
            else:
                self._marked[self._cursor.task_id] = None
            self._draw()
            self.post_message(self.Marked())

    def unmark(self, task_id: str) -> None:
        """Take the mark of a task away."""
        if task_id in self._marked:
            del self._marked[task_id]
            self._draw()
            self.post_message(self.Marked())

    def action_fold_all(self) -> None:
        self._take_splices(self._outline.fold_all())
        self._scroll_to_cursor()
        self._draw()

    def action_unfold_all(self) -> None:
        self._take_splices(self._outline.unfold_all())
        self._scroll_to_cursor()
        self._draw()

    # The cursor

    def _walk(self, row: int) -> None:
        """Move the cursor because the operator says so."""
        if self.follows:
            self.follows = False
            self.post_message(self.FollowEnded())
        self._go(row)

    def _go(self, row: int) -> None:
        rows = self._outline.rows
        if rows:
            row = min(max(row, 0), len(rows) - 1)
            self._set_cursor(rows[row].task_id, row)
            self._scroll_to_cursor()
            self._draw()

    def _set_cursor(self, task_id: str | None, row: int) -> None:
        is_new = task_id != self._cursor.task_id
        self._cursor.put(task_id, row)
        if is_new:
            self.post_message(self.Selected(task_id))

    def _scroll_to_cursor(self) -> None:
        height = self.size.height
        top = self.scroll_offset.y
        if self._cursor.row < top:
            self._scroll(self._cursor.row)
        elif height and self._cursor.row >= top + height:
            self._scroll(self._cursor.row - height + 1)

    def _scroll(self, top: int) -> None:
        self.scroll_to(y=top, animate=False, force=True)

    def _follow(self, changed: Collection[str]) -> None:
        """Go to the task that gave the last sign of life of its own."""
        tasks = [task for task_id in changed if (task := self._tree.tasks.get(task_id)) and not task.inferred]
        latest = max(tasks, key=lambda task: (task.updated_at, task.first_seq), default=None)
        if latest is None or (self._outline.is_filtered and not self._filter.matches(latest)):
            return
        self._take_splices(self._outline.reveal(latest.task_id))
        if latest.task_id in self._outline.rows:
            self._go(self._outline.rows.index(latest.task_id))

    # Rows that come and go

    def _take_splices(self, splices: list[Splice]) -> None:
        """Keep the cursor on its task and what is on screen in its place."""
        if not splices:
            return
        rows = self._outline.rows
        top = self.scroll_offset.y
        cursor_row = self._cursor.row
        for splice in splices:
            if splice.position < top:
                top += splice.added - min(splice.removed, top - splice.position)
            if splice.position <= cursor_row:
                cursor_row += splice.added - min(splice.removed, cursor_row - splice.position)
        self._set_height(len(rows))
        if self._cursor.task_id is not None and self._cursor.task_id in rows:
            on_screen = 0 <= self._cursor.row - self.scroll_offset.y < self.size.height
            before = self._cursor.row - self.scroll_offset.y
            self._cursor.row = rows.index(self._cursor.task_id)
            if len(splices) == 1 and splices[0].position == 0 and splices[0].removed and on_screen:
                # All rows are new: keep the cursor's line where it was.
                top = self._cursor.row - before
        elif rows:
            row = 0 if self._cursor.task_id is None else min(cursor_row, len(rows) - 1)
            row = self._cursor.successor(rows, row)
            self._set_cursor(rows[row].task_id, row)
        else:
            self._set_cursor(None, 0)
        top = min(max(top, 0), max(len(rows) - self.size.height, 0))
        if top != self.scroll_offset.y:
            self._scroll(top)

    def _set_height(self, rows: int) -> None:
        """Say how far there is to scroll. A layout of the screen, 9 ms, only where the scroll bar comes or goes."""
        height = self.size.height
        if (rows > height) != (self.virtual_size.height > height):
            self.virtual_size = Size(0, rows)
            return
        self.set_reactive(TaskTree.virtual_size, Size(0, rows))
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = rows

    def _toggle(self, task_id: str) -> None:
        if self._outline.is_folded(task_id):
            self._unfold(task_id)
        else:
            self._fold(task_id)

    def _fold(self, task_id: str) -> None:
        self._take_splices(self._outline.fold(task_id))
        self._scroll_to_cursor()
        self._draw()

    def _unfold(self, task_id: str) -> None:
        self._take_splices(self._outline.unfold(task_id))
        self._draw()

    # Search

    def _search(self, *, later: bool) -> None:
        """Look for what the filter matches. `later`: the tree has changed, and may go on changing."""
        if later and self._is_searching:
            self._search_again = True
            return
        self._is_searching = True
        self._find(later=later)

    @work(group="search", exclusive=True)
    async def _find(self, *, later: bool) -> None:
        while True:
            if later and len(self._tree.tasks) > _SMALL:
                await asyncio.sleep(_SEARCH_PAUSE)
            self._search_again = False
            shown, found = await find(self._tree, self._filter)
            self._take_splices(self._outline.show_only(shown))
            if not later:
                self._go_to_match()
            self._draw()
            self.post_message(self.Filtered(found))
            if not self._search_again:
                break
            later = True
        self._is_searching = False

    def _go_to_match(self) -> None:
        """Put the cursor on the first match, where it is not on one."""
        task = self.cursor_task
        if task is not None and self._filter.matches(task):
            self._scroll_to_cursor()
            return
        for position, task_id in enumerate(self.row_ids()):
            task = self._tree.tasks.get(task_id)
            if task is not None and self._filter.matches(task):
                self._go(position)
                return

    # Drawing

    def _draw(self) -> None:
        """Make the lines of the viewport and repaint those that are not on screen like this."""
        if self._palette is None or not self.is_attached:
            return
        self._fit()
        top = self.scroll_offset.y
        lines = self._make_lines(top, self._palette)
        if top == self._top:
            for y in range(max(len(lines), len(self._lines))):
                old = self._lines[y] if y < len(self._lines) else None
                new = lines[y] if y < len(lines) else None
                if old is not new and old != new:
                    self.refresh_line(top + y)
        self._top, self._lines = top, lines

    def _fit(self) -> None:
        """Make the columns for the width that there is: Textual may lay out for the first time and not tell it."""
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            self._tree_lines.columns = self.make_columns(width)

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        return self._tree_lines.make(
            self._outline,
            top,
            self.size.height,
            palette,
            cursor=self._cursor,
            focused=self.has_focus,
            marked=self._marked,
        )

    def render_line(self, y: int) -> Strip:
        if self._top != self.scroll_offset.y or len(self._lines) > self.size.height:
            self._draw()
        if y < len(self._lines):
            return self._lines[y]
        return Strip.blank(self.size.width, self.rich_style)

    # Events

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._new_colors())
        self._new_colors()
        self._take_splices(self._outline.apply(list(self._tree.tasks)))

    def _new_colors(self) -> None:
        self._palette = Palette.of(self.app.theme_variables, ansi=self.app.native_ansi_color)
        self._tree_lines.forget()
        self._draw()
        self.refresh()

    def on_resize(self) -> None:
        self._draw()
        self._scroll_to_cursor()
        self.refresh()

    def on_focus(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self._draw)

    def on_blur(self) -> None:
        self.call_next(self._draw)

    def watch_follows(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        if row >= len(self._outline.rows):
            return
        clicked = self._outline.rows[row]
        arrow = self._tree_lines.columns.indent(clicked.depth)
        if arrow <= event.x < arrow + 2 and self._outline.has_children(clicked.task_id):
            self._toggle(clicked.task_id)
            return
        self._walk(row)
        if event.chain == 2:
            self.post_message(self.Opened())
