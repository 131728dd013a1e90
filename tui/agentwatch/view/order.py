"""In which order tasks stand: runs by group and last activity, children as they were first seen, but for those of a
workspace: they stand as runs do. Pure.

Nothing moves because of a mere sign of life: a run is placed by the activity that it had when its group, its state or
whether it asks last changed. Nothing moves because its host cannot be reached, or can be again. And nothing moves past
what is held, such as the task under the operator's cursor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.delegation.task import State, Task
from agentwatch.view.chains import continued
from agentwatch.view.groups import GROUPS, Group, Standing, Tally, asks, standing, works
from agentwatch.view.indexes import Deadlines, Ordered

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

LARGE: Final = 20
"""Children up to which they stand as they were first seen. Of more, those who ask come first, then those who work."""

Rank = tuple[float, ...]
"""What siblings are sorted by; that of a run begins with the number of its group."""


class Siblings(Ordered[Rank]):
    """Ids in the order of their ranks. One of them may be held: then no other goes past it."""

    def __init__(self) -> None:
        super().__init__()
        self._wishes: dict[str, Rank] = {}
        """The ranks of those who are kept from their place by the one that is held."""
        self._count = 0
        self.held: str | None = None

    def copy(self) -> Siblings:
        """The same once more."""
        other = Siblings()
        other._order, other.ranks = self._order.copy(), self.ranks.copy()
        other._wishes, other._count, other.held = self._wishes.copy(), self._count, self.held
        return other

    def put(self, name: str, rank: Rank) -> bool:
        """Give an id its place, as far as the one that is held lets it. Returns whether that is another one."""
        before = self.ranks.get(name)
        self._wishes.pop(name, None)
        nearest = self._nearest(name, before, rank)
        if nearest != rank:
            self._wishes[name] = rank
        return super().put(name, nearest)

    def wish(self, name: str) -> Rank:
        """The rank that was wished for an id last; () for none."""
        return self._wishes.get(name) or self.ranks.get(name, ())

    def discard(self, name: str) -> None:
        super().discard(name)
        self._wishes.pop(name, None)
        if self.held == name:
            self.held = None

    def hold(self, name: str | None) -> list[str]:
        """Hold this one and no other. Returns the ids that go to the places they have waited for."""
        if name == self.held:
            return []
        self.held = name
        wishes, self._wishes = self._wishes, {}
        return [one for one, wish in wishes.items() if self.put(one, wish)]

    def before(self, rank: Rank, name: str = "") -> Iterator[str]:
        """The ids in front of this place, nearest first."""
        at = bisect_left(self._order, (rank, name))
        return (self._order[number][1] for number in range(at - 1, -1, -1))

    def _nearest(self, name: str, before: Rank | None, wish: Rank) -> Rank:
        """The rank nearest to the one that is wished for, without going past the one that is held."""
        held = self.ranks.get(self.held) if self.held is not None else None
        if held is None or wish == before:
            return wish
        if name == self.held:
            return before or wish
        if before is not None and before < held < wish:
            return before
        if wish < held and wish[0] == held[0] and (before is None or before > held):
            if before is not None and before[: len(held)] == held:
                return before
            # Right behind it, the latest first.
            self._count += 1
            return (*held, -self._count)
        return wish


class _Run(NamedTuple):
    """How a run stands, and in which group it counts: while it is kept from its own, in another one. It was placed by
    this `mark`."""

    standing: Standing
    counts_in: Group
    mark: tuple[Group, int, State]


class Order:
    """The order of a tree's tasks as one of its faces shows it. `take` has to be told of every change.

    Until it `is_settled`, runs go by the activity that they have: the first look at a workspace comes in pieces.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._roots = Siblings()
        self._families: dict[str, Siblings] = {}
        """The children of workspaces, and of those that have many."""
        self._homes: dict[str, str] = {}
        """By child, in whose family it stands."""
        self._holding: set[str] = set()
        """The families in which one is held."""
        self._runs: dict[str, _Run] = {}
        self._due = Deadlines()
        self._now = float("-inf")
        self.is_settled = False
        """Whether the first look is over: from then on nothing moves because of a sign of life."""
        self.tallies = {group: Tally() for group in GROUPS}

    def copy(self) -> Order:
        """The order of another face that begins with the same one."""
        other = Order(self._tree)
        other._roots = self._roots.copy()
        other._families = {name: family.copy() for name, family in self._families.items()}
        other._homes, other._runs = self._homes.copy(), self._runs.copy()
        other._holding = self._holding.copy()
        other._now, other.is_settled = self._now, self.is_settled
        for task_id, run in self._runs.items():
            other._due.put(task_id, run.standing.until)
            other.tallies[run.counts_in].add(run.standing)
        return other

    # What is where

    def roots(self, group: Group | None = None) -> Iterator[str]:
        """The ids of the runs in their order, of all groups or of one."""
        return (one for one in self._roots if group is None or self.group(one) is group)

    def last_roots(self, group: Group) -> Iterator[str]:
        """The ids of the runs of a group, the last one first."""
        return takewhile(lambda one: self.group(one) is group, self._roots.before((GROUPS.index(group) + 1,)))

    def children(self, task_id: str) -> Sequence[str]:
        """The ids of the children of a task in their order."""
        family, tasks = self._families.get(task_id), self._tree.tasks
        if task_id not in tasks:
            return ()
        if family is None:
            return tasks[task_id].children
        return [child for child in family if child in tasks and tasks[child].parent_id == task_id]

    def before(self, task: Task) -> Iterator[str]:
        """The ids of the siblings before a task, nearest first; of a run, those in its group."""
        if task.parent_id is None:
            if task.task_id not in self._runs:
                return iter(())
            group = self.group(task.task_id)
            before = self._roots.before(self._roots.ranks[task.task_id], task.task_id)
            return takewhile(lambda one: self.group(one) is group, before)
        family = self._families.get(task.parent_id)
        if family is None or task.task_id not in family.ranks:
            siblings = self._tree.tasks[task.parent_id].children
            return reversed(siblings[: siblings.index(task.task_id)])
        return family.before(family.ranks[task.task_id], task.task_id)

    def rank(self, task: Task) -> Rank:
        """By what a task is sorted among its siblings."""
        if task.parent_id is None:
            return self._roots.ranks.get(task.task_id, ())
        family = self._families.get(task.parent_id)
        return (task.first_seq,) if family is None else family.ranks.get(task.task_id, ())

    def knows(self, task_id: str) -> bool:
        """Whether a task was told of, and is a run."""
        return task_id in self._runs

    def group(self, task_id: str) -> Group:
        """The group in which a run stands."""
        return GROUPS[int(self._roots.ranks[task_id][0])]

    def activity(self, task_id: str) -> float:
        """By which sign of life a run stands where it does (epoch seconds)."""
        return self._runs[task_id].standing.activity

    def words(self, group: Group, now: float) -> tuple[str, ...]:
        """What a heading says of a group, in several lengths, the fullest first."""
        oldest = next(self.last_roots(group), None)
        return self.tallies[group].words(group, 0.0 if oldest is None else self.activity(oldest), now)

    # What changes it

    def take(self, changed: Iterable[str], now: float) -> set[str]:
        """Take in the tasks that were added, changed or removed. Returns the ids of those that stand elsewhere now."""
        moved: set[str] = set()
        told: set[str] = set()
        histories: set[str] = set()
        for task_id in changed:
            task = self._tree.tasks.get(task_id)
            if task is not None and task.parent_id is None:
                self._leave(task_id, None, moved)
                told.add(task_id)
                if self._stand(task, now):
                    moved.add(task_id)
                continue
            if task is not None and task.past:
                # What is open of the history is in no sum: what is above is not told of it.
                histories.add([task_id, *self._tree.ancestors(task_id)][-1])
            self._drop(task_id)
            parent_id = task.parent_id if task is not None else None
            self._leave(task_id, parent_id, moved)
            self._fit(task_id, moved)
            if task is not None and parent_id is not None:
                self._join(task, parent_id, moved)
        moved.update(one for one in histories - told if one in self._runs and self._stand(self._tree.tasks[one], now))
        return moved

    @property
    def due(self) -> float:
        """When time alone may move a run (epoch seconds)."""
        return self._due.soonest

    def tick(self, now: float) -> set[str]:
        """Time has passed, or has gone back. Returns the ids of the runs that stand elsewhere now."""
        due = set(self._runs) if now < self._now else self._due.past(now)
        self._now = now
        runs = [self._tree.tasks.get(task_id) for task_id in due if task_id in self._runs]
        return {run.task_id for run in runs if run is not None and run.parent_id is None and self._stand(run, now)}

    def hold(self, path: Collection[str]) -> set[str]:
        """Hold these tasks, each among its siblings, and no others. Returns the ids of those that move now."""
        moved: set[str] = set()
        held = {self._homes[task_id]: task_id for task_id in path if task_id in self._homes}
        for name in self._holding | held.keys():
            if (family := self._families.get(name)) is not None:
                moved.update(family.hold(held.get(name)))
        self._holding = set(held)
        for task_id in self._roots.hold(next((one for one in path if one in self._runs), None)):
            self._count(task_id, self._runs[task_id].standing, self._runs[task_id].mark)
            moved.add(task_id)
        return moved

    def _stand(self, run: Task, now: float) -> bool:
        """Place a run. Returns whether it stands elsewhere now."""
        task_id, before = run.task_id, self._runs.get(run.task_id)
        after = standing(self._tree, run, now)
        if after.until != float("inf"):
            self._due.put(task_id, after.until)
        has_moved, mark = False, after.mark
        if before is not None and run.lost_since is not None:
            mark, after = before.mark, after._replace(activity=before.standing.activity)
        elif before is None or not self.is_settled or after.mark != before.mark:
            place = (GROUPS.index(after.group), after.tier, -after.activity, run.first_seq)
            has_moved = self._roots.put(task_id, place)
        else:
            after = after._replace(activity=before.standing.activity)
        self._count(task_id, after, mark)
        return has_moved

    def _count(self, task_id: str, run: Standing, mark: tuple[Group, int, State]) -> None:
        before = self._runs.get(task_id)
        if before is not None:
            self.tallies[before.counts_in].add(before.standing, -1)
        self._runs[task_id] = counted = _Run(run, self.group(task_id), mark)
        self.tallies[counted.counts_in].add(run)

    def _drop(self, task_id: str) -> None:
        """A task is no run, or no more."""
        run = self._runs.pop(task_id, None)
        if run is not None:
            self.tallies[run.counts_in].add(run.standing, -1)
            self._roots.discard(task_id)

    def _join(self, child: Task, parent_id: str, moved: set[str]) -> None:
        """Place a child among its siblings, where these have an order of their own."""
        self._fit(parent_id, moved)
        family, parent = self._families.get(parent_id), self._tree.tasks[parent_id]
        if family is None:
            if not _has_order(parent):
                return
            family = self._families[parent_id] = Siblings()
            for one in parent.children:
                self._leave(one, parent_id, moved)
                self._homes[one] = parent_id
                family.put(one, self._wish(family, self._tree.tasks[one], parent))
            moved.update(parent.children)
            return
        self._homes[child.task_id] = parent_id
        if family.put(child.task_id, self._wish(family, child, parent)):
            moved.add(child.task_id)

    def _leave(self, task_id: str, parent_id: str | None, moved: set[str]) -> None:
        """A task is in no family but perhaps that of this parent."""
        home = self._homes.get(task_id)
        if home is not None and home != parent_id:
            del self._homes[task_id]
            self._families[home].discard(task_id)
            self._fit(home, moved)

    def _fit(self, parent_id: str, moved: set[str]) -> None:
        """Children without an order of their own any more stand as they were first seen."""
        if parent_id not in self._families:
            return
        parent = self._tree.tasks.get(parent_id)
        if parent is None or not _has_order(parent):
            for one in self._families.pop(parent_id):
                del self._homes[one]
                moved.add(one)

    def _wish(self, family: Siblings, child: Task, parent: Task) -> Rank:
        """Where a child would stand. In a workspace it stands as runs do, and no sign of life moves it."""
        tier = 0 if asks(child) else 1 if works(child) or child.state is State.UNKNOWN else 2
        if not parent.workspace:
            return 0, tier, child.first_seq
        tier = 3 if child.past and tier else tier
        before = family.wish(child.task_id)
        if before and (child.lost_since is not None or (self.is_settled and before[:2] == (0, tier))):
            return before
        return 0, tier, -(child.alive_at or 0.0), child.first_seq


def _has_order(parent: Task) -> bool:
    """Whether children have an order of their own: those of a workspace, and where they are many."""
    return bool(parent.workspace) or len(parent.children) > LARGE


def preorder(tree: Tree, order: Order, group: Group) -> Iterator[tuple[Task, int, list[Task]]]:
    """The rows of a group, in an order that has taken in all tasks: the task, its depth, and those above it in its
    chain."""
    pending = [(task_id, 0) for task_id in reversed(list(order.roots(group)))]
    while pending:
        task_id, depth = pending.pop()
        task, chain = tree.tasks[task_id], list[Task]()
        while (below := continued(tree.tasks, task)) is not None:
            chain.append(task)
            task = below
        yield task, depth, chain
        pending += reversed([(child, depth + 1) for child in order.children(task.task_id)])
