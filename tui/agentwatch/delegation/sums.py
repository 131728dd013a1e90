"""The shape of the tree and the sums over its subtrees.

What changes waits at the task above it, until `flush` carries all of it up at once: each task above is visited once,
however many changes came from below it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from agentwatch.delegation.below import Below, Counted
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import AT_WORK, State, Task

_NOTHING: Final = float("-inf")


def ancestors(tasks: Mapping[str, Task], task_id: str) -> Iterator[str]:
    """The ids of the tasks above one, nearest first."""
    while (parent_id := tasks[task_id].parent_id) is not None:
        yield (task_id := parent_id)


def below(tasks: Mapping[str, Task], task_id: str) -> Iterator[str]:
    """The ids of the tasks below one, in preorder."""
    pending = [*reversed(tasks[task_id].children)]
    while pending:
        yield (task_id := pending.pop())
        pending += reversed(tasks[task_id].children)


def sums_of(tasks: Iterable[Task]) -> Below:
    """The sums over some tasks, each counted for itself."""
    sums = Below()
    for task in tasks:
        if (kind := kind_of(task)) is not UNCOUNTED:
            sums.counts[kind] = sums.counts.get(kind, 0) + 1
        sums.tokens += task.tokens or 0
    return sums


UNCOUNTED: Final = Counted(State.SUBMITTED)
"""Of a task that has just come to its place, and of one that is a name in the row of the one below it."""

_shared: Final = lru_cache(maxsize=1024)(Counted)
"""One for all tasks that count as the same, so whether a task counts as something else is a look."""


def kind_of(task: Task) -> Counted:
    """As what a task counts as it is now."""
    if task.shares_row:
        return UNCOUNTED
    state, verdict = task.state, task.verdict
    if verdict is not Verdict.CONTRADICTED and state is not State.COMPLETED:
        verdict = None
    waits_as = None if task.ask is None else task.waits_as
    return _shared(state, waits_as, verdict, task.past if task.stale else None)


class Sums:
    """Children in the order first seen, and for each task what lies below it.

    A task handed off that has tasks below it works, and so does an idle session while something below it does; an
    inferred task has the most urgent state below it. While it `is_lost`, nothing works. Sums, and the states that heed
    them, hold after `flush`. Until somebody empties them, `touched` collects the ids that changed themselves, `summed`
    those above them.
    """

    def __init__(self, tasks: dict[str, Task]) -> None:
        self._tasks = tasks
        self.roots: list[str] = []
        self.totals = Below()
        self._waiting: dict[str | None, Delta] = {}
        """What is to be added to the sums of a task and all above it; None is for the totals."""
        self._turned: dict[str, None] = {}
        """The tasks that may count as something else now."""
        self.is_lost = False
        """Nothing is known of what goes on."""
        self.touched: set[str] = set()
        self.summed: set[str] = set()

    def insert(self, task: Task, parent_id: str | None) -> None:
        """Hang a task, with all that is below it, under a parent, or make it a root."""
        task.parent_id, task.counted = parent_id, UNCOUNTED
        siblings = self._siblings(task)
        if siblings and self._key(siblings[-1]) > self._key(task.task_id):
            insort(siblings, task.task_id, key=self._key)
        else:
            siblings.append(task.task_id)
        if task.below is not None:
            self._add(parent_id, Delta.over(task.below))
        self.touched.add(task.task_id)
        self._recount(parent_id)
        self.count(task)

    def remove(self, task: Task) -> None:
        """Take a task, with all that is below it, from its place."""
        siblings = self._siblings(task)
        del siblings[self._position(task, siblings)]
        self._recount(task.parent_id)
        self._add(task.parent_id, Delta.without(task))
        self.touched.add(task.task_id)
        self._turned.pop(task.task_id, None)
        task.parent_id, task.counted, task.counted_tokens, task.counted_at = None, None, 0, 0.0
        if not task.children:
            # Whatever was counted here has gone elsewhere, or is on its way.
            self._waiting.pop(task.task_id, None)
            task.below = None

    def before(self, task: Task) -> Iterator[str]:
        """The siblings before a placed task, nearest first."""
        siblings = self._siblings(task)
        return (siblings[number] for number in range(self._position(task, siblings) - 1, -1, -1))

    def count(self, task: Task) -> None:
        """What has been set of a placed task counts in the sums above it, and its state follows."""
        task.state = self._state(task)
        is_counted = kind_of(task) is task.counted and task.updated_at == task.counted_at
        if not is_counted or (task.tokens or 0) != task.counted_tokens:
            self._turned[task.task_id] = None

    def flush(self) -> None:
        """Carry up what has changed since the last time."""
        order: list[str] = []
        seen: set[str] = set()
        for task_id in (*self._waiting, *self._turned):
            path: list[str] = []
            above: str | None = task_id
            while above is not None and above not in seen:
                seen.add(above)
                path.append(above)
                above = self._tasks[above].parent_id
            order += reversed(path)
        for task_id in reversed(order):
            delta = self._waiting.pop(task_id, None)
            if delta is not None:
                delta = self._sum(self._tasks[task_id], delta)
            if task_id in self._turned:
                del self._turned[task_id]
                delta = self._count(self._tasks[task_id], Delta() if delta is None else delta)
            if delta is not None:
                self._add(self._tasks[task_id].parent_id, delta)
        if (delta := self._waiting.pop(None, None)) is not None:
            delta.add_to(self.totals)
        # All are taken out. To look through what was large once takes as long as ever, until it is cleared.
        self._waiting.clear()
        self._turned.clear()

    def _sum(self, node: Task, delta: Delta) -> Delta | None:
        """Add to the sums of a task. Returns what is new for the one above it."""
        sums = node.below or Below()
        if not delta and delta.lost_at < sums.active_at >= delta.active_at:
            return None
        before = sums.active_at
        delta.add_to(sums)
        if delta.lost_at >= sums.active_at:
            # The one that was alive last has gone or gone back. That is rare, so the others may all be asked.
            sums.active_at = max((self._tasks[child].alive_at or 0.0 for child in node.children), default=0.0)
            delta.active_at, delta.lost_at = sums.active_at, before if sums.active_at < before else _NOTHING
        node.below = sums if sums.counts else None
        self.summed.add(node.task_id)
        if (state := self._state(node)) is not node.state:
            node.state = state
            # What it says of its state follows.
            self.touched.add(node.task_id)
            self._turned[node.task_id] = None
        return delta

    def _count(self, task: Task, delta: Delta) -> Delta:
        """Count a task as it is now, together with what is new from below."""
        kind, tokens = kind_of(task), task.tokens or 0
        if kind is not task.counted:
            if task.counted is not UNCOUNTED and task.counted is not None:
                delta.count(task.counted, -1)
            if kind is not UNCOUNTED:
                delta.count(kind, 1)
            task.counted = kind
        delta.tokens += tokens - task.counted_tokens
        if task.updated_at < task.counted_at:
            delta.lost_at = max(delta.lost_at, task.counted_at)
        else:
            delta.active_at = max(delta.active_at, task.updated_at)
        task.counted_tokens, task.counted_at = tokens, task.updated_at
        return delta

    def _recount(self, task_id: str | None) -> None:
        """With other children, a task that is only named may have a row of its own, or none."""
        task = None if task_id is None else self._tasks[task_id]
        if task is not None and task.inferred and task.counted is not None:
            self._turned[task.task_id] = None

    def _key(self, task_id: str) -> tuple[int, str]:
        """By what siblings are in order; it stays as it is while a task is in its place."""
        return self._tasks[task_id].first_seq, task_id

    def _position(self, task: Task, siblings: list[str]) -> int:
        return bisect_left(siblings, self._key(task.task_id), key=self._key)

    def _siblings(self, task: Task) -> list[str]:
        if task.parent_id is None:
            return self.roots
        parent = self._tasks[task.parent_id]
        if not isinstance(parent.children, list):
            # A leaf has no list of its own, for nearly all tasks are leaves.
            parent.children = []
        return parent.children

    def _add(self, parent_id: str | None, delta: Delta) -> None:
        if parent_id in self._waiting:
            self._waiting[parent_id].add(delta)
        else:
            self._waiting[parent_id] = delta

    def _state(self, task: Task) -> State:
        state, below = task.own_state, task.below
        if task.inferred:
            states = (one.state for one in below.counts) if below is not None else ()
            state = max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
        elif below is not None and (state is State.SUBMITTED or task.waits_for_work):
            state = State.WORKING
        return State.UNKNOWN if self.is_lost and state in AT_WORK else state


class Delta:
    """What is added to the sums of the tasks above. `lost_at` is a sign of life that may not be there any more."""

    __slots__ = ("active_at", "counts", "lost_at", "tokens")

    def __init__(self) -> None:
        self.counts: dict[Counted, int] = {}
        self.tokens = 0
        self.active_at = 0.0
        self.lost_at = _NOTHING

    @classmethod
    def without(cls, task: Task) -> Delta:
        """A task goes, with all that is below it."""
        sums = task.below or Below()
        delta = cls.over(sums, -1)
        delta.active_at, delta.lost_at = 0.0, max(task.counted_at, sums.active_at)
        if task.counted is not UNCOUNTED and task.counted is not None:
            delta.count(task.counted, -1)
        delta.tokens -= task.counted_tokens
        return delta

    @classmethod
    def over(cls, sums: Below, sign: int = 1) -> Delta:
        """All that is summed up comes (1) or goes (-1)."""
        delta = cls()
        delta.active_at, delta.tokens = sums.active_at, sign * sums.tokens
        delta.counts = {kind: sign * count for kind, count in sums.counts.items()}
        return delta

    def count(self, kind: Counted, number: int) -> None:
        """So many tasks more count as this."""
        self.counts[kind] = self.counts.get(kind, 0) + number

    def add(self, other: Delta) -> None:
        """The other is to be added, too."""
        self.tokens += other.tokens
        self.active_at, self.lost_at = max(self.active_at, other.active_at), max(self.lost_at, other.lost_at)
        for kind, number in other.counts.items():
            self.count(kind, number)

    def __bool__(self) -> bool:
        """Whether it changes any count, whatever the signs of life are."""
        return bool(self.tokens) or any(self.counts.values())

    def add_to(self, sums: Below) -> None:
        """Change these sums."""
        sums.tokens += self.tokens
        sums.active_at = max(sums.active_at, self.active_at)
        for kind, number in self.counts.items():
            if count := sums.counts.get(kind, 0) + number:
                sums.counts[kind] = count
            else:
                sums.counts.pop(kind, None)
