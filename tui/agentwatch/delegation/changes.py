"""What the evidence says of returns, and files that changed while an attempt ran and that no return claims: its own
doing, or one of several's.

What ran at a moment is told by handoffs, returns and session stores. A task that hands work on waits for it: a file
that was written while a child ran is never held against those above it, and a session that a human began never counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterator
from posixpath import normpath
from typing import Final, NamedTuple

from agentwatch.delegation.events import Checked
from agentwatch.delegation.sums import ancestors, below
from agentwatch.delegation.task import State, Task, Version

_MADE: Final = frozenset({"created", "modified", "deliverable", "artifact"})
"""Kinds of claims by which a child says that it made a file."""


class CheckedReturns:
    """What was found about returns, by path and digest: a file may have held the latest returns of several tasks, one
    after the other."""

    def __init__(self) -> None:
        self._checked: dict[str, tuple[Checked, ...]] = {}

    def take(self, checked: Checked, latest: Container[str]) -> None:
        """Take in a check. Of the others of its file, those stay that are about one of the `latest` digests."""
        others = self._checked.get(checked.path, ())
        kept = [one for one in others if one.digest in latest and one.digest != checked.digest]
        self._checked[checked.path] = (*kept, checked)

    def of(self, returned: Version) -> Checked | None:
        """What was found about this very content."""
        for one in self._checked.get(returned.path, ()):
            if one.digest == returned.digest:
                return one
        return None

    def drop(self, path: str) -> None:
        """Forget a file."""
        self._checked.pop(path, None)


class Unclaimed(NamedTuple):
    """Files that no return claims, by path in the workspace and in order.

    `alone`: nobody else was at work when they were last written. `unattributed`: others were at work, too.
    """

    alone: tuple[str, ...] = ()
    unattributed: tuple[str, ...] = ()


class _Span(NamedTuple):
    """From when to when an attempt ran, both included; seconds since the epoch."""

    start: float
    end: float


_Spans = tuple[_Span, ...]


class Changes:
    """When the attempts of all tasks ran and which files their returns claim, kept right while tasks come and go.

    `silence` is in seconds: an attempt that has not returned counts as running for so long after its last sign of
    life. `is_document` tells the handoffs and returns themselves.
    """

    def __init__(self, tasks: dict[str, Task], silence: float, is_document: Callable[[str], bool]) -> None:
        self._tasks = tasks
        self.silence = silence
        self._is_document = is_document
        self._spans: dict[str, _Spans] = {}
        self._claims: dict[str, tuple[str, ...]] = {}
        self._moments: tuple[list[float], list[float]] | None = None
        """When attempts began and when they ended, in order; None until somebody asks again."""
        self._claimed: Counter[str] = Counter()

    def take(self, task: Task) -> None:
        """A task is new, or its attempts or claims are others now."""
        self.drop(task.task_id)
        if spans := tuple(self._spans_of(task)):
            self._spans[task.task_id] = spans
        if claims := tuple(_claimed(task)):
            self._claims[task.task_id] = claims
            self._claimed.update(claims)

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._moments = None
        self._spans.pop(task_id, None)
        for path in self._claims.pop(task_id, ()):
            self._claimed[path] -= 1
            if not self._claimed[path]:
                del self._claimed[path]

    def unclaimed(self, task: Task) -> Unclaimed | None:
        """What changed during a task's latest attempt and nobody claims; None where that cannot be known (yet)."""
        attempt = task.latest
        if task.changed is None or attempt is None or attempt.started_at is None:
            return None
        if attempt.returned is None or attempt.state is State.WORKING:
            return None
        suspects = [one for one in task.changed if not self._is_claimed(one.path) and not self._is_document(one.path)]
        if not suspects:
            return Unclaimed()
        own = self._spans.get(task.task_id, ())
        above = [self._spans.get(one, ()) for one in ancestors(self._tasks, task.task_id)]
        children = [self._spans.get(one, ()) for one in below(self._tasks, task.task_id)]
        alone: list[str] = []
        unattributed: list[str] = []
        for change in suspects:
            at = min(max(change.at, attempt.started_at), attempt.returned.at)
            if any(_running(child, at) for child in children):
                continue
            waiting = sum(_running(ancestor, at) for ancestor in above)
            others = self._running(at) - _running(own, at) - waiting
            (unattributed if others > 0 else alone).append(change.path)
        return Unclaimed(tuple(alone), tuple(unattributed))

    def _spans_of(self, task: Task) -> Iterator[_Span]:
        for number, attempt in enumerate(task.attempts):
            run = attempt.run
            if attempt.started_at is None or (run is not None and run.parent_session is None):
                continue
            if attempt.returned is not None and attempt.state is not State.WORKING:
                end = attempt.returned.at
            elif run is not None and run.ended_at is not None:
                end = run.ended_at
            else:
                later = (other.started_at for other in task.attempts[number + 1 :] if other.started_at is not None)
                end = next(later, task.updated_at + self.silence)
            if end >= attempt.started_at:
                yield _Span(attempt.started_at, end)

    def _is_claimed(self, path: str) -> bool:
        """Itself, or as part of a directory."""
        while path:
            if path in self._claimed:
                return True
            path = path.rpartition("/")[0]
        return False

    def _running(self, at: float) -> int:
        """How many attempts of all tasks ran at a moment."""
        if self._moments is None:
            # Put in order when somebody looks: for every observation, it would cost more the more tasks there are.
            spans = [span for each in self._spans.values() for span in each]
            self._moments = sorted(span.start for span in spans), sorted(span.end for span in spans)
        starts, ends = self._moments
        return bisect_right(starts, at) - bisect_left(ends, at)


def _running(spans: _Spans, at: float) -> int:
    return sum(span.start <= at <= span.end for span in spans)


def _claimed(task: Task) -> Iterator[str]:
    yield from (claim.file for claim in task.claims if claim.file is not None and claim.kind in _MADE)
    # Only the latest return was held against the disk; the ones before are taken at their word.
    for result in (attempt.result for attempt in task.attempts[:-1]):
        if result is not None:
            said = (*result.files_created, *result.files_modified, *result.artifacts)
            yield from (normpath(path.strip()) for path in said)
