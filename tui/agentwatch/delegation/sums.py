"""The shape of the tree and the sums over its subtrees.

What changes waits at the task above it, until `flush` carries all of it up at once: each task above is visited once,
however many changes came from below it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import AT_WORK, Below, State, Task

_NOTHING: Final = float("-inf")


def ancestors(tasks: Mapping[str, Task], task_id: str) -> Iterator[str]:
    """The ids of the tasks above one, nearest first."""
    while (parent_id := tasks[task_id].parent_id) is not None:
        yield (task_id := parent_id)


def below(tasks: Mapping[str, Task], task_id: str) -> Iterator[str]:
    """The ids of the tasks below one, in preorder."""
    pending = tasks[task_id].children[::-1]
    while pending:
        yield (task_id := pending.pop())
        pending += reversed(tasks[task_id].children)


def sums_of(tasks: Iterable[Task]) -> Below:
    """The sums over some tasks, each counted for itself."""
    delta, sums = Delta(), Below()
    for task in tasks:
        delta.tasks += 1
        delta.count(task, 1)
    delta.add_to(sums)
    return sums


class Sums:
    """Children in the order first seen, and for each task what lies below it.

    A task handed off that has tasks below it works, and so does an idle session while something below it does; an
    inferred task has the most urgent state below it. While it `is_lost`, nothing works. Sums, and the states that heed
    them, hold after `flush`. Until somebody empties them, `touched` collects the ids that changed themselves, `summed`
    those above them.
    """

    def __init__(self, tasks: dict[str, Task]) -> None:
        self._tasks = tasks
        self.placed: set[str] = set()
        """The tasks that stand anywhere in the tree."""
        self.roots: list[str] = []
        self.totals = Below()
        self._waiting: dict[str | None, Delta] = {}
        """What is to be added to the sums of a task and all above it; None is for the totals."""
        self.is_lost = False
        """Nothing is known of what goes on."""
        self.touched: set[str] = set()
        self.summed: set[str] = set()

    def insert(self, task: Task, parent_id: str | None) -> None:
        """Hang a task, with all that is below it, under a parent, or make it a root."""
        task.parent_id = parent_id
        self.placed.add(task.task_id)
        insort(self._siblings(task), task.task_id, key=self._key)
        task.state = self._state(task)
        self._carry(task, sign=1)

    def remove(self, task: Task) -> None:
        """Take a task, with all that is below it, from its place."""
        siblings = self._siblings(task)
        del siblings[self._position(task, siblings)]
        self._carry(task, sign=-1)
        self.placed.remove(task.task_id)
        task.parent_id = None
        if not task.children:
            # Whatever was counted here has gone elsewhere, or is on its way.
            self._waiting.pop(task.task_id, None)
            task.below = None

    def before(self, task: Task) -> Iterator[str]:
        """The siblings before a placed task, nearest first."""
        siblings = self._siblings(task)
        return (siblings[number] for number in range(self._position(task, siblings) - 1, -1, -1))

    @contextmanager
    def changing(self, task: Task) -> Iterator[None]:
        """What is set of a placed task meanwhile counts in the sums above it, and its state follows."""
        delta = Delta()
        delta.count(task, -1)
        yield
        task.state = self._state(task)
        delta.count(task, 1)
        if delta:
            self._add(task.parent_id, delta)

    def lived(self, task: Task, before: float) -> None:
        """The last sign of life of a task itself was this one `before` (epoch seconds)."""
        is_lost = task.updated_at < before
        self._add(task.parent_id, Delta(lost_at=before) if is_lost else Delta(active_at=task.updated_at))

    def flush(self) -> None:
        """Carry up what has changed since the last time."""
        order: list[str] = []
        seen: set[str] = set()
        for task_id in self._waiting:
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
                self._sum(self._tasks[task_id], delta)
        if (delta := self._waiting.pop(None, None)) is not None:
            delta.add_to(self.totals)

    def _sum(self, node: Task, delta: Delta) -> None:
        """Add to the sums of a task, and leave to the one above it what is new for that one."""
        sums = node.below or Below()
        if not delta and delta.lost_at < sums.active_at >= delta.active_at:
            return
        before = sums.active_at
        delta.add_to(sums)
        if delta.lost_at >= sums.active_at:
            # The one that was alive last has gone or gone back. That is rare, so the others may all be asked.
            sums.active_at = max((self._tasks[child].alive_at or 0.0 for child in node.children), default=0.0)
            delta.active_at, delta.lost_at = sums.active_at, before if sums.active_at < before else _NOTHING
        node.below = sums if sums.tasks else None
        self.summed.add(node.task_id)
        state = self._state(node)
        if state is not node.state:
            delta.count(node, -1)
            node.state = state
            delta.count(node, 1)
            # What it says of its state follows.
            self.touched.add(node.task_id)
        self._add(node.parent_id, delta)

    def _key(self, task_id: str) -> tuple[int, str]:
        """By what siblings are in order; it stays as it is while a task is in its place."""
        return self._tasks[task_id].first_seq, task_id

    def _position(self, task: Task, siblings: list[str]) -> int:
        return bisect_left(siblings, self._key(task.task_id), key=self._key)

    def _siblings(self, task: Task) -> list[str]:
        return self.roots if task.parent_id is None else self._tasks[task.parent_id].children

    def _carry(self, task: Task, sign: int) -> None:
        delta = Delta.of(task, sign)
        self.touched.add(task.task_id)
        self._add(task.parent_id, delta)

    def _add(self, parent_id: str | None, delta: Delta) -> None:
        if parent_id in self._waiting:
            self._waiting[parent_id].add(delta)
        else:
            self._waiting[parent_id] = delta

    def _state(self, task: Task) -> State:
        state = task.own_state
        if task.inferred:
            states = task.below.states if task.below else {}
            state = max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
        elif (state is State.SUBMITTED and task.below is not None) or task.waits_for_work:
            state = State.WORKING
        return State.UNKNOWN if self.is_lost and state in AT_WORK else state


class Delta:
    """What is added to the sums of the tasks above. `lost_at` is a sign of life that may not be there any more."""

    def __init__(self, active_at: float = 0.0, lost_at: float = _NOTHING) -> None:
        self.tasks = 0
        self.active_at = active_at
        self.lost_at = lost_at
        self.tokens = 0
        self.counts: tuple[dict[Any, int], ...] = tuple(defaultdict(int) for _ in range(4))

    @classmethod
    def of(cls, task: Task, sign: int) -> Delta:
        """A task comes (1) or goes (-1), with all that is below it."""
        sums = task.below or Below()
        delta = cls.over(sums, sign)
        alive_at = max(task.updated_at, sums.active_at)
        delta.tasks += sign
        delta.active_at, delta.lost_at = (alive_at, _NOTHING) if sign > 0 else (0.0, alive_at)
        delta.count(task, sign)
        return delta

    @classmethod
    def over(cls, sums: Below, sign: int = 1) -> Delta:
        """All that is summed up comes (1) or goes (-1)."""
        delta = cls(sums.active_at)
        delta.tasks, delta.tokens = sign * sums.tasks, sign * sums.tokens
        for counts, deltas in zip(sums.counts, delta.counts, strict=True):
            deltas.update({key: sign * count for key, count in counts.items()})
        return delta

    def count(self, task: Task, sign: int) -> None:
        """The task itself comes (1) or goes (-1), as it is now."""
        states, waiting, verdicts, silences = self.counts
        states[task.state] += sign
        self.tokens += sign * (task.tokens or 0)
        if task.stale:
            silences[task.past] += sign
        if task.ask is not None:
            waiting[task.waits_as] += sign
        if task.verdict is Verdict.CONTRADICTED or (task.verdict and task.state is State.COMPLETED):
            verdicts[task.verdict] += sign

    def add(self, other: Delta) -> None:
        """The other is to be added, too."""
        self.tasks += other.tasks
        self.tokens += other.tokens
        self.active_at, self.lost_at = max(self.active_at, other.active_at), max(self.lost_at, other.lost_at)
        for counts, others in zip(self.counts, other.counts, strict=True):
            for key, count in others.items():
                counts[key] += count

    def __bool__(self) -> bool:
        """Whether it changes any count, whatever the signs of life are."""
        return bool(self.tasks or self.tokens or any(any(counts.values()) for counts in self.counts))

    def add_to(self, sums: Below) -> None:
        """Change these sums."""
        sums.tasks += self.tasks
        sums.tokens += self.tokens
        sums.active_at = max(sums.active_at, self.active_at)
        for counts, deltas in zip(sums.counts, self.counts, strict=True):
            for key, delta in deltas.items():
                if count := counts.get(key, 0) + delta:
                    counts[key] = count
                else:
                    counts.pop(key, None)
