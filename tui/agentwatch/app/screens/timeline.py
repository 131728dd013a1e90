"""The session over time: a bar for each row of the tree on a shared clock, its axis, and the selected task in words.

The axis is a straight line, but for idle stretches that are folded to a few columns.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise, starmap
from math import ceil, floor, inf, log
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_sentence, shown
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.line import Canvas, LineWidget, Part, Parts, width_of
from agentwatch.app.widgets.task_line import Columns
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import State, Task
from agentwatch.view import times
from agentwatch.view.axis import Axis
from agentwatch.view.looks import look, worst_look
from agentwatch.view.requests import ended_words, standing_words
from agentwatch.view.spans import Interval, Kind, Pause, Span, busy_times, pauses_of, spans_of
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
_MARGIN: Final = 1.0
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
ASKED: Final = "■"
ANSWERED: Final = "◆"
OVER: Final = "◇"
FOLDED: Final = "╱"
TICK: Final = "┊"
NOW: Final = "│"
EARLIER: Final = "‹"
LATER: Final = "›"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LEAST: Final = 2
"""Eighths of a cell that the shortest bar has: fewer cannot be seen."""
_FILLS: Final = {Kind.QUEUE: QUEUE, Kind.SILENT: SILENT, Kind.WAIT: WAIT}
_BAD_WORDS: Final = frozenset({"failed", "invalid", "blocked", "false"})
_BLOCKED: Final = "state-blocked"
_OVER: Final = Style(dim=True)
"""The style of what is over and asks for nothing: it recedes."""
_LEGEND: Final = (
    (WORK, "work"),
    (BAD, "failed"),
    (WAIT, "waits"),
    (ASKED + ANSWERED, "asked"),
    (SILENT, "silent"),
    (QUEUE, "queued"),
    (RAIL, "parts"),
    ("?", "unsure"),
)
_ROOMY: Final = 80
"""Cells from which the agent is named beside what it asks."""
_TALL: Final = 30
"""Lines of screen from which the words about the selected task stand apart."""


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


def fold_width(stretches: Sequence[Interval], room: float) -> float:
    """Columns of a fold where all of time has to fit: all together take half the room, or what work does not need."""
    work = sum(end - start for start, end in stretches)
    return min(FOLD, max(room / 2, room - work / FINEST) / max(len(stretches), 1))


def fitting_scale(stretches: Sequence[Interval], now: float, room: float, fold: float) -> float:
    """The finest scale, of those that fitting chooses from, at which all of time has at most `room` columns."""
    work = sum(end - start for start, end in stretches)
    idle = [max(start - end, 0.0) for (_, end), (start, _) in pairwise([*stretches, (now, now)])]

    def takes(rung: int) -> float:
        scale = FINEST * _STEP**rung
        return work / scale + sum(min(length / scale, fold) for length in idle)

    top = max(ceil(log(max((work + sum(idle)) / max(room, 1.0) / FINEST, 1.0), _STEP)), 0)
    # The widths fall from rung to rung.
    return FINEST * _STEP ** bisect_left(range(top), -room, key=lambda rung: -takes(rung))


class Tick(NamedTuple):
    """A moment with a name. `column` is on the axis; `is_day` says that the name is a date."""

    column: float
    label: str
    is_day: bool = False


def ticks(axis: Axis, left: float, right: float, now: float) -> list[Tick]:
    """The ticks between two columns, with room between their labels; behind each fold the moment where time goes on.

    They are round moments in local time, with the date where a day begins.
    """
    fitting = (step for step in _TICK_STEPS if step / axis.scale >= len(_name(0.0, step)) + _SPACE)
    step = next(fitting, _TICK_STEPS[-1])
    edges = [left, *(edge for fold in axis.folds for edge in (fold.left, fold.right)), right]
    named: list[Tick] = []
    free = -inf
    """The first column that the label before leaves free."""
    for begin, finish in zip(edges[::2], edges[1::2], strict=True):
        start, end = max(begin, left), min(finish, right)
        if end < max(start, free):
            continue
        before = axis.moment(named[-1].column) if named else None
        begins = [] if start == left else [_resumed(axis, start, before, now)]
        for tick in (*begins, *_round(axis, start, end, step, now)):
            if tick.column >= free:
                # Before the first one, nothing says of which minute a second is.
                is_second = not named and tick.label.startswith("+")
                moment = time.localtime(axis.moment(tick.column))
                named.append(tick._replace(label=time.strftime("%H:%M:%S", moment)) if is_second else tick)
                free = tick.column + len(named[-1].label) + 2
    return named


def _resumed(axis: Axis, column: float, before: float | None, now: float) -> Tick:
    moment = axis.moment(column + 1e-6)
    is_day = before is None or day(moment, now) != day(before, now)
    return Tick(column, f"{day(moment, now)} " * is_day + _name(moment, 60), is_day)


def _round(axis: Axis, left: float, right: float, step: int, now: float) -> Iterator[Tick]:
    """The multiples of a step of local time."""
    moment = axis.moment(left)
    for _ in range(_MOST_TICKS):
        moment = _next(moment, step)
        column = axis.column(moment)
        if column > right:
            return
        is_day = time.localtime(moment)[3:6] == (0, 0, 0)
        yield Tick(column, day(moment, now) if is_day else _name(moment, step), is_day)
        moment += step / 2


def _next(moment: float, step: int) -> float:
    """The first multiple of a step at or after a moment, by the clock on the wall."""
    offset = time.localtime(moment).tm_gmtoff
    following = ceil((moment + offset) / step) * step - offset
    # Where the clocks are changed in between.
    return following + offset - time.localtime(following).tm_gmtoff if step >= 3_600 else following


def _name(moment: float, step: int) -> str:
    local = time.localtime(moment)
    return f"+{local.tm_sec}s" if step < 60 and local.tm_sec else time.strftime("%H:%M", local)


def day(moment: float, now: float) -> str:
    """The date of a moment, with the year if it is another one than now's."""
    local = time.localtime(moment)
    name = f"{local.tm_mday} {time.strftime('%b', local)}"
    return name if local.tm_year == time.localtime(now).tm_year else f"{name} {local.tm_year}"


class Frame(NamedTuple):
    """The part of time that is on screen: the axis, the column at its left edge, and the present."""

    axis: Axis
    left: float
    width: int
    now: float

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
        return max(self.width - self.reserve - int(_MARGIN), 1)

    def frame(self, stretches: Sequence[Interval], now: float) -> Frame:
        """The frame at `now`. `stretches` are those with activity, in order."""
        stretches = self._shown(stretches, now)
        fold = fold_width(stretches, self._room)
        fitting = fitting_scale(stretches, now, self._room, fold)
        if self.fits or self._scale >= fitting:
            self.fits = self.follows = True
            return Frame(Axis(stretches, now, fitting, fold), -_MARGIN, self.width, now)
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
        return Frame(axis, left, self.width, now)

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
        self._stand(fitting_scale(shown, end, room, fold_width(shown, room)), start, self._room - room)

    def _stand(self, scale: float, moment: float, x: float) -> None:
        self.fits = False
        self._scale, self._moment, self._x = scale, moment, x
        self._has_moved = True


# Bars


class Ground(NamedTuple):
    """Shared by all rows of one picture: the frame, its ticks, the cells of its folds, and that of the present."""

    frame: Frame
    ticks: Sequence[Tick]
    folds: frozenset[int]
    present: int

    @classmethod
    def of(cls, frame: Frame) -> Ground:
        """The ground of a frame."""
        right = min(frame.left + frame.width, frame.axis.column(frame.now))
        edges = [(floor(fold.left - frame.left), floor(fold.right - frame.left)) for fold in frame.axis.folds]
        folds = frozenset(x for left, right in edges for x in range(max(left + 1, 0), min(right, frame.width)))
        return cls(frame, ticks(frame.axis, frame.left, right, frame.now), folds, floor(frame.x(frame.now)))


class Bar(Canvas):
    """The cells of one row."""

    def __init__(self, ground: Ground, palette: Palette) -> None:
        super().__init__(ground.frame.width)
        self._ground = ground
        self._palette = palette
        for tick in ground.ticks:
            if (x := floor(tick.column - ground.frame.left)) not in ground.folds:
                self.put(x, TICK, palette.line)
        self.put(ground.present, NOW, palette.accent)

    def segments(self, base: Style) -> list[Segment]:
        """The row on a background."""
        return [Segment(text, base + style) for text, style in self.runs()]

    def draw(
        self, spans: Sequence[Span], below: Interval | None, *, asks: bool, note: str, pauses: Sequence[Pause] = ()
    ) -> None:
        """Draw a task: from the first to the last sign below it, its spans, in them its requests, and a note behind the
        present.

        `below` is None for a task without tasks below it; what is over recedes unless the task `asks` for somebody.
        """
        frame, palette = self._ground.frame, self._palette
        edges = [(frame.x(span.start), frame.x(span.until(frame.now))) for span in spans]
        sides = [*edges]
        if below is not None:
            sides.append((frame.x(below[0]), max(frame.x(below[1]), frame.x(below[0]) + 1)))
            self._line(*sides[-1], BELOW, palette.muted)
        # Where all of it is out of sight, say at which side.
        if sides and max(right for _, right in sides) < 0:
            self.put(0, EARLIER, palette.muted)
        elif sides and min(left for left, _ in sides) >= self.width:
            self.put(self.width - 1, LATER, palette.muted)
        drawn: list[tuple[Span, int, int, Style]] = []
        for span, (left, right) in zip(spans, edges, strict=True):
            style = palette.states[span.look.color] + (Style.null() if asks or span.end is None else _OVER)
            # A wait begins where the bar before it is drawn to.
            start = max(floor(left), drawn[-1][2]) if drawn and span.kind is not Kind.WORK else floor(left)
            drawn.append((span, start, self._span(span, start, right, style, has_below=below is not None), style))
        for (span, left, right, style), following in zip(drawn, [*drawn[1:], None], strict=True):
            # A label leaves two cells of a wait before the next attempt.
            room = self.width if following is None else following[1]
            if following is not None and following[0].kind is Kind.WAIT:
                room = min(following[2], self._ground.present) - 2
            self._label(span, left, right, style, room)
        for pause in pauses:
            self._pause(pause)
        if note:
            self._write(self._ground.present + 2, [Part(note, palette.needs)], self.width)

    def _span(self, span: Span, left: int, right: float, style: Style, *, has_below: bool) -> int:
        """Draw the bar of a span. Returns the first cell behind it."""
        end = max(round(right), left + 1)
        if span.kind is not Kind.WORK:
            end = max(floor(right), left)
            self._line(left, end, _FILLS[span.kind], style)
        elif has_below:
            self._line(left, end, RAIL, style)
        elif span.look.word in _BAD_WORDS:
            self._line(left, end, BAD, style)
        else:
            # Whole cells, and eighths of a cell at the end.
            last, behind = divmod(max(round(right * 8), left * 8 + _LEAST), 8)
            self._line(left, last, WORK, style)
            if behind and last < self._ground.present and last not in self._ground.folds:
                self.put(last, _EIGHTHS[behind], style)
            end = last + (behind > 0)
        if not span.is_certain:
            self.put(min(left, self._ground.present) - 1, "?", self._palette.muted)
        return end

    def _pause(self, pause: Pause) -> None:
        frame = self._ground.frame
        style = self._palette.states[_BLOCKED] + (Style.null() if pause.end is None else _OVER)
        left, right = floor(frame.x(pause.start)), floor(frame.x(frame.now if pause.end is None else pause.end))
        self._line(left + 1, right, WAIT, style)
        self.put(left, ASKED, style)
        if pause.end is not None and pause.end > pause.start:
            self.put(right, ANSWERED if pause.answered else OVER, style)

    def _line(self, left: float, right: float, glyph: str, style: Style) -> None:
        """Whole cells, up to the present."""
        for x in range(max(floor(left), 0), min(max(floor(right), 0), self._ground.present, self.width)):
            self.put(x, FOLDED if x in self._ground.folds else glyph, style)

    # Words

    def _label(self, span: Span, left: int, right: int, style: Style, room: int) -> None:
        """Glyph and length behind a bar, behind the present of what goes on, or in a wait that is over."""
        length = times.duration(span.until(self._ground.frame.now) - span.start) + ("" if span.is_certain else "+")
        glyph, timed, present = (
            Part(span.look.glyph, style),
            Part(f" {length}", self._palette.muted),
            self._ground.present,
        )
        if span.end is None and span.asks:
            self._write(present + 2, [Part(f"NEEDS YOU {length}", self._palette.needs)], self.width)
        elif span.end is None:
            words = f" {span.look.word} {length}" if span.kind is Kind.SILENT else f" {length}"
            self._write(present + 2, [glyph, Part(words)], self.width)
        elif span.kind is Kind.WAIT:
            if right - left >= len(length) + 12:
                self._write(left + (right - left - len(length)) // 2, [timed, Part(" ")], room)
        elif right >= 0:
            x = right if right + 1 + timed.width <= present else present + 2
            if length == "0s+" or not self._write(x, [glyph, timed], room):
                self._write(x, [glyph], room + 2)

    def _write(self, x: int, label: Parts, room: int) -> bool:
        """Write where there is room, up to a cell. Returns whether there was."""
        if x < 0 or x + width_of(label) > min(room, self.width):
            return False
        for part in label:
            self.write(x, part.text, part.style)
            x += part.width
        return True


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
        self.ground = Ground.of(self._frame())

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
        self.window.follow(self.ground.frame)
        self._draw()

    def action_pan(self, steps: int) -> None:
        self.window.pan(self.ground.frame, steps)
        self._draw()

    def action_zoom(self, steps: int) -> None:
        frame = self.ground.frame
        self.window.zoom(frame, steps, self._pivot(frame))
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

    def _pivot(self, frame: Frame) -> float:
        """The cell that stays in its place: the present where the selected task goes on, else the middle of its bar."""
        task, present = self.cursor_task, frame.x(frame.now)
        spans = self.spans_of(task) if task else []
        if spans and spans[-1].end is None and 0 <= present < frame.width:
            return present
        stretches = self._stretches(task, frame.now) if task else []
        left = max(min((frame.x(start) for start, _ in stretches), default=0.0), 0.0)
        right = min(max((frame.x(end) for _, end in stretches), default=inf), float(frame.width))
        return (left + right) / 2 if left <= right else frame.width / 2

    # Drawing

    def _draw(self) -> None:
        super()._draw()
        if self.is_attached:
            self.post_message(self.Drawn())

    def _make_lines(self, top: int, palette: Palette) -> list[Strip]:
        names = super()._make_lines(top, palette)
        self.ground = ground = Ground.of(self._frame())
        now = ground.frame.now
        lines: list[Strip] = []
        for row, name in zip(self.rows_in_sight(top), names, strict=True):
            bar = Bar(ground, palette)
            task = self._tree.tasks.get(row.task_id or "")
            if task is not None:
                note = _note(task) if row.folded else ""
                pauses, asks = pauses_of(task), task.needs_operator
                bar.draw(self.spans_of(task), self.below(task, now), asks=asks, note=note, pauses=pauses)
            marked = row.row_id == self._cursor and not palette.ansi
            lines.append(Strip([*name, *bar.segments(palette.base + palette.cursor if marked else palette.base)]))
        blank = [Segment(" " * self.names_width, palette.base), *Bar(ground, palette).segments(palette.base)]
        return lines + [Strip(blank)] * (self.size.height - len(lines))

    def _frame(self) -> Frame:
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
        frame, named, _, present = self._chart.ground
        names = self._chart.names_width
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        first_day, today = day(frame.axis.moment(max(frame.left, 0.0)), frame.now), day(frame.now, frame.now)
        clock = time.strftime("%H:%M", time.localtime(frame.now))
        now = f"now {clock}" if today == first_day else f"now {today} {clock}"
        word = max(min(present - 1, frame.width - len(now)), 0) if 0 <= present < frame.width else frame.width
        for tick in named:
            x = floor(tick.column - frame.left)
            line.write(x, "┬", palette.line)
            if x + len(tick.label) < word:
                labels.write(x, tick.label, palette.strong if tick.is_day else palette.muted)
        for fold in frame.axis.folds:
            left, right = floor(fold.left - frame.left) + 1, floor(fold.right - frame.left)
            line.write(left, FOLDED * (right - left), palette.line)
            length = times.duration(fold.seconds)
            words = next((words for words in (f" ⋯{length}⋯ ", length) if len(words) <= right - left), "")
            if left >= 0 and right <= frame.width:
                line.write(left + (right - left - len(words)) // 2, words, palette.muted)
        line.write(present, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        legend: Parts = []
        for glyphs, meaning in _LEGEND:
            if width_of(legend) + len(f" {glyphs} {meaning}") < names:
                legend.append(Part(f" {glyphs} {meaning}", palette.muted))
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        return [
            [*head, Part(" " * (names - width_of(head))), *starmap(Part, canvas.runs())]
            for head, canvas in ((title, labels), (legend, line))
        ]


class Reading(LineWidget):
    """Two lines about the selected task of a chart: exact, and saying what is not known."""

    DEFAULT_CSS = """
    Reading { height: 2; }
    Reading.-tall { height: 3; border-top: solid $line; }
    """

    def __init__(self, chart: TimelineChart, clock: Callable[[], float]) -> None:
        super().__init__()
        self._chart = chart
        self._clock = clock

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        task = self._chart.cursor_task
        if task is None:
            return []
        face = look(task)
        color = palette.states[face.color]
        head = [
            Part(f" {face.glyph} ", color),
            Part(clip(name_of(task), width // 3), palette.strong),
            Part(f"  {face.word}", color),
        ]
        # Where there is little room, what is asked goes before who asks it.
        if task.agent and task.agent != task.title and (task.ask is None or width >= _ROOMY):
            head.append(Part("  " + clip(shown(task.agent), 24), palette.muted))
        if task.ask is not None:
            head += [Part("  "), Part("NEEDS YOU", palette.needs), Part(" ")]
            head.append(Part(clip_sentence(in_line(task, task.ask), width - width_of(head))))
        return [head, self._times(task, self._clock(), width, palette)]

    def _times(self, task: Task, now: float, width: int, palette: Palette) -> Parts:
        """The latest attempts, waits and requests, as many as there is room for."""
        spans = self._chart.spans_of(task)
        if not spans:
            return [Part("   no file speaks of it", palette.muted)]
        several = len(task.attempts) > 1
        # An open request says itself who waits for whom.
        found = [
            (span.start, _span_words(span, now, several=several), span.asks)
            for span in spans
            if not (span.asks and task.request is not None)
        ]
        found += [(one.asked_at, _request_words(one, now), one.waits_for_operator) for one in task.requests]
        parts: Parts = []
        for _, words, asks in sorted(found, key=lambda one: one[0], reverse=True):
            piece = [Part("   "), Part(words, palette.needs if asks else palette.muted)]
            if parts and width_of(parts) + width_of(piece) > width - 4:
                return [Part("  …", palette.muted), *parts]
            parts = piece + parts
        return parts


def _request_words(request: Request, now: float) -> str:
    """The outcome of a request of its program, and by whom."""
    what = f"{ASKED} {shown(request.tool, 20)} asked {times.clock(request.asked_at, now)}"
    if request.is_open:
        return f"{what}, {standing_words(request, now)}"
    took = "" if request.ended_at is None else f" after {times.span(request.ended_at - request.asked_at)}"
    return f"{what}, {ended_words(request)}{took}"


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
        self.reading.set_class(self.app.size.height >= _TALL, "-tall")
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

    def on_resize(self, event: events.Resize) -> None:
        self.reading.set_class(event.size.height >= _TALL, "-tall")

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
