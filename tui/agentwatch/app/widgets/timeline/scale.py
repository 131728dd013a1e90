"""Moments to columns and back, the ticks that the axis names, and which part of time is on screen. Pure.

The axis is a straight line, but for idle stretches that are folded to a few columns.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, inf, log
from typing import Final, NamedTuple

from agentwatch.app.widgets.timeline.activity import IDLE
from agentwatch.view.axis import Axis
from agentwatch.view.spans import Interval

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
    """What one picture shows: the axis, the column at its left edge, and the present."""

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
        """What to show at `now`. `stretches` are those with activity, in order."""
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
        """What is not folded. A time stamp from the future is as good as now."""
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
