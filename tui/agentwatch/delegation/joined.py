"""Several trees as one: tasks of other trees under keys, each tree below a top row of its own."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NamedTuple

from agentwatch.delegation.asks import changed_at, is_history, is_past, queue_rank
from agentwatch.delegation.request import Asked
from agentwatch.delegation.task import BETWEEN, Below, PlacedFinding, State, Task, plain_name, sum_up, sums_with_below
from agentwatch.delegation.tree import Ids, Tree

_LAST: Final = 1 << 80  # where top rows stand among tasks that have none: behind all of them


@dataclass(slots=True)
class Branch:
    """One of the trees. What is below its `top` row is known here by `scope` and its id; without a top row, its tasks
    are what they are there."""

    tree: Tree
    scope: str
    top: Task | None
    apart: set[str] = field(default_factory=set)
    """The ids of the runs that do not stand below the top row: those that are history, where not all are."""


class BranchTask(NamedTuple):
    """The tree that a task belongs to, and its id there."""

    tree: Tree
    task_id: str


class JoinedTree(Tree):
    """It applies no events: `show` and `update` are told what has changed in the trees.

    `mark` begins the key of every task that has a top row: no task id of another tree may begin so.
    """

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = mark
        self._branches: dict[str, Branch] = {}  # by scope, in their order
        self._scopes = 0

    def show(self, tree: Tree, *, name: str | None = None, workspace: str = "") -> tuple[str, set[str]]:
        """Add a tree, below a top row of this name if it has one. Returns its scope, and the keys that came."""
        self._scopes += 1
        scope, top = "", None
        if name is not None:
            scope = f"{self._mark}{self._scopes}/"
            top = self.tasks[scope] = Task(scope, name, inferred=True, workspace=workspace, scope=scope, host=tree.host)
            top.first_seq = _LAST + self._scopes
        self._branches[scope] = Branch(tree, scope, top)
        return scope, {scope, *self.update(scope, tree.tasks, moved=True)} - {""}

    def drop(self, scope: str) -> set[str]:
        """A tree is not shown any more. Returns the keys that went."""
        branch = self._branches.pop(scope)
        gone = {scope + task_id for task_id in branch.tree.tasks} | ({scope} if branch.top else set())
        for key in gone:
            self.tasks.pop(key, None)
        self._sum_up(moved=True)
        return gone

    def swap(self, scope: str, tree: Tree) -> None:
        """Another tree of the same workspace takes the place of one; `update` is told which tasks that changes."""
        self._branches[scope].tree = tree

    def explain(self, scope: str, why: str) -> None:
        """Why nothing is known of a tree now, or nothing yet: foreign words, "" where all is. `update` comes next."""
        top = self._branches[scope].top
        if top is not None:
            top.why = why

    def update(self, scope: str, changed: Collection[str], *, moved: bool) -> set[str]:
        """These tasks of a tree have changed, come or gone; `moved` where the shape of it has. Returns their keys."""
        branch, ids = self._branches[scope], {*changed}
        tree = branch.tree
        if branch.top is not None:
            history = {one for one in tree.roots if is_history(tree.tasks[one], tree.rules.history_before)}
            apart = history if len(history) < len(tree.roots) else set()
            moved = moved or apart != branch.apart
            ids |= apart ^ branch.apart
            branch.apart = apart
        for task_id in ids:
            if (task := tree.tasks.get(task_id)) is None:
                self.tasks.pop(scope + task_id, None)
            else:
                self.tasks[scope + task_id] = task if branch.top is None else _scoped(task, branch, branch.top)
        if branch.top is not None:
            _update_top(branch.top, branch)
        self._sum_up(moved=moved)
        return {scope + task_id for task_id in ids} | ({scope} if branch.top is not None else set())

    def place(self, key: str) -> BranchTask | None:
        """Where a task belongs; None for a top row and for what is not there."""
        scope = key[: key.find("/") + 1] if key.startswith(self._mark) else ""
        branch = self._branches.get(scope)
        return None if branch is None or key == scope else BranchTask(branch.tree, key[len(scope) :])

    def _sum_up(self, *, moved: bool) -> None:
        """Work out what is true of all trees together."""
        branches = self._branches.values()
        if moved:
            self.structure += 1
            bare = chain.from_iterable(branch.tree.roots for branch in branches if branch.top is None)
            tops = (branch.scope for branch in branches if branch.top is not None)
            self.roots = [
                *bare,
                *tops,
                *(key for one in branches for key in sorted(one.scope + id_ for id_ in one.apart)),
            ]
        self.now = max([branch.tree.now for branch in branches], default=self.now)
        lines = (branch.tree.rules.history_before for branch in branches)
        self.rules = self.rules._replace(history_before=max(lines, default=-math.inf))
        self.totals = sum_up(branch.tree.totals for branch in branches)
        asking, unseen = [], []
        for scope, tree in ((branch.scope, branch.tree) for branch in branches):
            is_lost = tree.lost_since is not None
            asking += [(queue_rank(tree.tasks[one], is_lost=is_lost), scope + one) for one in tree.queue]
            unseen += [(-changed_at(tree.tasks[one]), scope + one) for one in tree.unseen]
        self.queue = Ids(dict.fromkeys(key for _, key in sorted(asking)))
        self.unseen = Ids(dict.fromkeys(key for _, key in sorted(unseen)))

    # What the trees are asked

    @property
    def notices(self) -> list[PlacedFinding]:
        return [
            placed._replace(path=f"{branch.top.title}: {placed.path}") if branch.top is not None else placed
            for branch in self._branches.values()
            for placed in branch.tree.notices
        ]

    def request(self, request_id: str) -> Asked | None:
        for scope, branch in self._branches.items():
            if (asked := branch.tree.request(request_id)) is not None:
                return asked._replace(task_id=scope + asked.task_id)
        return None


def _scoped(task: Task, branch: Branch, top: Task) -> Task:
    """The task as it is shown below the top row of its tree, or apart from it."""
    scope = branch.scope
    children = [scope + child for child in task.children]
    parent_id: str | None = scope + (task.parent_id or "")
    title = task.title
    if task.task_id in branch.apart:
        parent_id, title = None, f"{plain_name(top.title)}{BETWEEN}{plain_name(task.title)}"
    return replace(task, task_id=scope + task.task_id, parent_id=parent_id, title=title, children=children, scope=scope)


def _update_top(top: Task, branch: Branch) -> None:
    """A top row stands as what is below it does, and as what of that is not past."""
    tree = branch.tree
    roots = [task_id for task_id in tree.roots if task_id not in branch.apart]
    top.children = [branch.scope + task_id for task_id in roots]
    top.below = sums_with_below(tree.tasks[task_id] for task_id in roots)
    states = {task.state for task in tree.tasks.values() if not task.past} or (top.below or Below()).states
    top.state = top.own_state = max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
    top.lost_since = tree.lost_since
    if top.why or top.lost_since is not None:
        top.state = State.UNKNOWN
    top.past = not branch.apart and is_past(top, tree.rules.history_before)
