"""Several delegation trees as one: tasks of other trees under keys, each tree below a top row of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NamedTuple, overload

from agentwatch.delegation.asks import is_history, is_past
from agentwatch.delegation.below import Below
from agentwatch.delegation.changes import Unclaimed
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.events import Decided, Ran, Requested
from agentwatch.delegation.indexes import Ordered, Rank
from agentwatch.delegation.pulse import Spent
from agentwatch.delegation.requests import Asked
from agentwatch.delegation.sums import Delta
from agentwatch.delegation.task import BETWEEN, PlacedFinding, State, Task, plain_name
from agentwatch.delegation.tree import DelegationTree

_LAST: Final = 1 << 80
"""Where top rows stand among tasks that have none: behind all of them."""


@dataclass(slots=True)
class Branch:
    """One of the trees. What is below its `top` row is known here by `scope` and its id; without a top row, its tasks
    are what they are there."""

    tree: DelegationTree
    scope: str
    top: Task | None
    history: set[str] = field(default_factory=set)
    """The ids of the runs that are history."""
    is_split: bool = False
    """Runs that are history do stand apart: not all are."""
    less: Delta = field(default_factory=Delta)
    """What the sums of the top row are less than those of the tree, for the runs that stand apart."""
    states: Counter[State] = field(default_factory=Counter)
    """Of the tasks that are not past."""
    taken_out: Delta = field(default_factory=Delta)
    """What takes it out of the sums of all."""

    @property
    def apart(self) -> set[str]:
        """The keys of the runs that do not stand below the top row."""
        return {self.scope + task_id for task_id in self.history} if self.is_split else set()


class Place(NamedTuple):
    """The tree that a task belongs to, and its id there."""

    tree: DelegationTree
    task_id: str


class JoinedTree(DelegationTree):
    """It takes in tasks, and no observation: `show` and `update` are told what has changed in the trees.

    `mark` begins the key of every task that has a top row: no task id of another tree may begin so.
    """

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._scopes_begin = mark
        self._branches: dict[str, Branch] = {}
        """By scope, in their order."""
        self._scopes = 0

    def show(self, tree: DelegationTree, *, name: str | None = None, workspace: str = "") -> tuple[str, set[str]]:
        """Take a tree in, below a top row of this name if it has one. Its runs that are history stand apart if others
        are not. Returns its scope, and the keys that came."""
        self._scopes += 1
        scope = f"{self._scopes_begin}{self._scopes}/" if name is not None else ""
        top = None
        if name is not None:
            top = Task(
                scope,
                name,
                inferred=True,
                workspace=workspace,
                first_seq=_LAST + self._scopes,
                scope=scope,
                host=tree.host,
            )
            top.children = _Keys(scope, tree.roots)
            self.tasks[scope] = top
        self._branches[scope] = Branch(tree, scope, top)
        return scope, {scope, *self.update(scope, tree.tasks, moved=True)} - {""}

    def drop(self, scope: str) -> set[str]:
        """A tree is not shown any more. Returns the keys that went."""
        branch = self._branches.pop(scope)
        gone = {scope + task_id for task_id in branch.tree.tasks} | ({scope} if branch.top else set())
        for key in gone:
            self._forget(key)
        branch.taken_out.add_to(self.totals)
        self._sum(moved=True)
        return gone

    def swap(self, scope: str, tree: DelegationTree) -> None:
        """Another tree of the same workspace takes the place of one; `update` is told which tasks that changes."""
        branch = self._branches[scope]
        if branch.tree is tree:
            return
        branch.tree = tree
        if branch.top is not None:
            branch.top.children = _Keys(scope, tree.roots)

    def explain(self, scope: str, why: str) -> None:
        """Why nothing is known of a tree now, or nothing yet: foreign words, "" where all is. `update` comes next."""
        top = self._branches[scope].top
        if top is not None:
            top.why = why

    def update(self, scope: str, changed: Collection[str], *, moved: bool) -> set[str]:
        """These tasks of a tree have changed, come or gone; `moved` where the shape of it has. Returns their keys."""
        branch = self._branches[scope]
        elsewhere = self._split(branch, changed) if branch.top is not None else set()
        ids, moved = {*changed, *elsewhere}, moved or bool(elsewhere)
        keys = set()
        for task_id in ids:
            task, key = branch.tree.tasks.get(task_id), scope + task_id
            keys.add(key)
            before = self.tasks.get(key)
            if before is not None and not before.past:
                branch.states[before.state] -= 1
            if task is None:
                self._forget(key)
                continue
            if not task.past:
                branch.states[task.state] += 1
            self.tasks[key] = _scoped(task, branch) if branch.top is not None else task
            _rank_like(self.queue, key, branch.tree.queue, task_id)
            _rank_like(self.unseen, key, branch.tree.unseen, task_id)
        if branch.top is not None:
            _sum_up(branch.top, branch, moved=moved, anew=moved or not branch.history.isdisjoint(ids))
            keys.add(scope)
        change, branch.taken_out = branch.taken_out, Delta.over(branch.tree.totals, -1)
        change.add(Delta.over(branch.tree.totals))
        change.add_to(self.totals)
        self._sum(moved=moved)
        return keys

    def _split(self, branch: Branch, changed: Collection[str]) -> set[str]:
        """Find out which runs are history. Returns the ids of those that stand elsewhere now."""
        elsewhere: set[str] = set()
        for task_id in changed:
            task = branch.tree.tasks.get(task_id)
            is_over = task is not None and task.parent_id is None and is_history(task, branch.tree.history_before)
            if is_over != (task_id in branch.history):
                (branch.history.add if is_over else branch.history.discard)(task_id)
                elsewhere.add(task_id)
        was_split, is_split = branch.is_split, 0 < len(branch.history) < len(branch.tree.roots)
        branch.is_split = is_split
        if was_split == is_split:
            return elsewhere if is_split else set()
        return elsewhere | branch.history

    def place(self, key: str) -> Place | None:
        """Where a task belongs; None for a top row and for what is not there."""
        scope = self._scope_of(key)
        branch = self._branches.get(scope)
        return None if branch is None or key == scope else Place(branch.tree, key[len(scope) :])

    def _forget(self, key: str) -> None:
        self.tasks.pop(key, None)
        self.queue.discard(key)
        self.unseen.discard(key)

    def _scope_of(self, key: str) -> str:
        return key[: key.find("/") + 1] if key.startswith(self._scopes_begin) else ""

    def _sum(self, *, moved: bool) -> None:
        """What is true of all trees together."""
        trees = [branch.tree for branch in self._branches.values()]
        if moved:
            self.structure += 1
            bare = [branch.tree.roots for branch in self._branches.values() if branch.top is None]
            tops = (scope for scope, branch in self._branches.items() if branch.top is not None)
            apart = (key for branch in self._branches.values() for key in sorted(branch.apart))
            # Of one tree alone they are its own: a copy in each slice of a first look takes a tenth of the time.
            is_alone = len(bare) == len(self._branches) == 1
            self.roots = bare[0] if is_alone else [*chain.from_iterable(bare), *tops, *apart]
        self.now = max([tree.now for tree in trees], default=self.now)
        self.history_before = max([tree.history_before for tree in trees], default=self.history_before)
        self.totals.active_at = max([tree.totals.active_at for tree in trees], default=0.0)

    # What the trees are asked

    @property
    def runs(self) -> list[Ran]:
        return [ran for branch in self._branches.values() for ran in branch.tree.runs]

    @property
    def decisions(self) -> list[Decided]:
        return [decided for branch in self._branches.values() for decided in branch.tree.decisions]

    @property
    def notices(self) -> list[PlacedFinding]:
        return [
            placed._replace(path=f"{branch.top.title}: {placed.path}") if branch.top is not None else placed
            for branch in self._branches.values()
            for placed in branch.tree.notices
        ]

    @property
    def troubled(self) -> set[str]:
        return {path for branch in self._branches.values() for path in branch.tree.troubled}

    @property
    def left_out(self) -> Set[str]:
        return {scope + task_id for scope, branch in self._branches.items() for task_id in branch.tree.left_out}

    @property
    def holds_until(self) -> float:
        return min([branch.tree.holds_until for branch in self._branches.values()], default=math.inf)

    def signs(self) -> Iterator[float]:
        return chain.from_iterable(branch.tree.signs() for branch in self._branches.values())

    def spent(self) -> Iterator[Spent]:
        for scope, branch in self._branches.items():
            yield from (one._replace(task_id=scope + one.task_id) for one in branch.tree.spent())

    @property
    def requests(self) -> list[Requested]:
        return [requested for branch in self._branches.values() for requested in branch.tree.requests]

    def request(self, request_id: str) -> Asked | None:
        for scope, branch in self._branches.items():
            if (asked := branch.tree.request(request_id)) is not None:
                return asked._replace(task_id=scope + asked.task_id)
        return None

    def answer_to(self, request_id: str) -> Decision | None:
        answers = (branch.tree.answer_to(request_id) for branch in self._branches.values())
        return next((one for one in answers if one is not None), None)

    def over(self, task_id: str) -> frozenset[str]:
        place = self.place(task_id)
        return place.tree.over(place.task_id) if place is not None else frozenset()

    def unclaimed(self, task: Task) -> Unclaimed | None:
        place = self.place(task.task_id)
        own = place and place.tree.tasks.get(place.task_id)
        return place.tree.unclaimed(own) if place and own else None

    def siblings_before(self, task: Task) -> Iterator[str]:
        scope = self._scope_of(task.task_id)
        siblings = (
            self.roots if task.parent_id is None else self.tasks[scope].children if task.parent_id == scope else ()
        )
        if scope and task.task_id in siblings:
            yield from reversed(siblings[: siblings.index(task.task_id)])
            return
        place = self.place(task.task_id)
        if place and (own := place.tree.tasks.get(place.task_id)):
            yield from (scope + task_id for task_id in place.tree.siblings_before(own))


class _Keys(Sequence[str]):
    """The keys of ids, as the tree that they are from has them now."""

    __slots__ = ("_ids", "_scope")

    def __init__(self, scope: str, ids: Sequence[str]) -> None:
        self._scope = scope
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self._scope + task_id for task_id in self._ids[at]]
        return self._scope + self._ids[at]


def _rank_like(order: Ordered[Rank], key: str, other: Ordered[Rank], name: str) -> None:
    rank = other.ranks.get(name)
    if rank is None:
        order.discard(key)
    else:
        order.put(key, rank)


def _scoped(task: Task, branch: Branch) -> Task:
    """The task as it is shown below the top row of its tree, or apart from it."""
    scope, parent_id = branch.scope, task.parent_id or ""
    children = _Keys(scope, task.children)
    own = replace(task, task_id=scope + task.task_id, parent_id=scope + parent_id, children=children, scope=scope)
    if branch.top is not None and branch.is_split and task.task_id in branch.history:
        own.parent_id, own.title = None, f"{plain_name(branch.top.title)}{BETWEEN}{plain_name(task.title)}"
    return own


def _sum_up(top: Task, branch: Branch, *, moved: bool, anew: bool) -> None:
    """A top row stands as what is below it does, and as what of that is not past. `moved`: something else may be below
    it; `anew`: what stands apart has changed."""
    tree, scope = branch.tree, branch.scope
    if moved:
        below = [scope + root for root in tree.roots if root not in branch.history]
        top.children = below if branch.is_split else _Keys(scope, tree.roots)
    sums = tree.totals
    if branch.is_split:
        if anew:
            branch.less = Delta()
            for task_id in branch.history:
                branch.less.add(Delta.without(tree.tasks[task_id]))
        sums = Below()
        Delta.over(tree.totals).add_to(sums)
        branch.less.add_to(sums)
    top.below = sums if sums.counts else None
    states = +branch.states or sums.states
    top.state = top.own_state = max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
    top.lost_since = tree.lost_since
    if top.why or top.lost_since is not None:
        top.state = State.UNKNOWN
    top.past = not branch.is_split and is_past(top, tree.history_before)
