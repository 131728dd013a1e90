"""The session over time: a bar for each row of the tree on a common axis, and the selected task in words.

The axis is linear, except that idle stretches are folded to a few columns.
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
from agentwatch.view.words import ASKS, LOOKS, Look, clock, duration, ended_at, in_line, in_units, look, name_of

Interval = tuple[float, float]  # start and end, in epoch seconds or in columns

_LONGEST = 12 * 3_600.0  # seconds: in a longer attempt, only the two ends are known to have been work


class Kind(Enum):
    """The activity during a span."""

    WORK = auto()
    QUEUE = auto()  # handed off, no sign of life
    SILENT = auto()  # should work but is silent for too long, or nothing is known of it
    WAIT = auto()  # waits for the next attempt or for the operator


class Span(NamedTuple):
    """A span of time in epoch seconds; `end` is None while it goes on. `number` is its attempt, or the one before a
    wait."""

    start: float
    end: float | None
    kind: Kind
    look: Look
    number: int
    asks: bool = False  # whether the wait is for the operator

    def until(self, now: float) -> float:
        """Return the end of the span as seen at `now`, never before its start."""
        return max(self.start, now if self.end is None else min(self.end, now))


def _signs(attempt: Attempt) -> Interval | None:
    """Return the first sign of an attempt, and its return or last sign; None without any sign."""
    handoff, returned, start, run = attempt.handoff, attempt.returned, attempt.started_at, attempt.run
    signs = [version.at for version in (handoff, returned) if version]
    if returned:
        first, last = min(signs), max(signs) if attempt.state is State.WORKING else returned.at
    elif run:
        # The session store has the times, also of attempts whose handoff and return are prose.
        first, last = run.started_at, run.updated_at if run.ended_at is None else run.ended_at
    elif signs:
        first = last = signs[0]
    else:
        return None
    if start is not None and (attempt.again or start < first):
        first = start
    # A file may claim a time before the epoch, even one that no calendar has.
    return max(first, 0.0), max(last, 0.0)


def spans_of(task: Task) -> list[Span]:
    """Return the spans of a task in the order of its attempts, [] if it has no sign."""
    attempts = [(one, *signs) for one in task.attempts if (signs := _signs(one))]
    if not attempts:
        return []
    spans: list[Span] = []
    for (one, start, last), (_, following, _) in pairwise(attempts):
        face, is_queued = LOOKS[one.state], one.state is State.SUBMITTED
        end = following if is_queued else last
        spans.append(Span(start, end, Kind.QUEUE if is_queued else Kind.WORK, face, one.number))
        if following > end:
            spans.append(Span(end, following, Kind.WAIT, face, one.number))
    spans += _latest(task, *attempts[-1])
    newest = spans[-1]
    if newest.end is None and task.state is State.UNKNOWN and task.lost_since is not None:
        heard = max(newest.start, task.lost_since)
        spans[-1:] = [newest._replace(end=heard), Span(heard, None, Kind.SILENT, LOOKS[State.UNKNOWN], newest.number)]
    return [part for span in spans for part in _parts(span, task)]


def _parts(span: Span, task: Task) -> Iterator[Span]:
    """Yield a span, with work split at waits for answers to requests. Work before a wait ends with its mark."""
    waits = sorted((one.asked_at, span.until(one.ended_at), one.kind) for one in task.requests if one.ended_at)
    for asked, answered, kind in waits if span.kind is Kind.WORK else ():
        if (start := max(asked, span.start)) < answered:
            yield span._replace(end=start, look=span.look._replace(glyph=ASKS[kind].glyph))
            yield Span(start, answered, Kind.WAIT, ASKS[kind], span.number, asks=True)
            span = span._replace(start=answered)
    yield span


def _latest(task: Task, attempt: Attempt, start: float, last: float) -> Iterator[Span]:
    number, state, ended = attempt.number, task.known_state, ended_at(task, attempt)
    face = LOOKS[state] if task.state is State.UNKNOWN else look(task)
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
        # A program that asks has worked until it asked, whatever its last other sign.
        last = max(start, task.since or 0.0) if task.request else max(ended or last, last)
        yield Span(start, last, Kind.WORK, face, number)
        if task.needs_operator or state in (State.RETRYING, State.ESCALATED):
            yield Span(last, None, Kind.WAIT, face, number, asks=task.needs_operator)


def latest_span(spans: Sequence[Span]) -> Span:
    """Return the last span; if it is work, extended to the start of its attempt, including waits for answers."""
    last = spans[-1]
    began = next(one.start for one in spans if one.number == last.number)
    return last._replace(start=began) if last.kind is Kind.WORK else last


def busy_times(task: Task) -> tuple[Interval, ...]:
    """Return the intervals in which the task is known to have worked; a single sign is an interval of length 0.

    For a task with tasks below it, only its signs count, because it waits while all of them wait.
    """
    times: list[Interval] = []
    for attempt, (start, last) in ((one, signs) for one in task.attempts if (signs := _signs(one))):
        end = max(last, task.updated_at) if attempt is task.attempts[-1] else last
        if task.children or end - start > _LONGEST or attempt.state is State.SUBMITTED:
            times += [(start, start), (end, end)]
        else:
            times.append((start, end))
    return tuple(times)


# Times to columns and back


class Axis:
    """Maps time to columns, with 0 at the first sign and `scale` seconds to a column.

    A pause between the stretches takes at most `fold` columns.
    """

    def __init__(self, stretches: Sequence[Interval], now: float, scale: float, fold: float):
        self.scale = scale
        self.folds: list[Interval] = []  # the columns of the pauses that were shortened
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

    def column(self, moment: float) -> float:
        """Return the column of a time."""
        return _between(moment, self._times, self._columns, 1 / self.scale)

    def moment(self, column: float) -> float:
        """Return the time at a column."""
        return _between(column, self._columns, self._times, self.scale)


def _between(value: float, known: list[float], wanted: list[float], slope: float) -> float:
    """Interpolate between the known points, and extrapolate with `slope` before the first and after the last."""
    if value <= known[0]:
        return wanted[0] + (value - known[0]) * slope
    if value >= known[-1]:
        return wanted[-1] + (value - known[-1]) * slope
    after = bisect_right(known, value)
    low, high = known[after - 1], known[after]
    return wanted[after - 1] + (value - low) / (high - low) * (wanted[after] - wanted[after - 1])


IDLE = 600.0  # seconds without a sign of any task, from which on a stretch of time counts as idle
FOLD = 9.0  # the most columns of a folded idle stretch
FINEST = 0.05  # the fewest seconds of a column
# The factor between two scales that `fit` chooses from, so that the picture is still until it is full.
_STEP = 1.15
# Possible seconds between two ticks; the first that leaves room for the labels is taken.
_TICKS = "1 2 5 10 15 30 60 120 300 600 900 1800 3600 7200 10800 21600 43200 86400 172800 604800 2592000"
_ZOOM = 1.5
_MARGIN = 1  # columns before the first sign
_FILLS = {Kind.QUEUE: "╌", Kind.SILENT: "░", Kind.WAIT: "┄"}
_BAD_WORDS = frozenset({"failed", "invalid", "blocked", "false"})
_LEGEND = " █ work ▓ failed ┄ waits ░ silent"
_OVER = Style(dim=True)  # the style of a bar that has ended and asks nothing


def stretches_of(tree: Tree) -> list[Interval]:
    """Return the stretches of time between idle times, of all tasks together, in epoch seconds."""
    stretches: list[Interval] = []
    for start, end in sorted(one for task in tree.tasks.values() for one in busy_times(task)):
        if stretches and start <= stretches[-1][1] + IDLE:
            stretches[-1] = stretches[-1][0], max(end, stretches[-1][1])
        else:
            stretches.append((start, end))
    return stretches


# The view on an axis


class View(NamedTuple):
    """The part of time that the operator wants to see: all of it (`scale` 0), or `scale` seconds to a column, with the
    present at the right or, if `x` is given, `moment` at the cell `x`. `folds_idle`: fold long idle stretches."""

    folds_idle: bool = True
    scale: float = 0.0
    moment: float = 0.0
    x: float | None = None


class Frame(NamedTuple):
    """The part of an axis on screen at `now`: `width` cells from the column `left` on; `fits` if it is all of time."""

    axis: Axis
    left: float
    width: int
    now: float
    fits: bool = True

    def x(self, moment: float) -> float:
        """Return the place of a time, in cells from the left edge."""
        return self.axis.column(moment) - self.left

    def moment(self, x: float) -> float:
        """Return the time at a cell."""
        return self.axis.moment(self.left + x)

    @property
    def present(self) -> int:
        """The cell of the time `now`."""
        return floor(self.x(self.now))

    @property
    def folded(self) -> set[int]:
        """The cells of folded stretches."""
        edges = ((floor(left - self.left) + 1, floor(right - self.left)) for left, right in self.axis.folds)
        return {x for left, right in edges for x in range(max(left, 0), min(right, self.width))}


def fit(stretches: Sequence[Interval], now: float, room: float) -> tuple[float, float]:
    """Return the finest scale (seconds to a column) and the columns of a fold with which all of time fits into `room`
    columns. Folds together take at most half of them."""
    work = sum(end - start for start, end in stretches)
    count = len(stretches) - (stretches[-1][1] >= now)
    folds = min(FOLD * count, room / 2)
    finer = max(work / (room - folds) / FINEST, 1.0)
    return FINEST * _STEP ** ceil(log(finer, _STEP)), folds / max(count, 1)


def frame_of(view: View, stretches: Sequence[Interval], now: float, width: int) -> Frame:
    """Return the frame of a chart of `width` cells, of which a quarter, at most 16, stay free behind the present.
    `stretches` are those with activity, in order; a time in the future counts as now."""
    shown = [(min(start, now), min(end, now)) for start, end in stretches] or [(now, now)]
    if not view.folds_idle:
        shown = [(shown[0][0], now)]
    elif shown[-1][1] > now - IDLE:
        shown[-1] = shown[-1][0], now
    room = max(width - min(16, width // 4) - _MARGIN, 1)
    fitting, fold = fit(shown, now, room)
    scale = min(view.scale or fitting, fitting)
    # Folds that were narrowed to fit widen with the zoom.
    axis, fits = Axis(shown, now, scale, min(FOLD, fold * fitting / scale)), scale == fitting
    present = axis.column(now)
    left = present - room if fits or view.x is None else min(axis.column(view.moment) - view.x, present - 1)
    return Frame(axis, max(left, -_MARGIN), width, now, fits)


def ticks(frame: Frame) -> dict[int, str]:
    """Return labels for cells, with room between them: round local times, with the date if it differs from the last."""
    scale, folded = frame.axis.scale, frame.folded
    step = next((step for step in map(int, _TICKS.split()) if step / scale >= (9 if step >= 60 else 12)), 31_536_000)
    named: dict[int, str] = {}
    free, known = 0, ""
    for x in range(min(frame.width, frame.present + 1)):
        start, end = frame.moment(x), frame.moment(x + 1)
        offset = time.localtime(end).tm_gmtoff
        at = (ceil((end + offset) / step) - 1) * step - offset
        if x >= free and x not in folded and start <= at <= frame.now:
            date, clock = day(at), time.strftime("%H:%M" if step >= 60 else "%H:%M:%S", time.localtime(at))
            named[x] = clock if known in ("", date) else f"{date} {clock}"
            free, known = x + len(named[x]) + 2, date
    return named


def day(moment: float) -> str:
    """Return the date of a time, `3 May`."""
    return time.strftime("%d %b", time.localtime(moment)).lstrip("0")


# The chart


class TimelineChart(TaskTree, can_focus=True, inherit_bindings=False):
    """The chart of a tree, with folds and cursor of the tree `like`, and the lines around it."""

    BINDINGS = bindings(Home.CHART)

    view: var[View] = var(View(), init=False)

    def __init__(self, tree: Tree, clock: Callable[[], float], like: TaskTree):
        super().__init__(tree, clock)
        self.order, self.folds = like.order, like.folds
        self._is_placed = True
        self._cursor = self._begin_at = like.cursor_id
        self._stretches = stretches_of(tree)
        self.frame = frame_of(self.view, self._stretches, clock(), 1)
        self.ruler, self.reading = LineWidget(self._axis_lines), LineWidget(self._reading_lines)
        self.ruler.styles.height = 2

    @property
    def names_width(self) -> int:
        """The cells of the column with the titles."""
        return self._columns.width

    def make_columns(self, width: int) -> Columns:
        return Columns(min(max(width // 3, 16), 40), note=0, state=0, agent=0, age=0)

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        self._stretches = stretches_of(self._tree)
        super().refresh_tasks(changed, settled=settled)

    def on_mount(self) -> None:
        if self._begin_at is not None:
            self.call_after_refresh(self.select, self._begin_at)

    # Keys

    def _show(self, view: View) -> None:
        self.view = view
        self.redraw()

    def _stand(self, scale: float, at: float, x: float) -> None:
        """Move the time at the cell `at` to the cell `x`, with `scale` seconds to a column."""
        self._show(View(self.view.folds_idle, max(scale, FINEST), self.frame.moment(at), x))

    def action_fit(self) -> None:
        self._show(View(self.view.folds_idle))

    def action_now(self) -> None:
        self._show(self.view._replace(x=None))

    def action_fold_idle(self) -> None:
        self._show(self.view._replace(folds_idle=not self.view.folds_idle))

    def action_pan(self, steps: int) -> None:
        self._stand(self.frame.axis.scale, steps * max(self.frame.width // 8, 1), 0.0)

    def action_zoom(self, steps: int) -> None:
        """Zoom in (`steps` 1) or out (-1); the end of the selected bar stays in its place."""
        x = min(max(self._ends()), self.frame.width)
        self._stand(self.frame.axis.scale / _ZOOM**steps, x, x)

    def action_show(self) -> None:
        """Zoom so that the selected bar fills most of the chart."""
        (start, *_, end), width = sorted(self._ends()), self.frame.width
        self._stand(self.frame.axis.scale * (end - start) / (width * 0.7), start, width * 0.05)

    def _ends(self) -> list[float]:
        """Return the cells at which spans of the selected task, including the tasks below it, begin and end."""
        task, now = self.cursor_task, self.frame.now
        ends = [at for span in (spans_of(task) if task else ()) for at in (span.start, span.until(now))]
        ends += [task.below.active_at] if task and task.below and ends else []
        return list(map(self.frame.x, ends)) or [0.0, self.frame.x(now)]

    # Drawing

    def redraw(self) -> None:
        super().redraw()
        self.ruler.redraw()
        self.reading.redraw()

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        names, width = super()._make_lines(top, palette), max(self._width - self.names_width, 1)
        self.frame = frame = frame_of(self.view, self._stretches, self._clock(), width)
        if frame.fits:
            self.view = View(self.view.folds_idle)
        names += [Strip.blank(self.names_width, palette.base)] * (self.size.height - len(names))
        bars, named, folded = [Canvas(width) for _ in names], ticks(frame), frame.folded
        for bar in bars:
            for x in named:
                bar.put(x, "┊", palette.line)
            bar.put(frame.present, "│", palette.accent)
        for row, bar in zip(self.rows_in_sight(top), bars, strict=False):
            if (task := self._tree.tasks.get(row.task_id or "")) is not None:
                draw_bar(bar, frame, folded, task, palette)
        marked = -1 if palette.ansi else self._row - top
        bases = [palette.base + palette.cursor if y == marked else palette.base for y in range(len(names))]
        return [
            Strip([*name, *(Segment(text, base + style) for text, style in bar.runs())])
            for name, bar, base in zip(names, bars, bases, strict=True)
        ]

    def _axis_lines(self, _width: int, palette: Palette) -> list[Parts]:
        """Return the two lines of the axis, with dates and times, folded stretches and the present."""
        frame, names = self.frame, self.names_width
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        now = time.strftime("now %H:%M", time.localtime(frame.now))
        word = max(min(frame.present - 1, frame.width - len(now)), 0) if frame.present < frame.width else frame.width
        for x in frame.folded:
            line.put(x, "╱", palette.line)
        for x, label in ticks(frame).items():
            line.put(x, "┬", palette.line)
            if x + len(label) < word:
                labels.write(x, label, palette.strong if " " in label else palette.muted)
        line.put(frame.present, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        first_day = day(frame.moment(max(-frame.left, 0.0)))
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        legend = [Part(clip(_LEGEND[: 33 if names > 33 else 24], names - 1), palette.muted)]
        return [
            [*head, Part(" " * (names - width_of(head))), *starmap(Part, canvas.runs())]
            for head, canvas in ((title, labels), (legend, line))
        ]

    def _reading_lines(self, width: int, palette: Palette) -> list[Parts]:
        """Return the line on the selected task: the exact time of its latest attempt or wait, and its question."""
        if (task := self.cursor_task) is None:
            return []
        face, spans = look(task), spans_of(task)
        words = span_words(latest_span(spans), self.frame.now) if spans else "no file speaks of it"
        parts = [
            Part(f" {face.glyph} ", palette.states[face.color]),
            Part(clip(name_of(task), width // 3), palette.strong),
            Part(f"  {face.word}", palette.states[face.color]),
            Part(f"   {words}", palette.muted),
        ]
        if task.ask is not None:
            parts += [Part("   "), Part("NEEDS YOU", palette.needs), Part(" ")]
            parts.append(Part(clip_sentence(in_line(task, task.ask), width - width_of(parts))))
        return [parts]


def draw_bar(bar: Canvas, frame: Frame, folded: set[int], task: Task, palette: Palette) -> None:
    """Draw the attempts and waits of a task, and words behind the last span."""
    spans, present = spans_of(task), frame.present
    # Draw from the last span to the first, so that a bar covers the beginning of the wait after it.
    for span in reversed(spans):
        left, right, is_open = floor(frame.x(span.start)), frame.x(span.until(frame.now)), span.end is None
        end = max(round(right), left + 1) if span.kind is Kind.WORK else max(floor(right), left)
        style = palette.states[span.look.color]
        if not (is_open or task.needs_operator):
            style += _OVER
        rail = "━" if task.below else "▓" if span.look.word in _BAD_WORDS else "█"
        for x in range(max(left, 0), min(end, present, frame.width)):
            bar.put(x, "╱" if x in folded else _FILLS.get(span.kind, rail), style)
        if span.kind is Kind.WORK and end < present:
            bar.put(end, span.look.glyph, style)
        if span is not spans[-1]:
            continue
        length = duration(span.until(frame.now) - latest_span(spans).start)
        words = f" {span.look.word} {length}" if span.kind is Kind.SILENT else f" {length}"
        if is_open and span.asks:
            bar.write(present + 2, f"NEEDS YOU {length}", palette.needs)
        else:
            # Behind the present if the span goes on or there is no room before the present.
            x = present + 2 if is_open or end + 1 + len(words) > present else end
            bar.write(x, span.look.glyph, style)
            bar.write(x + 1, words, Style.null() if is_open else palette.muted)


def span_words(span: Span, now: float) -> str:
    """Return words on when an attempt or a wait began and ended, and how long it took."""
    start, length = clock(span.start, now), in_units(span.until(now) - span.start)
    if span.kind is Kind.WORK:
        return f"{start} → {'now' if span.end is None else clock(span.end, now)}  {length}"
    waits = "waits for you" if span.asks else "waits"
    words = {Kind.WAIT: waits, Kind.SILENT: span.look.word}.get(span.kind, "handed off, no sign of life")
    return f"{words} since {start}, {length}"


class TimelineScreen(MonitorScreen[str]):
    """Shows the tasks of a tree over time; ends with the id of the task to go to, or None."""

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
        yield from (header, self.chart.ruler, self.chart, self.chart.reading, self.footer)

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
        self.chart.reading.redraw()
        self.footer.redraw()

    async def _show_keys(self) -> None:
        # A coroutine, so that it runs after the frame is made from the view.
        self.footer.redraw()

    def _is_on(self, command_id: str) -> bool:
        view, fits = self.chart.view, self.chart.frame.fits
        on = {"timeline.now": view.x is None, "timeline.fit": fits, "timeline.idle": view.folds_idle}
        return on.get(command_id, False)

    def action_open(self) -> None:
        self.leave(self.task_id)

    action_timeline = MonitorScreen.action_back
