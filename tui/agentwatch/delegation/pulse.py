"""What changes with each record of a session that just goes on: what it does, that it lives, the tokens it uses.

That is most of what is observed, so it takes a short way through the tree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.runs import packet_of
from agentwatch.delegation.task import State, Task

WINDOW: Final = 60.0
"""Seconds for which it is known who used tokens."""
_MOST: Final = 10_000


class Spent(NamedTuple):
    """So many tokens were used by a task itself. `at` is in seconds since the epoch."""

    at: float
    task_id: str
    tokens: int


class Spending:
    """Who used tokens in the last minute."""

    def __init__(self) -> None:
        self._spent: deque[Spent] = deque(maxlen=_MOST)
        self._most: dict[str, int] = {}
        """By task, the most that it is known to have used: what is read again was not used again."""

    def take(self, task: Task, before: int | None, now: float) -> None:
        """A task has used more tokens than before; None: nothing was known of it. Of what a run used before anybody
        looked, the times are not known, unless it has only just begun."""
        if not task.tokens:
            return
        most = self._most.get(task.task_id, 0)
        run, used = task.run, task.tokens - max(before or 0, most)
        self._most[task.task_id] = max(task.tokens, most)
        if run is None or used <= 0 or run.updated_at < now - WINDOW:
            return
        if before is not None or most or run.started_at > run.updated_at - WINDOW:
            self._spent.append(Spent(run.updated_at, task.task_id, used))
        while self._spent and self._spent[0].at < now - WINDOW:
            self._spent.popleft()

    def since(self, at: float) -> Iterator[Spent]:
        """What was used after this moment."""
        return (one for one in self._spent if one.at > at)


def go_on(task: Task, before: Run, now: Run) -> bool:
    """Show that a run of a task goes on; False, with nothing changed, where more than that may follow from it."""
    latest = task.latest
    if latest is None or latest.run is None or now.state is not RunState.WORKING or now.waiting or now.process_gone:
        return False
    if task.past or task.question is not None or task.state is not State.WORKING or now.updated_at < before.updated_at:
        return False
    packet = packet_of(now)
    todos = now.todos or (packet.todos if packet is not None else None)
    # Of two checklists, the one that was changed last counts.
    if todos is not None and todos != task.todos:
        return False
    if latest.run.session_id != now.session_id or _at(latest.run, before) != latest.run or _at(now, before) != before:
        return False
    latest.run = _at(latest.run, now)
    task.updated_at = max(task.updated_at, now.updated_at)
    return True


def _at(run: Run, other: Run) -> Run:
    """A run with the pulse of another one."""
    return replace(run, doing=other.doing, tokens=other.tokens, updated_at=other.updated_at)
