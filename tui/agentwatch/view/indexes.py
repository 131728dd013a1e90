"""Indexes of ids: ids in an order, and times at which something is due."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

Rank = TypeVar("Rank", float, tuple[float, ...])


class Ordered(Generic[Rank]):
    """Ids in the order of their ranks. To put one or take it away costs a search, however many there are."""

    def __init__(self) -> None:
        self._order: list[tuple[Rank, str]] = []
        self.ranks: dict[str, Rank] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.ranks

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[str]:
        return (name for _, name in self._order)

    def put(self, name: str, rank: Rank) -> bool:
        """Give an id this rank, in place of the one that it had. Returns whether that is another one."""
        if self.ranks.get(name) == rank:
            return False
        # Of a subclass, more may go with what is taken away for good.
        Ordered.discard(self, name)
        self.ranks[name] = rank
        insort(self._order, (rank, name))
        return True

    def discard(self, name: str) -> None:
        """Take an id away, if it is there."""
        if name in self.ranks:
            del self._order[bisect_left(self._order, (self.ranks.pop(name), name))]

    def some(self, count: int, first: str | None = None) -> list[str]:
        """At most so many, from this one on and then around; from the first on where this one is not there."""
        rank = self.ranks.get(first) if first is not None else None
        start = bisect_left(self._order, (rank, first)) if rank is not None and first is not None else 0
        count = min(count, len(self._order))
        some = self._order[start : start + count]
        return [name for _, name in some + self._order[: count - len(some)]]


class Deadlines:
    """When each id has to be looked at again, in seconds since the epoch: the soonest of the times that were put."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}

    def put(self, name: str, due: float) -> None:
        """Look at it again then."""
        if due < self._next.get(name, float("inf")):
            self._next[name] = due
            heapq.heappush(self._heap, (due, name))

    @property
    def soonest(self) -> float:
        """When the first of them has to be looked at, or before that; infinity where there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def past(self, now: float) -> set[str]:
        """The ids whose time has come; they have none any more."""
        past: set[str] = set()
        while self._heap and self._heap[0][0] <= now:
            due, name = heapq.heappop(self._heap)
            if self._next.get(name) == due:
                del self._next[name]
                past.add(name)
        return past
