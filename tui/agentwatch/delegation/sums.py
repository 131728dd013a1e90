"""The shape of the tree and the sums over its subtrees, kept up to date in O(depth) a change."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict

from agentwatch.delegation.task import Below, State, Task

_Key = tuple[int, str]


class Sums:
    """Children in the order first seen, and for each task what lies below it.

    A task handed off that has tasks below it works; an inferred task has the most urgent state below it. `touched`
    collects the ids whose sums, state or place changed until somebody empties it.
    """

    def __init__(self, tasks: dict[str, Task]) -> None:
        self._tasks = tasks
        self._keys: dict[str, _Key] = {}
        self.roots: list[str] = []
        self.totals = Below()
        self.touched: set[str] = set()

    def insert(self, task: Task, parent_id: str | None) -> None:
        """Hang a task, with all that is below it, under a parent, or make it a root."""
        task.parent_id = parent_id
        self._keys[task.task_id] = (task.first_seq, task.task_id)
        insort(self._siblings(task), task.task_id, key=self._keys.__getitem__)
        task.state = self._state(task)
        self._carry(task, sign=1)

    def remove(self, task: Task) -> None:
        """Take a task, with all that is below it, from its place."""
        siblings = self._siblings(task)
        del siblings[bisect_left(siblings, self._keys[task.task_id], key=self._keys.__getitem__)]
        self._carry(task, sign=-1)
        del self._keys[task.task_id]
        task.parent_id = None

    def holds(self, task: Task) -> bool:
        """Whether the task stands anywhere in the tree."""
        return task.task_id in self._keys

    def is_placed(self, task: Task, parent_id: str | None, first_seq: int) -> bool:
        """Whether the task already stands where it belongs."""
        return self._keys.get(task.task_id) == (first_seq, task.task_id) and task.parent_id == parent_id

    def change(self, task: Task, own_state: State, ask: str | None) -> None:
        """Set what a placed task's own files say and what it asks of the operator."""
        states: dict[State, int] = defaultdict(int)
        waiting: dict[State, int] = defaultdict(int)
        states[task.state] -= 1
        if task.ask is not None:
            waiting[task.state] -= 1
        task.own_state, task.ask = own_state, ask
        task.state = self._state(task)
        states[task.state] += 1
        if task.ask is not None:
            waiting[task.state] += 1
        self.touched.add(task.task_id)
        self._add_upwards(task, 0, states, waiting, task.updated_at)

    def _siblings(self, task: Task) -> list[str]:
        return self.roots if task.parent_id is None else self._tasks[task.parent_id].children

    def _carry(self, task: Task, sign: int) -> None:
        below = task.below or Below()
        states: dict[State, int] = defaultdict(int, {state: sign * n for state, n in below.states.items()})
        waiting: dict[State, int] = defaultdict(int, {state: sign * n for state, n in below.waiting.items()})
        states[task.state] += sign
        if task.ask is not None:
            waiting[task.state] += sign
        self.touched.add(task.task_id)
        active = max(task.updated_at, below.active_at) if sign > 0 else 0.0
        self._add_upwards(task, sign * (1 + below.tasks), states, waiting, active)

    def _add_upwards(
        self, node: Task, tasks: int, states: dict[State, int], waiting: dict[State, int], active_at: float
    ) -> None:
        while node.parent_id is not None:
            node = self._tasks[node.parent_id]
            if node.below is None:
                node.below = Below()
            _add(node.below, tasks, states, waiting, active_at)
            if node.below.tasks == 0:
                node.below = None
            before, node.state = node.state, self._state(node)
            if node.state is not before:
                states[before] -= 1
                states[node.state] += 1
                if node.ask is not None:
                    waiting[before] -= 1
                    waiting[node.state] += 1
            self.touched.add(node.task_id)
        # A subtree that is on its way to another place counts again when its top arrives.
        if node.task_id in self._keys:
            _add(self.totals, tasks, states, waiting, active_at)

    @staticmethod
    def _state(task: Task) -> State:
        if task.inferred:
            states = task.below.states if task.below else {}
            return max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
        if task.own_state is State.SUBMITTED and task.below is not None:
            return State.WORKING
        return task.own_state


def _add(below: Below, tasks: int, states: dict[State, int], waiting: dict[State, int], active_at: float) -> None:
    below.tasks += tasks
    below.active_at = max(below.active_at, active_at)
    for sums, deltas in ((below.states, states), (below.waiting, waiting)):
        for state, delta in deltas.items():
            if count := sums.get(state, 0) + delta:
                sums[state] = count
            else:
                sums.pop(state, None)
