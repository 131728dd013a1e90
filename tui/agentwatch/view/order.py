"""The rows of a tree: in which group a run stands, in which order tasks stand, and the words of a heading. Pure.

A run is a task without a parent, or below the row of a workspace, with all that is below it. Runs stand by group and
last activity, other tasks as they were first seen. A mere sign of life moves nothing: a run is placed by the activity
that it had when its group, its state or whether it asks last changed. Nor does a host that cannot be reached, or can be
again. And what is held stays, such as the run under the operator's cursor, unless it begins to ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from enum import Enum
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.delegation.events import Verdict
from agentwatch.delegation.task import Counted, Shown, State, Task, sums_of
from agentwatch.view.times import wall
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_JUST = 600.0
"""Seconds for which a run that has ended counts as now."""
_LIVE_SILENCE = 3_600.0
"""Seconds of silence for which a run in which something is said to work counts as now."""
_DECIDED = frozenset({State.RETRYING, State.ESCALATED})
"""States in which an agent has to carry out what the operator has decided."""
_WORK = _DECIDED | {State.WORKING}
_REFRESH = 15.0
"""Seconds after which runs are looked at that time alone may move."""


class Group(Enum):
    """Where runs stand, in the order of the screen. No string, so that no task id is equal to it."""

    NOW = "now"
    TODAY = "today"
    EARLIER = "earlier"
    HISTORY = "history"


GROUPS = tuple(Group)


def _has(task: Task, states: Set[State]) -> bool:
    """Whether something in a run is in one of these states."""
    return task.state in states or (task.below is not None and not states.isdisjoint(task.below.states))


def asks(task: Task) -> bool:
    """Whether something in a run needs the operator."""
    return task.needs_operator or (task.below is not None and task.below.needs_operator > 0)


def has_finished(task: Task) -> bool:
    """Whether a task with others below it has ended with all of them, and nothing there waits for the operator."""
    below = task.below
    # That of a workspace is not its own.
    has_ended = bool(task.workspace) or not task.state.is_open
    return below is not None and not below.open and has_ended and not asks(task)


def _is_lively(task: Task, now: float) -> bool:
    """Whether a run was alive a short while ago: ten minutes, or an hour where it works."""
    return now < (task.alive_at or 0.0) + (_LIVE_SILENCE if _has(task, _WORK) else _JUST)


def group_of(task: Task, now: float, line: float = -inf) -> Group:
    """The group of a run at a moment; all three are epoch seconds. What was last alive before `line` may be history."""
    below = task.below
    if asks(task):
        return Group.NOW
    if task.past and (below is None or below.active_at < line):
        return Group.HISTORY
    # That a host does not answer is news.
    is_news = task.workspace and (task.lost_since is not None or (task.host and below is None))
    if is_news or task.shown is Shown.IDLE or _has(task, _DECIDED) or _is_lively(task, now):
        return Group.NOW
    return Group.TODAY if day(task.alive_at or 0.0, now) == "today" else Group.EARLIER


def day(moment: float, now: float) -> str:
    """A day as people name it: `today`, `yesterday`, `Friday` (in a week), `3 May` (in the year), else `Mar 2024`."""
    then, here = wall(moment), wall(now)
    if then is None or here is None:
        return "?"
    days = (here.date() - then.date()).days
    if days < 7:
        return "today" if days < 1 else "yesterday" if days == 1 else f"{then:%A}"
    return f"{then.day} {then:%b}" if then.year == here.year else f"{then:%b %Y}"


# Chains: a task that is only named, and has one task below it, shares the row of that one


def _continued(tasks: Mapping[str, Task], task: Task | None) -> Task | None:
    """The task in whose row one stands that is only named."""
    return tasks.get(task.children[0]) if task is not None and task.shares_row else None


def end_of_chain(tasks: Mapping[str, Task], task_id: str) -> str:
    """The id of the task at the end of a chain, whose row it is; a task outside of chains is its own end."""
    task = tasks.get(task_id)
    while (task := _continued(tasks, task)) is not None:
        task_id = task.task_id
    return task_id


def chain_name(tasks: Mapping[str, Task], task: Task) -> str:
    """The name before a title in the row of a chain, that of the outermost; "" where the title is enough. Of a type of
    agent, nobody would know which work it is."""
    name, above = "", tasks.get(task.parent_id or "")
    while above is not None and above.shares_row:
        name, above = above.title if above.title != above.agent else name, tasks.get(above.parent_id or "")
    is_known = task.agent is None or task.title.partition("#")[0] != task.agent
    return "" if is_known or name == task.title else name


# Sums

VERIFIED = "verified"
ASKING = "asking"

Present = Counter[str]
"""How many tasks are what: as they are shown, and verified and asking."""


def present_in(counts: Mapping[Counted, int]) -> Present:
    """Sums over tasks."""
    present = Present()
    for one, count in counts.items():
        present[one.shown] += count
        if one.verdict is Verdict.VERIFIED:
            present[VERIFIED] += count
        if one.asks:
            present[ASKING] += count
    return present


class Tally(NamedTuple):
    """The content of a group: its runs, their tasks, how many open questions of the history were never reviewed, and
    what its tasks are. The oldest run of the past was alive at `since` (epoch seconds, else 0)."""

    group: Group
    runs: int
    tasks: int
    unreviewed: int
    present: Present
    since: float

    def words(self, now: float) -> tuple[str, ...]:
        """The words of its heading, in several lengths, the fullest first."""
        runs = plural(self.runs, "run")
        tasks = f"{runs}, {plural(self.tasks, 'task')}" if self.tasks > self.runs else runs
        dated = f"{tasks} since {day(self.since, now)}" if self.since > 0 else tasks
        return f"{dated}{self._more()}", dated, runs

    def _more(self) -> str:
        """The open part of the history, else how its tasks stand."""
        if self.group is Group.HISTORY:
            return f" · {self.unreviewed:,} never reviewed" if self.unreviewed else ""
        there = [shown for shown in reversed(Shown) if self.present[shown]]
        if len(there) == 1 and self.present[there[0]] == self.tasks and not self.present[ASKING]:
            return f", {'all ' if self.tasks > 1 else ''}{there[0].word}"
        return "".join(f" · {self.present[shown]:,} {shown.word}" for shown in there)


# The order

RowId = str | Group
_Rank = tuple[float, ...]
"""The sort key of siblings; that of a run begins with the number of its group."""


class Row(NamedTuple):
    """One task, or the heading of a group, below the row `above`. `depth` is 0 for a run and -1 for a heading, `folded`
    None where nothing is below. `chain` are the ids of the tasks above it that it stands for, the outermost first."""

    row_id: RowId
    above: RowId | None
    depth: int
    folded: bool | None
    chain: tuple[str, ...] = ()

    @property
    def task_id(self) -> str | None:
        """None for a heading."""
        return None if isinstance(self.row_id, Group) else self.row_id


class Order:
    """The order of a tree's tasks as one of its faces shows it. `apply` has to be told of every change.

    Until it `is_settled`, runs go by the activity that they have: the first look at a workspace comes in pieces.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._places: dict[str, tuple[tuple[Group, int, State], _Rank]] = {}
        """By run, why it stands where it does, and its rank there."""
        self._held: Collection[str] = ()
        self._groups: dict[Group, list[str]] | None = None
        self._roots: Sequence[str] = ()
        """Those of which the groups were made: a tree that hangs tasks elsewhere has others."""
        self._tallies: dict[tuple[Group, bool], Tally] = {}
        self._found: Mapping[str, Task] | None = None
        self._now = -inf
        self.is_settled = False
        """Whether the first look is over: from then on nothing moves because of a sign of life."""

    def apply(self, changed: Iterable[str], now: float) -> None:
        """Take in the tasks that were added, changed or removed."""
        tasks = self._tree.tasks
        paths = ([task_id, *self._tree.ancestors(task_id)] for task_id in changed if task_id in tasks)
        for one in {one for path in paths for one in path}:
            above = tasks[one].parent_id
            if above is None or tasks[above].workspace:
                self._place(one, now)
        self._tallies = {}

    def tick(self, now: float) -> None:
        """Time has passed, or has gone back: runs may stand elsewhere."""
        if not 0 <= now - self._now < _REFRESH:
            # Of what is over, only another day moves anything.
            is_same_day = self._now <= now and day(self._now, now) == "today"
            for one, ((group, _, _), _) in list(self._places.items()):
                if group is Group.NOW or (group is Group.TODAY and not is_same_day):
                    self._place(one, now)
            self._now = now

    def hold(self, path: Collection[str], now: float) -> None:
        """Keep these tasks, and no others, in their groups."""
        released, self._held = self._places.keys() & {*self._held}.difference(path), path
        for one in released:
            self._place(one, now)

    def _place(self, one: str, now: float) -> None:
        run, before = self._tree.tasks.get(one), self._places.get(one)
        if run is None:
            return
        group, is_working = group_of(run, now, self._tree.rules.history_before), _has(run, _WORK)
        # First what asks and works, then what asks and was just alive, what asked long ago, what works or cannot be
        # reached, whose turn it is.
        if asks(run):
            tier = 2 if not _is_lively(run, now) else 0 if is_working else 1
        else:
            tier = 4 if run.shown is Shown.IDLE else 5
            tier = 3 if (is_working or run.state is State.UNKNOWN) and group is Group.NOW else tier
        # A held run goes up when it asks, for it would stand below runs that do not.
        if before is not None and one in self._held and (tier > 2 or before[0][1] <= 2):
            return
        why = group, tier, run.state
        if before is None or (run.lost_since is None and not (self.is_settled and why == before[0])):
            self._places[one] = why, (GROUPS.index(group), tier, -(run.alive_at or 0.0), run.first_seq)
            self._groups = None

    def _sorted(self, runs: Iterable[str]) -> list[str]:
        return sorted((one for one in runs if one in self._places), key=lambda one: self._places[one][1])

    @property
    def groups(self) -> dict[Group, list[str]]:
        """The ids of the runs of each group in their order; another object where rows came, went or moved."""
        if self._groups is None or self._roots is not self._tree.roots:
            self._roots = self._tree.roots
            by_group = groupby(self._sorted(self._tree.roots), lambda one: self._places[one][0][0])
            self._groups = {group: list[str]() for group in GROUPS} | {group: [*runs] for group, runs in by_group}
            self._tallies = {}
        return self._groups

    def group(self, run: str) -> Group | None:
        """The group in which a run stands; None for another task."""
        return next((group for group, runs in self.groups.items() if run in runs), None)

    def rows(self, folds: Collection[RowId] = (), shown: Collection[str] | None = None) -> list[Row]:
        """The rows in their order, but for those below the ids of `folds`; where given, only those of the tasks that
        are `shown`. Each group has a heading where there are several, or it is the history."""
        tasks, rows = self._tree.tasks, list[Row]()

        def visible(ids: Iterable[str]) -> list[str]:
            return [one for one in ids if one in tasks and (shown is None or one in shown)]

        groups = {group: runs for group, ids in self.groups.items() if (runs := visible(ids))}
        pending: list[tuple[RowId, int, RowId | None]] = [(group, -1, None) for group in reversed(groups)]
        if len(groups) == 1 and Group.HISTORY not in groups:
            pending = [(run, 0, None) for runs in groups.values() for run in reversed(runs)]
        while pending:
            row_id, depth, above = pending.pop()
            chain: tuple[str, ...] = ()
            children: Sequence[str] = ()
            if isinstance(row_id, Group):
                children = groups[row_id]
            elif (task := tasks[row_id]).children:
                while (below := _continued(tasks, task)) is not None:
                    chain, row_id, task = (*chain, row_id), below.task_id, below
                children = visible(self._sorted(task.children) if task.workspace else task.children)
            folded = row_id in folds if children else None
            rows.append(Row(row_id, above, depth, folded, chain))
            if folded is False:
                pending += [(child, depth + 1, row_id) for child in reversed(children)]
        return rows

    def tally(self, group: Group, found: Mapping[str, Task] | None = None) -> Tally:
        """The content of a group: all of it, or of the tasks that were `found`."""
        if found is not None and found is not self._found:
            self._found, self._tallies = found, {}
        key = group, found is None
        if key not in self._tallies:
            tree, ids = self._tree, self.groups[group]
            runs = [task for one in ids if (task := tree.tasks.get(one)) is not None]
            open_ = tree.past_questions() if group is Group.HISTORY else []
            sums = tree.totals if len(runs) == len(tree.roots) else sums_of(runs, deep=True)
            if found is not None:
                each = [[one for one, _ in tree.preorder([run.task_id]) if one.task_id in found] for run in runs]
                runs = [run for run, those in zip(runs, each, strict=True) if those]
                sums = sums_of(one for those in each for one in those)
                open_ = [task for task in open_ if task.task_id in found]
            is_old = group in (Group.EARLIER, Group.HISTORY)
            since = min((run.alive_at or 0.0 for run in runs), default=0.0) if is_old else 0.0
            self._tallies[key] = Tally(group, len(runs), sums.tasks, len(open_), present_in(sums.counts), since)
        return self._tallies[key]
