"""The session over time: a bar for each row of the tree on a shared clock, its axis, and the selected task in words.

The axis is a straight line, but for idle stretches that are folded to a few columns.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise, starmap
from math import ceil, floor, inf, log
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.color import Color
from textual.message import Message
from textual.strip import Strip

from agentwatch.app.actions import Home, bindings
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_sentence, shown
from agentwatch.app.widgets.line import Canvas, LineWidget, Part, Parts, apart, width_of
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
_FADED: Final = 0.5
"""How much of the background is in the colour of what is over."""
_BACKWARDS: Final = Style(reverse=True)
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
    busy = [*stretches, (now, now)]
    work = sum(end - start for start, end in stretches)
    idle = [max(start - end, 0.0) for (_, end), (start, _) in pairwise(busy)]

    def takes(rung: int) -> float:
        scale = FINEST * _STEP**rung
        return work / scale + sum(min(length / scale, fold) for length in idle)

    top = max(ceil(log(max((work + sum(idle)) / max(room, 1.0) / FINEST, 1.0), _STEP)), 0)
    # The widths fall from rung to rung.
    rung = bisect_left(range(top), -room, key=lambda number: -takes(number))
    return FINEST * _STEP**rung


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
    for begin, finish in zip(edges[::2], edges[1::2], strict=True):
        start, end = max(begin, left), min(finish, right)
        if end < max(start, _free(named)):
            continue
        begins = [] if start == left else [_resumed(axis, start, named, now)]
        for tick in (*begins, *_round(axis, start, end, step, now)):
            if not named and tick.label.startswith("+"):
                # Nothing before it says of which minute.
                moment = time.localtime(axis.moment(tick.column))
                named.append(tick._replace(label=time.strftime("%H:%M:%S", moment)))
            elif tick.column >= _free(named):
                named.append(tick)
    return named


def _free(named: list[Tick]) -> float:
    """The first column that the label before leaves free."""
    return named[-1].column + len(named[-1].label) + 2 if named else -inf


def _resumed(axis: Axis, column: float, before: list[Tick], now: float) -> Tick:
    moment = axis.moment(column + 1e-6)
    other = day(moment, now) != (day(axis.moment(before[-1].column), now) if before else None)
    clock = _name(moment, 60)
    return Tick(column, f"{day(moment, now)} {clock}" if other else clock, is_day=other)


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
    """One picture: the axis, the column at its left edge, and the present."""

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
        self._moment = 0.0
        self._x = 0.0
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
        left = axis.column(self._moment) - self._x
        left = max(min(left, present - self.width / _CATCH_UP), -_MARGIN)
        if self._has_moved:
            self.follows = 0 <= present - left <= self._room
            self._has_moved = False
        elif self.follows and not 0 <= present - left <= self._room:
            left = max(present - self._room + self.width / _CATCH_UP, -_MARGIN)
            self._moment, self._x = now, present - left
        return Frame(axis, left, self.width, now)

    def _shown(self, stretches: Sequence[Interval], now: float) -> Sequence[Interval]:
        """The spans that are not folded. A time stamp from the future is as good as now."""
        if not stretches:
            return [(now, now)]
        if not self.folds_idle:
            return [(min(stretches[0][0], now), now)]
        if stretches[-1][1] > now:
            return [(min(start, now), min(end, now)) for start, end in stretches]
        if stretches[-1][1] > now - IDLE:
            return [*stretches[:-1], (stretches[-1][0], now)]
        return stretches

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


class Inks(NamedTuple):
    """The styles of one theme. What is over and asks for nothing is drawn in `faded`: it recedes."""

    palette: Palette
    faded: Mapping[str, Style]
    colorless: bool

    @classmethod
    def of(cls, palette: Palette, *, colorless: bool) -> Inks:
        """The inks of a palette. `colorless`: colours cannot be mixed, so that dim has to do."""
        background = None if colorless else palette.base.bgcolor
        return cls(palette, {name: _fade(style, background) for name, style in palette.states.items()}, colorless)


def _fade(style: Style, background: RichColor | None) -> Style:
    if style.color is None or background is None:
        return style + Style(dim=True)
    color = Color.from_rich_color(style.color).blend(Color.from_rich_color(background), _FADED)
    return Style(color=color.rich_color)


class Ground(NamedTuple):
    """Shared by all rows of one picture: the frame, the cells of its ticks and folds, and that of the present."""

    frame: Frame
    ticks: tuple[int, ...]
    folds: frozenset[int]
    present: int

    @classmethod
    def of(cls, frame: Frame, ticks: Sequence[float]) -> Ground:
        """The ground of a frame with ticks at these columns of its axis."""
        edges = [(floor(fold.left - frame.left), floor(fold.right - frame.left)) for fold in frame.axis.folds]
        folds = frozenset(x for left, right in edges for x in range(max(left + 1, 0), min(right, frame.width)))
        cells = (floor(column - frame.left) for column in ticks)
        lines = tuple(x for x in cells if 0 <= x < frame.width and x not in folds)
        return cls(frame, lines, folds, floor(frame.x(frame.now)))


class Bar(Canvas):
    """The cells of one row."""

    def __init__(self, ground: Ground, inks: Inks) -> None:
        super().__init__(ground.frame.width)
        self._ground = ground
        self._inks = inks
        self._palette = inks.palette
        for x in ground.ticks:
            self.put(x, TICK, self._palette.line)
        self.put(ground.present, NOW, self._palette.accent)

    def segments(self, base: Style) -> list[Segment]:
        """The row on a background."""
        return [Segment(text, base + style) for text, style in self.runs()]

    def draw(
        self, spans: Sequence[Span], below: Interval | None, *, asks: bool, note: str, pauses: Sequence[Pause] = ()
    ) -> None:
        """Draw a task: from the first to the last sign below it, its spans, in them its requests, and a note behind the
        present.

        `below` is None for a task without tasks below it; what is over fades unless the task `asks` for somebody.
        """
        frame = self._ground.frame
        edges = self._edges(spans)
        sides = edges
        if below is not None:
            start, end = frame.x(below[0]), frame.x(below[1])
            self._line(start, max(end, start + 1), BELOW, self._palette.muted)
            sides = [*edges, (start, end)]
        # Where all of it is out of sight, say at which side.
        if sides and max(right for _, right in sides) < 0:
            self.put(0, EARLIER, self._palette.muted)
        elif sides and min(left for left, _ in sides) >= self.width:
            self.put(self.width - 1, LATER, self._palette.muted)
        styles = [
            (self._palette.states if asks or span.end is None else self._inks.faded)[span.look.color] for span in spans
        ]
        drawn = sorted(zip(spans, edges, styles, strict=True), key=lambda one: one[0].kind is Kind.WORK)
        for span, (left, right), style in drawn:
            self._span(span, left, right, style, has_below=below is not None)
        for number, (span, (left, right), style) in enumerate(zip(spans, edges, styles, strict=True)):
            room = self._room_behind(spans[number + 1], edges[number + 1]) if number + 1 < len(spans) else self.width
            self._label(span, left, right, style, room)
        for pause in pauses:
            self._pause(pause)
        if note:
            self._write(self._ground.present + 2, [Part(note, self._palette.needs)], self.width)

    def _edges(self, spans: Sequence[Span]) -> list[Interval]:
        """From which cell to which; a wait begins where the bar before it is drawn to."""
        frame = self._ground.frame
        edges: list[Interval] = []
        for number, span in enumerate(spans):
            left, right = frame.x(span.start), frame.x(span.until(frame.now))
            if number and span.kind is not Kind.WORK:
                left = max(left, _behind(spans[number - 1], *edges[-1]))
            edges.append((left, right))
        return edges

    # Bars

    def _span(self, span: Span, left: float, right: float, style: Style, *, has_below: bool) -> None:
        if span.kind is not Kind.WORK:
            self._line(left, right, _FILLS[span.kind], style)
        elif right > left:
            if has_below:
                self._rail(left, right, style)
            elif _is_bad(span):
                self._line(*_whole(left, right), BAD, style)
            else:
                self._block(left, right, style)
        if not span.is_certain and (right > left or span.end is None):
            self.put(min(floor(left), self._ground.present) - 1, "?", self._palette.muted)

    def _pause(self, pause: Pause) -> None:
        frame, is_open = self._ground.frame, pause.end is None
        style = (self._palette.states if is_open else self._inks.faded)[_BLOCKED]
        left, right = floor(frame.x(pause.start)), floor(frame.x(frame.now if pause.end is None else pause.end))
        self._line(left + 1, right, WAIT, style)
        self.put(left, ASKED, style)
        if pause.end is not None and pause.end > pause.start:
            self.put(right, ANSWERED if pause.answered else OVER, style)

    def _line(self, left: float, right: float, glyph: str, style: Style) -> None:
        """Whole cells, up to the present."""
        for x in range(max(floor(left), 0), min(max(floor(right), 0), self._ground.present, self.width)):
            self.put(x, FOLDED if x in self._ground.folds else glyph, style)

    def _block(self, left: float, right: float, style: Style) -> None:
        """Whole cells, and eighths of a cell at both ends; up to the present."""
        start, end = _eighths(max(left, -1.0), min(right, self.width + 1.0))
        if self._inks.colorless:
            # A start within a cell needs reversed colours, and faint ones are not faint when reversed.
            start -= start % 8
        (first, before), (last, behind) = divmod(start, 8), divmod(min(end, self._ground.present * 8), 8)
        if first == last and behind > before:
            # A piece in the middle of a cell stands at the nearer side of it.
            if before + behind <= 8:
                self.put(first, _EIGHTHS[behind - before], style)
            else:
                self.put(first, _EIGHTHS[8 - behind + before], style + _BACKWARDS)
        elif first < last:
            self._line(first, last, WORK, style)
            if before and first not in self._ground.folds:
                self.put(first, _EIGHTHS[before], style + _BACKWARDS)
            if behind and last not in self._ground.folds:
                self.put(last, _EIGHTHS[behind], style)

    def _rail(self, left: float, right: float, style: Style) -> None:
        """A line over what is below, with half cells at both ends; up to the present."""
        start = floor(max(left, -1.0) * 2)
        end = max(round(min(right, self.width + 1.0) * 2), start + 1)
        (first, before), (last, behind) = divmod(start, 2), divmod(min(end, self._ground.present * 2), 2)
        self._line(first, last, RAIL, style)
        if before and first < self._ground.present and first not in self._ground.folds:
            self.put(first, "╺", style)
        if behind and not (before and first == last) and last not in self._ground.folds:
            self.put(last, "╸", style)

    # Words

    def _room_behind(self, following: Span, edges: Interval) -> int:
        """The cell that a label must not reach: the next attempt, or two cells of a wait before it."""
        if following.kind is Kind.WAIT:
            return min(floor(edges[1]), self._ground.present) - 2
        return floor(edges[0])

    def _label(self, span: Span, left: float, right: float, style: Style, room: int) -> None:
        """Glyph and length behind a bar; what goes on has them behind the present."""
        length = times.duration(span.until(self._ground.frame.now) - span.start) + ("" if span.is_certain else "+")
        face = [Part(span.look.glyph, style)]
        if span.end is None:
            words = f" {span.look.word} {length}" if span.kind is Kind.SILENT else f" {length}"
            label = [Part(f"NEEDS YOU {length}", self._palette.needs)] if span.asks else [*face, Part(words)]
            self._write(self._ground.present + 2, label, self.width)
        elif span.kind is Kind.WAIT:
            cells = floor(right) - floor(left)
            if cells >= len(length) + 12:
                self._write(floor(left) + (cells - len(length)) // 2, [Part(f" {length} ", self._palette.muted)], room)
        elif right >= 0:
            x = floor(left) if right <= left else _behind(span, left, right)
            timed = face if right <= left or length == "0s+" else [*face, Part(f" {length}", self._palette.muted)]
            if self._ground.present < x + width_of(timed):
                x = self._ground.present + 2
            if not self._write(x, timed, room):
                self._write(x, face, room + 2)

    def _write(self, x: int, label: Parts, room: int) -> bool:
        """Write where there is room, up to a cell. Returns whether there was."""
        if x < 0 or x + width_of(label) > min(room, self.width):
            return False
        for part in label:
            self.write(x, part.text, part.style)
            x += part.width
        return True


def _is_bad(span: Span) -> bool:
    return span.look.word in _BAD_WORDS


def _behind(span: Span, left: float, right: float) -> int:
    """The first cell behind a bar."""
    return _whole(left, right)[1] if _is_bad(span) else -(-_eighths(left, right)[1] // 8)


def _whole(left: float, right: float) -> tuple[int, int]:
    """The two ends of a shaded bar: shades have no parts of a cell."""
    return round(left), max(round(right), round(left) + 1)


def _eighths(left: float, right: float) -> tuple[int, int]:
    """The two ends of a bar in eighths of a cell, so far apart that it can be seen."""
    start = round(left * 8)
    return start, max(round(right * 8), start + _LEAST)


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
            task = self._tree.tasks.get(row.task_id or "")
            if task is not None:
                note = _note(task) if row.folded else ""
                below = self.below(task, frame.now)
                bar.draw(self.spans_of(task), below, asks=task.needs_operator, note=note, pauses=pauses_of(task))
            marked = row.row_id == self._cursor and not palette.ansi
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
        frame, ticks = self._chart.picture
        names = self._chart.names_width
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        present = floor(frame.x(frame.now))
        first_day, today = day(frame.axis.moment(max(frame.left, 0.0)), frame.now), day(frame.now, frame.now)
        clock = time.strftime("%H:%M", time.localtime(frame.now))
        now = f"now {clock}" if today == first_day else f"now {today} {clock}"
        word = max(min(present - 1, frame.width - len(now)), 0) if 0 <= present < frame.width else frame.width
        for tick in ticks:
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
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        legend: Parts = []
        more: Parts = []
        for glyphs, meaning in _LEGEND:
            entry = Part(f" {glyphs} {meaning}", palette.muted)
            if not more and width_of(legend) + entry.width < names:
                legend.append(entry)
            elif width_of(title) + width_of(more) + entry.width + 2 < names:
                # Beside the title is room for those that come last.
                more.append(entry)
        return [
            [*apart(title, more, names - 1), Part(" "), *starmap(Part, labels.runs())],
            [*apart(legend, [], names), *starmap(Part, line.runs())],
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
            head += [Part("  "), Part("NEEDS YOU", palette.needs), Part(f" {in_line(task, task.ask)}")]
        return [_cut(head, width), _cut(self._times(task, self._clock(), width, palette), width)]

    def _times(self, task: Task, now: float, width: int, palette: Palette) -> Parts:
        """The latest attempts and waits, as many as there is room for."""
        spans = self._chart.spans_of(task)
        if not spans:
            return [Part(_below(self._chart.below(task, now), now), palette.muted)]
        # An open request says itself who waits for whom.
        is_asked = task.request is not None
        told = [
            (span.start, _said(span, now, several=len(task.attempts) > 1), span.asks)
            for span in spans
            if not (span.asks and is_asked)
        ]
        told += [(one.asked_at, _asked(one, now), one.waits_for_operator) for one in task.requests]
        told.sort(key=lambda one: one[0])
        parts: Parts = []
        for _, words, asks in reversed(told):
            piece = [Part("   "), Part(words, palette.needs if asks else palette.muted)]
            if parts and width_of(parts) + width_of(piece) > width - 4:
                return [Part("  …", palette.muted), *parts]
            parts = piece + parts
        return parts


def _below(interval: Interval | None, now: float) -> str:
    words = "   no file speaks of it"
    if interval is None:
        return words
    start, end = interval
    until = "now" if end >= now else _clock(end, now, start)
    return f"{words}; below it {_clock(start, now)} → {until}  {times.span(end - start)}"


def _asked(request: Request, now: float) -> str:
    """The outcome of a request of its program, and by whom."""
    what = f"{ASKED} {shown(request.tool, 20)} asked {_clock(request.asked_at, now)}"
    if request.is_open:
        return f"{what}, {standing_words(request, now)}"
    took = "" if request.ended_at is None else f" after {times.span(request.ended_at - request.asked_at)}"
    return f"{what}, {ended_words(request)}{took}"


def _said(span: Span, now: float, *, several: bool) -> str:
    length = times.span(span.until(now) - span.start)
    start = _clock(span.start, now)
    end = "now" if span.end is None else _clock(span.end, now, span.start)
    if span.asks:
        return f"waits for you since {start}, {length}"
    if span.kind is Kind.WAIT:
        return f"waited {length}" if span.end is not None else f"waits since {start}, {length}"
    attempt = f"{span.look.glyph} attempt {span.number}  " if several else ""
    if span.kind is Kind.SILENT:
        return f"{attempt}{span.look.word} since {start}, {length}"
    if span.kind is Kind.QUEUE:
        return f"{attempt}handed off {start}, no sign of life for {length}"
    if span.is_certain:
        return f"{attempt}{start} → {end}  {length}"
    if span.end == span.start:
        return f"{attempt}start unknown, returned {end}"
    return f"{attempt}start unknown, first sign {start} → {end}"


def _clock(moment: float, now: float, before: float | None = None) -> str:
    """A moment to the second, with its date where that is not that of the moment named before it, else not today's.

    One from the future is as good as now.
    """
    moment = min(moment, now)
    words = time.strftime("%H:%M:%S", time.localtime(moment))
    known = now if before is None else min(before, now)
    return words if day(moment, now) == day(known, now) else f"{day(moment, now)} {words}"


def _cut(parts: Parts, width: int) -> Parts:
    """The parts in at most `width` cells."""
    cut: Parts = []
    for part in parts:
        room = width - width_of(cut)
        if room <= 0:
            break
        cut.append(Part(clip_sentence(part.text, room), part.style))
    return cut
