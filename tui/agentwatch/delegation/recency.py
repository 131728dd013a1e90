"""What the sessions of a workspace have left behind: whose last sign of life is long before the latest one of all.

The latest is compared with, and not the time: what was asked on Friday still is on Monday, if nobody worked meanwhile.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from operator import itemgetter

_due = itemgetter(0)


class Recency:
    """The last signs of life of runs, and of tasks that are left behind a `period` (seconds) later.

    A function of the runs and tasks that are there, whatever came before and in which order. A sign of life costs
    O(log runs), and what it leaves behind. Times are seconds since the epoch.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._lives: dict[str, float] = {}
        self._newest: list[tuple[float, str]] = []
        """A heap of negated times and keys; what is not so any more is dropped when it comes to the top."""
        self._latest = float("-inf")
        self._dues: list[tuple[float, str]] = []
        """When tasks are left behind, in order."""
        self._due_of: dict[str, float] = {}

    def see(self, key: str, at: float | None) -> set[str]:
        """This was the last sign of life of a run; None: it is gone. Returns the tasks that are left behind now and
        were not before, or the other way round."""
        if at is None:
            self._lives.pop(key, None)
        elif self._lives.get(key) != at:
            self._lives[key] = at
            heapq.heappush(self._newest, (-at, key))
            if len(self._newest) > 2 * len(self._lives) + 64:
                self._newest = [(-life, one) for one, life in self._lives.items()]
                heapq.heapify(self._newest)
        while self._newest and self._lives.get(self._newest[0][1]) != -self._newest[0][0]:
            heapq.heappop(self._newest)
        before, self._latest = self._latest, -self._newest[0][0] if self._newest else float("-inf")
        low, high = sorted((before, self._latest))
        crossed = self._dues[bisect_right(self._dues, low, key=_due) : bisect_right(self._dues, high, key=_due)]
        return {task_id for _, task_id in crossed}

    def leaves_behind(self, task_id: str, at: float) -> bool:
        """Whether a task is left behind whose last sign of life was then; from now on, it is known."""
        due = at + self._period
        if self._due_of.get(task_id) != due:
            self.forget(task_id)
            self._due_of[task_id] = due
            insort(self._dues, (due, task_id))
        return due <= self._latest

    def forget(self, task_id: str) -> None:
        """It does not matter any more whether a task is left behind."""
        due = self._due_of.pop(task_id, None)
        if due is not None:
            del self._dues[bisect_left(self._dues, (due, task_id))]
