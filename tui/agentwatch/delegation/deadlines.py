"""Times at which tasks have to be looked at again though nothing is observed of them."""

from __future__ import annotations

import heapq


class Deadlines:
    """The next time of each task, in seconds since the epoch; one that comes sooner takes the place of a later one."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}

    def put(self, task_id: str, due: float) -> None:
        """Look at the task again then."""
        known = self._next.get(task_id)
        if known is None or due < known:
            self._next[task_id] = due
            heapq.heappush(self._heap, (due, task_id))

    def past(self, now: float) -> set[str]:
        """The tasks whose time has come; they have none any more."""
        past: set[str] = set()
        while self._heap and self._heap[0][0] <= now:
            due, task_id = heapq.heappop(self._heap)
            if self._next.get(task_id) == due:
                del self._next[task_id]
                past.add(task_id)
        return past
