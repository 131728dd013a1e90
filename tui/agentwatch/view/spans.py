"""A task's attempts and waits as spans of time, and time as columns. Pure, without a clock: what goes on has no end."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from agentwatch.delegation.task import Attempt, Shown, State, Task
from agentwatch.view.words import ASKS, LOOKS, Look, ended_at, look

Interval = tuple[float, float]  # From, to; seconds since the epoch, or columns

_LONGEST = 12 * 3_600.0  # Seconds: of an attempt that lasted longer only the two ends are known to have been work


class Kind(Enum):
    """The way in which a span passes."""

    WORK = auto()
    QUEUE = auto()  # Handed off, no sign of life
    SILENT = auto()  # Said to work, and silent for too long, or nothing is known of it
    WAIT = auto()  # For the next attempt, or for the operator


class Span(NamedTuple):
    """Seconds since the epoch. `end` is None while it goes on; `number` is the attempt, or the one waited after."""

    start: float
    end: float | None
    kind: Kind
    look: Look
    number: int
    asks: bool = False  # Whether it is the operator who is waited for

    def until(self, now: float) -> float:
        """Where it ends for somebody who looks at `now`; never before its start."""
        return max(self.start, now if self.end is None else min(self.end, now))


def _signs(attempt: Attempt) -> Interval | None:
    """The first sign of an attempt, and when it returned, else its last; None where there is none."""
    handoff, returned, start, run = attempt.handoff, attempt.returned, attempt.started_at, attempt.run
    signs = [version.at for version in (handoff, returned) if version is not None]
    if returned is not None:
        first, last = min(signs), max(signs) if attempt.state is State.WORKING else returned.at
    elif run is not None:
        # Its store knows, also of those that were handed prose and gave prose back.
        first, last = run.started_at, run.updated_at if run.ended_at is None else run.ended_at
    elif signs:
        first = last = signs[0]
    else:
        return None
    if start is not None and (attempt.again or start < first):
        first = start
    # A file may claim to be older than the epoch, by so much that no calendar has a name for it.
    return max(first, 0.0), max(last, 0.0)


def spans_of(task: Task) -> list[Span]:
    """The spans of a task, in the order of its attempts; empty for one that no file speaks of."""
    attempts = [(one, *signs) for one in task.attempts if (signs := _signs(one))]
    if not attempts:
        return []
    spans: list[Span] = []
    for (one, start, last), (_, following, _) in pairwise(attempts):
        face, is_queued = LOOKS[one.state], one.state is State.SUBMITTED
        end = following if is_queued else last
        spans.append(Span(start, end, Kind.QUEUE if is_queued else Kind.WORK, face, one.number))
        if following > end:
            spans.append(Span(end, following, Kind.WAIT, face, one.number))
    spans += _latest(task, *attempts[-1])
    newest = spans[-1]
    if newest.end is None and task.state is State.UNKNOWN and task.lost_since is not None:
        heard = max(newest.start, task.lost_since)
        spans[-1:] = [newest._replace(end=heard), Span(heard, None, Kind.SILENT, LOOKS[State.UNKNOWN], newest.number)]
    return [part for span in spans for part in _parts(span, task)]


def _parts(span: Span, task: Task) -> Iterator[Span]:
    """A span; where it is work, with the waits in it for answers to requests. The work before one ends with a mark."""
    waits = sorted((one.asked_at, span.until(one.ended_at), one.kind) for one in task.requests if one.ended_at)
    for asked, answered, kind in waits if span.kind is Kind.WORK else ():
        if (start := max(asked, span.start)) < answered:
            yield span._replace(end=start, look=span.look._replace(glyph=ASKS[kind].glyph))
            yield Span(start, answered, Kind.WAIT, ASKS[kind], span.number, asks=True)
            span = span._replace(start=answered)
    yield span


def _latest(task: Task, attempt: Attempt, start: float, last: float) -> Iterator[Span]:
    number, state, ended = attempt.number, task.known_state, ended_at(task, attempt)
    face = LOOKS[state] if task.state is State.UNKNOWN else look(task)
    if task.shown in (Shown.SILENT, Shown.GONE, Shown.WAITING) and ended is None:
        stopped, kind = max(start, task.since or 0.0), Kind.WAIT if task.shown is Shown.WAITING else Kind.SILENT
        if stopped > start:
            yield Span(start, stopped, Kind.WORK, LOOKS[State.WORKING], number)
        yield Span(stopped, None, kind, face, number)
    elif state is State.WORKING:
        yield Span(start, None, Kind.WORK, face, number)
    elif attempt.state is State.SUBMITTED:
        yield Span(start, None if ended is None else max(ended, start), Kind.QUEUE, face, number)
    else:
        # A program that asks had gone on until then, whatever else it told last.
        last = max(start, task.since or 0.0) if task.request else max(ended or last, last)
        yield Span(start, last, Kind.WORK, face, number)
        if task.needs_operator or state in (State.RETRYING, State.ESCALATED):
            yield Span(last, None, Kind.WAIT, face, number, asks=task.needs_operator)


def last_of(spans: Sequence[Span]) -> Span:
    """The last span; where it is work, from the beginning of its attempt on, whatever it waited for meanwhile."""
    last = spans[-1]
    began = next(one.start for one in spans if one.number == last.number)
    return last._replace(start=began) if last.kind is Kind.WORK else last


def busy_times(task: Task) -> tuple[Interval, ...]:
    """When the task is known to have been at work, a moment as an interval without length.

    A task with tasks below it counts by its signs alone: while all of them wait, so does it.
    """
    times: list[Interval] = []
    for attempt, (start, last) in ((one, signs) for one in task.attempts if (signs := _signs(one))):
        end = max(last, task.updated_at) if attempt is task.attempts[-1] else last
        if task.children or end - start > _LONGEST or attempt.state is State.SUBMITTED:
            times += [(start, start), (end, end)]
        else:
            times.append((start, end))
    return tuple(times)


# Moments to columns and back


class Axis:
    """Columns of time, 0 at the first sign, at `scale` seconds a column.

    A pause between the stretches takes `fold` columns, where its time would take more.
    """

    def __init__(self, stretches: Sequence[Interval], now: float, scale: float, fold: float):
        self.scale = scale
        self.folds: list[Interval] = []  # The columns of the pauses that take fewer than their time would
        busy = [*stretches, (now, now)] if not stretches or now > stretches[-1][1] else stretches
        self._times = [busy[0][0], busy[0][1]]
        self._columns = [0.0, (busy[0][1] - busy[0][0]) / scale]
        for (_, end), (start, until) in pairwise(busy):
            left, pause = self._columns[-1], (start - end) / scale
            column = left + min(pause, fold)
            if pause > fold:
                self.folds.append((left, column))
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
