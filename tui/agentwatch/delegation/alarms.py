"""What a working task asks because of how it works: its process is gone, or it has passed a limit of the operator's.

Mere silence asks nothing: a long test run is silent, too. An alarm ends when what it is about ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, NamedTuple

from agentwatch.delegation.indexes import Deadlines, Groups
from agentwatch.delegation.rules import Limits
from agentwatch.delegation.run import Doing, DoingKind
from agentwatch.delegation.task import Alarm, State, Task

_SLACK: Final = 60.0
"""Seconds after the last sign of its session from which a sign of the task itself says that somebody works on it."""

_NOBODY: Final = ""
"""In the place of the task above a root."""

_WAITING: Final = frozenset(
    {"agentoutputtool", "bashoutput", "monitor", "sleep", "taskoutput", "wait", "wait_agent", "wait_for_decision"}
    | {"write_stdin"}
)
"""Tools with which an agent waits: to call them over and over is what they are for."""


class _Loop(NamedTuple):
    """The same call over and over, and whose: words between two of them end nothing."""

    attempt: int
    session: str
    doing: Doing


class Alarms:
    """The alarms of the tasks of a tree. To ask for those of a task costs the same however many tasks there are."""

    def __init__(self, tasks: Mapping[str, Task], limits: Limits, due: Deadlines) -> None:
        self._tasks = tasks
        self._limits = limits
        self._due = due
        self._gone: set[str] = set()
        """The tasks that work, and whose processes are gone."""
        self._loops: dict[str, _Loop] = {}
        self._over: dict[str, str] = {}
        """The tasks that work and use too many tokens with all below them, each with the task above it."""
        self._over_below = Groups[str]()
        """Those of them that stand right below a task."""

    def limit(self, limits: Limits) -> None:
        """From now on these limits hold. All tasks are to be taken in again."""
        self._limits = limits
        for known in (self._loops, self._over):
            known.clear()
        self._over_below = Groups()

    def turn(self, touched: Set[str], summed: Set[str]) -> set[str]:
        """Take in tasks that have changed themselves, or of which the sums have. Returns others for which that changes
        what they ask."""
        follow: set[str] = set()
        for task_id in touched:
            task = self._tasks.get(task_id)
            is_gone = task is not None and _is_gone(task)
            if is_gone != (task_id in self._gone):
                (self._gone.add if is_gone else self._gone.discard)(task_id)
                follow |= set(task.children) if task is not None else set()
            if task is None:
                self._loops.pop(task_id, None)
        pending = set(touched | summed) if self._limits.subtree_tokens else set()
        while pending:
            # Whether it stands above one that asks follows from those below it, for one that is only named.
            parents = self._weigh(pending.pop())
            pending |= parents
            follow |= parents
        return follow

    def _weigh(self, task_id: str) -> set[str]:
        """Take in whether a task uses too many tokens with all below it. Returns the parents for which that is new."""
        task = self._tasks.get(task_id)
        is_over = task is not None and task.state is State.WORKING and self._is_over(task)
        parent_id = task.parent_id or _NOBODY if task is not None and is_over else None
        before = self._over.pop(task_id, None)
        if parent_id is not None:
            self._over[task_id] = parent_id
        if parent_id == before:
            return set()
        if before is not None:
            self._over_below.discard(before, task_id)
        if parent_id is not None:
            self._over_below.add(parent_id, task_id)
        return {one for one in (before, parent_id) if one is not None and one in self._tasks}

    def _is_over(self, task: Task) -> bool:
        if task.inferred:
            return bool(self._over_below.of(task.task_id))
        return _tokens_of_all(task) >= self._limits.subtree_tokens

    def depends_on_below(self, task_id: str) -> bool:
        """Whether the alarms of a task may follow from what is below it."""
        return task_id in self._gone or task_id in self._over

    def of(self, task: Task, now: float) -> tuple[Alarm, ...]:
        """The alarms of a task of which the sums hold."""
        if task.state is State.UNKNOWN:
            # Nothing comes, and nothing ends, while nobody knows.
            return task.alarms
        if task.state is not State.WORKING or task.inferred or task.past:
            self._loops.pop(task.task_id, None)
            return ()
        if task.task_id in self._gone:
            return (Alarm.GONE,) if self._asks(task) else ()
        return tuple(self._passed(task, now))

    def words(self, task: Task) -> str:
        """What a task asks because of its alarms; at least one."""
        if Alarm.GONE in task.alarms:
            return gone_words(task)
        return f"{'; '.join(self._told(task, alarm) for alarm in task.alarms)}; let it go on, or abort?"

    def _asks(self, task: Task) -> bool:
        """Whether it is this task that asks about its process: a process may run many, and the topmost one asks once.

        A human who closes a session knows it, but perhaps not who was still at work for it.
        """
        if task.parent_id in self._gone:
            return False
        return not task.is_session or (task.below is not None and task.below.open > 0)

    def _passed(self, task: Task, now: float) -> Iterable[Alarm]:
        limits, tokens = self._limits, task.tokens
        if limits.repeats and self._loops_now(task):
            yield Alarm.LOOP
        if limits.tokens and tokens is not None and tokens >= limits.tokens:
            yield Alarm.TOKENS
        if task.task_id in self._over and not self._over_below.of(task.task_id):
            # The lowest one asks: for those above it, that is no news.
            yield Alarm.SUBTREE
        if limits.minutes and (began := _began(task)) is not None:
            due = began + limits.minutes * 60.0
            if now >= due:
                yield Alarm.MINUTES
            else:
                self._due.put(task.task_id, due)

    def _loops_now(self, task: Task) -> bool:
        doing, run = task.doing, task.run
        if doing is None or run is None:
            self._loops.pop(task.task_id, None)
            return False
        whose = task.attempt, run.session_id
        if doing.kind is DoingKind.TOOL and doing.repeats >= self._limits.repeats and not _waits(doing):
            self._loops[task.task_id] = _Loop(*whose, doing)
        elif doing.kind is DoingKind.TOOL or (known := self._loops.get(task.task_id)) is None or known[:2] != whose:
            self._loops.pop(task.task_id, None)
        return task.task_id in self._loops

    def _told(self, task: Task, alarm: Alarm) -> str:
        if alarm is Alarm.LOOP:
            doing = self._loops[task.task_id].doing
            return f"the same call {doing.repeats} times: {' '.join(filter(None, (doing.what, doing.about)))}"
        if alarm is Alarm.MINUTES:
            minutes = self._limits.minutes
            return f"at work for more than {minutes:g} minute{'' if minutes == 1 else 's'}"
        if alarm is Alarm.SUBTREE:
            all_of_them, limit = _short(_tokens_of_all(task)), _short(self._limits.subtree_tokens)
            return f"used {all_of_them} tokens with all below it, alarm at {limit}"
        return f"used {_short(task.tokens or 0)} tokens, alarm at {_short(self._limits.tokens)}"


def alarmed_at(task: Task) -> float | None:
    """Since when a task is past a limit, as far as it was seen; None where it is past none. Nothing that is gone goes
    on, so there its last sign of life stays what it was."""
    if not task.alarms or Alarm.GONE in task.alarms:
        return None
    return task.alarmed_at or task.alive_at


def gone_words(task: Task, when: str = "") -> str:
    """What a task asks whose process is gone; `when` is in words ("12m ago")."""
    said = f"process gone {when}".rstrip()
    if task.is_session:
        count = task.below.open if task.below is not None else 0
        below = f"{count} task{'' if count == 1 else 's'} below had not ended"
        return f"{said}, and {below}: resume the session in its own program, or abort?"
    return f"{said}: {'retry' if task.retry.remaining else 'escalate'} or abort?"


def _is_gone(task: Task) -> bool:
    run = task.run
    if run is None or not run.process_gone or task.own_state is not State.WORKING:
        return False
    return task.updated_at <= run.updated_at + _SLACK


def _began(task: Task) -> float | None:
    """When a task began what it works on now: a session that a human began is at work since it was last told to be."""
    if task.own_state not in (State.WORKING, State.SUBMITTED):
        return None
    if task.is_session and task.run is not None and task.run.rounds:
        return task.run.rounds[-1].began_at
    return task.started_at


def _tokens_of_all(task: Task) -> int:
    return (task.tokens or 0) + (task.below.tokens if task.below is not None else 0)


def _waits(doing: Doing) -> bool:
    """Whether a call only waits for something."""
    tool = doing.what.rpartition("__")[2].casefold()
    return tool in _WAITING or doing.about.startswith("sleep ")


def _short(tokens: int) -> str:
    """`214k`: of the same form however many there are."""
    return str(tokens) if tokens < 1_000 else f"{tokens // 1_000}k"
