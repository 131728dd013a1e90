"""The clock of a timeline: moments to places between 0 and 1, with the hours in which nothing happened left out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agentwatch.delegation.task import State, Task
from agentwatch.report.account import Account, TaskLine
from agentwatch.view.looks import Look
from agentwatch.view.spans import Kind

SHORTEST: Final = 2.0
"""Seconds. What is shorter has no timeline: files of a fresh checkout all have the time of the checkout."""

_IDLE: Final = 0.1
"""A pause longer than this share of the busy time is cut down to it."""

_IDLE_AT_LEAST: Final = 30.0
_ALL_IDLE: Final = 0.4
"""All pauses that were cut down take at most this share of the busy time together."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A pause that was cut down: its two places on the axis, and the seconds that it lasted."""

    begin: float
    end: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What is drawn of a task: an attempt or a wait, as two places. `open` means that the attempt still runs."""

    begin: float
    end: float
    look: Look | None
    """That of the attempt, None for a wait."""
    open: bool = False


class Axis:
    """Straight between its stations: (moment in seconds since the epoch, place from 0 to 1), both rising."""

    def __init__(self, stations: list[tuple[float, float]], cuts: tuple[Cut, ...]) -> None:
        self._moments = [moment for moment, _ in stations]
        self._places = [place for _, place in stations]
        self.cuts = cuts

    def place(self, at: float) -> float:
        """Where a moment lies; before the beginning 0, after the end 1."""
        return _between(at, self._moments, self._places)

    def moment(self, place: float) -> float:
        """The moment that lies at a place."""
        return _between(place, self._places, self._moments)

    def bars(self, line: TaskLine) -> Iterator[Bar]:
        """The bars of a task, waits first: attempts are drawn over them."""
        for span in sorted(line.spans, key=lambda span: span.kind is not Kind.WAIT):
            end = 1.0 if span.end is None else self.place(span.end)
            is_wait = span.kind is Kind.WAIT
            yield Bar(self.place(span.start), end, None if is_wait else span.look, span.end is None and not is_wait)


def axis_of(account: Account) -> Axis | None:
    """The axis of a session; None if its times are not known, or all the same."""
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
    return _straightened(busy, longest, short)


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


def _straightened(busy: list[tuple[float, float]], longest: float, short: float) -> Axis:
    """The axis of these times, pauses longer than `longest` cut down to `short` (all in seconds)."""
    stations = [(busy[0][0], 0.0)]
    cuts: list[tuple[float, float, float]] = []
    length = 0.0
    for number, (begin, end) in enumerate(busy):
        if number:
            pause = begin - busy[number - 1][1]
            shown = short if pause > longest else pause
            if shown != pause:
                cuts.append((length, length + shown, pause))
            length += shown
            stations.append((begin, length))
        if end > begin:
            length += end - begin
            stations.append((end, length))
    return Axis(
        [(moment, place / length) for moment, place in stations],
        tuple(Cut(begin / length, end / length, seconds) for begin, end, seconds in cuts),
    )


def _between(value: float, knots: list[float], results: list[float]) -> float:
    if value <= knots[0]:
        return results[0]
    if value >= knots[-1]:
        return results[-1]
    above = bisect_right(knots, value)
    low, high = knots[above - 1], knots[above]
    share = (value - low) / (high - low)
    return results[above - 1] + share * (results[above] - results[above - 1])
