"""Decides what an operator who looks elsewhere is told: of which tasks, when, in which words. No I/O, no clock.

Quiet wins: an ask is told once, and only after it has stood for a while; several that come together are one
notification; where the operator is known to look at the screen, the screen is enough; nobody is reminded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.app.widgets.cells import summary
from agentwatch.delegation.task import State, Task
from agentwatch.text import clean
from agentwatch.view.words import plural

STANDS: Final = 2.0
"""Seconds for which an ask must stand before it is told, and must be gone before it can be told again."""

PAUSE: Final = 10.0
"""Seconds between two notifications, and after the last key where nobody says which window has the focus."""

START: Final = 60.0
"""Seconds from the start in which what is older than the start was there already, however late it is read."""

_NAMED: Final = 3
_NAME_LENGTH: Final = 40
_ASK_LENGTH: Final = 120

_HARMLESS: Final = str.maketrans({";": ",", "<": "‹", ">": "›", "&": "＆", "\\": "∖"})
"""What separates fields of the terminal's sequences, is markup to desktops, or an escape to `notify-send`."""


def plain(text: str, limit: int) -> str:
    """Foreign text as one short line that neither a terminal's sequence nor a desktop reads as anything but text."""
    return clean(text, limit).translate(_HARMLESS)


def window_title(workspace: str, asking: int) -> str:
    """`(2) agentwatch: shop`; without the number where nobody asks."""
    title = f"agentwatch: {plain(workspace, _NAME_LENGTH)}"
    return f"({asking}) {title}" if asking else title


def heading(workspace: str) -> str:
    """What stands over a notification."""
    return f"agentwatch {plain(workspace, _NAME_LENGTH)}"


def words(tasks: Sequence[Task]) -> str:
    """One notification for all of these tasks, the most important first."""
    if len(tasks) == 1:
        return f"{_name(tasks[0])} needs you: {plain(summary(tasks[0].ask or ''), _ASK_LENGTH)}"
    names = ", ".join(map(_name, tasks[:_NAMED]))
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return f"{plural(len(tasks), 'task')} need you: {names}{more}"


def _name(task: Task) -> str:
    return plain(summary(task.title), _NAME_LENGTH)


_Mark = tuple[int, State, str | None]


@dataclass(slots=True)
class _Told:
    """An ask that needs no notification any more; `gone_at`: since when nobody asks it."""

    mark: _Mark
    gone_at: float | None = None


class Untold:
    """The asks of which the operator has not been told yet.

    `at` is seconds of a clock that nobody sets; `started_at` is the start in seconds since the epoch, as files have it.
    """

    def __init__(self, at: float, started_at: float) -> None:
        self._opened_at = at
        self._started_at = started_at
        self._told: dict[str, _Told] = {}
        self._since: dict[str, float] = {}
        self._notified_at = float("-inf")
        self._focus: bool | None = None
        # Whoever has just started the program looks at it.
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
            self._since.pop(task_id, None)
            if told is not None and told.gone_at is None:
                told.gone_at = at
            return
        mark = _mark(task)
        is_known = told is not None and told.mark == mark and (told.gone_at is None or at < told.gone_at + STANDS)
        if is_known or (at < self._opened_at + START and task.updated_at < self._started_at):
            self._told[task_id] = _Told(mark)
            self._since.pop(task_id, None)
        else:
            self._since.setdefault(task_id, at)

    def take(self, at: float, tasks: Sequence[Task]) -> list[Task]:
        """Those of the asking tasks that are to be told now, in one notification. Each is given out once."""
        if not self.is_due(at):
            return []
        new = [task for task in tasks if task.task_id in self._since]
        self._told |= {task.task_id: _Told(_mark(task)) for task in new}
        self._since.clear()
        if self._focus:
            return []
        self._notified_at = at
        return new

    def is_due(self, at: float) -> bool:
        """Whether there is something for `take`."""
        if not self._since or at < min(self._since.values()) + STANDS:
            return False
        return self._focus is True or at >= max(self._notified_at, self._acted_at) + PAUSE


def _mark(task: Task) -> _Mark:
    """What makes an ask another one. Which claims are false changes with every file that the agents write."""
    return task.attempt, task.own_state, None if task.contradicted else task.ask
