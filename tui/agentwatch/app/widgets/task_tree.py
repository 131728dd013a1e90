"""The delegation tree on screen: virtual rows, drawn line by line, with a cursor that is bound to a task.

Every draw compares the lines of the viewport with the ones on screen and repaints those that differ: the cost of an
update does not grow with the tree, and where nothing visible changed, nothing is written to the terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.commands import Home, bindings
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.outline import Filter, Outline, Splice
from agentwatch.app.widgets.rows import Row
from agentwatch.app.widgets.task_line import Columns, Pose, pose, task_line
from agentwatch.delegation.task import Task

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_SLICE: Final = 0.006
"""Seconds of searching after which key presses and updates get their turn."""

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
        self._cursor_id: str | None = None
        self._marked: dict[str, None] = {}
        self._cursor_row = 0
        self._parents: dict[str, str | None] = {}
        self._filter = Filter()
        self._is_searching = False
        self._search_again = False
        self._palette: Palette | None = None
        self._columns = Columns.of(80)
        self._top = 0
        self._lines: list[Strip] = []
        self._drawn: dict[str, tuple[Pose, Strip]] = {}

    # What others ask and tell

    @property
    def cursor_id(self) -> str | None:
        """The id of the selected task."""
        return self._cursor_id

    @property
    def cursor_task(self) -> Task | None:
        """The selected task."""
        return None if self._cursor_id is None else self._tree.tasks.get(self._cursor_id)

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
        for task_id in changed:
            self._drawn.pop(task_id, None)
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
        self._walk(self._cursor_row - 1)

    def action_cursor_down(self) -> None:
        self._walk(self._cursor_row + 1)

    def action_page_up(self) -> None:
        self._walk(self._cursor_row - max(self.size.height - 1, 1))

    def action_page_down(self) -> None:
        self._walk(self._cursor_row + max(self.size.height - 1, 1))

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
            self._walk(self._cursor_row + 1)

    def action_toggle_fold(self) -> None:
        if self._cursor_id is not None:
            self._toggle(self._cursor_id)

    def action_mark(self) -> None:
        """Mark the selected task for the review, or take the mark away."""
        if self._cursor_id is not None:
            if self._cursor_id in self._marked:
                del self._marked[self._cursor_id]
            else:
                self._marked[self._cursor_id] = None
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
        self._cursor_row = row
        if task_id != self._cursor_id:
            self._cursor_id = task_id
            self.post_message(self.Selected(task_id))
        # Where the cursor goes when its task disappears has to be known before it does.
        self._parents = {}
        while task_id is not None and (task := self._tree.tasks.get(task_id)) is not None:
            self._parents[task_id] = task.parent_id
            task_id = task.parent_id

    def _scroll_to_cursor(self) -> None:
        height = self.size.height
        top = self.scroll_offset.y
        if self._cursor_row < top:
            self._scroll(self._cursor_row)
        elif height and self._cursor_row >= top + height:
            self._scroll(self._cursor_row - height + 1)

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
        cursor_row = self._cursor_row
        for splice in splices:
            if splice.position < top:
                top += splice.added - min(splice.removed, top - splice.position)
            if splice.position <= cursor_row:
                cursor_row += splice.added - min(splice.removed, cursor_row - splice.position)
        self._set_height(len(rows))
        if self._cursor_id is not None and self._cursor_id in rows:
            on_screen = 0 <= self._cursor_row - self.scroll_offset.y < self.size.height
            before = self._cursor_row - self.scroll_offset.y
            self._cursor_row = rows.index(self._cursor_id)
            if len(splices) == 1 and splices[0].position == 0 and splices[0].removed and on_screen:
                # All rows are new: keep the cursor's line where it was.
                top = self._cursor_row - before
        elif rows:
            self._settle_cursor(0 if self._cursor_id is None else min(cursor_row, len(rows) - 1))
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

    def _settle_cursor(self, row: int) -> None:
        """The cursor's row has gone: to the sibling in its place, else to the nearest task above that is left."""
        rows = self._outline.rows
        gone = self._cursor_id
        if gone is not None and gone not in self._tree.tasks and rows[row].parent_id == self._parents.get(gone):
            self._set_cursor(rows[row].task_id, row)
            return
        while gone is not None:
            gone = self._parents.get(gone)
            if gone is not None and gone in rows:
                self._set_cursor(gone, rows.index(gone))
                return
        self._set_cursor(rows[row].task_id, row)

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
        self.run_worker(self._find(later=later), group="search", exclusive=True)

    async def _find(self, *, later: bool) -> None:
        while True:
            if later and len(self._tree.tasks) > _SMALL:
                await asyncio.sleep(_SEARCH_PAUSE)
            self._search_again = False
            shown, found = await self._look()
            self._take_splices(self._outline.show_only(shown))
            if not later:
                self._go_to_match()
            self._draw()
            self.post_message(self.Filtered(found))
            if not self._search_again:
                break
            later = True
        self._is_searching = False

    async def _look(self) -> tuple[set[str], int]:
        """The tasks to show, and how many of them match by themselves."""
        found = 0
        shown: set[str] = set()
        began = perf_counter()
        for task in list(self._tree.tasks.values()):
            if self._filter.matches(task):
                found += 1
                above: str | None = task.task_id
                while above is not None and above not in shown and above in self._tree.tasks:
                    shown.add(above)
                    above = self._tree.tasks[above].parent_id
            if perf_counter() - began > _SLICE:
                await asyncio.sleep(0)
                began = perf_counter()
        return shown, found

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
        top = self.scroll_offset.y
        lines = self._make_lines(top, self._palette)
        if top == self._top:
            for y in range(max(len(lines), len(self._lines))):
                old = self._lines[y] if y < len(self._lines) else None
                new = lines[y] if y < len(lines) else None
                if old is not new and old != new:
                    self.refresh_line(top + y)
        self._top, self._lines = top, lines

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        now = self._clock()
        rows = self._outline.rows.slice(top, top + self.size.height)
        first, last, level = self._lit_guide(rows, top)
        drawn: dict[str, tuple[Pose, Strip]] = {}
        lines: list[Strip] = []
        for y, row in enumerate(rows):
            task = self._tree.tasks.get(row.task_id)
            if task is None:
                # Gone from the tree a moment ago; the row goes with the next update.
                lines.append(Strip.blank(self._columns.width, palette.base))
                continue
            stand = pose(
                task,
                row.depth,
                now,
                folded=self._outline.is_folded(row.task_id)
                if task.children and self._outline.has_children(row.task_id)
                else None,
                guide=level if first <= y < last else -1,
                selected=row.task_id == self._cursor_id,
                focused=self.has_focus,
                marked=row.task_id in self._marked,
            )
            known = self._drawn.get(row.task_id)
            strip = known[1] if known is not None and known[0] == stand else None
            if strip is None:
                strip = task_line(task, stand, self._columns, palette)
            drawn[row.task_id] = (stand, strip)
            lines.append(strip)
        self._drawn = drawn
        return lines

    def _lit_guide(self, rows: list[Row], top: int) -> tuple[int, int, int]:
        """The lines whose guide is lit, from, to, and its level: the cursor's siblings and what is below them."""
        at = self._cursor_row - top
        if not 0 <= at < len(rows) or not rows[at].depth:
            return 0, 0, -1
        depth = rows[at].depth
        first = last = at
        while first > 0 and rows[first - 1].depth >= depth:
            first -= 1
        while last + 1 < len(rows) and rows[last + 1].depth >= depth:
            last += 1
        return first, last + 1, depth - 1

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
        self._drawn = {}
        self._draw()
        self.refresh()

    def on_resize(self) -> None:
        self._columns = self.make_columns(self.scrollable_content_region.width)
        self._drawn = {}
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
        arrow = self._columns.indent(clicked.depth)
        if arrow <= event.x < arrow + 2 and self._outline.has_children(clicked.task_id):
            self._toggle(clicked.task_id)
            return
        self._walk(row)
        if event.chain == 2:
            self.post_message(self.Opened())
