"""What the operator has looked at and put aside of a task, and whether that still holds. Nothing of it is a decision.

A mark says what a task looked like. What was put aside asks again, and what was looked at is new again, as soon as the
task has another mark. A return that is only written once more has the same one, and a mere sign of life changes none.
What fails in the same words after another state, or after a newer handoff, has another.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final, NamedTuple

from agentwatch.delegation.indexes import Deadlines, Ordered
from agentwatch.delegation.task import Alarm, Task

_NUMBER: Final = re.compile(r"\d+(?: tasks?\b)?")
_FOREVER: Final = float("inf")


class Put(NamedTuple):
    """A task was put aside as it looked then: acknowledged, or snoozed, `until` a time or else until it changes.

    Times are seconds since the epoch.
    """

    mark: str
    at: float
    snoozed: bool = False
    until: float | None = None

    @property
    def ends_at(self) -> float:
        """When it asks again at the latest."""
        return _FOREVER if self.until is None else self.until


class Aside(NamedTuple):
    """What is known of a task: how it was put aside last, and the mark that it had when it was looked at last."""

    put: Put | None = None
    seen: str | None = None


NOTHING: Final = Aside()


def mark_of(task: Task) -> str:
    """What a task looks like, in a few characters: its attempt, its state, and a digest of what it asks and of what
    that is about."""
    # Which claims are false changes with every file that the agents write, and how much of something with every look.
    question = "a claim is false" if task.contradicted else _NUMBER.sub("#", task.question or "")
    facts: list[object] = [question]
    if (latest := task.latest) is not None:
        facts += [one.digest if one is not None else None for one in (latest.handoff, latest.returned, latest.rival)]
        if latest.returned is not None and latest.returned.times > 1:
            facts.append(latest.returned.times)
        if (run := latest.run) is not None:
            # It may wait for the same thing twice, or be gone twice, and nothing else tells the two apart.
            is_at_rest = run.waiting or Alarm.GONE in task.alarms
            facts += [run.session_id, run.state, run.ended_at, run.updated_at if is_at_rest else None]
        if latest.decisions:
            decision = latest.decisions[-1]
            facts += [decision.decision_id, decision.at, decision.expired, decision.over]
    # An answer to one asks the operator again about those that are left: too often is better than never.
    facts += [one.request_id for one in task.requests if one.is_open]
    digest = blake2b(repr(facts).encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return f"{task.attempt} {task.own_state} {digest}"


def changed_at(task: Task) -> float:
    """When a task became what it is, as far as it says so, in epoch seconds."""
    return max(task.updated_at, task.ended_at or 0.0)


def is_aside(task: Task) -> bool:
    """Whether it does not ask because the operator has put it aside."""
    return task.acknowledged or task.snoozed


def is_news(task: Task) -> bool:
    """Whether how a task stands is worth a look: it has ended or asks something, and not because of a decision."""
    if task.inferred or task.past:
        return False
    if (task.binding is not None or task.ended_with is not None) and task.request is None:
        return False
    return task.question is not None or not task.state.is_open


class Asides:
    """What is put aside and looked at of the tasks of a tree."""

    def __init__(self, tasks: dict[str, Task], due: Deadlines) -> None:
        self._tasks = tasks
        self._due = due
        self._known: dict[str, Aside] = {}
        self._looked_at = _FOREVER
        """What was there by then is not new, in epoch seconds. Where nobody looks, nothing is."""
        self.unseen: Ordered[float] = Ordered()
        self._held: dict[str, Put] = {}
        """How tasks are aside now."""
        self.over: dict[str, Put] = {}
        """How tasks were aside that are something else now, until somebody takes it: what comes back asks again."""
        self.is_watching = False
        """Whether all that was there at first has been taken in."""

    def of(self, task_id: str) -> Aside:
        """What is known of a task, whether it still holds or not."""
        return self._known.get(task_id, NOTHING)

    def take_over(self, other: Asides) -> set[str]:
        """Know what these of another tree do. Returns the tasks that may ask otherwise because of it."""
        self._known, self._looked_at = dict(other._known), other._looked_at
        return {*self._tasks}

    def put_aside(self) -> list[Task]:
        """The tasks that do not ask because of it, the latest first. Costs a look at all that was ever put aside."""
        known = [task for task_id in self._known if (task := self._tasks.get(task_id)) is not None]
        aside = [(put.at, task) for task in known if is_aside(task) and (put := self.of(task.task_id).put)]
        return [task for _, task in sorted(aside, key=lambda one: (-one[0], one[1].task_id))]

    def note(self, task_id: str, aside: Aside) -> set[str]:
        """Take in what is known of a task now. Returns the tasks that may ask otherwise because of it."""
        self._known[task_id] = aside
        return {task_id} & self._tasks.keys()

    def look_since(self, at: float) -> set[str]:
        """What was there by then is not new. Returns the tasks for which that may be different."""
        is_later, self._looked_at = at >= self._looked_at, at
        return {*self.unseen} if is_later else {*self._tasks}

    def watch(self, now: float) -> None:
        """All that is there has been taken in: from now on, what is aside and becomes something else is over.

        Of a result that was checked all is known, so it is over also where it became something else before."""
        if not self.is_watching:
            self.is_watching = True
            for task_id in self._known.keys() & self._tasks.keys():
                self.lay(self._tasks[task_id], now)

    def again(self, now: float, before: float) -> set[str]:
        """The tasks whose snooze was over `before`, and is not now that time has gone back."""
        return {name for name, one in self._known.items() if one.put is not None and now < one.put.ends_at <= before}

    def lay(self, task: Task, now: float) -> None:
        """Heed how a task was put aside, as long as it is as it was then. What it asks must be known."""
        (put, seen), held = self.of(task.task_id), self._held.pop(task.task_id, None)
        task.acknowledged, task.snoozed_until = False, None
        if put is None or put.ends_at <= now:
            return
        if task.question is not None and put.mark == mark_of(task):
            self._held[task.task_id] = put
            task.acknowledged = not put.snoozed
            if put.snoozed:
                task.snoozed_until = put.ends_at
                self._due.put(task.task_id, put.ends_at)
        elif self.is_watching and (put == held or task.verdict is not None):
            self._known[task.task_id] = Aside(seen="" if seen in (None, put.mark) else seen)
            self.over[task.task_id] = put

    def look(self, task: Task) -> None:
        """Tell whether a task is new to the operator."""
        task.seen = not is_news(task) or self._is_known(task)
        if task.seen:
            self.unseen.discard(task.task_id)
        else:
            self.unseen.put(task.task_id, -changed_at(task))

    def _is_known(self, task: Task) -> bool:
        put, seen = self.of(task.task_id)
        if seen is None and changed_at(task) <= self._looked_at:
            return True
        return mark_of(task) in (seen, put.mark if put is not None else None)
