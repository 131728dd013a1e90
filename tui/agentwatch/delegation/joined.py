"""Several trees as one: tasks of other trees under keys, each tree below a top row of its own."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from agentwatch.contracts.shapes import Finding
from agentwatch.delegation.asks import is_past
from agentwatch.delegation.task import State, Task, sums_of
from agentwatch.delegation.tree import Tree

_LAST: Final = 1 << 80  # where top rows stand among tasks that have none: behind all of them


class JoinedTree(Tree):
    """It applies no events: `show` and `update` are told what has changed in the trees.

    `mark` begins the key of every task that has a top row: no task id of another tree may begin so. A key is the scope
    of its tree and its id there; without a top row, the scope is empty, and tasks are what they are there.
    """

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = mark
        self._trees: dict[str, Tree] = {}  # by scope, in their order
        self._tops: dict[str, Task] = {}
        self._scopes = 0

    def show(self, tree: Tree, name: str | None = None, workspace: str = "", why: str = "") -> tuple[str, set[str]]:
        """Add a tree, below a top row of this name if it has one. Returns its scope, and the keys that came."""
        self._scopes += 1
        scope = ""
        if name is not None:
            scope = f"{self._mark}{self._scopes}/"
            top = Task(scope, name, inferred=True, workspace=workspace, scope=scope, host=tree.host)
            top.first_seq = _LAST + self._scopes
            self._tops[scope] = self.tasks[scope] = top
        return scope, self.update(scope, tree, tree.tasks, why)

    def drop(self, scope: str) -> set[str]:
        """A tree is not shown any more. Returns the keys that went."""
        gone = {scope + task_id for task_id in self._trees.pop(scope).tasks}
        if self._tops.pop(scope, None) is not None:
            gone.add(scope)
        for key in gone:
            self.tasks.pop(key, None)
        self._join()
        return gone

    def update(self, scope: str, tree: Tree, changed: Collection[str], why: str = "") -> set[str]:
        """These tasks of a tree are different. `why` nothing is known of it is foreign. Returns their keys."""
        self._trees[scope] = tree
        keys = {scope + task_id for task_id in changed}
        for task_id in changed:
            key, task = scope + task_id, tree.tasks.get(task_id)
            if task is None:
                self.tasks.pop(key, None)
            elif not scope:
                self.tasks[key] = task
            else:
                children, parent_id = [scope + child for child in task.children], scope + (task.parent_id or "")
                self.tasks[key] = replace(task, task_id=key, parent_id=parent_id, children=children, scope=scope)
        if (top := self._tops.get(scope)) is not None:
            keys.add(scope)
            # It stands for what is below it and not past; for all of it, where all is past.
            tasks = [task for task in tree.tasks.values() if not task.past] or tree.tasks.values()
            top.children = [scope + task_id for task_id in tree.roots]
            top.below = sums_of(tasks) if tasks else None
            top.own_state = max((one.state for one in tasks), key=lambda one: one.urgency, default=State.SUBMITTED)
            top.why, top.lost_since = why, tree.lost_since
            top.state = State.UNKNOWN if why or top.lost_since is not None else top.own_state
            top.past = is_past(top, tree.rules.history_before)
        self._join()
        return keys

    def place(self, key: str) -> tuple[Tree, str] | None:
        """The tree that a task belongs to, and its id there; None for a top row and for what is not there."""
        scope = key[: key.find("/") + 1] if key.startswith(self._mark) else ""
        tree = self._trees.get(scope)
        return None if tree is None or key == scope else (tree, key[len(scope) :])

    def _join(self) -> None:
        """Work out what is true of all trees together."""
        trees = self._trees.values()
        self.roots = [*(self._trees[""].roots if "" in self._trees else ()), *self._tops]
        self.now = max([tree.now for tree in trees], default=self.now)
        lines = [tree.rules.history_before for tree in trees]
        self.rules = self.rules._replace(history_before=max(lines, default=-math.inf))
        if not self._tops and "" in self._trees:
            # The usual one: what is true of it is known.
            tree = self._trees[""]
            self.totals, self.queue, self.unseen = tree.totals, tree.queue, tree.unseen
        else:
            self.totals = sums_of(self.tasks.values())
            self._line_up()

    # What the trees are asked

    @property
    def notices(self) -> list[Finding]:
        return [
            replace(placed, path=f"{self._tops[scope].title}: {placed.path}") if scope else placed
            for scope, tree in self._trees.items()
            for placed in tree.notices
        ]
