"""What an abort ends: the tasks that are open below the one that the operator aborted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State, Task


class Aborts:
    """The tasks that the operator aborted. Costs nothing as long as there is none."""

    def __init__(self, tasks: dict[str, Task]) -> None:
        self._tasks = tasks
        self._at: dict[str, float] = {}
        """When, in epoch seconds."""

    def end(self, task: Task) -> set[str]:
        """End a placed task that is open and stands below an abort. Returns the tasks below it for which that is
        different now, because it was aborted itself, or is so no more."""
        decision = task.binding
        at = decision.at if decision is not None and decision.action is Action.ABORT else None
        concerned = set(self._below(task.task_id)) if at != self._at.get(task.task_id) else set()
        self.drop(task.task_id)
        if at is not None:
            self._at[task.task_id] = at
        task.ended_with = self._above(task) if self._at else None
        if task.ended_with is not None and task.own_state.is_open:
            task.own_state = State.CANCELED
            task.ended_at = task.ended_at or self._at[task.ended_with]
        return concerned

    def moved(self, task_ids: Iterable[str]) -> set[str]:
        """The tasks that an abort may end now, or no more, because these have another parent."""
        if not self._at:
            return set()
        return {below for task_id in task_ids for below in (task_id, *self._below(task_id))}

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._at.pop(task_id, None)

    def _above(self, task: Task) -> str | None:
        parent_id = task.parent_id
        while parent_id is not None and parent_id not in self._at:
            parent_id = self._tasks[parent_id].parent_id
        return parent_id

    def _below(self, task_id: str) -> Iterator[str]:
        pending = list(self._tasks[task_id].children)
        while pending:
            below = pending.pop()
            yield below
            pending += self._tasks[below].children
