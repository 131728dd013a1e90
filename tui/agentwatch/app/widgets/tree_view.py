"""Draws and scrolls the rows of a delegation tree: virtual rows, line by line, with a cursor that is bound to a task.

Every draw compares the lines of the viewport with the ones on screen and repaints those that differ: the cost of an
update does not grow with the tree, and where nothing visible changed, nothing is written to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from textual import events, on
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.outline import Outline, Row, Rows, Splice
from agentwatch.app.widgets.task_line import Columns, Pose, pose, task_line
from agentwatch.delegation.task import Task

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree


class Cursor:
    """The cursor of one view of a tree: bound to a task, which is None if there is none; `row` is its place."""

    def __init__(self, tree: DelegationTree) -> None:
        self._tree = tree
        self.task_id: str | None = None
        self.row = 0
        self._parents: dict[str, str | None] = {}
        self._before: str | None = None
        """The task it was on before there was none, as where a filter matches nothing."""

    def put(self, task_id: str | None, row: int) -> None:
        """Put it on a task, which has this row."""
        self._before = (self.task_id or self._before) if task_id is None else None
        self.task_id, self.row = task_id, row
        # Where it goes when its task disappears has to be known before that does.
        self._parents = {}
        while task_id is not None and (task := self._tree.tasks.get(task_id)) is not None:
            self._parents[task_id] = task.parent_id
            task_id = task.parent_id

    def successor(self, rows: Rows, row: int) -> int:
        """Its row has gone, and what is at `row` now took its place. The row to go to.

        That is the sibling in its place, else the nearest task above that is left. If there was no row at all, it
        is that of the task it was on before.
        """
        if self._before is not None and self._before in rows:
            return rows.index(self._before)
        gone = self.task_id
        if gone is not None and gone not in self._tree.tasks and rows[row].parent_id == self._parents.get(gone):
            return row
        while gone is not None:
            gone = self._parents.get(gone)
            if gone is not None and gone in rows:
                return rows.index(gone)
        return row


class TreeView(ScrollView, can_focus=True):
    """The rows of an outline, as many as there is room for. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = """
    TreeView {
        width: 1fr; height: 1fr; background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    }
    """

    @dataclass
    class Selected(Message):
        """The cursor is on another task now; None if there is no task left."""

        task_id: str | None

    def __init__(self, tree: DelegationTree, clock: Callable[[], float]) -> None:
        super().__init__()
        self._tree = tree
        self._clock = clock
        self._outline = Outline(tree)
        self._cursor = Cursor(tree)
        self._marked: dict[str, None] = {}
        self._palette: Palette | None = None
        self._width = 0
        """Cells that the columns were made for."""
        self._columns = Columns.of(80)
        self._made: dict[str, tuple[Pose, Strip]] = {}
        """The lines in sight by task: one that would read as before is not made again."""
        self._top = 0
        self._lines: list[Strip] = []

    @property
    def cursor_id(self) -> str | None:
        """The id of the selected task."""
        return self._cursor.task_id

    @property
    def cursor_task(self) -> Task | None:
        """The selected task."""
        return None if self._cursor.task_id is None else self._tree.tasks.get(self._cursor.task_id)

    @property
    def row_count(self) -> int:
        """Rows, visible on screen or not."""
        return len(self._outline.rows)

    def row_ids(self) -> list[str]:
        """The task ids of the rows in order."""
        return [row.task_id for row in self._outline.rows.slice(0, self.row_count)]

    def copy_outline(self) -> Outline:
        """Its rows and folds, for another view of the same tree."""
        return self._outline.copy()

    def make_columns(self, width: int) -> Columns:
        """The columns of its lines when it is `width` cells wide."""
        return Columns.of(width)

    def tick(self) -> None:
        """Time has passed: redraw the rows whose elapsed time reads differently now."""
        self._draw()

    # The cursor in sight

    def _go(self, row: int, *, jumps: bool = False) -> None:
        """Put the cursor on a row, the nearest that there is. One that `jumps` out of sight gets rows around it."""
        rows = self._outline.rows
        if rows:
            row = min(max(row, 0), len(rows) - 1)
            self._set_cursor(rows[row].task_id, row)
            self._scroll_to_cursor(jumps=jumps)
            self._draw()

    def _go_to(self, task_id: str, *, jumps: bool = False) -> None:
        """Put the cursor on a task, if it has a row."""
        if task_id in self._outline.rows:
            self._go(self._outline.rows.index(task_id), jumps=jumps)

    def _set_cursor(self, task_id: str | None, row: int) -> None:
        is_new = task_id != self._cursor.task_id
        self._cursor.put(task_id, row)
        if is_new:
            self.post_message(self.Selected(task_id))

    def _scroll_to_cursor(self, *, jumps: bool = False) -> None:
        height, row, top = self.size.height, self._cursor.row, self.scroll_offset.y
        if not height or top <= row < top + height:
            return
        if jumps:
            top = min(max(row - height // 2, 0), max(len(self._outline.rows) - height, 0))
        else:
            top = row if row < top else row - height + 1
        self._scroll(top)

    def _scroll(self, top: int) -> None:
        self.scroll_to(y=top, animate=False, force=True)

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
            before = self._cursor.row - self.scroll_offset.y
            self._cursor.row = rows.index(self._cursor.task_id)
            on_screen = 0 <= before < self.size.height
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
        self.set_reactive(TreeView.virtual_size, Size(0, rows))
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = rows

    # Drawing

    def _draw(self) -> None:
        """Make the lines of the viewport and repaint those that are not on screen like this."""
        if self._palette is None or not self.is_attached:
            return
        # Textual may lay out for the first time and not tell the width.
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            self._columns = self.make_columns(width)
            self._made = {}
        top = self.scroll_offset.y
        lines = self._make_lines(top, self._palette)
        if top == self._top:
            for y, (new, old) in enumerate(zip_longest(lines, self._lines)):
                if old is not new and old != new:
                    self.refresh_line(top + y)
        self._top, self._lines = top, lines

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        """The lines of the rows from `top` on that are in sight."""
        now = self._clock()
        rows = self._outline.rows.slice(top, top + self.size.height)
        first, last, level = _lit_guide(rows, self._cursor.row - top)
        made: dict[str, tuple[Pose, Strip]] = {}
        lines: list[Strip] = []
        for y, row in enumerate(rows):
            task = self._tree.tasks.get(row.task_id)
            if task is None:
                # Gone from the tree a moment ago; the row goes with the next update.
                lines.append(Strip.blank(self._columns.width, palette.base))
                continue
            can_fold = bool(task.children) and self._outline.has_children(row.task_id)
            stand = pose(
                task,
                row.depth,
                now,
                folded=self._outline.is_folded(row.task_id) if can_fold else None,
                guide=level if first <= y < last else -1,
                selected=row.task_id == self._cursor.task_id,
                focused=self.has_focus,
                marked=row.task_id in self._marked,
            )
            before = self._made.get(row.task_id)
            same = before is not None and before[0] == stand
            line = before[1] if before is not None and same else task_line(task, stand, self._columns, palette)
            made[row.task_id] = (stand, line)
            lines.append(line)
        self._made = made
        return lines

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
        self._made = {}
        self._draw()
        self.refresh()

    def on_resize(self) -> None:
        self._draw()
        self._scroll_to_cursor()
        self.refresh()

    @on(events.Focus)
    @on(events.Blur)
    def _draw_focus(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self._draw)


def _lit_guide(rows: list[Row], at: int) -> tuple[int, int, int]:
    """The lines whose guide is lit, from, to, and its level: the siblings of the row `at` and what is below them."""
    if not 0 <= at < len(rows) or not rows[at].depth:
        return 0, 0, -1
    depth = rows[at].depth
    first = last = at
    while first > 0 and rows[first - 1].depth >= depth:
        first -= 1
    while last + 1 < len(rows) and rows[last + 1].depth >= depth:
        last += 1
    return first, last + 1, depth - 1
