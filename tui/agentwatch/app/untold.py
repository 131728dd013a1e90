"""The asks of which an operator who looks elsewhere has not been told yet: which of them to tell, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from agentwatch.delegation.task import Alarm, State, Task

STANDS: Final = 2.0
"""Seconds for which an ask must stand before it is told, and must be gone before it can be told again."""

PAUSE: Final = 10.0
"""Seconds between two notifications, and after the last key where nobody says which window has the focus."""

START: Final = 60.0
"""Seconds from the start in which what is older than the start was there already, however late it is read."""

_Mark = tuple[int, State, str | None]


@dataclass(slots=True)
class _Told:
    """An ask that needs no notification any more; `gone_at`: since when nobody asks it."""

    mark: _Mark
    gone_at: float | None = None


class Untold:
    """The asks of which the operator has not been told yet: which of them to tell, and when. No I/O, and no clock.

    `at` is seconds of a clock that nobody sets; `started_at` is the start in seconds since the epoch, as files have it.
    """

    def __init__(self, at: float, started_at: float) -> None:
        self._opened_at = at
        self._started_at = started_at
        self._told: dict[str, _Told] = {}
        self._since: dict[str, float] = {}
        self._rung: set[str] = set()
        """The alarms and requests of which the operator was told: of each once."""
        self._at_work: set[str] = set()
        """The tasks that were seen at work without an ask."""
        self.on_screen: list[Task] = []
        """The tasks for which the screen was enough, until somebody empties it."""
        self._notified_at = float("-inf")
        self._focus: bool | None = None
        # An operator who has just started the program looks at it.
        self._acted_at = at

    def focus(self, *, here: bool) -> None:
        """The terminal says whether its window has the focus; until it does, nobody knows."""
        self._focus = here
        if not here:
            self._acted_at = float("-inf")

    def act(self, at: float) -> None:
        """The operator has pressed a key."""
        self._acted_at = at
        if self._focus is not None:
            self._focus = True

    def see(self, task_id: str, task: Task | None, at: float) -> None:
        """A task has changed, or is no longer there."""
        told = self._told.get(task_id)
        if task is None or task.ask is None:
            if task is not None and task.state is State.WORKING:
                self._at_work.add(task_id)
            self._since.pop(task_id, None)
            if told is not None and told.gone_at is None:
                told.gone_at = at
            return
        mark = _mark(task)
        is_known = told is not None and told.mark == mark and (told.gone_at is None or at < told.gone_at + STANDS)
        is_old = at < self._opened_at + START and task.updated_at < self._started_at
        asked = _asked(task)
        if asked:
            # Of each request once, whichever others are open beside it.
            is_known = is_known or asked <= self._rung
            is_old = is_old and max(one.asked_at for one in task.requests if one.is_open) < self._started_at
            if is_known or is_old:
                self._rung |= asked
        elif task.alarms:
            # Nothing is written when a process ends, or time is up.
            is_old = is_old and task_id not in self._at_work and told is None
            is_known = is_known or alarm_keys(task) <= self._rung
        if is_known or is_old:
            self._told[task_id] = _Told(mark)
            self._since.pop(task_id, None)
        else:
            self._since.setdefault(task_id, at)

    def take(self, at: float, tasks: Sequence[Task]) -> list[Task]:
        """Those of the asking tasks that are to be told now, in one notification. Each is given out once."""
        if not self.is_due(at):
            return []
        new = [task for task in tasks if task.task_id in self._since]
        self._rung |= {key for task in new for key in alarm_keys(task) | _asked(task)}
        self._told |= {task.task_id: _Told(_mark(task)) for task in new}
        self._since.clear()
        if self._focus:
            self.on_screen += new
            return []
        self._notified_at = at
        return new

    @property
    def is_waiting(self) -> bool:
        """Whether there is something for `take`, perhaps not yet."""
        return bool(self._since)

    def is_due(self, at: float) -> bool:
        """Whether there is something for `take`."""
        if not self._since or at < min(self._since.values()) + STANDS:
            return False
        return self._focus is True or at >= max(self._notified_at, self._acted_at) + PAUSE


def _asked(task: Task) -> set[str]:
    """The ids of the requests that wait for the operator."""
    return {one.request_id for one in task.requests if one.waits_for_operator}


def _mark(task: Task) -> _Mark:
    """What makes an ask another one. Which claims are false changes with every file that the agents write, and how much
    was used with every record."""
    asked = " ".join(sorted(_asked(task) or alarm_keys(task))) or task.ask
    return task.attempt, task.own_state, None if task.contradicted else asked


def alarm_keys(task: Task, task_id: str | None = None) -> set[str]:
    """What makes an alarm another one, in a few characters for each; `task_id` is another name for the task. A process
    that is gone again after a sign of life is another one."""
    run = task.run
    whose = task_id or task.task_id, task.attempt, run.session_id if run is not None else None
    last = run.updated_at if run is not None else None
    facts = ((*whose, alarm.value, last if alarm is Alarm.GONE else None) for alarm in task.alarms)
    return {blake2b(repr(one).encode(errors="surrogatepass"), digest_size=8).hexdigest() for one in facts}
