"""Indexes of ids: sets by key, ids in an order, and times at which something is due."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Set
from typing import Any, Final, Generic, TypeVar

_Key = TypeVar("_Key")
Rank = TypeVar("Rank", float, tuple[float, ...])

NOBODY: Final[frozenset[Any]] = frozenset()
"""One for all that have nobody: an empty set alone weighs 216 bytes."""


class Groups(Generic[_Key]):
    """Ids by key, in the order in which they came, for indexes in which nearly every key has one."""

    def __init__(self) -> None:
        self._groups: dict[_Key, str | dict[str, None]] = {}
        """A group of one is that one itself. Empty groups are forgotten."""

    def of(self, key: _Key) -> Set[str]:
        """The ids under a key, to be read before the group changes."""
        group = self._groups.get(key)
        if group is None:
            return NOBODY
        return {group} if isinstance(group, str) else group.keys()

    def add(self, key: _Key, name: str) -> None:
        """Put an id under a key, where it may stand already."""
        group = self._groups.setdefault(key, name)
        if isinstance(group, dict):
            group[name] = None
        elif group != name:
            self._groups[key] = {group: None, name: None}

    def discard(self, key: _Key, name: str) -> None:
        """Take an id away from a key, if it is there."""
        group = self._groups.get(key)
        if isinstance(group, dict):
            group.pop(name, None)
        if not group or group == name:
            self._groups.pop(key, None)


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
