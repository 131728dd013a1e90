"""Several trees as one: tasks of other trees under keys, each tree below a top row of its own."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from agentwatch.delegation.asks import is_past
from agentwatch.delegation.task import PlacedFinding, State, Task, sums_of
from agentwatch.delegation.tree import Tree

_LAST: Final = 1 << 80  # where top rows stand among tasks that have none: behind all of them


@dataclass(slots=True)
class Branch:
    """One of the trees. What is below its `top` row is known here by `scope` and its id; without a top row, its tasks
    are what they are there."""

    tree: Tree
    scope: str
    top: Task | None


class JoinedTree(Tree):
    """It applies no events: `show` and `update` are told what has changed in the trees.

    `mark` begins the key of every task that has a top row: no task id of another tree may begin so.
    """

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = mark
        self._branches: dict[str, Branch] = {}  # by scope, in their order
        self._scopes = 0

    def show(self, tree: Tree, name: str | None = None, workspace: str = "", why: str = "") -> tuple[str, set[str]]:
        """Add a tree, below a top row of this name if it has one. Returns its scope, and the keys that came."""
        self._scopes += 1
        scope, top = "", None
        if name is not None:
            scope = f"{self._mark}{self._scopes}/"
            top = Task(scope, name, inferred=True, workspace=workspace, scope=scope, host=tree.host)
            top.first_seq = _LAST + self._scopes
            self.tasks[scope] = top
        self._branches[scope] = Branch(tree, scope, top)
        return scope, self.update(scope, tree, tree.tasks, why)

    def drop(self, scope: str) -> set[str]:
        """A tree is not shown any more. Returns the keys that went."""
        branch = self._branches.pop(scope)
        gone = {scope + task_id for task_id in branch.tree.tasks} | ({scope} if branch.top else set())
        for key in gone:
            self.tasks.pop(key, None)
        self._join()
        return gone

    def update(self, scope: str, tree: Tree, changed: Collection[str], why: str = "") -> set[str]:
        """These tasks of a workspace, whose tree this is now, have changed, come or gone. `why` says in foreign words
        why nothing is known of it. Returns their keys."""
        branch, ids = self._branches[scope], {*changed}
        branch.tree, top = tree, branch.top
        if top is not None:
            top.why = why
            _update_top(top, tree)
        for task_id in ids:
            if (task := tree.tasks.get(task_id)) is None:
                self.tasks.pop(scope + task_id, None)
            else:
                self.tasks[scope + task_id] = task if top is None else _scoped(task, scope)
        self._join()
        return {scope + task_id for task_id in ids} | ({scope} if top is not None else set())

    def place(self, key: str) -> tuple[Tree, str] | None:
        """The tree that a task belongs to, and its id there; None for a top row and for what is not there."""
        scope = key[: key.find("/") + 1] if key.startswith(self._mark) else ""
        branch = self._branches.get(scope)
        return None if branch is None or key == scope else (branch.tree, key[len(scope) :])

    def _join(self) -> None:
        """Work out what is true of all trees together."""
        branches = self._branches.values()
        bare = (task_id for branch in branches if branch.top is None for task_id in branch.tree.roots)
        self.roots = [*bare, *(branch.scope for branch in branches if branch.top is not None)]
        self.now = max([branch.tree.now for branch in branches], default=self.now)
        lines = (branch.tree.rules.history_before for branch in branches)
        self.rules = self.rules._replace(history_before=max(lines, default=-math.inf))
        self.totals = sums_of(self.tasks.values())
        self._line_up()

    # What the trees are asked

    @property
    def notices(self) -> list[PlacedFinding]:
        return [
            placed._replace(path=f"{branch.top.title}: {placed.path}") if branch.top is not None else placed
            for branch in self._branches.values()
            for placed in branch.tree.notices
        ]


def _scoped(task: Task, scope: str) -> Task:
    """The task as it is shown below the top row of its tree."""
    children = [scope + child for child in task.children]
    parent_id = scope + (task.parent_id or "")
    return replace(task, task_id=scope + task.task_id, parent_id=parent_id, children=children, scope=scope)


def _update_top(top: Task, tree: Tree) -> None:
    """A top row stands for what is below it and not past; for all of it, where all is past."""
    top.children = [top.scope + task_id for task_id in tree.roots]
    tasks = [task for task in tree.tasks.values() if not task.past] or tree.tasks.values()
    top.below = sums_of(tasks) if tasks else None
    states = {task.state for task in tasks}
    top.state = top.own_state = max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
    top.lost_since = tree.lost_since
    if top.why or top.lost_since is not None:
        top.state = State.UNKNOWN
    top.past = is_past(top, tree.rules.history_before)
