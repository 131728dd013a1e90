"""Moments to columns and back: a straight line, but for pauses that are folded to a few columns. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from agentwatch.view.spans import Interval


class Fold(NamedTuple):
    """A pause that takes fewer columns than its time would."""

    left: float
    right: float
    seconds: float


class Axis:
    """Columns of time, 0 at the first sign, at `scale` seconds a column.

    A pause between the stretches that lasts `longest` seconds takes `fold` columns, whatever its length; without
    `longest`, one that would take more.
    """

    def __init__(
        self, stretches: Sequence[Interval], now: float, scale: float, fold: float, longest: float | None = None
    ) -> None:
        self.scale = scale
        self.folds: list[Fold] = []
        busy = [*stretches, (now, now)] if not stretches or now > stretches[-1][1] else stretches
        self._times = [busy[0][0], busy[0][1]]
        self._columns = [0.0, (busy[0][1] - busy[0][0]) / scale]
        for (_, end), (start, until) in pairwise(busy):
            column, pause = self._columns[-1], start - end
            if pause > (fold * scale if longest is None else longest):
                self.folds.append(Fold(column, column + fold, pause))
                column += fold
            else:
                column += pause / scale
            self._times += [start, until]
            self._columns += [column, column + (until - start) / scale]

    @property
    def length(self) -> float:
        """Columns from the first sign to the last."""
        return self._columns[-1]

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
