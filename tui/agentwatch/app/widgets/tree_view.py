"""Draws and scrolls the rows of a delegation tree: virtual rows, line by line, with a cursor that is bound to a task.

Every draw compares the lines of the viewport with the ones on screen and repaints those that differ: the cost of an
update does not grow with the tree, and where nothing visible changed, nothing is written to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cursor import Cursor
from agentwatch.app.widgets.outline import Outline, Splice
from agentwatch.app.widgets.task_line import Columns
from agentwatch.app.widgets.tree_lines import TreeLines
from agentwatch.delegation.task import Task

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree


class TreeView(ScrollView, can_focus=True):
    """The rows of an outline, as many as there is room for. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = """
    TreeView {
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

    class Selected(Message):
        """The cursor is on another task now; None if there is no task left."""

        def __init__(self, task_id: str | None) -> None:
            super().__init__()
            self.task_id = task_id

    def __init__(self, tree: DelegationTree, clock: Callable[[], float], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._tree = tree
        self._clock = clock
        self._outline = Outline(tree)
        self._cursor = Cursor(tree)
        self._marked: dict[str, None] = {}
        self._palette: Palette | None = None
        self._tree_lines = TreeLines(tree, clock)
        self._width = 0
        """Cells that the columns were made for."""
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
        self.set_reactive(TreeView.virtual_size, Size(0, rows))
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = rows

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
