"""The session over time: a bar for each row of the tree on a shared clock, its axis, and the selected task in words.

The axis is a straight line, but for idle stretches that are folded to a few columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import starmap
from math import ceil, floor, inf, log
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.messages import TreeUpdated
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
from agentwatch.view.looks import look, worst_look
from agentwatch.view.spans import Interval, Kind, Span, busy_times, spans_of
from agentwatch.view.words import in_line, name_of

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree
    from agentwatch.monitor import Monitor

IDLE: Final = 600.0
"""Seconds without a sign of anybody, from which a stretch of time counts as idle."""
FOLD: Final = 9.0
"""Columns that a folded idle stretch takes at most: what its length in words needs."""
FINEST: Final = 0.05
"""Seconds a column."""
_STEP: Final = 1.15
"""Between two scales that fitting chooses from: so the picture stands still until it is full, and then makes room."""
_TICK_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000),
)
"""Seconds."""
_SPACE: Final = 4
"""Columns between two labels, at least."""
_MOST_TICKS: Final = 500
_ZOOM: Final = 1.5
_MARGIN: Final = 1
"""Columns in front of the first sign."""
_PAN: Final = 8
"""The part of the width that a step moves by: an eighth."""
_CATCH_UP: Final = 4
"""The part of the width that scrolls in when the present has reached the right edge: a quarter."""
WORK: Final = "█"
BAD: Final = "▓"
RAIL: Final = "━"
BELOW: Final = "─"
QUEUE: Final = "╌"
SILENT: Final = "░"
WAIT: Final = "┄"
FOLDED: Final = "╱"
TICK: Final = "┊"
NOW: Final = "│"
EARLIER: Final = "‹"
LATER: Final = "›"
_FILLS: Final = {Kind.QUEUE: QUEUE, Kind.SILENT: SILENT, Kind.WAIT: WAIT}
_BAD_WORDS: Final = frozenset({"failed", "invalid", "blocked", "false"})
_OVER: Final = Style(dim=True)
"""The style of what is over and asks for nothing: it recedes."""
_LEGEND: Final = (
    (WORK, "work"),
    (BAD, "failed"),
    (WAIT, "waits"),
    (SILENT, "silent"),
    (QUEUE, "queued"),
    (RAIL, "parts"),
)


# When anything happened


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


def fit(stretches: Sequence[Interval], now: float, room: float) -> tuple[float, float]:
    """Seconds a column, and columns of a fold, with which all of time has at most `room` columns: all folds together
    take half of it, or less. The scale is the finest of those that fitting chooses from."""
    work = sum(end - start for start, end in stretches)
    count = len(stretches) - (stretches[-1][1] >= now)
    folds = min(FOLD * count, room / 2)
    finer = max(work / (room - folds) / FINEST, 1.0)
    return FINEST * _STEP ** ceil(log(finer, _STEP)), folds / max(count, 1)


class Tick(NamedTuple):
    """A moment with a name. `column` is on the axis; `is_day` says that the name is a date."""

    column: float
    label: str
    is_day: bool = False


def ticks(axis: Axis, left: float, right: float, now: float) -> list[Tick]:
    """The ticks between two columns, with room between their labels; behind each fold the moment where time goes on.

    They are round moments in local time, with the date where that is another.
    """
    fitting = (step for step in _TICK_STEPS if step / axis.scale >= len("00:00:00" if step < 60 else "00:00") + _SPACE)
    step = next(fitting, _TICK_STEPS[-1])
    folds = [fold for fold in axis.folds if left < fold.right < right]
    named: list[Tick] = []
    free, known = -inf, ""
    """The first column that the label before leaves free, and its date."""
    for start, end in zip(
        [left, *(fold.right for fold in folds)], [*(fold.left for fold in folds), right], strict=True
    ):
        moment = axis.moment(start + 1e-6 * (start > left))
        for at in (*([moment] if start > left else []), *_multiples(moment, axis.moment(end), step)):
            column, local, date = axis.column(at), time.localtime(at), day(at, now)
            if free <= column <= end:
                clock = time.strftime("%H:%M:%S" if local.tm_sec and at != moment else "%H:%M", local)
                is_new, is_midnight = known not in ("", date), local[3:6] == (0, 0, 0)
                label = date if is_midnight else f"{date} {clock}" if is_new else clock
                named.append(Tick(column, label, is_new or is_midnight))
                free, known = column + len(label) + 2, date
    return named


def _multiples(start: float, end: float, step: int) -> Iterator[float]:
    """The multiples of a step between two moments, by the clock on the wall."""
    for _ in range(_MOST_TICKS):
        offset = time.localtime(start).tm_gmtoff
        moment = ceil((start + offset) / step) * step - offset
        # Where the clocks are changed in between.
        moment += (offset - time.localtime(moment).tm_gmtoff) if step >= 3_600 else 0
        if moment > end:
            return
        yield moment
        start = moment + step / 2


def day(moment: float, now: float) -> str:
    """The date of a moment, with the year if it is another one than now's."""
    local = time.localtime(moment)
    name = f"{local.tm_mday} {time.strftime('%b', local)}"
    return name if local.tm_year == time.localtime(now).tm_year else f"{name} {local.tm_year}"


class Frame(NamedTuple):
    """The part of time that is on screen: the axis, the column at its left edge, and the present; with its ticks, and
    the cells of its folds and of the present."""

    axis: Axis
    left: float
    width: int
    now: float
    ticks: Sequence[Tick]
    folds: frozenset[int]
    present: int

    @classmethod
    def of(cls, axis: Axis, left: float, width: int, now: float) -> Frame:
        """So many cells of an axis."""
        named = ticks(axis, left, min(left + width, axis.column(now)), now)
        edges = [(floor(fold.left - left), floor(fold.right - left)) for fold in axis.folds]
        folds = frozenset(x for start, end in edges for x in range(max(start + 1, 0), min(end, width)))
        return cls(axis, left, width, now, named, folds, floor(axis.column(now) - left))

    def x(self, moment: float) -> float:
        """Where a moment is, in cells from the left edge."""
        return self.axis.column(moment) - self.left


class Window:
    """The window of a chart `width` cells wide, `reserve` of which are kept free for words behind the present.

    It fits all of time until the operator zooms in; it follows the present while that is in sight, and then new time
    scrolls in. Where it `folds_idle`, long idle stretches take only a few columns.
    """

    def __init__(self) -> None:
        self.folds_idle = True
        self.fits = True
        self.follows = True
        self.width = 1
        self.reserve = 0
        self._scale = 1.0
        self._moment = self._x = 0.0
        """A moment, and the cell where it stands."""
        self._has_moved = False

    @property
    def _room(self) -> int:
        return max(self.width - self.reserve - _MARGIN, 1)

    def frame(self, stretches: Sequence[Interval], now: float) -> Frame:
        """The frame at `now`. `stretches` are those with activity, in order."""
        stretches = self._shown(stretches, now)
        fitting, fold = fit(stretches, now, self._room)
        if self.fits or self._scale >= fitting:
            self.fits = self.follows = True
            return Frame.of(Axis(stretches, now, fitting, fold), -_MARGIN, self.width, now)
        # Folds that had to be narrow widen with the zoom.
        axis = Axis(stretches, now, self._scale, min(FOLD, fold * fitting / self._scale))
        present = axis.column(now)
        left = max(min(axis.column(self._moment) - self._x, present - self.width / _CATCH_UP), -_MARGIN)
        if self._has_moved:
            self.follows = 0 <= present - left <= self._room
            self._has_moved = False
        elif self.follows and not 0 <= present - left <= self._room:
            left = max(present - self._room + self.width / _CATCH_UP, -_MARGIN)
            self._moment, self._x = now, present - left
        return Frame.of(axis, left, self.width, now)

    def _shown(self, stretches: Sequence[Interval], now: float) -> Sequence[Interval]:
        """The spans that are not folded. A time stamp from the future is as good as now."""
        shown = [(min(start, now), min(end, now)) for start, end in stretches] or [(now, now)]
        if not self.folds_idle:
            return [(shown[0][0], now)]
        return [*shown[:-1], (shown[-1][0], now)] if shown[-1][1] > now - IDLE else shown

    def follow(self, frame: Frame) -> None:
        """Go to the present and stay with it."""
        self._moment, self._x = frame.now, self._room - self.width / _CATCH_UP
        self.follows = True

    def pan(self, frame: Frame, steps: int) -> None:
        """Go to later times, or to earlier ones."""
        self._stand(frame.axis.scale, frame.axis.moment(frame.left + steps * max(self.width // _PAN, 1)), 0.0)

    def zoom(self, frame: Frame, steps: int, x: float) -> None:
        """Zoom in by so many steps, or out; the moment at `x` stays where it is."""
        self._stand(max(frame.axis.scale / _ZOOM**steps, FINEST), frame.axis.moment(frame.left + x), x)

    def show(self, stretches: Sequence[Interval], start: float, end: float, now: float) -> None:
        """Let the time from start to end fill the window."""
        shown = [(max(a, start), min(b, end)) for a, b in self._shown(stretches, now) if a < end and b > start]
        shown = [(start, start), *shown, (end, end)]
        room = self._room * 0.9
        self._stand(fit(shown, end, room)[0], start, self._room - room)

    def _stand(self, scale: float, moment: float, x: float) -> None:
        self.fits = False
        self._scale, self._moment, self._x = scale, moment, x
        self._has_moved = True


# Bars


class Bar(Canvas):
    """The cells of one row."""

    def __init__(self, frame: Frame, palette: Palette) -> None:
        super().__init__(frame.width)
        self._frame, self._palette = frame, palette
        for tick in frame.ticks:
            if (x := floor(tick.column - frame.left)) not in frame.folds:
                self.put(x, TICK, palette.line)
        self.put(frame.present, NOW, palette.accent)

    def segments(self, base: Style) -> list[Segment]:
        """The row on a background."""
        return [Segment(text, base + style) for text, style in self.runs()]

    def draw(self, spans: Sequence[Span], below: Interval | None, *, asks: bool, note: str) -> None:
        """Draw a task: from the first to the last sign below it, its spans, and a note behind the present.

        `below` is None for a task without tasks below it; what is over recedes unless the task `asks` for somebody.
        """
        frame, palette = self._frame, self._palette
        drawn: list[tuple[Span, int, int, Style]] = []
        for span in spans:
            left, right = floor(frame.x(span.start)), frame.x(span.until(frame.now))
            # A wait begins where the bar before it is drawn to.
            left = max(left, drawn[-1][2]) if drawn and span.kind is not Kind.WORK else left
            end = max(round(right), left + 1) if span.kind is Kind.WORK else max(floor(right), left)
            style = palette.states[span.look.color] + (Style.null() if asks or span.end is None else _OVER)
            drawn.append((span, left, end, style))
        sides = [(left, end) for _, left, end, _ in drawn]
        if below is not None:
            sides.append((floor(frame.x(below[0])), floor(max(frame.x(below[1]), frame.x(below[0]) + 1))))
            self._line(*sides[-1], BELOW, palette.muted)
        # Where all of it is out of sight, say at which side.
        if sides and max(right for _, right in sides) < 0:
            self.put(0, EARLIER, palette.muted)
        elif sides and min(left for left, _ in sides) >= self.width:
            self.put(self.width - 1, LATER, palette.muted)
        for span, left, end, style in drawn:
            bar = RAIL if below is not None else BAD if span.look.word in _BAD_WORDS else WORK
            self._line(left, end, _FILLS.get(span.kind, bar), style)
        for span, _, end, style in drawn[:-1]:
            if span.kind is Kind.WORK and end < frame.present:
                self.put(end, span.look.glyph, style)
        if note:
            self.write(frame.present + 2, note, palette.needs)
        elif drawn:
            self._label(*drawn[-1])

    def _line(self, left: int, right: int, glyph: str, style: Style) -> None:
        """Whole cells, up to the present."""
        for x in range(max(left, 0), min(right, self._frame.present, self.width)):
            self.put(x, FOLDED if x in self._frame.folds else glyph, style)

    def _label(self, span: Span, _left: int, end: int, style: Style) -> None:
        """Glyph and length behind the last bar, behind the present where it goes on, or there is no room before it."""
        length = times.duration(span.until(self._frame.now) - span.start) + ("" if span.is_certain else "+")
        is_open, present = span.end is None, self._frame.present
        words = f" {span.look.word} {length}" if span.kind is Kind.SILENT else f" {length}"
        x = present + 2 if is_open or end + 1 + len(words) > present else end
        if is_open and span.asks:
            self.write(x, f"NEEDS YOU {length}", self._palette.needs)
        elif end >= 0:
            self.write(x, span.look.glyph, style)
            self.write(x + 1, words, Style.null() if is_open else self._palette.muted)


# The chart


class TimelineChart(TaskTree, can_focus=True, inherit_bindings=False):
    """The chart of a tree, folded like `like` and with its cursor. `clock` gives seconds since the epoch."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.CHART)

    class Drawn(Message):
        """Another part of time is on screen, or the present is at another cell."""

    def __init__(self, tree: Tree, clock: Callable[[], float], like: TaskTree) -> None:
        super().__init__(tree, clock)
        self.outline = like.outline.copy()
        self._is_placed = True
        self._cursor = self._begin_at = like.cursor_id
        self._activity = activity_of(tree)
        self.window = Window()
        self.frame = self._take_frame()

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
        self._activity = activity_of(self._tree)
        super().refresh_tasks(changed, settled=settled)

    def on_mount(self) -> None:
        if self._begin_at is not None:
            self.call_after_refresh(self.select, self._begin_at)

    # Keys

    def action_fit(self) -> None:
        self.window.fits = True
        self._draw()

    def action_now(self) -> None:
        self.window.follow(self.frame)
        self._draw()

    def action_pan(self, steps: int) -> None:
        self.window.pan(self.frame, steps)
        self._draw()

    def action_zoom(self, steps: int) -> None:
        frame = self.frame
        task = self.cursor_task
        ends = [frame.x(end) for _, end in self._stretches(task, frame.now)] if task else []
        # The end of the selected bar stays in its place.
        self.window.zoom(frame, steps, min(max(ends, default=frame.width / 2), float(frame.width)))
        self._draw()

    def action_show(self) -> None:
        now = self._clock()
        if (task := self.cursor_task) is not None and (stretches := self._stretches(task, now)):
            start, end = min(start for start, _ in stretches), max(end for _, end in stretches)
            self.window.show(self._activity.stretches, start, end, now)
            self._draw()

    def action_fold_idle(self) -> None:
        self.window.folds_idle = not self.window.folds_idle
        self._draw()

    def _stretches(self, task: Task, now: float) -> list[Interval]:
        """The times of a task, with what is below it."""
        below = self.below(task, now)
        return [(span.start, span.until(now)) for span in self.spans_of(task)] + ([below] if below else [])

    # Drawing

    def _draw(self) -> None:
        super()._draw()
        if self.is_attached:
            self.post_message(self.Drawn())

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        names = super()._make_lines(top, palette)
        self.frame = frame = self._take_frame()
        lines: list[Strip] = []
        for row, name in zip(self.rows_in_sight(top), names, strict=True):
            bar = Bar(frame, palette)
            task = self._tree.tasks.get(row.task_id or "")
            if task is not None:
                note = _note(task) if row.folded else ""
                bar.draw(self.spans_of(task), self.below(task, frame.now), asks=task.needs_operator, note=note)
            marked = row.row_id == self._cursor and not palette.ansi
            lines.append(Strip([*name, *bar.segments(palette.base + palette.cursor if marked else palette.base)]))
        blank = [Segment(" " * self.names_width, palette.base), *Bar(frame, palette).segments(palette.base)]
        return lines + [Strip(blank)] * (self.size.height - len(lines))

    def _take_frame(self) -> Frame:
        return self.window.frame(self._activity.stretches, self._clock())

    def spans_of(self, task: Task) -> list[Span]:
        """The attempts and waits of a task."""
        return spans_of(task, self._activity.first.get(task.task_id))

    def below(self, task: Task, now: float) -> Interval | None:
        """From the first sign of a task or below it to the last below it."""
        first = self._activity.first.get(task.task_id)
        if first is None or task.below is None:
            return None
        works = task.below.states.get(State.WORKING, 0) > 0
        return first, now if works else min(task.below.active_at, now)


def _note(task: Task) -> str:
    """Name those below a folded task that need the operator."""
    below = task.below
    if below is None or task.needs_operator or (worst := worst_look(below)) is None:
        return ""
    return f"{worst.glyph} {below.needs_operator:,} NEED YOU"


# The lines around the chart


class Ruler(LineWidget):
    """The axis of a chart, two lines: dates and times, folded stretches with their length, the present."""

    DEFAULT_CSS = """
    Ruler { height: 2; }
    """

    def __init__(self, chart: TimelineChart) -> None:
        super().__init__()
        self._chart = chart

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:  # noqa: ARG002 - the chart's widths count
        frame, names = self._chart.frame, self._chart.names_width
        present = frame.present
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        now = time.strftime("now %H:%M", time.localtime(frame.now))
        word = max(min(present - 1, frame.width - len(now)), 0) if 0 <= present < frame.width else frame.width
        for tick in frame.ticks:
            x = floor(tick.column - frame.left)
            line.write(x, "┬", palette.line)
            if x + len(tick.label) < word:
                labels.write(x, tick.label, palette.strong if tick.is_day else palette.muted)
        for fold in frame.axis.folds:
            left, right = floor(fold.left - frame.left) + 1, floor(fold.right - frame.left)
            line.write(left, FOLDED * (right - left), palette.line)
            words = f" ⋯{times.duration(fold.seconds)}⋯ "
            if left >= 0 and right <= frame.width and len(words) <= right - left:
                line.write(left + (right - left - len(words)) // 2, words, palette.muted)
        line.write(present, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        legend: Parts = []
        for glyphs, meaning in _LEGEND:
            if width_of(legend) + len(f" {glyphs} {meaning}") < names:
                legend.append(Part(f" {glyphs} {meaning}", palette.muted))
        first_day = day(frame.axis.moment(max(frame.left, 0.0)), frame.now)
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        return [
            [*head, Part(" " * (names - width_of(head))), *starmap(Part, canvas.runs())]
            for head, canvas in ((title, labels), (legend, line))
        ]


class Reading(LineWidget):
    """A line about the selected task of a chart: when its latest attempt or wait was, exactly, and what it asks."""

    def __init__(self, chart: TimelineChart, clock: Callable[[], float]) -> None:
        super().__init__()
        self._chart = chart
        self._clock = clock

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        task, now = self._chart.cursor_task, self._clock()
        if task is None:
            return []
        face, spans = look(task), self._chart.spans_of(task)
        color = palette.states[face.color]
        words = _span_words(spans[-1], now, several=len(task.attempts) > 1) if spans else "no file speaks of it"
        parts = [
            Part(f" {face.glyph} ", color),
            Part(clip(name_of(task), width // 3), palette.strong),
            Part(f"  {face.word}", color),
            Part(f"   {words}", palette.muted),
        ]
        if task.ask is not None:
            parts += [Part("   "), Part("NEEDS YOU", palette.needs), Part(" ")]
            parts.append(Part(clip_sentence(in_line(task, task.ask), width - width_of(parts))))
        return [parts]


def _span_words(span: Span, now: float, *, several: bool) -> str:
    """When an attempt or a wait began and ended, and how long it took. A time from the future is as good as now."""
    start, length = times.clock(min(span.start, now), now), times.span(span.until(now) - span.start)
    end = "now" if span.end is None else times.clock(min(span.end, now), now)
    goes_on = f"since {start}, {length}"
    if span.kind is Kind.WAIT:
        return (
            f"waits for you {goes_on}" if span.asks else f"waits {goes_on}" if span.end is None else f"waited {length}"
        )
    attempt = f"{span.look.glyph} attempt {span.number}  " if several else ""
    if span.kind is not Kind.WORK:
        return f"{attempt}{span.look.word if span.kind is Kind.SILENT else 'handed off, no sign of life'} {goes_on}"
    return f"{attempt}{'' if span.is_certain else 'start unknown, first sign '}{start} → {end}  {length}"


class TimelineScreen(MonitorScreen[str]):
    """Shows the tasks of a tree over time; ends with the id of a task to go to, None if there is none."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.TIMELINE)

    def __init__(self, monitor: Monitor, clock: Callable[[], float], tree: TaskTree) -> None:
        super().__init__(monitor, clock)
        self._tree = tree
        self.chart = TimelineChart(monitor.tree, clock, tree)
        self.ruler = Ruler(self.chart)
        self.reading = Reading(self.chart, clock)
        self.footer = Footer(Place.TIMELINE, self.is_out_of_question, self._is_on)

    @property
    def task_id(self) -> str | None:
        return self.chart.cursor_id

    @property
    def marked(self) -> tuple[str, ...]:
        return self._tree.marked

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.ruler
        yield self.chart
        yield self.reading
        yield self.footer

    def on_mount(self) -> None:
        self.chart.focus()

    def tick(self) -> None:
        super().tick()
        self.chart.tick()
        self.reading.redraw()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self.chart.refresh_tasks(event.changed, settled=event.settled)
        self.reading.redraw()

    @on(TaskTree.Selected)
    def _take_selection(self) -> None:
        self.reading.redraw()
        self.footer.redraw()

    @on(TimelineChart.Drawn)
    def _take_picture(self) -> None:
        self.ruler.redraw()
        self.footer.redraw()

    def _is_on(self, command_id: str) -> bool:
        window = self.chart.window
        on = {"timeline.now": window.follows, "timeline.fit": window.fits, "timeline.idle": window.folds_idle}
        return on.get(command_id, False)

    @on(TaskTree.Opened)
    def action_open(self) -> None:
        self.leave(self.task_id)

    def action_back(self) -> None:
        self.leave()

    def action_timeline(self) -> None:
        self.leave()
