"""Draws the rows of a delegation tree, line by line.

Every draw compares the lines of the viewport with the ones on screen and repaints those that differ: the cost of an
update does not grow with the tree, and where nothing visible changed, nothing is written to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from textual import events, on
from textual.strip import Strip

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip
from agentwatch.app.widgets.header import Counted
from agentwatch.app.widgets.heading_line import Headline, heading_line
from agentwatch.app.widgets.line import Part, strip_of
from agentwatch.app.widgets.neighbours import before_titles, lit_guide, shared_beginnings
from agentwatch.app.widgets.rows import Heading
from agentwatch.app.widgets.rows_view import RowsView
from agentwatch.app.widgets.task_line import Columns, Pose, age_of, decided_of, task_line
from agentwatch.delegation.task import Task
from agentwatch.view.groups import ASKING, Group
from agentwatch.view.times import lasts, stands_since
from agentwatch.view.words import is_on_its_way, plural

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree


class _Made(NamedTuple):
    """A line, and how its task stood there: by its title the lines around it may read differently."""

    pose: Pose
    title: str
    line: Strip


class TreeView(RowsView):
    """The lines of the rows in sight. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = """
    TreeView {
        width: 1fr; height: 1fr; background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    }
    """

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        super().__init__(tree, clock)
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

    def now(self) -> Counted:
        """What goes on now, to be counted in the header."""
        tally = self._outline.order.tallies[Group.NOW]
        return Counted(tally.tasks, tally.present, is_part=tally.tasks < self._tree.totals.tasks)

    def in_sight(self) -> list[str]:
        """The tasks of its lines. Any thread may call it."""
        return list(self._made)

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
