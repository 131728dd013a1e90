"""In which group a run stands by now, what comes next to what, and what a heading says of its group. Pure.

A run is a task without a parent, with all that is below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Below, Counted, State, Task
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

JUST: Final = 600.0
"""Seconds for which a run that has ended counts as now."""
_LIVE_SILENCE: Final = 3_600.0
"""Seconds of silence for which a run in which something is said to work counts as now."""
_NEVER: Final = float("inf")
_DAY: Final = 86_400.0
_DECIDED: Final = frozenset({State.RETRYING, State.ESCALATED})
"""States in which an agent has to carry out what the operator has decided."""


class Group(StrEnum):
    """Where runs stand, in the order of the screen."""

    NOW = "now"
    TODAY = "today"
    EARLIER = "earlier"
    HISTORY = "history"


GROUPS: Final = tuple(Group)

ABOUT: Final = {
    Group.NOW: "Runs in which something works or needs you, and those that were alive in the last ten minutes.",
    Group.TODAY: "Runs that were alive today, and in which nothing works or needs you any more.",
    Group.EARLIER: "Runs that were last alive before today, and in which nothing works or needs you.",
    Group.HISTORY: "Runs that had long been silent when this workspace was first watched. They ask nothing; what is"
    " open about them can be looked at and decided all the same. A new sign of life brings a run back.",
}
"""What each group is, in a sentence or two."""


class Stretch(NamedTuple):
    """A calendar day of this computer: from, to; seconds since the epoch."""

    start: float
    end: float

    @classmethod
    def of(cls, now: float) -> Stretch:
        """The day of a moment."""
        return _day(now // 900)


@lru_cache(maxsize=4)
def _day(quarter: float) -> Stretch:
    """The day of a quarter of an hour: midnight is on one everywhere."""
    now = quarter * 900
    try:
        local = datetime.fromtimestamp(now, UTC).astimezone()
        start, end = (
            datetime(day.year, day.month, day.day).astimezone().timestamp()
            for day in (local, local + timedelta(days=1))
        )
    except (OverflowError, OSError, ValueError):
        return Stretch(now // _DAY * _DAY, (now // _DAY + 1) * _DAY)
    return Stretch(start, max(end, now + 900))


def works(task: Task) -> bool:
    """Whether something works in a run, or has to carry out what the operator has decided."""
    if task.state is State.WORKING or task.state in _DECIDED:
        return True
    states: Iterable[State] = task.below.states if task.below is not None else ()
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


def group_of(task: Task, now: float, line: float = float("-inf")) -> Group:
    """The group of a run at a moment; all three are epoch seconds. What was last alive before `line` may be history."""
    return _placed(task, now, line, _lively(task))[0]


def _lively(task: Task) -> float:
    """Until when a run counts as just alive (epoch seconds): for ten minutes, or an hour where it works."""
    return (task.alive_at or 0.0) + (_LIVE_SILENCE if works(task) else JUST)


def _placed(task: Task, now: float, line: float, lively: float) -> tuple[Group, float]:
    """The group of a run, and when the time alone may give it another one (epoch seconds)."""
    if asks(task):
        return Group.NOW, lively if now < lively else _NEVER
    if task.past and (task.below is None or task.below.active_at < line):
        return Group.HISTORY, _NEVER
    if task.workspace and (task.lost_since is not None or (task.host and task.below is None)):
        # That a host does not answer is news.
        return Group.NOW, _NEVER
    is_decided = task.state in _DECIDED or (task.below is not None and not _DECIDED.isdisjoint(task.below.states))
    if is_decided:
        return Group.NOW, _NEVER
    if now < lively:
        return Group.NOW, lively
    today = Stretch.of(now)
    return (Group.TODAY, today.end) if (task.alive_at or 0.0) >= today.start else (Group.EARLIER, _NEVER)


SILENT: Final = "silent"
FALSE: Final = "false"
VERIFIED: Final = "verified"
ASKING: Final = "asking"

Present = Counter[str]
"""How many tasks are what: in each state, and silent, false, verified and asking. A false or silent one is not in its
state, and a silent one is counted no more once it is past."""


def present_in(sums: Below) -> Present:
    """What is summed up."""
    present = Present()
    for one, count in sums.counts.items():
        for word in _words_of(one):
            present[word] += count
    return present


def _present_of(root: Task) -> Present:
    """A run: its first task, and all below it; of a workspace, and of a mere name, what is below."""
    own = () if root.kind is None else tuple(_words_of(root.kind))
    if root.below is None:
        return _alone(own)
    present = present_in(root.below)
    present.update(own)
    return present


def _words_of(one: Counted) -> Iterator[str]:
    """As what a task is counted: as it looks, so once, and what else is known of it."""
    if one.verdict is Verdict.CONTRADICTED:
        yield FALSE
    elif one.silent is None:
        yield one.state
    elif not one.silent:
        yield SILENT
    if one.verdict is Verdict.VERIFIED:
        yield VERIFIED
    if one.waits_as is not None:
        yield ASKING


@cache
def _alone(words: tuple[str, ...]) -> Present:
    """What runs of one task are: most are, and many are alike."""
    return Present(words)


class Standing(NamedTuple):
    """How a run stands: in which group, until when at most by time alone, what it counts there as."""

    group: Group
    until: float
    asks: bool
    works: bool
    is_live: bool
    """Whether it was alive a short while ago: ten minutes, or an hour where it works."""
    state: State
    activity: float
    """Its last sign of life, epoch seconds; 0 where nothing tells."""
    tasks: int
    unreviewed: int
    present: Present
    """What its tasks are."""

    @property
    def mark(self) -> tuple[Group, int, State]:
        """While this stays as it is, the run stays where it is: a mere sign of life moves nothing."""
        return _mark(self.group, self.tier, self.state)

    @property
    def tier(self) -> int:
        """Before the others of its group: what asks and works, what asks and was just alive, what works or cannot be
        reached, what asked long ago."""
        if self.asks:
            return 3 if not self.is_live else 0 if self.works else 1
        return 2 if (self.works or self.state is State.UNKNOWN) and self.group is Group.NOW else 4


@cache
def _mark(group: Group, tier: int, state: State) -> tuple[Group, int, State]:
    """One for all runs that stand alike."""
    return group, tier, state


def standing(tree: Tree, root: Task, now: float) -> Standing:
    """How a run stands at a moment. Costs a look at its tasks where it is history, else nothing."""
    lively = _lively(root)
    group, until = _placed(root, now, tree.rules.history_before, lively)
    return Standing(
        group,
        until,
        asks(root),
        works(root),
        now < lively,
        root.state,
        root.alive_at or 0.0,
        (not (root.workspace or root.shares_row)) + (root.below.tasks if root.below is not None else 0),
        _unreviewed(tree, root) if group is Group.HISTORY else 0,
        _present_of(root),
    )


def _unreviewed(tree: Tree, root: Task) -> int:
    count, pending = 0, [root]
    while pending:
        task = pending.pop()
        count += task.past and task.question is not None and not task.acknowledged
        pending += map(tree.tasks.__getitem__, task.children)
    return count


class Tally:
    """What a group holds, kept up to date run by run."""

    def __init__(self) -> None:
        self.runs = self.tasks = self.asking = self.unreviewed = 0
        self.present = Present()

    def add(self, run: Standing, sign: int = 1) -> None:
        """A run comes (1) or goes (-1)."""
        self.runs += sign
        self.tasks += sign * run.tasks
        self.asking += sign * run.asks
        self.unreviewed += sign * run.unreviewed
        for word, count in run.present.items():
            self.present[word] += sign * count

    def words(self, group: Group, since: float, now: float) -> tuple[str, ...]:
        """What a heading says of it, in several lengths, the fullest first. Its oldest run was alive at `since`."""
        runs = plural(self.runs, "run")
        tasks = f"{runs}, {plural(self.tasks, 'task')}" if self.tasks > self.runs else runs
        is_old = since > 0 and group in (Group.EARLIER, Group.HISTORY)
        dated = f"{tasks} since {day(since, now)}" if is_old else tasks
        more = self._more(group)
        ways = [f"{dated}{more}", f"{tasks}{more}", f"{runs}{more}", dated, tasks, runs]
        return tuple(dict.fromkeys(ways))

    def _more(self, group: Group) -> str:
        """What is left to do of the history, else how its tasks stand."""
        if group is Group.HISTORY:
            return f" · {self.unreviewed:,} never reviewed" if self.unreviewed else ""
        shown = (*reversed(State), SILENT, FALSE)
        counts = [(self.present[word], str(word)) for word in shown if self.present[word] > 0]
        if len(counts) == 1 and counts[0][0] == self.tasks and not self.present[ASKING]:
            return f", {'all ' if self.tasks > 1 else ''}{counts[0][1]}"
        return "".join(f" · {count:,} {word}" for count, word in counts)


def day(moment: float, now: float) -> str:
    """A day as people name it: `today`, `yesterday`, `Friday` (in a week), `3 May` (in the year), else `Mar 2024`."""
    today = Stretch.of(now)
    try:
        then, here = (datetime.fromtimestamp(at, UTC).astimezone() for at in (moment, now))
    except (OverflowError, OSError, ValueError):
        return "?"
    if moment >= today.start:
        return "today"
    days = (here.date() - then.date()).days
    if days == 1:
        return "yesterday"
    if days < 7:
        return f"{then:%A}"
    return f"{then.day} {then:%b}" if then.year == here.year else f"{then:%b %Y}"
