"""Which rows of a delegation tree are in sight, with a cursor that is bound to a task and stays in its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView

from agentwatch.app.widgets.cursor import Cursor
from agentwatch.app.widgets.outline import Outline
from agentwatch.app.widgets.rows import Heading, Row, RowId, Splice
from agentwatch.delegation.task import Task
from agentwatch.view.groups import ABOUT, Group

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_AT_WORK: Final = 60.0
"""Seconds after a key or a click for which the line under the cursor stays, whatever begins above it."""


class RowsView(ScrollView, can_focus=True):
    """The rows of an outline, as many as there is room for. `clock` gives seconds since the epoch."""

    @dataclass
    class Selected(Message):
        """The cursor is on another row now; None if that is a heading, or there is no row left."""

        task_id: str | None

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        super().__init__()
        self._tree = tree
        self._clock = clock
        self._outline = Outline(tree, clock)
        self._cursor = Cursor(tree)
        self._is_placed = False
        """Whether the cursor is where it is for a reason: until then it stays on the first task, whatever comes."""
        self._lead = 0
        """Blank lines above the first row, that the cursor may stay in its line."""
        self._used_at = float("-inf")
        """When the operator last did something here (monotonic seconds)."""
        self._came_above = False
        """Whether rows came out of sight, above the first line, since then."""

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
        """The task ids of the rows in order; headings have none."""
        rows = self._outline.rows.slice(0, self.row_count)
        return [row.task_id for row in rows if row.task_id is not None]

    @property
    def cursor_group(self) -> Group | None:
        """The group of the heading on which the cursor is."""
        row_id = self._cursor.row_id
        return row_id.group if isinstance(row_id, Heading) else None

    def group_roots(self) -> tuple[str, ...]:
        """The ids of the runs of the group on whose heading the cursor is; none where it is on no heading."""
        group = self.cursor_group
        return () if group is None else tuple(self._outline.order.roots(group))

    def group_lines(self) -> tuple[str, ...]:
        """What can be said of the group on whose heading the cursor is: its name first; empty where it is on none."""
        group, order = self.cursor_group, self._outline.order
        if group is None:
            return ()
        tally, words = order.tallies[group], order.words(group, self._clock())
        asking = (f"{tally.asking:,} with something that needs you",) if tally.asking else ()
        return (group.capitalize(), words[0], *asking, "", ABOUT[group])

    def shown_as(self, task_id: str) -> str:
        """The task whose row stands for a task: itself, but for the tasks of a chain."""
        return self._outline.row_of(task_id)

    def copy_outline(self) -> Outline:
        """Its rows and folds, for another view of the same tree."""
        return self._outline.copy()

    # The cursor in sight

    def _go(self, row: int, *, jumps: bool = False) -> None:
        """Put the cursor on a row, the nearest that there is. One that `jumps` out of sight gets rows around it."""
        self._put(row, jumps=jumps)
        self._draw()

    def _put(self, row: int, *, jumps: bool = False) -> None:
        rows = self._outline.rows
        if rows:
            self._set_cursor(min(max(row, 0), len(rows) - 1))
            self._scroll_to_cursor(jumps=jumps)
            self._let_go()

    def _go_to(self, row_id: RowId, *, jumps: bool = False) -> None:
        """Put the cursor on a row, if it is there."""
        if row_id in self._outline.rows:
            self._go(self._outline.rows.index(row_id), jumps=jumps)

    def _go_first(self) -> None:
        """Put the cursor on the first task, else on the first row."""
        self._put_first()
        self._draw()

    def _put_first(self) -> None:
        """The same, without drawing it."""
        rows = self._outline.rows.slice(0, len(Group) + 1)
        self._put(next((number for number, row in enumerate(rows) if row.task_id is not None), 0))

    def _set_cursor(self, row: int | None) -> None:
        before = self._cursor.row_id
        self._cursor.put(None if row is None else self._outline.rows[row], row or 0)
        if before != self._cursor.row_id:
            self.post_message(self.Selected(self._cursor.task_id))

    def _let_go(self) -> None:
        """What the cursor has left goes where it belongs; what it is on now stays where it is."""
        self._take_splices(self._outline.hold(self._cursor.row_id if self._is_placed else None))

    def _scroll_to_cursor(self, *, jumps: bool = False) -> None:
        height, row = self.size.height, self._cursor.row
        if not height:
            return
        most = max(len(self._outline.rows) - height, 0)
        top = min(max(self._offset, 0), most)
        if not top <= row < top + height:
            top = min(max(row - height // 2, 0), most) if jumps else row if row < top else row - height + 1
        self._show_from(top)

    def _use(self) -> None:
        """The operator does something here."""
        self._used_at, self._came_above = monotonic(), False

    def _show_live(self, has_changed: bool) -> None:
        """Have what is live in sight, which stands at the top, unless the operator is at work here."""
        height, offset = self.size.height, self._offset
        if not has_changed or not height or monotonic() - self._used_at < _AT_WORK:
            return
        if self._cursor.row < height:
            offset = 0
        elif self._used_at < 0:
            # Nobody has chosen the task under the cursor.
            self._go_first()
            return
        self._came_above = self._came_above and offset > 0
        self._show_from(offset)

    @property
    def _offset(self) -> int:
        """The row in the first line of the viewport; below 0 if blank lines are above the rows."""
        return self.scroll_offset.y - self._lead

    def _show_from(self, offset: int) -> None:
        """Have this row in the first line, or one above it: no room is left below while rows are hidden above."""
        rows = len(self._outline.rows)
        offset = min(offset, max(rows - self.size.height, 0))
        top, self._lead = max(offset, 0), max(-offset, 0)
        self._set_height(rows + self._lead)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)

    # Rows that come and go

    def _take_splices(self, splices: list[Splice], *, is_update: bool = False) -> None:
        """Keep the cursor on its task and what is on screen in its place.

        The task under the cursor keeps its line, unless rows would be hidden above it while there is room below. What
        the operator does may move it, where the rows would not fill the screen.
        """
        if not splices:
            return
        outline, cursor, height = self._outline, self._cursor, self.size.height
        rows, offset, cursor_row = outline.rows, self._offset, cursor.row
        line = cursor_row - offset
        for splice in splices:
            if splice.position < offset:
                offset += splice.added - min(splice.removed, offset - splice.position)
            if splice.position <= cursor_row:
                cursor_row += splice.added - min(splice.removed, cursor_row - splice.position)
        before = cursor.row_id
        if before is not None and before in rows:
            cursor.row = rows.index(before)
            if 0 <= line < height:
                offset = cursor.row - line
        elif rows:
            row = 0 if before is None else min(cursor_row, len(rows) - 1)
            self._set_cursor(cursor.successor(outline, row))
        else:
            self._set_cursor(None)
        if not (is_update and self._is_placed and cursor.row_id == before):
            offset = max(offset, 0)
        top = max(self._offset, 0)
        self._show_from(offset)
        self._came_above |= is_update and self._offset > top
        if cursor.row_id != before:
            self._let_go()

    def _set_height(self, rows: int) -> None:
        """Say how far there is to scroll. A layout of the screen, 9 ms, only where the scroll bar comes or goes."""
        height = self.size.height
        if rows == self.virtual_size.height:
            return
        if (rows > height) != (self.virtual_size.height > height):
            self.virtual_size = Size(0, rows)
            return
        self.set_reactive(RowsView.virtual_size, Size(0, rows))
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = rows

    def rows_in_sight(self, top: int) -> list[Row | None]:
        """The rows in the lines of the viewport from `top` on; None for a blank line above the first one."""
        blank: list[Row | None] = [None] * min(max(self._lead - top, 0), self.size.height)
        first = max(top - self._lead, 0)
        return blank + list[Row | None](self._outline.rows.slice(first, first + self.size.height - len(blank)))

    def _draw(self) -> None:
        """Have on screen what is in sight now."""
        raise NotImplementedError
