"""The moments that the axis names, and how: round ones in local time, the date where a day begins. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Final

from agentwatch.app.widgets.timeline.scale import Axis

_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000),
)
"""Seconds."""
_SPACE: Final = 4
"""Columns between two labels, at least."""
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment with a name. `column` is on the axis; `is_day` says that the name is a date."""

    column: float
    label: str
    is_day: bool = False


def ticks(axis: Axis, left: float, right: float, now: float) -> list[Tick]:
    """The ticks between two columns, with room between their labels; behind each fold the moment where time goes on."""
    step = next((step for step in _STEPS if step / axis.scale >= len(_name(0.0, step)) + _SPACE), _STEPS[-1])
    edges = [left, *(edge for fold in axis.folds for edge in (fold.left, fold.right)), right]
    found: list[Tick] = []
    for begin, finish in zip(edges[::2], edges[1::2], strict=True):
        start, end = max(begin, left), min(finish, right)
        if end < max(start, _free(found)):
            continue
        begins = [] if start == left else [_resumed(axis, start, found, now)]
        for tick in (*begins, *_round(axis, start, end, step, now)):
            if not found and tick.label.startswith("+"):
                # Nothing before it says of which minute.
                moment = time.localtime(axis.moment(tick.column))
                found.append(replace(tick, label=time.strftime("%H:%M:%S", moment)))
            elif tick.column >= _free(found):
                found.append(tick)
    return found


def _free(found: list[Tick]) -> float:
    """The first column that the label before leaves free."""
    return found[-1].column + len(found[-1].label) + 2 if found else -inf


def _resumed(axis: Axis, column: float, before: list[Tick], now: float) -> Tick:
    moment = axis.moment(column + 1e-6)
    other = day(moment, now) != (day(axis.moment(before[-1].column), now) if before else None)
    clock = _name(moment, 60)
    return Tick(column, f"{day(moment, now)} {clock}" if other else clock, is_day=other)


def _round(axis: Axis, left: float, right: float, step: int, now: float) -> Iterator[Tick]:
    """The multiples of a step of local time."""
    moment = axis.moment(left)
    for _ in range(_MOST):
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
    found = ceil((moment + offset) / step) * step - offset
    # Where the clocks are changed in between.
    return found + offset - time.localtime(found).tm_gmtoff if step >= 3_600 else found


def _name(moment: float, step: int) -> str:
    local = time.localtime(moment)
    if step < 60 and local.tm_sec:
        return f"+{local.tm_sec}s"
    return time.strftime("%H:%M", local)


def day(moment: float, now: float) -> str:
    """The date of a moment, with the year if it is another one than now's."""
    local = time.localtime(moment)
    name = f"{local.tm_mday} {time.strftime('%b', local)}"
    return name if local.tm_year == time.localtime(now).tm_year else f"{name} {local.tm_year}"
