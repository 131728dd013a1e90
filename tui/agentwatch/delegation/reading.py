"""What faces read of the tasks of a tree, and what is left out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from agentwatch.delegation.asks import Asking
from agentwatch.delegation.below import Below
from agentwatch.delegation.indexes import Ordered
from agentwatch.delegation.sums import ancestors, below
from agentwatch.delegation.task import State, Task, Version


class TaskTree:
    """Tasks, how they hang together, and which of them need the operator."""

    def __init__(self, history_before: float) -> None:
        self.tasks: dict[str, Task] = {}
        self.structure = 0
        """Counts the additions, removals and moves of tasks."""
        self.roots: list[str] = []
        """Ids of the tasks without a parent, in the order first seen."""
        self.totals = Below()
        """Sums over all tasks."""
        self.queue = Asking()
        """The ids of the tasks that need the operator."""
        self.unseen: Ordered[float] = Ordered()
        """The ids of the tasks that the operator has not looked at since they became what they are, newest first."""
        self.now = float("-inf")
        """The time of the last tick, in epoch seconds; minus infinity before the first."""
        self.history_before = history_before
        """The line that tells what is past, in epoch seconds."""

    def asking(self) -> list[Task]:
        """The tasks that need the operator: who holds up most first, then who has asked last."""
        return [self.tasks[task_id] for task_id in self.queue]

    def past_questions(self) -> list[Task]:
        """The past tasks about which something is open that was not acknowledged, those last alive first. Costs a look
        at all tasks."""
        past = (task for task in self.tasks.values() if task.past and task.question and not task.acknowledged)
        return sorted(past, key=lambda task: (-task.updated_at, task.task_id))

    def holds(self, task: Task) -> int:
        """How many tasks below have not ended and wait for this one's answer."""
        return task.below.open if task.below else 0

    def failed_below(self, task: Task) -> Iterator[Task]:
        """The tasks below that have failed or break their contract, in preorder."""
        for one in (self.tasks[task_id] for task_id in below(self.tasks, task.task_id)):
            if one.own_state in (State.FAILED, State.INVALID) and not one.inferred:
                yield one

    def ancestors(self, task_id: str) -> list[str]:
        """Ids of the tasks above, nearest first."""
        return list(ancestors(self.tasks, task_id))

    def preorder(self) -> Iterator[tuple[Task, int]]:
        """Every task with its depth: a parent before its children, siblings in the order first seen."""
        pending = [(task_id, 0) for task_id in reversed(self.roots)]
        while pending:
            task_id, depth = pending.pop()
            task = self.tasks[task_id]
            yield task, depth
            pending.extend((child, depth + 1) for child in reversed(task.children))


class LeftOut:
    """The tasks that are known, and left out for being old, until something new speaks of them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str | None, int]] = {}
        """By id: the parent, and the newest version."""
        self.ids: Set[str] = self._known.keys()

    def add(self, task: Task, versions: Sequence[Version]) -> None:
        """Leave a task out that has these versions."""
        self._known[task.task_id] = task.parent_id, max((one.seq for one in versions), default=0)

    def is_news(self, task_id: str, versions: Sequence[Version]) -> bool:
        """Whether one of these versions has come since the task was left out."""
        return max(one.seq for one in versions) > self._known[task_id][1]

    def come_back(self, task_id: str | None) -> set[str]:
        """A task shows that it lives: it is left out no more, nor is what is above it. Returns who is to be made."""
        back: set[str] = set()
        while task_id is not None and task_id in self._known:
            back.add(task_id)
            task_id, _ = self._known.pop(task_id)
        return back
