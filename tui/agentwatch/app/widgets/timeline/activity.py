"""When anything happened at all in a tree, and when it first did below each task; kept up to date change by change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Final

from agentwatch.view.spans import Interval, busy_times

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

IDLE: Final = 600.0
"""Seconds without a sign of anybody, from which a stretch of time counts as idle."""


class Activity:
    """The stretches of time with no idle time in them, of all tasks of a tree together.

    What grows them is taken in at once. What would split them or make them shorter waits for `tidy`, which looks at
    all tasks: so the cost of a change does not grow with the tree.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._times: dict[str, tuple[Interval, ...]] = {}
        self._parents: dict[str, str | None] = {}
        self._own: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._is_loose = True
        for task_id, task in tree.tasks.items():
            times = busy_times(task)
            self._parents[task_id] = task.parent_id
            if times:
                self._times[task_id] = times
                self._own[task_id] = first = _first(times)
                above: str | None = task_id
                while above is not None and first < self._first.get(above, inf):
                    self._first[above] = first
                    above = tree.tasks[above].parent_id
        self.tidy()

    @property
    def stretches(self) -> list[Interval]:
        """In order of time, each further than `IDLE` from the next."""
        return list(zip(self._starts, self._ends, strict=True))

    def first_sign(self, task_id: str) -> float | None:
        """The first sign of a task or of anything below it, in seconds since the epoch."""
        first = self._first.get(task_id, inf)
        return None if first == inf else first

    def take(self, changed: Iterable[str]) -> None:
        """Take in tasks that were added, changed, moved or removed."""
        for task_id in changed:
            task = self._tree.tasks.get(task_id)
            before = self._times.get(task_id, ())
            times = busy_times(task) if task else ()
            if times != before:
                if times:
                    self._times[task_id] = times
                else:
                    del self._times[task_id]
                self._is_loose |= not all(_is_within(interval, times) for interval in before)
                for start, end in times:
                    self._grow(start, end)
            self._place(task_id, task.parent_id if task else None, _first(times))

    def tidy(self) -> bool:
        """Make the stretches as short as they are. Returns whether there was something to do."""
        if not self._is_loose:
            return False
        self._is_loose = False
        self._starts, self._ends = [], []
        for start, end in sorted(interval for times in self._times.values() for interval in times):
            self._grow(start, end)
        return True

    def _grow(self, start: float, end: float) -> None:
        first = bisect_left(self._ends, start - IDLE)
        behind = bisect_right(self._starts, end + IDLE)
        if first < behind:
            start, end = min(start, self._starts[first]), max(end, self._ends[behind - 1])
        self._starts[first:behind] = [start]
        self._ends[first:behind] = [end]

    def _place(self, task_id: str, parent_id: str | None, own: float) -> None:
        """Carry the first sign of a task to those above it, away from those it no longer stands below."""
        old_parent = self._parents.get(task_id)
        if task_id not in self._tree.tasks:
            self._parents.pop(task_id, None)
            self._own.pop(task_id, None)
            self._carry(old_parent, self._first.pop(task_id, inf), inf)
            return
        if old_parent != parent_id:
            first = self._first.get(task_id, inf)
            self._parents[task_id] = parent_id
            if first != inf:
                self._carry(old_parent, first, inf)
                self._carry(parent_id, inf, first)
        before = self._own.get(task_id, inf)
        if own != before:
            self._own[task_id] = own
            self._carry(task_id, before, own)

    def _carry(self, task_id: str | None, before: float, now: float) -> None:
        """A sign of this task, its own or of a child, was `before` and is `now`."""
        while task_id is not None and now != before:
            first = self._first.get(task_id, inf)
            if now <= first:
                changed = now
            elif before == first:
                task = self._tree.tasks.get(task_id)
                below = (self._first.get(child, inf) for child in (task.children if task else ()))
                changed = min(self._own.get(task_id, inf), min(below, default=inf))
            else:
                return
            if changed == first:
                return
            self._first[task_id] = changed
            before, now, task_id = first, changed, self._parents.get(task_id)


def _is_within(interval: Interval, times: tuple[Interval, ...]) -> bool:
    return any(start <= interval[0] and interval[1] <= end for start, end in times)


def _first(times: tuple[Interval, ...]) -> float:
    return min(times)[0] if times else inf
