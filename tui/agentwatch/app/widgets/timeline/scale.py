"""Moments to columns and back: a straight line, but for idle stretches that are folded to a few columns. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log
from typing import Final

from agentwatch.view.spans import Interval

FOLD: Final = 9.0
"""Columns that a folded idle stretch takes at most: what its length in words needs."""
FINEST: Final = 0.05
"""Seconds a column."""
_STEP: Final = 1.15
"""Between two scales that fitting chooses from: so the picture stands still until it is full, and then makes room."""


@dataclass(frozen=True, slots=True)
class Fold:
    """An idle stretch that takes fewer columns than its time would."""

    left: float
    right: float
    seconds: float


class Axis:
    """Columns of time, 0 at the first sign. `scale` is in seconds a column; idle time takes at most `fold` columns."""

    def __init__(self, stretches: Sequence[Interval], now: float, scale: float, fold: float) -> None:
        self.scale = scale
        self.folds: list[Fold] = []
        busy = [*stretches, (now, now)] if not stretches or now > stretches[-1][1] else stretches
        self._times = [busy[0][0], busy[0][1]]
        self._columns = [0.0, (busy[0][1] - busy[0][0]) / scale]
        for (_, end), (start, until) in pairwise(busy):
            column = self._columns[-1]
            if (start - end) / scale > fold:
                self.folds.append(Fold(column, column + fold, start - end))
                column += fold
            else:
                column += (start - end) / scale
            self._times += [start, until]
            self._columns += [column, column + (until - start) / scale]

    def column(self, moment: float) -> float:
        """Where a moment is."""
        return _between(moment, self._times, self._columns, 1 / self.scale)

    def moment(self, column: float) -> float:
        """Which moment is there."""
        return _between(column, self._columns, self._times, self.scale)


def _between(value: float, known: list[float], wanted: list[float], slope: float) -> float:
    """The value on the line through the known points, with `slope` in front of the first and behind the last."""
    if value <= known[0]:
        return wanted[0] + (value - known[0]) * slope
    if value >= known[-1]:
        return wanted[-1] + (value - known[-1]) * slope
    after = bisect_right(known, value)
    low, high = known[after - 1], known[after]
    return wanted[after - 1] + (value - low) / (high - low) * (wanted[after] - wanted[after - 1])


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
