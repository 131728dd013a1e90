"""A task's attempts and waits as spans of time. Pure and without a clock: what still goes on has no end."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from itertools import pairwise
from typing import Final, NamedTuple

from agentwatch.delegation.task import Attempt, State, Task
from agentwatch.view.looks import LOOKS, STALE, Look, look
from agentwatch.view.times import ended_at

Interval = tuple[float, float]
"""From, to; seconds since the epoch."""

_LONGEST: Final = 12 * 3_600.0
"""Seconds: of an attempt that lasted longer only the two ends are known to have been work."""


class Kind(Enum):
    """The way in which a span passes."""

    WORK = auto()
    QUEUE = auto()
    """Handed off, no sign of life."""
    SILENT = auto()
    """Said to work, and silent for too long, or nothing is known of it."""
    WAIT = auto()
    """For the next attempt, or for the operator."""


class Span(NamedTuple):
    """Seconds since the epoch. `end` is None while it goes on; `number` is the attempt, or the one waited after."""

    start: float
    end: float | None
    kind: Kind
    look: Look
    number: int
    is_certain: bool = True
    """Whether the start is known; else it is the first known sign."""
    asks: bool = False
    """Whether it is the operator who is waited for."""

    def until(self, now: float) -> float:
        """Where it ends for somebody who looks at `now`; never before its start."""
        return max(self.start, now if self.end is None else min(self.end, now))


class _Begun(NamedTuple):
    """An attempt, its first sign, and when it returned, else its last."""

    attempt: Attempt
    start: float
    last: float

    @property
    def is_certain(self) -> bool:
        """Whether the start is when it was handed off."""
        return self.attempt.started_at is not None and self.attempt.started_at <= self.start


def _begun(attempt: Attempt) -> _Begun | None:
    """None where there is no sign of it."""
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
    return _Begun(attempt, max(first, 0.0), max(last, 0.0))


def spans_of(task: Task, first: float | None = None) -> list[Span]:
    """The spans of a task, in the order of its attempts; empty for one that no file speaks of.

    `first` is the first sign of anything below it: who hands work on has begun before.
    """
    attempts = [begun for begun in map(_begun, task.attempts) if begun]
    if attempts and first is not None and first < attempts[0].start and task.attempts[0].started_at is None:
        attempts[0] = attempts[0]._replace(start=first)
    spans: list[Span] = []
    for begun, following in pairwise(attempts):
        state, number = begun.attempt.state, begun.attempt.number
        queued = state is State.SUBMITTED
        end = following.start if queued else begun.last
        kind = Kind.QUEUE if queued else Kind.WORK
        spans.append(Span(begun.start, end, kind, LOOKS[state], number, begun.is_certain))
        if following.start > end:
            spans.append(Span(end, following.start, Kind.WAIT, LOOKS[state], number))
    if attempts:
        spans += _latest(task, attempts[-1])
    lost_at, last = task.lost_since, spans[-1] if spans else None
    if last is not None and last.end is None and task.state is State.UNKNOWN and lost_at is not None:
        heard = max(last.start, lost_at)
        spans[-1] = last._replace(end=heard)
        spans.append(Span(heard, None, Kind.SILENT, LOOKS[State.UNKNOWN], last.number))
    return spans


def _latest(task: Task, begun: _Begun) -> Iterator[Span]:
    number, start, certain, state = begun.attempt.number, begun.start, begun.is_certain, task.known_state
    face = LOOKS[state] if task.state is State.UNKNOWN else look(task)
    if task.stale:
        heard = max(start, task.updated_at)
        if heard > start:
            yield Span(start, heard, Kind.WORK, LOOKS[State.WORKING], number, certain)
        yield Span(heard, None, Kind.SILENT, STALE, number, certain or heard > start)
    elif state is State.WORKING:
        yield Span(start, None, Kind.WORK, face, number, certain)
    elif begun.attempt.state is State.SUBMITTED:
        ended = ended_at(task, begun.attempt)
        yield Span(start, None if ended is None else max(ended, start), Kind.QUEUE, face, number, certain)
    else:
        last = max(ended_at(task, begun.attempt) or begun.last, begun.last)
        yield Span(start, last, Kind.WORK, face, number, certain)
        if task.needs_operator or state in (State.RETRYING, State.ESCALATED):
            yield Span(last, None, Kind.WAIT, face, number, asks=task.needs_operator)


def busy_times(task: Task) -> tuple[Interval, ...]:
    """When the task is known to have been at work, a moment as an interval without length.

    A task with tasks below it counts by its signs alone: while all of them wait, so does it.
    """
    times: list[Interval] = []
    for attempt, start, last in filter(None, map(_begun, task.attempts)):
        end = max(last, task.updated_at) if attempt is task.attempts[-1] else last
        if task.children or end - start > _LONGEST or attempt.state is State.SUBMITTED:
            times += [(start, start), (end, end)]
        else:
            times.append((start, end))
    return tuple(times)
