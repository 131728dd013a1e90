"""The timeline: each task of the tree has a bar over time. A line below tells more about the selected task.

The axis is linear, but long idle times are folded to a few columns.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum, auto
from itertools import pairwise, starmap
from math import ceil, floor, log
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.reactive import var
from textual.strip import Strip

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.screens.base import MonitorScreen
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.line import Canvas, LineWidget, Part, Parts, clip, clip_sentence, width_of
from agentwatch.app.widgets.task_line import Columns
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.delegation.task import Attempt, Shown, State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.view.words import ASKS, LOOKS, Look, ask_line, clock, ended_at, long_span, look_of, name_of, short_span

Interval = tuple[float, float]  # start and end, in epoch seconds or in columns

_LONGEST = 12 * 3_600.0  # seconds: only the beginning and the end of a longer attempt count as work


class Kind(Enum):
    """The activity of a task during a span of time."""

    WORK = auto()
    QUEUE = auto()  # handed off, but no sign of life yet
    SILENT = auto()  # no sign of life for too long, or nothing is known
    WAIT = auto()  # waits for the next attempt or for the operator


class Span(NamedTuple):
    """A span of time with one activity of a task, in epoch seconds. `end` is None while the span goes on.

    `number` is the number of the attempt. A wait gets the number of the attempt before it.
    """

    start: float
    end: float | None
    kind: Kind
    look: Look
    number: int
    asks: bool = False  # whether the wait is for the operator

    def until(self, now: float) -> float:
        """Return the end of the span, or `now` if the span has not ended."""
        return max(self.start, now if self.end is None else min(self.end, now))


def _first_and_last_sign(attempt: Attempt) -> Interval | None:
    """Return the times of the first and the last sign of life of an attempt, or None if there is no sign."""
    handoff, returned, start, run = attempt.handoff, attempt.returned, attempt.started_at, attempt.run
    signs = [version.at for version in (handoff, returned) if version]
    if returned:
        first, last = min(signs), max(signs) if attempt.state is State.WORKING else returned.at
    elif run:
        # The run has the times, even if handoff and return are not files but words in a session.
        first, last = run.started_at, run.updated_at if run.ended_at is None else run.ended_at
    elif signs:
        first = last = signs[0]
    else:
        return None
    if start is not None and (attempt.again or start < first):
        first = start
    # A file may name any time. Replace times before 1970 by 0.
    return max(first, 0.0), max(last, 0.0)


def spans_of(task: Task) -> list[Span]:
    """Return the spans of a task in the order of time. Return [] if nothing is known of the task."""
    attempts = [(one, *signs) for one in task.attempts if (signs := _first_and_last_sign(one))]
    if not attempts:
        return []
    spans: list[Span] = []
    for (one, start, last), (_, next_start, _) in pairwise(attempts):
        face, is_queued = LOOKS[one.state], one.state is State.SUBMITTED
        end = next_start if is_queued else last
        spans.append(Span(start, end, Kind.QUEUE if is_queued else Kind.WORK, face, one.number))
        if next_start > end:
            spans.append(Span(end, next_start, Kind.WAIT, face, one.number))
    spans += _spans_of_latest(task, *attempts[-1])
    newest = spans[-1]
    if newest.end is None and task.state is State.UNKNOWN and task.lost_since is not None:
        heard = max(newest.start, task.lost_since)
        spans[-1:] = [newest._replace(end=heard), Span(heard, None, Kind.SILENT, LOOKS[State.UNKNOWN], newest.number)]
    return [part for span in spans for part in _split_at_waits(span, task)]


def _split_at_waits(span: Span, task: Task) -> Iterator[Span]:
    """Yield the parts of a span. A span of work is split where the task waited for the answer to a request."""
    waits = sorted((one.asked_at, span.until(one.ended_at), one.kind) for one in task.requests if one.ended_at)
    for asked, answered, kind in waits if span.kind is Kind.WORK else ():
        if (start := max(asked, span.start)) < answered:
            yield span._replace(end=start, look=span.look._replace(glyph=ASKS[kind].glyph))
            yield Span(start, answered, Kind.WAIT, ASKS[kind], span.number, asks=True)
            span = span._replace(start=answered)
    yield span


def _spans_of_latest(task: Task, attempt: Attempt, start: float, last: float) -> Iterator[Span]:
    number, state, ended = attempt.number, task.known_state, ended_at(task, attempt)
    face = LOOKS[state] if task.state is State.UNKNOWN else look_of(task)
    if task.shown in (Shown.SILENT, Shown.GONE, Shown.WAITING) and ended is None:
        stopped, kind = max(start, task.since or 0.0), Kind.WAIT if task.shown is Shown.WAITING else Kind.SILENT
        if stopped > start:
            yield Span(start, stopped, Kind.WORK, LOOKS[State.WORKING], number)
        yield Span(stopped, None, kind, face, number)
    elif state is State.WORKING:
        yield Span(start, None, Kind.WORK, face, number)
    elif attempt.state is State.SUBMITTED:
        yield Span(start, None if ended is None else max(ended, start), Kind.QUEUE, face, number)
    else:
        # A program with a request has worked until it asked.
        last = max(start, task.since or 0.0) if task.request else max(ended or last, last)
        yield Span(start, last, Kind.WORK, face, number)
        if task.needs_operator or state in (State.RETRYING, State.ESCALATED):
            yield Span(last, None, Kind.WAIT, face, number, asks=task.needs_operator)


def latest_span(spans: Sequence[Span]) -> Span:
    """Return the last span. If it is work, extend it back to the start of its attempt."""
    last = spans[-1]
    began = next(one.start for one in spans if one.number == last.number)
    return last._replace(start=began) if last.kind is Kind.WORK else last


def busy_times(task: Task) -> tuple[Interval, ...]:
    """Return the intervals in which the task is known to have worked. A parent task may have
    waited for its children. So it has only intervals of length 0, at the beginning and the end of each attempt."""
    times: list[Interval] = []
    for attempt, (start, last) in ((one, signs) for one in task.attempts if (signs := _first_and_last_sign(one))):
        end = max(last, task.updated_at) if attempt is task.attempts[-1] else last
        if task.children or end - start > _LONGEST or attempt.state is State.SUBMITTED:
            times += [(start, start), (end, end)]
        else:
            times.append((start, end))
    return tuple(times)


# Times to columns and back


class Axis:
    """Maps times to columns. A column is `scale` seconds. Column 0 is the start of the first stretch of work.

    A pause between two stretches takes at most `fold` columns.
    """

    def __init__(self, stretches: Sequence[Interval], now: float, scale: float, fold: float):
        self.scale = scale
        self.folds: list[Interval] = []  # the shortened pauses, in columns
        busy = [*stretches, (now, now)] if not stretches or now > stretches[-1][1] else stretches
        self._times = [busy[0][0], busy[0][1]]
        self._columns = [0.0, (busy[0][1] - busy[0][0]) / scale]
        for (_, end), (start, until) in pairwise(busy):
            left, pause = self._columns[-1], (start - end) / scale
            column = left + min(pause, fold)
            if pause > fold:
                self.folds.append((left, column))
            self._times += [start, until]
            self._columns += [column, column + (until - start) / scale]

    def column_at(self, moment: float) -> float:
        """Return the column of a time."""
        return _interpolate(moment, self._times, self._columns, 1 / self.scale)

    def time_at(self, column: float) -> float:
        """Return the time at a column."""
        return _interpolate(column, self._columns, self._times, self.scale)


def _interpolate(value: float, known: list[float], wanted: list[float], slope: float) -> float:
    """Map a value from `known` to `wanted` points. Interpolate between points. Use `slope` outside of all points."""
    if value <= known[0]:
        return wanted[0] + (value - known[0]) * slope
    if value >= known[-1]:
        return wanted[-1] + (value - known[-1]) * slope
    after = bisect_right(known, value)
    low, high = known[after - 1], known[after]
    return wanted[after - 1] + (value - low) / (high - low) * (wanted[after] - wanted[after - 1])


IDLE = 600.0  # seconds: a longer time without a sign of life from any task is idle time
FOLD = 9.0  # the most columns of a folded idle time
FINEST = 0.05  # the fewest seconds that a column stands for
# `fit_scale` chooses among scales that differ by this factor. With a larger factor, the picture changes less often.
_STEP = 1.15
# Possible seconds between two ticks. The smallest number that leaves room for the labels is used.
_TICKS = "1 2 5 10 15 30 60 120 300 600 900 1800 3600 7200 10800 21600 43200 86400 172800 604800 2592000"
_ZOOM = 1.5
_MARGIN = 1  # columns before the first sign of life
_FILLS = {Kind.QUEUE: "╌", Kind.SILENT: "░", Kind.WAIT: "┄"}
_FAILED_WORDS = frozenset({"failed", "invalid", "blocked", "false"})
_LEGEND = " █ work ▓ failed ┄ waits ░ silent"
_ENDED = Style(dim=True)  # added to the style of a span that is over, if the task does not need the operator


def stretches_of(tree: Tree) -> list[Interval]:
    """Return the stretches of time in which any task worked, in epoch seconds. Short pauses count as work."""
    stretches: list[Interval] = []
    for start, end in sorted(one for task in tree.tasks.values() for one in busy_times(task)):
        if stretches and start <= stretches[-1][1] + IDLE:
            stretches[-1] = stretches[-1][0], max(end, stretches[-1][1])
        else:
            stretches.append((start, end))
    return stretches


# The part of the time on screen


class View(NamedTuple):
    """The part of time that the operator wants to see. A column is `scale` seconds. A `scale` of 0 shows all of time.

    Without `x`, the present is at the right. With `x`, the time `moment` is at the cell `x`. `folds_idle` tells whether
    long idle times are folded.
    """

    folds_idle: bool = True
    scale: float = 0.0
    moment: float = 0.0
    x: float | None = None


class Frame(NamedTuple):
    """The visible part of an axis: `width` cells from the column `left` on. `fits` tells if all of time is visible."""

    axis: Axis
    left: float
    width: int
    now: float
    fits: bool = True

    def cell_at(self, moment: float) -> float:
        """Return the place of a time, in cells from the left edge of the chart."""
        return self.axis.column_at(moment) - self.left

    def time_at(self, x: float) -> float:
        """Return the time at a cell."""
        return self.axis.time_at(self.left + x)

    @property
    def present_cell(self) -> int:
        """The cell of the time `now`."""
        return floor(self.cell_at(self.now))

    @property
    def folded_cells(self) -> set[int]:
        """The cells of folded idle times."""
        edges = ((floor(left - self.left) + 1, floor(right - self.left)) for left, right in self.axis.folds)
        return {x for left, right in edges for x in range(max(left, 0), min(right, self.width))}


def fit_scale(stretches: Sequence[Interval], now: float, room: float) -> tuple[float, float]:
    """Return a scale (seconds per column), and how many columns a folded idle time has. The scale
    is the finest at which the session fits into `room` columns. All folds together take at most half of the room."""
    work = sum(end - start for start, end in stretches)
    count = len(stretches) - (stretches[-1][1] >= now)
    folds = min(FOLD * count, room / 2)
    finer = max(work / (room - folds) / FINEST, 1.0)
    return FINEST * _STEP ** ceil(log(finer, _STEP)), folds / max(count, 1)


def make_frame(view: View, stretches: Sequence[Interval], now: float, width: int) -> Frame:
    """Return the frame that shows a view in `width` cells. Some cells to the right of the present stay free.
    `stretches` are the times with activity, in order. A time in the future counts as now."""
    shown = [(min(start, now), min(end, now)) for start, end in stretches] or [(now, now)]
    if not view.folds_idle:
        shown = [(shown[0][0], now)]
    elif shown[-1][1] > now - IDLE:
        shown[-1] = shown[-1][0], now
    room = max(width - min(16, width // 4) - _MARGIN, 1)
    fitting, fold = fit_scale(shown, now, room)
    scale = min(view.scale or fitting, fitting)
    # `fit_scale` may have made the folds narrower. Zooming in makes them wider again.
    axis, fits = Axis(shown, now, scale, min(FOLD, fold * fitting / scale)), scale == fitting
    present = axis.column_at(now)
    left = present - room if fits or view.x is None else min(axis.column_at(view.moment) - view.x, present - 1)
    return Frame(axis, max(left, -_MARGIN), width, now, fits)


def tick_labels(frame: Frame) -> dict[int, str]:
    """Return the labels of the axis (round local times) by cell. The first label of a new day has the date, too."""
    scale, folded = frame.axis.scale, frame.folded_cells
    step = next((step for step in map(int, _TICKS.split()) if step / scale >= (9 if step >= 60 else 12)), 31_536_000)
    named: dict[int, str] = {}
    free, known = 0, ""
    for x in range(min(frame.width, frame.present_cell + 1)):
        start, end = frame.time_at(x), frame.time_at(x + 1)
        offset = time.localtime(end).tm_gmtoff
        at = (ceil((end + offset) / step) - 1) * step - offset
        if x >= free and x not in folded and start <= at <= frame.now:
            date, clock = day_words(at), time.strftime("%H:%M" if step >= 60 else "%H:%M:%S", time.localtime(at))
            named[x] = clock if known in ("", date) else f"{date} {clock}"
            free, known = x + len(named[x]) + 2, date
    return named


def day_words(moment: float) -> str:
    """Return the date of a time, such as `3 May`."""
    return time.strftime("%d %b", time.localtime(moment)).lstrip("0")


# The chart


class TimelineChart(TaskTree, can_focus=True, inherit_bindings=False):
    """The chart with the bars. At first, folds and cursor are the same as in `main_tree`."""

    BINDINGS = bindings(Home.CHART)

    view: var[View] = var(View(), init=False)

    def __init__(self, tree: Tree, clock: Callable[[], float], main_tree: TaskTree):
        super().__init__(tree, clock)
        self.order, self.folds = main_tree.order, main_tree.folds
        self._is_placed = True
        self._row_id = self._first_task_id = main_tree.cursor_id
        self._stretches = stretches_of(tree)
        self.frame = make_frame(self.view, self._stretches, clock(), 1)
        self.ruler, self.selected_line = LineWidget(self._axis_parts), LineWidget(self._selected_lines)
        self.ruler.styles.height = 2

    @property
    def names_width(self) -> int:
        """The width of the column with the titles, in cells."""
        return self._columns.width

    def make_columns(self, width: int) -> Columns:
        return Columns(min(max(width // 3, 16), 40), note=0, state=0, agent=0, age=0)

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        self._stretches = stretches_of(self._tree)
        super().refresh_tasks(changed, settled=settled)

    def on_mount(self) -> None:
        if self._first_task_id is not None:
            self.call_after_refresh(self.select, self._first_task_id)

    # Keys

    def _set_view(self, view: View) -> None:
        self.view = view
        self.redraw()

    def _move_time(self, scale: float, at: float, x: float) -> None:
        """Move the time at the cell `at` to the cell `x`, and show `scale` seconds per column."""
        self._set_view(View(self.view.folds_idle, max(scale, FINEST), self.frame.time_at(at), x))

    def action_fit(self) -> None:
        self._set_view(View(self.view.folds_idle))

    def action_now(self) -> None:
        self._set_view(self.view._replace(x=None))

    def action_fold_idle(self) -> None:
        self._set_view(self.view._replace(folds_idle=not self.view.folds_idle))

    def action_pan(self, steps: int) -> None:
        self._move_time(self.frame.axis.scale, steps * max(self.frame.width // 8, 1), 0.0)

    def action_zoom(self, steps: int) -> None:
        """Zoom in (`steps` 1) or out (-1). The end of the selected bar stays in its place."""
        x = min(max(self._span_ends()), self.frame.width)
        self._move_time(self.frame.axis.scale / _ZOOM**steps, x, x)

    def action_show(self) -> None:
        """Zoom so that the selected bar fills most of the chart."""
        (start, *_, end), width = sorted(self._span_ends()), self.frame.width
        self._move_time(self.frame.axis.scale * (end - start) / (width * 0.7), start, width * 0.05)

    def _span_ends(self) -> list[float]:
        """Return the cells at which the selected task's spans begin or end, and the cell of the last activity below."""
        task, now = self.cursor_task, self.frame.now
        ends = [at for span in (spans_of(task) if task else ()) for at in (span.start, span.until(now))]
        ends += [task.below.active_at] if task and task.below and ends else []
        return list(map(self.frame.cell_at, ends)) or [0.0, self.frame.cell_at(now)]

    # Drawing

    def redraw(self) -> None:
        super().redraw()
        self.ruler.redraw()
        self.selected_line.redraw()

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        names, width = super()._make_lines(top, palette), max(self._width - self.names_width, 1)
        self.frame = frame = make_frame(self.view, self._stretches, self._clock(), width)
        if frame.fits:
            self.view = View(self.view.folds_idle)
        names += [Strip.blank(self.names_width, palette.base)] * (self.size.height - len(names))
        bars, named, folded = [Canvas(width) for _ in names], tick_labels(frame), frame.folded_cells
        for bar in bars:
            for x in named:
                bar.put_glyph(x, "┊", palette.line)
            bar.put_glyph(frame.present_cell, "│", palette.accent)
        for row, bar in zip(self.rows_in_sight(top), bars, strict=False):
            if (task := self._tree.tasks.get(row.task_id or "")) is not None:
                draw_bar(bar, frame, folded, task, palette)
        marked = -1 if palette.ansi else self._row - top
        bases = [palette.base + palette.cursor if y == marked else palette.base for y in range(len(names))]
        return [
            Strip([*name, *(Segment(text, base + style) for text, style in bar.styled_pieces())])
            for name, bar, base in zip(names, bars, bases, strict=True)
        ]

    def _axis_parts(self, _width: int, palette: Palette) -> list[Parts]:
        """Return the two lines of the axis: dates and times, then ticks, folded idle times and the present."""
        frame, names = self.frame, self.names_width
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        now = time.strftime("now %H:%M", time.localtime(frame.now))
        word = (
            max(min(frame.present_cell - 1, frame.width - len(now)), 0)
            if frame.present_cell < frame.width
            else frame.width
        )
        for x in frame.folded_cells:
            line.put_glyph(x, "╱", palette.line)
        for x, label in tick_labels(frame).items():
            line.put_glyph(x, "┬", palette.line)
            if x + len(label) < word:
                labels.write(x, label, palette.strong if " " in label else palette.muted)
        line.put_glyph(frame.present_cell, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        first_day = day_words(frame.time_at(max(-frame.left, 0.0)))
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        legend = [Part(clip(_LEGEND[: 33 if names > 33 else 24], names - 1), palette.muted)]
        return [
            [*head, Part(" " * (names - width_of(head))), *starmap(Part, canvas.styled_pieces())]
            for head, canvas in ((title, labels), (legend, line))
        ]

    def _selected_lines(self, width: int, palette: Palette) -> list[Parts]:
        if (task := self.cursor_task) is None:
            return []
        face, spans = look_of(task), spans_of(task)
        words = span_words(latest_span(spans), self.frame.now) if spans else "no file speaks of it"
        parts = [
            Part(f" {face.glyph} ", palette.states[face.color]),
            Part(clip(name_of(task), width // 3), palette.strong),
            Part(f"  {face.word}", palette.states[face.color]),
            Part(f"   {words}", palette.muted),
        ]
        if task.ask is not None:
            parts += [Part("   "), Part("NEEDS YOU", palette.needs_you), Part(" ")]
            parts.append(Part(clip_sentence(ask_line(task, task.ask), width - width_of(parts))))
        return [parts]


def draw_bar(bar: Canvas, frame: Frame, folded: set[int], task: Task, palette: Palette) -> None:
    """Draw the spans of a task, and words to the right of the last span."""
    spans, present = spans_of(task), frame.present_cell
    # Draw the last span first, so that work covers the beginning of the wait that follows.
    for span in reversed(spans):
        left, right, is_open = floor(frame.cell_at(span.start)), frame.cell_at(span.until(frame.now)), span.end is None
        end = max(round(right), left + 1) if span.kind is Kind.WORK else max(floor(right), left)
        style = palette.states[span.look.color]
        if not (is_open or task.needs_operator):
            style += _ENDED
        rail = "━" if task.below else "▓" if span.look.word in _FAILED_WORDS else "█"
        for x in range(max(left, 0), min(end, present, frame.width)):
            bar.put_glyph(x, "╱" if x in folded else _FILLS.get(span.kind, rail), style)
        if span.kind is Kind.WORK and end < present:
            bar.put_glyph(end, span.look.glyph, style)
        if span is not spans[-1]:
            continue
        length = short_span(span.until(frame.now) - latest_span(spans).start)
        words = f" {span.look.word} {length}" if span.kind is Kind.SILENT else f" {length}"
        if is_open and span.asks:
            bar.write(present + 2, f"NEEDS YOU {length}", palette.needs_you)
        else:
            # The words go to the right of the present if the span goes on, or if they do not fit to its left.
            x = present + 2 if is_open or end + 1 + len(words) > present else end
            bar.write(x, span.look.glyph, style)
            bar.write(x + 1, words, Style.null() if is_open else palette.muted)


def span_words(span: Span, now: float) -> str:
    """Return words on the beginning, the end and the length of a span."""
    start, length = clock(span.start, now), long_span(span.until(now) - span.start)
    if span.kind is Kind.WORK:
        return f"{start} → {'now' if span.end is None else clock(span.end, now)}  {length}"
    waits = "waits for you" if span.asks else "waits"
    words = {Kind.WAIT: waits, Kind.SILENT: span.look.word}.get(span.kind, "handed off, no sign of life")
    return f"{words} since {start}, {length}"


class TimelineScreen(MonitorScreen[str]):
    """Shows the tasks of a tree over time. The result is the id of the task to go to, or None."""

    BINDINGS = bindings(Home.TIMELINE)

    def __init__(self, monitor: Monitor, clock: Callable[[], float], tree: TaskTree):
        super().__init__(monitor, clock)
        self.chart = TimelineChart(monitor.tree, clock, tree)
        self.footer = Footer(Place.TIMELINE, self.is_hidden_or_refused, self._is_on)

    @property
    def task_id(self) -> str | None:
        return self.chart.cursor_id

    def compose(self) -> ComposeResult:
        header = self.header.data_bind(MonitorScreen.facts)
        yield from (header, self.chart.ruler, self.chart, self.chart.selected_line, self.footer)

    def on_mount(self) -> None:
        self.set_focus(self.chart)
        self.watch(self.chart, "cursor_id", self._show_selected)
        self.watch(self.chart, "view", self._show_keys)

    def tick(self) -> None:
        super().tick()
        self.chart.tick()
        self.chart.redraw()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self.chart.refresh_tasks(event.changed, settled=event.settled)

    def _show_selected(self) -> None:
        self.chart.selected_line.redraw()
        self.footer.redraw()

    async def _show_keys(self) -> None:
        # Textual runs a coroutine later than a function. By then, the frame that the footer needs is made.
        self.footer.redraw()

    def _is_on(self, command_id: str) -> bool:
        view, fits = self.chart.view, self.chart.frame.fits
        on = {"timeline.now": view.x is None, "timeline.fit": fits, "timeline.idle": view.folds_idle}
        return on.get(command_id, False)

    def action_open(self) -> None:
        self.leave(self.task_id)

    action_timeline = MonitorScreen.action_back
