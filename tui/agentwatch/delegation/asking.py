"""The tasks that need the operator, in the order in which they are to be looked at."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

_Key = tuple[int, float, str]


class Asking:
    """Ids of tasks, kept in order: who holds up most first, then who has waited longest.

    A task that comes, goes or moves costs a search in a sorted list, however many ask.
    """

    def __init__(self) -> None:
        self._order: list[_Key] = []
        self._keys: dict[str, _Key] = {}

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._keys

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[str]:
        return (task_id for _, _, task_id in self._order)

    def put(self, task_id: str, holds: int, since: float) -> None:
        """A task asks: so many others wait for it, and it has waited since then (epoch seconds)."""
        key = (-holds, since, task_id)
        if self._keys.get(task_id) != key:
            self.discard(task_id)
            self._keys[task_id] = key
            insort(self._order, key)

    def discard(self, task_id: str) -> None:
        """A task asks nothing."""
        key = self._keys.pop(task_id, None)
        if key is not None:
            del self._order[bisect_left(self._order, key)]

    def some(self, count: int, first: str | None = None) -> list[str]:
        """At most so many, from this one on and then around; from the first on where this one does not ask."""
        start = self._place(first)
        count = min(count, len(self._order))
        found = self._order[start : start + count]
        return [task_id for _, _, task_id in found + self._order[: count - len(found)]]

    def _place(self, task_id: str | None) -> int:
        key = self._keys.get(task_id) if task_id is not None else None
        return bisect_left(self._order, key) if key is not None else 0
