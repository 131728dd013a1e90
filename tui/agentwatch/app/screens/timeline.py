"""The session over time: a bar for each row of the tree on a shared clock, its axis, and the selected task in words.

The axis is a straight line, but for idle stretches that are folded to a few columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from itertools import starmap
from math import ceil, floor, inf, log
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.strip import Strip

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.messages import KeysChanged, TreeUpdated
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_sentence
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.line import Canvas, LineWidget, Part, Parts, width_of
from agentwatch.app.widgets.task_line import Columns
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.delegation.task import State, Task
from agentwatch.view import times
from agentwatch.view.axis import Axis
from agentwatch.view.looks import look
from agentwatch.view.spans import Interval, Kind, Span, busy_times, spans_of
from agentwatch.view.words import in_line, name_of

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree
    from agentwatch.monitor import Monitor

IDLE: Final = 600.0
"""Seconds without a sign of anybody, from which a stretch of time counts as idle."""
FOLD: Final = 9.0
"""Columns that a folded idle stretch takes at most."""
FINEST: Final = 0.05
"""Seconds a column."""
_STEP: Final = 1.15
"""Between two scales that fitting chooses from: so the picture stands still until it is full, and then makes room."""
_TICKS: Final = "1 2 5 10 15 30 60 120 300 600 900 1800 3600 7200 10800 21600 43200 86400 172800 604800 2592000"
"""Seconds between two ticks, of which the first that leaves room is taken."""
_ZOOM: Final = 1.5
_MARGIN: Final = 1
"""Columns in front of the first sign."""
_FILLS: Final = {Kind.QUEUE: "╌", Kind.SILENT: "░", Kind.WAIT: "┄"}
_BAD_WORDS: Final = frozenset({"failed", "invalid", "blocked", "false"})
_LEGEND: Final = " █ work ▓ failed ┄ waits ░ silent"


class Activity(NamedTuple):
    """The stretches of time with no idle time in them, of all tasks together, and the first sign of each task or of
    anything below it (seconds since the epoch)."""

    stretches: list[Interval]
    first: dict[str, float]


def activity_of(tree: Tree) -> Activity:
    """When anything happened at all in a tree."""
    first: dict[str, float] = {}
    busy: list[Interval] = []
    for task_id, task in tree.tasks.items():
        intervals = busy_times(task)
        busy += intervals
        sign = min(intervals)[0] if intervals else inf
        above: str | None = task_id
        while above is not None and sign < first.get(above, inf):
            first[above] = sign
            above = tree.tasks[above].parent_id
    stretches: list[Interval] = []
    for start, end in sorted(busy):
        if stretches and start <= stretches[-1][1] + IDLE:
            stretches[-1] = stretches[-1][0], max(end, stretches[-1][1])
        else:
            stretches.append((start, end))
    return Activity(stretches, first)


# Moments to columns


class View(NamedTuple):
    """The part of time that the operator wants to see: all of it, or, at so many seconds a column (`scale`), with the
    present at the right, or a `moment` at a cell `x`. Long idle stretches take a few columns where it `folds_idle`."""

    folds_idle: bool = True
    scale: float = 0.0
    moment: float = 0.0
    x: float | None = None


class Tick(NamedTuple):
    """A cell whose moment has a name. `is_day` says that this is a date."""

    x: int
    label: str
    is_day: bool = False


class Frame(NamedTuple):
    """The cells of an axis that are on screen, from a column on, at `now`; `fits`: they are all of time."""

    axis: Axis
    left: float
    width: int
    now: float
    fits: bool = True

    def x(self, moment: float) -> float:
        """Where a moment is, in cells from the left edge."""
        return self.axis.column(moment) - self.left

    @property
    def present(self) -> int:
        """The cell of now."""
        return floor(self.x(self.now))

    @property
    def folded(self) -> set[int]:
        """The cells of folded stretches."""
        edges = ((floor(fold.left - self.left) + 1, floor(fold.right - self.left)) for fold in self.axis.folds)
        return {x for left, right in edges for x in range(max(left, 0), min(right, self.width))}


def fit(stretches: Sequence[Interval], now: float, room: float) -> tuple[float, float]:
    """Seconds a column, and columns of a fold, with which all of time has at most `room` columns: all folds together
    take half of it, or less. The scale is the finest of those that fitting chooses from."""
    work = sum(end - start for start, end in stretches)
    count = len(stretches) - (stretches[-1][1] >= now)
    folds = min(FOLD * count, room / 2)
    finer = max(work / (room - folds) / FINEST, 1.0)
    return FINEST * _STEP ** ceil(log(finer, _STEP)), folds / max(count, 1)


def frame_of(view: View, stretches: Sequence[Interval], now: float, width: int) -> Frame:
    """The frame of a chart `width` cells wide, a quarter or 16 of which are kept free behind the present. `stretches`
    are those with activity, in order; a time from the future is as good as now."""
    shown = [(min(start, now), min(end, now)) for start, end in stretches] or [(now, now)]
    if not view.folds_idle:
        shown = [(shown[0][0], now)]
    elif shown[-1][1] > now - IDLE:
        shown[-1] = shown[-1][0], now
    room = max(width - min(16, width // 4) - _MARGIN, 1)
    fitting, fold = fit(shown, now, room)
    if not 0 < view.scale < fitting:
        return Frame(Axis(shown, now, fitting, fold), -_MARGIN, width, now)
    # Folds that had to be narrow widen with the zoom.
    axis = Axis(shown, now, view.scale, min(FOLD, fold * fitting / view.scale))
    present = axis.column(now)
    left = present - room if view.x is None else min(axis.column(view.moment) - view.x, present - 1)
    return Frame(axis, max(left, -_MARGIN), width, now, fits=False)


def ticks(frame: Frame) -> list[Tick]:
    """The cells that have names, with room between these: round moments in local time, with the date where that is
    another, and behind each fold the moment where time goes on."""
    axis, folded = frame.axis, frame.folded
    behind = {floor(fold.right - frame.left): axis.moment(fold.right) for fold in axis.folds}
    fitting = (step for step in map(int, _TICKS.split()) if step / axis.scale >= (9 if step >= 60 else 12))
    step = next(fitting, 31_536_000)  # a year
    named: list[Tick] = []
    free, known = 0, ""
    for x in range(min(frame.width, frame.present + 1)):
        start, end = axis.moment(frame.left + x), axis.moment(frame.left + x + 1)
        offset = time.localtime(end).tm_gmtoff
        at = behind.get(x) or (ceil((end + offset) / step) - 1) * step - offset
        if x < free or x in folded or not (x in behind or start <= at <= frame.now):
            continue
        local, date = time.localtime(at), day(at)
        clock = time.strftime("%H:%M:%S" if local.tm_sec and x not in behind else "%H:%M", local)
        is_day = known not in ("", date)
        named.append(Tick(x, f"{date} {clock}" if is_day else clock, is_day))
        free, known = x + len(named[-1].label) + 2, date
    return named


def day(moment: float) -> str:
    """The date of a moment."""
    local = time.localtime(moment)
    return f"{local.tm_mday} {time.strftime('%b', local)}"


# The chart


class TimelineChart(TaskTree, can_focus=True, inherit_bindings=False):
    """The chart of a tree, folded like `like` and with its cursor, and the lines around it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.CHART)

    def __init__(self, tree: Tree, clock: Callable[[], float], like: TaskTree) -> None:
        super().__init__(tree, clock)
        self.outline = like.outline.copy()
        self._is_placed = True
        self._cursor = self._begin_at = like.cursor_id
        self._activity = activity_of(tree)
        self.view = View()
        self.frame = frame_of(self.view, self._activity.stretches, clock(), 1)
        self.ruler, self.reading = Ruler(self), Reading(self)

    @property
    def names_width(self) -> int:
        """Cells of the column with the titles."""
        return self._columns.width

    def make_columns(self, width: int) -> Columns:
        return Columns(min(max(width // 3, 16), 40), note=0, state=0, agent=0, age=0)

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        self._activity = activity_of(self._tree)
        super().refresh_tasks(changed, settled=settled)

    def on_mount(self) -> None:
        if self._begin_at is not None:
            self.call_after_refresh(self.select, self._begin_at)

    def spans_of(self, task: Task) -> list[Span]:
        """The attempts and waits of a task."""
        return spans_of(task, self._activity.first.get(task.task_id))

    def _below(self, task: Task) -> Interval | None:
        """From the first sign of a task or below it to the last below it."""
        first, now = self._activity.first.get(task.task_id), self.frame.now
        if first is None or task.below is None:
            return None
        return first, now if task.below.states.get(State.WORKING) else min(task.below.active_at, now)

    # Keys

    def _show(self, view: View) -> None:
        self.view = view
        self._draw()
        self.post_message(KeysChanged())

    def _stand(self, scale: float, moment: float, x: float) -> None:
        self._show(View(self.view.folds_idle, max(scale, FINEST), moment, x))

    def action_fit(self) -> None:
        self._show(View(self.view.folds_idle))

    def action_now(self) -> None:
        self._show(self.view._replace(x=None))

    def action_fold_idle(self) -> None:
        self._show(self.view._replace(folds_idle=not self.view.folds_idle))

    def action_pan(self, steps: int) -> None:
        frame = self.frame
        self._stand(frame.axis.scale, frame.axis.moment(frame.left + steps * max(frame.width // 8, 1)), 0.0)

    def action_zoom(self, steps: int) -> None:
        """Zoom in, or out; the end of the selected bar stays in its place."""
        frame = self.frame
        x = min(max(map(frame.x, self._times()), default=frame.width / 2), frame.width)
        self._stand(frame.axis.scale / _ZOOM**steps, frame.axis.moment(frame.left + x), x)

    def action_show(self) -> None:
        """Let the selected bar fill most of the chart."""
        if xs := list(map(self.frame.x, self._times())):
            axis, width, start = self.frame.axis, self.frame.width, min(xs)
            scale = axis.scale * (max(xs) - start) / (width * 0.7)
            self._stand(scale, axis.moment(self.frame.left + start), width * 0.05)

    def _times(self) -> list[float]:
        """When the selected task, and what is below it, began and ended."""
        task, now = self.cursor_task, self.frame.now
        spans = [(span.start, span.until(now)) for span in self.spans_of(task)] if task else []
        return [at for one in (*spans, (task and self._below(task)) or ()) for at in one]

    # Drawing

    def _draw(self) -> None:
        super()._draw()
        self.ruler.redraw()
        self.reading.redraw()

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        names, width = super()._make_lines(top, palette), max(self._width - self.names_width, 1)
        self.frame = frame = frame_of(self.view, self._activity.stretches, self._clock(), width)
        if frame.fits:
            self.view = View(self.view.folds_idle)
        present, folded, marks = frame.present, frame.folded, ticks(frame)
        lines: list[Strip] = []
        rows = self.rows_in_sight(top)
        for at in range(self.size.height):
            bar, row = Canvas(width), rows[at] if at < len(rows) else None
            for mark in marks:
                bar.put(mark.x, "┊", palette.line)
            bar.put(present, "│", palette.accent)
            task = self._tree.tasks.get(row.task_id or "") if row else None
            if task is not None:
                self._draw_bar(bar, task, folded, palette)
            marked = row is not None and row.row_id == self._cursor and not palette.ansi
            base = palette.base + palette.cursor if marked else palette.base
            name = names[at] if row else [Segment(" " * self.names_width, base)]
            lines.append(Strip([*name, *(Segment(text, base + style) for text, style in bar.runs())]))
        return lines

    def _draw_bar(self, bar: Canvas, task: Task, folded: set[int], palette: Palette) -> None:
        """Draw a task: from the first to the last sign below it, its spans, and words behind the last of them."""
        frame, below, spans = self.frame, self._below(task), self.spans_of(task)
        present, end, last_style = frame.present, 0, palette.muted
        marks: list[tuple[int, str, Style]] = []

        def fill(left: int, right: int, glyph: str, style: Style) -> None:
            for x in range(max(left, 0), min(right, present, frame.width)):
                bar.put(x, "╱" if x in folded else glyph, style)

        if below is not None:
            start, until = map(frame.x, below)
            fill(floor(start), floor(max(until, start + 1)), "─", palette.muted)
        for number, span in enumerate(spans):
            left, right = floor(frame.x(span.start)), frame.x(span.until(frame.now))
            if number and span.kind is not Kind.WORK:
                # A wait begins where the bar before it is drawn to.
                left = max(left, end)
            end = max(round(right), left + 1) if span.kind is Kind.WORK else max(floor(right), left)
            is_over = span.end is not None and not task.needs_operator
            # What is over and asks for nothing recedes.
            last_style = palette.states[span.look.color] + Style(dim=is_over or None)
            rail = "━" if below is not None else "▓" if span.look.word in _BAD_WORDS else "█"
            fill(left, end, _FILLS.get(span.kind, rail), last_style)
            if span.kind is Kind.WORK and end < present and span is not spans[-1]:
                marks.append((end, span.look.glyph, last_style))
        for mark in marks:
            bar.put(*mark)
        if not spans:
            return
        last = spans[-1]
        length = times.duration(last.until(frame.now) - last.start) + ("" if last.is_certain else "+")
        words = f" {last.look.word} {length}" if last.kind is Kind.SILENT else f" {length}"
        # Behind the present where it goes on, or there is no room before it.
        x = present + 2 if last.end is None or end + 1 + len(words) > present else end
        if last.end is None and last.asks:
            bar.write(x, f"NEEDS YOU {length}", palette.needs)
        elif end >= 0:
            bar.write(x, last.look.glyph, last_style)
            bar.write(x + 1, words, Style.null() if last.end is None else palette.muted)


class Ruler(LineWidget):
    """The axis of a chart, two lines: dates and times, folded stretches, the present."""

    DEFAULT_CSS = "Ruler { height: 2; }"

    def __init__(self, chart: TimelineChart) -> None:
        super().__init__()
        self._chart = chart

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:  # noqa: ARG002 - the chart's widths count
        frame, names = self._chart.frame, self._chart.names_width
        present = frame.present
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        now = time.strftime("now %H:%M", time.localtime(frame.now))
        word = max(min(present - 1, frame.width - len(now)), 0) if 0 <= present < frame.width else frame.width
        for tick in ticks(frame):
            line.put(tick.x, "┬", palette.line)
            if tick.x + len(tick.label) < word:
                labels.write(tick.x, tick.label, palette.strong if tick.is_day else palette.muted)
        for x in frame.folded:
            line.put(x, "╱", palette.line)
        line.put(present, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        first_day = day(frame.axis.moment(max(frame.left, 0.0)))
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        legend = [Part(clip(_LEGEND[: 33 if names > 33 else 24], names - 1), palette.muted)]
        return [
            [*head, Part(" " * (names - width_of(head))), *starmap(Part, canvas.runs())]
            for head, canvas in ((title, labels), (legend, line))
        ]


class Reading(LineWidget):
    """A line about the selected task of a chart: when its latest attempt or wait was, exactly, and what it asks."""

    def __init__(self, chart: TimelineChart) -> None:
        super().__init__()
        self._chart = chart

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        task, now = self._chart.cursor_task, self._chart.frame.now
        if task is None:
            return []
        face, spans = look(task), self._chart.spans_of(task)
        color = palette.states[face.color]
        parts = [
            Part(f" {face.glyph} ", color),
            Part(clip(name_of(task), width // 3), palette.strong),
            Part(f"  {face.word}", color),
            Part(f"   {_span_words(spans[-1], now) if spans else 'no file speaks of it'}", palette.muted),
        ]
        if task.ask is not None:
            parts += [Part("   "), Part("NEEDS YOU", palette.needs), Part(" ")]
            parts.append(Part(clip_sentence(in_line(task, task.ask), width - width_of(parts))))
        return [parts]


def _span_words(span: Span, now: float) -> str:
    """When an attempt or a wait began and ended, and how long it took."""
    start, length = times.clock(span.start, now), times.span(span.until(now) - span.start)
    if span.kind is Kind.WORK:
        return f"{start} → {'now' if span.end is None else times.clock(span.end, now)}  {length}"
    waits = "waits for you" if span.asks else "waits"
    words = {Kind.WAIT: waits, Kind.SILENT: span.look.word}.get(span.kind, "handed off, no sign of life")
    return f"{words} since {start}, {length}"


class TimelineScreen(MonitorScreen[str]):
    """Shows the tasks of a tree over time; ends with the id of a task to go to, None if there is none."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.TIMELINE)

    def __init__(self, monitor: Monitor, clock: Callable[[], float], tree: TaskTree) -> None:
        super().__init__(monitor, clock)
        self._tree = tree
        self.chart = TimelineChart(monitor.tree, clock, tree)
        self.footer = Footer(Place.TIMELINE, self.is_out_of_question, self._is_on)

    @property
    def task_id(self) -> str | None:
        return self.chart.cursor_id

    @property
    def marked(self) -> tuple[str, ...]:
        return self._tree.marked

    def compose(self) -> ComposeResult:
        yield from (self.header, self.chart.ruler, self.chart, self.chart.reading, self.footer)

    def on_mount(self) -> None:
        self.chart.focus()

    def tick(self) -> None:
        super().tick()
        self.chart.tick()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self.chart.refresh_tasks(event.changed, settled=event.settled)

    @on(TaskTree.Selected)
    def _take_selection(self) -> None:
        self.chart.reading.redraw()
        self.footer.redraw()

    def _is_on(self, command_id: str) -> bool:
        view, fits = self.chart.view, self.chart.frame.fits
        on = {"timeline.now": fits or view.x is None, "timeline.fit": fits, "timeline.idle": view.folds_idle}
        return on.get(command_id, False)

    @on(TaskTree.Opened)
    def action_open(self) -> None:
        self.leave(self.task_id)

    def action_back(self) -> None:
        self.leave()

    def action_timeline(self) -> None:
        self.leave()
