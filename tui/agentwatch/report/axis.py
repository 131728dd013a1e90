"""The clock of a timeline, with the hours in which nothing happened left out, and the timeline in characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agentwatch.delegation.task import State, Task
from agentwatch.report.account import Account, TaskLine
from agentwatch.text import clean
from agentwatch.view.axis import Axis, Fold
from agentwatch.view.looks import Look
from agentwatch.view.spans import Kind
from agentwatch.view.times import utc

CELLS: Final = 48
NAME: Final = 30
SHORTEST: Final = 2.0
"""Seconds. What is shorter has no timeline: files of a fresh checkout all have the time of the checkout."""

_IDLE: Final = 0.1
"""A pause longer than this share of the busy time is cut down to it."""

_IDLE_AT_LEAST: Final = 30.0
_ALL_IDLE: Final = 0.4
"""All pauses that were cut down take at most this share of the busy time together."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What is drawn of a task: an attempt or a wait, as two places. `open` means that the attempt still runs."""

    begin: float
    end: float
    look: Look | None
    """That of the attempt, None for a wait."""
    open: bool = False


class Clock:
    """An axis from 0 to 1; `cuts` are the pauses that were cut down, between their two places."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        length = axis.length
        self.cuts = [Fold(fold.left / length, fold.right / length, fold.seconds) for fold in axis.folds]

    def place(self, at: float) -> float:
        """Where a moment lies; before the beginning 0, after the end 1."""
        return min(max(self._axis.column(at) / self._axis.length, 0.0), 1.0)

    def moment(self, place: float) -> float:
        """The moment that lies at a place."""
        return self._axis.moment(place * self._axis.length)

    def bars(self, line: TaskLine) -> Iterator[Bar]:
        """The bars of a task, waits first: attempts are drawn over them."""
        for span in sorted(line.spans, key=lambda span: span.kind is not Kind.WAIT):
            end = 1.0 if span.end is None else self.place(span.end)
            is_wait = span.kind is Kind.WAIT
            yield Bar(self.place(span.start), end, None if is_wait else span.look, span.end is None and not is_wait)


def clock_of(account: Account) -> Clock | None:
    """The clock of a session; None if its times are not known, or all the same."""
    spans = sorted(_spans(account))
    if not spans or max(end for _, end in spans) - spans[0][0] < SHORTEST:
        return None
    busy = _merged(spans)
    last = busy[-1][1]
    if account.generated_at > last and any(_is_running(line.task) for line in account.tasks):
        busy.append((account.generated_at, account.generated_at))
    worked = sum(end - begin for begin, end in busy)
    pauses = [after - before for (_, before), (after, _) in pairwise(busy)]
    longest = max(worked * _IDLE, _IDLE_AT_LEAST)
    cut = sum(pause > longest for pause in pauses)
    short = min(longest, max(worked * _ALL_IDLE / cut, 1.0)) if cut else longest
    return Clock(Axis(busy, busy[-1][1], 1.0, short, longest))


def _spans(account: Account) -> Iterator[tuple[float, float]]:
    """When something happened: what tasks without children did, and when those above them began and ended.

    A parent spans the night in which it waited for an answer: its whole time would leave no pause to leave out.
    """
    for line in account.tasks:
        task = line.task
        for attempt, end, _, _ in line.attempts:
            is_last = attempt is task.attempts[-1] and attempt.state is State.WORKING
            began, ended = attempt.started_at, task.updated_at or task.alive_at if end is None and is_last else end
            if began is not None and ended is not None and not task.below:
                yield min(began, ended), max(began, ended)
            else:
                yield from ((at, at) for at in (began, ended) if at is not None)


def _is_running(task: Task) -> bool:
    return task.needs_operator or (task.state.is_open and not task.below)


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def strips(account: Account) -> list[str]:
    """The clock, then a line for each task; empty if there is nothing to draw.

    `█` an attempt, `░` nobody works and somebody waits, `┆` where a long pause is left out.
    """
    clock = clock_of(account)
    if clock is None:
        return []
    begin, end = utc(clock.moment(0.0)), utc(clock.moment(1.0))
    # The day stands once where both ends have the same.
    end = end[11:] if begin[:10] == end[:10] else end
    head = f"{'UTC':<{NAME + 2}}  {begin}{end:>{CELLS - len(begin)}}"
    return [head, *(_strip(line, clock) for line in account.rows)]


def _strip(line: TaskLine, clock: Clock) -> str:
    cells = [" "] * CELLS
    for cut in clock.cuts:
        cells[_cell((cut.left + cut.right) / 2)] = "┆"
    for bar in clock.bars(line):
        for cell in range(_cell(bar.begin), _cell(bar.end) + 1):
            cells[cell] = "░" if bar.look is None else "█"
    shown = line.look
    return f"{shown.glyph} {_fitted('  ' * min(line.depth, 6) + line.title)}  {''.join(cells)}".rstrip()


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
