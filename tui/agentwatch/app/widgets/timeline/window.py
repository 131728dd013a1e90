"""Which part of time is on screen: all of it, the present, or where the operator has gone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.app.widgets.timeline.activity import IDLE
from agentwatch.app.widgets.timeline.scale import FINEST, FOLD, Axis, fitting_scale, fold_width
from agentwatch.view.spans import Interval

_ZOOM: Final = 1.5
_MARGIN: Final = 1.0
"""Columns in front of the first sign."""
_PAN: Final = 8
"""The part of the width that a step moves by: an eighth."""
_CATCH_UP: Final = 4
"""The part of the width that scrolls in when the present has reached the right edge: a quarter."""


@dataclass(frozen=True, slots=True)
class Frame:
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

    It fits all of time until the operator zooms in; it follows the present while that is in sight.
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

    def fit(self) -> None:
        """Show all of time."""
        self.fits = True

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
