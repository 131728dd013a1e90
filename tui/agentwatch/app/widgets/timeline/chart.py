"""The chart: the rows of the tree, each with its bar on the shared clock."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip

from agentwatch.app.actions import Home, bindings
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.task_line import Columns
from agentwatch.app.widgets.task_tree import TaskTree
from agentwatch.app.widgets.timeline.activity import Activity
from agentwatch.app.widgets.timeline.bars import Bar, Ground, Inks
from agentwatch.app.widgets.timeline.scale import Frame, Tick, Window, ticks
from agentwatch.delegation.task import State, Task
from agentwatch.view.looks import worst_look
from agentwatch.view.spans import Interval, Span, pauses_of, spans_of

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree


class TimelineChart(TaskTree, can_focus=True, inherit_bindings=False):
    """The chart of a tree, folded like `like` and with its cursor. `clock` gives seconds since the epoch."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.CHART)

    class Drawn(Message):
        """Another part of time is on screen, or the present is at another cell."""

    def __init__(self, tree: Tree, clock: Callable[[], float], like: TaskTree) -> None:
        super().__init__(tree, clock)
        self._outline = like.copy_outline()
        self._is_placed = True
        self._cursor.row_id = self._begin_at = like.cursor_id
        self._activity = Activity(tree)
        self.window = Window()
        self._spans: dict[str, list[Span]] = {}
        self.picture = self._take_picture()
        """The part of time that is on screen, and the moments that the axis names."""
        self._inks: Inks | None = None

    @property
    def names_width(self) -> int:
        """Cells of the column with the titles."""
        return self._columns.width

    def make_columns(self, width: int) -> Columns:
        names = min(max(width // 3, 16), 40)
        self.window.width = max(width - names, 1)
        self.window.reserve = min(16, self.window.width // 4)
        return Columns(names, note=0, state=0, agent=0, age=0)

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        self._activity.take(changed)
        for task_id in changed:
            self._spans.pop(task_id, None)
        super().refresh_tasks(changed, settled=settled)

    def tick(self) -> None:
        self._activity.tidy()
        super().tick()

    def on_mount(self) -> None:
        if self._begin_at is not None:
            self.call_after_refresh(self.select, self._begin_at)

    # Keys

    def action_fit(self) -> None:
        self.window.fits = True
        self._draw()

    def action_now(self) -> None:
        self.window.follow(self.picture[0])
        self._draw()

    def action_pan(self, steps: int) -> None:
        self.window.pan(self.picture[0], steps)
        self._draw()

    def action_zoom(self, steps: int) -> None:
        frame = self.picture[0]
        self.window.zoom(frame, steps, self._pivot(frame))
        self._draw()

    def action_show(self) -> None:
        if (task := self.cursor_task) is None:
            return
        now = self._clock()
        below = self.below(task, now)
        times = [(span.start, span.until(now)) for span in self.spans_of(task)] + ([below] if below else [])
        if times:
            start, end = min(start for start, _ in times), max(end for _, end in times)
            self.window.show(self._activity.stretches, start, end, now)
            self._draw()

    def action_fold_idle(self) -> None:
        self.window.folds_idle = not self.window.folds_idle
        self._draw()

    def _pivot(self, frame: Frame) -> float:
        """The cell that stays in its place: the present where the selected task goes on, else the middle of its bar."""
        task = self.cursor_task
        spans = self.spans_of(task) if task else []
        present = frame.x(frame.now)
        if spans and spans[-1].end is None and 0 <= present < frame.width:
            return present
        left = max(min((frame.x(span.start) for span in spans), default=0.0), 0.0)
        right = min(max((frame.x(span.until(frame.now)) for span in spans), default=0.0), float(frame.width))
        return (left + right) / 2 if spans and left <= right else frame.width / 2

    # Drawing

    def _draw(self) -> None:
        super()._draw()
        if self.is_attached:
            self.post_message(self.Drawn())

    def _draw_changed(self) -> None:
        # Bars grow, whatever has changed.
        self._draw()

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        names = super()._make_lines(top, palette)
        self.picture = frame, named = self._take_picture()
        ground = Ground.of(frame, [tick.column for tick in named])
        rows = self.rows_in_sight(top)
        if self._inks is None or self._inks.palette is not palette:
            self._inks = Inks.of(palette, colorless=palette.ansi or self.app.no_color)
        lines: list[Strip] = []
        for row, name in zip(rows, names, strict=True):
            bar = Bar(ground, self._inks)
            task = None if row is None or row.task_id is None else self._tree.tasks.get(row.task_id)
            if task is not None:
                note = _note(task) if self._outline.is_folded(task.task_id) else ""
                below = self.below(task, frame.now)
                bar.draw(self.spans_of(task), below, asks=task.needs_operator, note=note, pauses=pauses_of(task))
            marked = row is not None and row.row_id == self._cursor.row_id and not palette.ansi
            base = palette.base + palette.cursor if marked else palette.base
            lines.append(Strip([*name, *bar.segments(base)]))
        blank = Strip([Segment(" " * self.names_width, palette.base), *Bar(ground, self._inks).segments(palette.base)])
        return lines + [blank] * (self.size.height - len(lines))

    def _take_picture(self) -> tuple[Frame, list[Tick]]:
        frame = self.window.frame(self._activity.stretches, self._clock())
        right = min(frame.left + frame.width, frame.axis.column(frame.now))
        return frame, ticks(frame.axis, frame.left, right, frame.now)

    def spans_of(self, task: Task) -> list[Span]:
        """The attempts and waits of a task."""
        spans = self._spans.get(task.task_id)
        if spans is None:
            spans = self._spans[task.task_id] = spans_of(task, self._activity.first_sign(task.task_id))
        return spans

    def below(self, task: Task, now: float) -> Interval | None:
        """From the first sign of a task or below it to the last below it."""
        first = self._activity.first_sign(task.task_id)
        if first is None or task.below is None:
            return None
        works = task.below.states.get(State.WORKING, 0) > 0
        return first, now if works else min(task.below.active_at, now)


def _note(task: Task) -> str:
    """Who needs the operator below a folded task."""
    below = task.below
    if below is None or task.needs_operator or (worst := worst_look(below)) is None:
        return ""
    return f"{worst.glyph} {below.needs_operator:,} NEED YOU"
