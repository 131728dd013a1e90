"""In which group a run stands by now, in which order tasks stand, and what a heading says of its group. Pure.

A run is a task without a parent, with all that is below it. Runs stand by group and last activity, children as they
were first seen, but for those of a workspace: they stand as runs do. Nothing moves because of a mere sign of life: a
run is placed by the activity that it had when its group, its state or whether it asks last changed. Nothing moves
because its host cannot be reached, or can be again. And nothing moves past what is held, such as the task under the
operator's cursor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Counted, State, Task
from agentwatch.view.chains import continued
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

JUST: Final = 600.0
"""Seconds for which a run that has ended counts as now."""
_LIVE_SILENCE: Final = 3_600.0
"""Seconds of silence for which a run in which something is said to work counts as now."""
_DAY: Final = 86_400.0
_DECIDED: Final = frozenset({State.RETRYING, State.ESCALATED})
"""States in which an agent has to carry out what the operator has decided."""
_REFRESH: Final = 15.0
"""Seconds after which runs are looked at that time alone may move."""


class Group(StrEnum):
    """Where runs stand, in the order of the screen."""

    NOW = "now"
    TODAY = "today"
    EARLIER = "earlier"
    HISTORY = "history"


GROUPS: Final = tuple(Group)


def works(task: Task) -> bool:
    """Whether something works in a run, or has to carry out what the operator has decided."""
    states = (task.state, *(task.below.states if task.below is not None else ()))
    return any(state is State.WORKING or state in _DECIDED for state in states)


def asks(task: Task) -> bool:
    """Whether something in a run needs the operator."""
    return task.needs_operator or (task.below is not None and task.below.needs_operator > 0)


def has_finished(task: Task) -> bool:
    """Whether a task with others below it has ended with all of them, and nothing there waits for the operator."""
    below = task.below
    # That of a workspace is not its own.
    has_ended = bool(task.workspace) or not task.state.is_open
    return below is not None and not below.open and has_ended and not asks(task)


# Groups


def _is_lively(task: Task, now: float) -> bool:
    """Whether a run was alive a short while ago: ten minutes, or an hour where it works."""
    return now < (task.alive_at or 0.0) + (_LIVE_SILENCE if works(task) else JUST)


def group_of(task: Task, now: float, line: float = -inf) -> Group:
    """The group of a run at a moment; all three are epoch seconds. What was last alive before `line` may be history."""
    below = task.below
    if asks(task):
        return Group.NOW
    if task.past and (below is None or below.active_at < line):
        return Group.HISTORY
    # That a host does not answer is news.
    is_news = task.workspace and (task.lost_since is not None or (task.host and below is None))
    is_decided = task.state in _DECIDED or (below is not None and not _DECIDED.isdisjoint(below.states))
    if is_news or is_decided or _is_lively(task, now):
        return Group.NOW
    return Group.TODAY if (task.alive_at or 0.0) >= _day_begins(now // 900) else Group.EARLIER


@lru_cache(maxsize=4)
def _day_begins(quarter: float) -> float:
    """When the calendar day, here, of a quarter of an hour has begun: midnight is on one everywhere."""
    try:
        local = datetime.fromtimestamp(quarter * 900, UTC).astimezone()
        return datetime(local.year, local.month, local.day).astimezone().timestamp()
    except (OverflowError, OSError, ValueError):
        return quarter * 900 // _DAY * _DAY


# Sums

SILENT: Final = "silent"
FALSE: Final = "false"
VERIFIED: Final = "verified"
ASKING: Final = "asking"

Present = Counter[str]
"""How many tasks are what: in each state, and silent, false, verified and asking. A false or silent one is not in its
state, and a silent one is counted no more once it is past."""


def present_in(counts: Mapping[Counted, int]) -> Present:
    """Sums over tasks."""
    present = Present()
    for one, count in counts.items():
        if one.verdict is Verdict.CONTRADICTED:
            present[FALSE] += count
        elif one.silent is None:
            present[one.state] += count
        elif not one.silent:
            present[SILENT] += count
        if one.verdict is Verdict.VERIFIED:
            present[VERIFIED] += count
        if one.waits_as is not None:
            present[ASKING] += count
    return present


class Tally(NamedTuple):
    """The content of a group: its runs, their tasks, how many tasks of the history were never reviewed, and, but for
    the history, what its tasks are. Its oldest run was alive at `since` (epoch seconds)."""

    runs: int = 0
    tasks: int = 0
    unreviewed: int = 0
    present: Present = Present()
    since: float = 0.0

    def words(self, group: Group, now: float) -> tuple[str, ...]:
        """The words of its heading, in several lengths, the fullest first."""
        runs = plural(self.runs, "run")
        tasks = f"{runs}, {plural(self.tasks, 'task')}" if self.tasks > self.runs else runs
        is_old = self.since > 0 and group in (Group.EARLIER, Group.HISTORY)
        dated = f"{tasks} since {day(self.since, now)}" if is_old else tasks
        more = self._more(group)
        return tuple(dict.fromkeys([f"{dated}{more}", f"{tasks}{more}", f"{runs}{more}", dated, tasks, runs]))

    def _more(self, group: Group) -> str:
        """The open part of the history, else how its tasks stand."""
        if group is Group.HISTORY:
            return f" · {self.unreviewed:,} never reviewed" if self.unreviewed else ""
        counts = [(self.present[word], str(word)) for word in (*reversed(State), SILENT, FALSE) if self.present[word]]
        if len(counts) == 1 and counts[0][0] == self.tasks and not self.present[ASKING]:
            return f", {'all ' if self.tasks > 1 else ''}{counts[0][1]}"
        return "".join(f" · {count:,} {word}" for count, word in counts)


def day(moment: float, now: float) -> str:
    """A day as people name it: `today`, `yesterday`, `Friday` (in a week), `3 May` (in the year), else `Mar 2024`."""
    try:
        then, here = (datetime.fromtimestamp(at, UTC).astimezone() for at in (moment, now))
    except (OverflowError, OSError, ValueError):
        return "?"
    if moment >= _day_begins(now // 900):
        return "today"
    days = (here.date() - then.date()).days
    if days < 7:
        return "yesterday" if days == 1 else f"{then:%A}"
    return f"{then.day} {then:%b}" if then.year == here.year else f"{then:%b %Y}"


# The order

_Rank = tuple[float, ...]
"""The sort key of siblings; that of a run begins with the number of its group."""


class _Run(NamedTuple):
    """How a run stands: why it is where it is, and by which sign of life."""

    mark: tuple[Group, int, State]
    activity: float
    wish: _Rank
    unreviewed: int


class Order:
    """The order of a tree's tasks as one of its faces shows it. `apply` has to be told of every change.

    Until it `is_settled`, runs go by the activity that they have: the first look at a workspace comes in pieces.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._runs: dict[str, _Run] = {}
        self._wishes: dict[str, _Rank] = {}
        """Of the children of workspaces."""
        self._ranks: dict[str, _Rank] = {}
        """By what each run, and each child in a family with an order of its own, was last sorted."""
        self._count = 0
        self._held: Collection[str] = ()
        self._keeps = False
        """Whether some are kept from their place by those that are held."""
        self._groups: dict[Group, list[str]] | None = None
        self._tallies: dict[Group, Tally] = {}
        self._now = -inf
        self.is_settled = False
        """Whether the first look is over: from then on nothing moves because of a sign of life."""

    def copy(self) -> Order:
        """The order of another face that begins with the same one."""
        other = Order(self._tree)
        other._runs, other._wishes, other._ranks = self._runs.copy(), self._wishes.copy(), self._ranks.copy()
        other._count, other._now, other.is_settled = self._count, self._now, self.is_settled
        return other

    # What changes it

    def apply(self, changed: Iterable[str], now: float) -> None:
        """Take in the tasks that were added, changed or removed."""
        tasks = self._tree.tasks
        roots: set[str] = set()
        for task_id in changed:
            if task_id not in tasks or tasks[task_id].parent_id is not None:
                self._runs.pop(task_id, None)
            if task_id in tasks:
                roots.add([task_id, *self._tree.ancestors(task_id)][-1])
            else:
                self._ranks.pop(task_id, None)
                self._wishes.pop(task_id, None)
        for root in roots:
            self._stand(tasks[root], now)
        self._groups = None

    def tick(self, now: float) -> bool:
        """Time has passed, or has gone back. Returns whether runs may stand elsewhere now."""
        if 0 <= now - self._now < _REFRESH:
            return False
        self._now = now
        for one, run in self._runs.items():
            if run.mark[0] in (Group.NOW, Group.TODAY) and one in self._tree.tasks:
                self._stand(self._tree.tasks[one], now)
        self._groups = None
        return True

    def hold(self, path: Collection[str]) -> bool:
        """Keep these tasks, and no others, where they are among their siblings. Returns whether some that were kept
        from their place are free to go there."""
        self._held, is_free, self._keeps = path, self._keeps, False
        if is_free:
            self._groups = None
        return is_free

    def _stand(self, root: Task, now: float) -> None:
        before = self._runs.get(root.task_id)
        group, is_working = group_of(root, now, self._tree.rules.history_before), works(root)
        # First what asks and works, then what asks and was just alive, what works or cannot be reached, what asked
        # long ago.
        if asks(root):
            tier = 3 if not _is_lively(root, now) else 0 if is_working else 1
        else:
            tier = 2 if (is_working or root.state is State.UNKNOWN) and group is Group.NOW else 4
        mark, activity = (group, tier, root.state), root.alive_at or 0.0
        if before is not None and (root.lost_since is not None or (self.is_settled and mark == before.mark)):
            mark, activity, wish = before.mark, before.activity, before.wish
        else:
            wish = (GROUPS.index(group), tier, -activity, root.first_seq)
        unreviewed = 0
        if group is Group.HISTORY:
            below = (task for task, _ in self._tree.preorder([root.task_id]))
            unreviewed = sum(one.past and one.question is not None and not one.acknowledged for one in below)
        self._runs[root.task_id] = _Run(mark, activity, wish, unreviewed)

    def _sorted(self, wishes: Mapping[str, _Rank]) -> list[str]:
        """Siblings by what they wish for. The one that is held stays where it is, and no other goes past it: what would
        go up in its group stands right behind it, the latest first."""
        ranks, held = self._ranks, next((one for one in self._held if one in wishes), None)
        at = ranks.get(held) if held is not None else None
        if at is None:
            ranks.update(wishes)
            return sorted(wishes, key=ranks.__getitem__)
        for one, wish in wishes.items():
            before = ranks.get(one)
            if wish == before:
                continue
            stays = one == held or (before is not None and before < at < wish)
            goes_behind = wish < at and wish[0] == at[0] and (before is None or before > at)
            self._keeps |= stays or goes_behind
            if goes_behind and not stays:
                if before is None or before[: len(at)] != at:
                    self._count += 1
                    ranks[one] = (*at, -self._count)
            elif not stays:
                ranks[one] = wish
        return sorted(wishes, key=ranks.__getitem__)

    # What is where

    @property
    def groups(self) -> dict[Group, list[str]]:
        """The ids of the runs of each group in their order."""
        if self._groups is None:
            self._groups, self._tallies = {group: [] for group in GROUPS}, {}
            for one in self._sorted({task_id: run.wish for task_id, run in self._runs.items()}):
                self._groups[self.group(one)].append(one)
        return self._groups

    def group(self, task_id: str) -> Group:
        """The group in which a run stands."""
        return GROUPS[int(self._ranks[task_id][0])]

    def knows(self, task_id: str) -> bool:
        """Whether a task was told of, and is a run."""
        return task_id in self._runs

    def children(self, task_id: str) -> Sequence[str]:
        """The ids of the children of a task in their order."""
        tasks = self._tree.tasks
        parent = tasks[task_id]
        if not parent.workspace:
            return parent.children
        wishes: dict[str, _Rank] = {}
        for child in map(tasks.__getitem__, parent.children):
            tier = 0 if asks(child) else 1 if works(child) or child.state is State.UNKNOWN else 2
            tier = 3 if child.past and tier else tier
            wish = self._wishes.get(child.task_id)
            if wish is None or (child.lost_since is None and not (self.is_settled and wish[1] == tier)):
                wish = (0, tier, -(child.alive_at or 0.0), child.first_seq)
            wishes[child.task_id] = self._wishes[child.task_id] = wish
        return self._sorted(wishes)

    def tally(self, group: Group) -> Tally:
        """The content of a group."""
        runs = self.groups[group]
        if group not in self._tallies and runs:
            tasks = [self._tree.tasks[one] for one in runs if one in self._tree.tasks]
            counts = Counter[Counted]()
            for root in tasks if group is not Group.HISTORY else ():
                counts.update(root.below.counts if root.below is not None else {})
                counts.update([root.kind] if root.kind is not None else ())
            self._tallies[group] = Tally(
                len(runs),
                sum(not (one.workspace or one.shares_row) for one in tasks)
                + sum(one.below.tasks for one in tasks if one.below is not None),
                sum(self._runs[one].unreviewed for one in runs),
                present_in(counts),
                self._runs[runs[-1]].activity,
            )
        return self._tallies.get(group, Tally())

    def preorder(self, group: Group) -> Iterator[tuple[Task, int, list[Task]]]:
        """The rows of a group: the task, its depth, and those above it in its chain."""
        pending = [(task_id, 0) for task_id in reversed(self.groups[group])]
        while pending:
            task_id, depth = pending.pop()
            task, chain = self._tree.tasks[task_id], list[Task]()
            while (below := continued(self._tree.tasks, task)) is not None:
                chain.append(task)
                task = below
            yield task, depth, chain
            pending += reversed([(child, depth + 1) for child in self.children(task.task_id)])
