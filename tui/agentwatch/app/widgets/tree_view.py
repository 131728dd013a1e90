"""Draws and scrolls the rows of a delegation tree: virtual rows, line by line, with a cursor that is bound to a task.

Every draw compares the lines of the viewport with the ones on screen and repaints those that differ: the cost of an
update does not grow with the tree, and where nothing visible changed, nothing is written to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from textual import events, on
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip
from agentwatch.app.widgets.cursor import Cursor
from agentwatch.app.widgets.header import Counted
from agentwatch.app.widgets.heading_line import Headline, heading_line
from agentwatch.app.widgets.line import Part, strip_of
from agentwatch.app.widgets.neighbours import before_titles, lit_guide, shared_beginnings
from agentwatch.app.widgets.outline import Outline
from agentwatch.app.widgets.rows import Heading, Row, RowId, Splice
from agentwatch.app.widgets.task_line import Columns, Pose, age_of, decided_of, task_line
from agentwatch.delegation.task import Task
from agentwatch.view.groups import ABOUT, ASKING, Group
from agentwatch.view.times import lasts, stands_since
from agentwatch.view.words import is_on_its_way, plural

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_AT_WORK: Final = 60.0
"""Seconds after a key or a click for which the line under the cursor stays, whatever begins above it."""


class _Made(NamedTuple):
    """A line, and how its task stood there: by its title the lines around it may read differently."""

    pose: Pose
    title: str
    line: Strip


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
        """The cursor is on another row now; None if that is a heading, or there is no row left."""

        task_id: str | None

    def __init__(self, tree: DelegationTree, clock: Callable[[], float]) -> None:
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
        self._marked: dict[str, None] = {}
        self._palette: Palette | None = None
        self._width = 0
        """Cells that the columns were made for."""
        self._columns = Columns.of(80)
        self._made: dict[str, _Made] = {}
        """The lines in sight by task: one that would read as before is not made again."""
        self._changed: set[str] = set()
        """The tasks that have changed since."""
        self._headings: dict[Group, tuple[object, Strip]] = {}
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

    def now(self) -> Counted:
        """What goes on now, to be counted in the header."""
        tally = self._outline.order.tallies[Group.NOW]
        return Counted(tally.tasks, tally.present, is_part=tally.tasks < self._tree.totals.tasks)

    def make_columns(self, width: int) -> Columns:
        """The columns of its lines when it is `width` cells wide."""
        return Columns.of(width)

    def tick(self) -> None:
        """Time has passed: runs change their group, and rows whose elapsed time reads differently are drawn."""
        splices = self._outline.tick()
        self._take_splices(splices, is_update=True)
        self._show_live(bool(splices))
        self._draw()

    def due(self, now: float) -> float:
        """When it reads differently, if nothing but time passes (epoch seconds, as `now`)."""
        due = self._outline.order.due
        for row in self.rows_in_sight(self.scroll_offset.y):
            task = self._tree.tasks.get(row.task_id) if row is not None and row.task_id is not None else None
            if task is not None:
                decision, since = task.decision, stands_since(task)
                goes_on = decision is not None and is_on_its_way(decision)
                due = min(due, now if goes_on else due, due if since is None else now + lasts(now - since))
        return due

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

    def _draw_changed(self) -> None:
        """`_draw`, where all rows are what they were: nothing but the lines of tasks that have changed may differ."""
        top = self.scroll_offset.y
        rows, now = self.rows_in_sight(top), self._clock()
        is_same = top == self._top and self.scrollable_content_region.width == self._width
        if self._palette is None or not is_same or len(rows) != len(self._lines) or self._note_line is not None:
            self._draw()
            return
        for y, row in enumerate(rows):
            line = self._lines[y]
            if row is not None and isinstance(row.row_id, Heading):
                line = self._make_heading(row.row_id, now, self._palette)
            elif row is not None and row.task_id in self._changed:
                task, made = self._tree.tasks.get(row.task_id), self._made.get(row.task_id)
                if task is None or made is None or made.title != task.title:
                    self._draw()
                    return
                pose = made.pose._replace(
                    folded=self._fold_of(task), age=age_of(task, now), decided=decided_of(task, now)
                )
                line = task_line(task, pose, self._columns, self._palette, self._tree.tasks)
                self._made[row.task_id] = _Made(pose, task.title, line)
            if line is not self._lines[y] and line != self._lines[y]:
                self._lines[y] = line
                self.refresh_line(top + y)
        self._changed.clear()

    def _fold_of(self, task: Task) -> bool | None:
        """Whether a task's row is folded; None where nothing is below it."""
        can_fold = bool(task.children) and self._outline.has_children(task.task_id)
        return self._outline.is_folded(task.task_id) if can_fold else None

    @property
    def _note_line(self) -> int | None:
        """The line that tells of the rows above, where some came there while the operator was at work."""
        height, above = self.size.height, self._offset
        if not self._came_above or above <= 0 or height < 2:
            return None
        return 0 if self._cursor.row != above else height - 1

    def _note_above(self, palette: Palette) -> Strip:
        """That there are rows above the first line, to which some came."""
        width = self._columns.width
        words = f" ↑ {plural(self._offset, 'row')} above"
        return strip_of([Part(clip(words, width), palette.needs)], width, palette)

    def rows_in_sight(self, top: int) -> list[Row | None]:
        """The rows in the lines of the viewport from `top` on; None for a blank line above the first one."""
        blank: list[Row | None] = [None] * min(max(self._lead - top, 0), self.size.height)
        first = max(top - self._lead, 0)
        return blank + list[Row | None](self._outline.rows.slice(first, first + self.size.height - len(blank)))

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        """The lines of the rows from `top` on that are in sight."""
        now = self._clock()
        rows = self.rows_in_sight(top)
        first, last, level = lit_guide(rows, self._cursor.row - self._offset)
        made: dict[str, _Made] = {}
        lines: list[Strip] = []
        tasks = self._tree.tasks
        shared, before_title = shared_beginnings(rows, tasks), before_titles(rows, tasks)
        for y, row in enumerate(rows):
            if row is not None and isinstance(row.row_id, Heading):
                lines.append(self._make_heading(row.row_id, now, palette))
                continue
            task = None if row is None or row.task_id is None else tasks.get(row.task_id)
            if row is None or task is None:
                # Gone from the tree a moment ago; the row goes with the next update.
                lines.append(Strip.blank(self._columns.width, palette.base))
                continue
            selected = task.task_id == self._cursor.row_id
            stand = Pose(
                row.depth,
                folded=self._fold_of(task),
                guide=level if first <= y < last else -1,
                selected=selected,
                focused=selected and self.has_focus,
                age=age_of(task, now),
                decided=decided_of(task, now),
                marked=task.task_id in self._marked,
                shared=shared.get(task.task_id, 0),
                chain=before_title[task.task_id],
            )
            before = None if task.task_id in self._changed else self._made.get(task.task_id)
            if before is None or before.pose != stand:
                line = task_line(task, stand, self._columns, palette, tasks)
                before = _Made(stand, task.title, line)
            made[task.task_id] = before
            lines.append(before.line)
        self._made = made
        self._changed.clear()
        if (note := self._note_line) is not None:
            lines += [Strip.blank(self._columns.width, palette.base)] * (note + 1 - len(lines))
            lines[note] = self._note_above(palette)
        return lines

    def _make_heading(self, heading: Heading, now: float, palette: Palette) -> Strip:
        """The line of a heading; made again only where it reads differently."""
        outline, group = self._outline, heading.group
        what = Headline(
            group,
            outline.order.words(group, now),
            outline.order.tallies[group].present[ASKING],
            folded=outline.is_folded(heading),
            selected=heading == self._cursor.row_id,
            focused=self.has_focus,
        )
        before = self._headings.get(group)
        if before is not None and before[0] == (what, self._columns, palette):
            return before[1]
        line = heading_line(what, self._columns.width, palette)
        self._headings[group] = ((what, self._columns, palette), line)
        return line

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
        self._take_splices(self._outline.begin())

    def _new_colors(self) -> None:
        self._palette = Palette.of(self.app.theme_variables, ansi=self.app.native_ansi_color)
        self._made = {}
        self._draw()
        self.refresh()

    def on_resize(self) -> None:
        self._draw()
        # The strip comes and goes below: that moves no line, unless the one under the cursor is covered.
        if 0 <= self._cursor.row - self._offset < self.size.height and self._is_placed:
            self._show_from(self._offset)
        else:
            self._scroll_to_cursor()
        self.refresh()

    @on(events.Focus)
    @on(events.Blur)
    def _draw_focus(self) -> None:
        # The widget's own handlers run after these, and only they set `has_focus`.
        self.call_next(self._draw)
