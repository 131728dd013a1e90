"""The timeline in characters: a line a task, its attempts as blocks on the common clock."""

from __future__ import annotations

import unicodedata
from typing import Final

from agentwatch.report.account import Account, TaskLine
from agentwatch.report.axis import Axis, axis_of
from agentwatch.text import clean
from agentwatch.view.times import utc

CELLS: Final = 48
NAME: Final = 30


def strips(account: Account) -> list[str]:
    """The clock, then a line for each task; empty if there is nothing to draw.

    `█` an attempt, `░` nobody works and somebody waits, `┆` where a long pause is left out.
    """
    axis = axis_of(account)
    if axis is None:
        return []
    begin, end = utc(axis.moment(0.0)), utc(axis.moment(1.0))
    # The day stands once where both ends have the same.
    end = end[11:] if begin[:10] == end[:10] else end
    head = f"{'UTC':<{NAME + 2}}  {begin}{end:>{CELLS - len(begin)}}"
    return [head, *(_strip(line, axis) for line in account.tasks)]


def _strip(line: TaskLine, axis: Axis) -> str:
    cells = [" "] * CELLS
    for cut in axis.cuts:
        cells[_cell((cut.begin + cut.end) / 2)] = "┆"
    for bar in axis.bars(line):
        for cell in range(_cell(bar.begin), _cell(bar.end) + 1):
            cells[cell] = "░" if bar.look is None else "█"
    shown = line.look
    return f"{shown.glyph} {_fitted('  ' * min(line.depth, 6) + line.task.title)}  {''.join(cells)}".rstrip()


def _cell(place: float) -> int:
    return min(int(place * CELLS), CELLS - 1)


def _fitted(name: str) -> str:
    """The name in as many columns as every other one, as far as anybody can tell."""
    fitted: list[str] = []
    room = NAME
    for character in clean(name, 200):
        # A mark above another character takes no column everywhere, or one in some places.
        if unicodedata.category(character) in ("Mn", "Me", "Mc"):
            continue
        if _width(character) > room:
            room += _width(fitted.pop())
            fitted.append("…")
            room -= 1
            break
        fitted.append(character)
        room -= _width(character)
    return "".join(fitted) + " " * room


def _width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
