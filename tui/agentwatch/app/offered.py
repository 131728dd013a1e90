"""What can be decided about the task that a screen is about: which keys its footer names, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentwatch.app.decision_words import why_not
from agentwatch.delegation.decision import Action

if TYPE_CHECKING:
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor

ACTIONS: Final = {f"decide.{action}": action for action in Action}
"""The commands that decide."""


class Offered:
    """The decisions that one screen offers. `task_id` is that of its task, None if it has none.

    `marked` counts the tasks that are marked for a review, `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        monitor: Monitor,
        clock: Callable[[], float],
        task_id: Callable[[], str | None],
        marked: Callable[[], int] = lambda: 0,
    ) -> None:
        self._monitor = monitor
        self._clock = clock
        self._task_id = task_id
        self._marked = marked

    def is_useless(self, command_id: str) -> bool:
        """Whether a command that decides need not be named: nobody asks for it, and it is not possible either."""
        if command_id == "review":
            return self._monitor.clerk is None or (self._marked() or self._monitor.tree.totals.needs_operator) < 2
        if command_id not in ACTIONS:
            return False
        task = self._task
        if task is None or self._monitor.clerk is None:
            return True
        return not task.needs_operator and self.why_not(command_id) is not None

    def is_out_of_question(self, command_id: str) -> bool:
        """Whether it is useless, or refused: for a footer in which there is no room for what cannot be done."""
        return self.is_useless(command_id) or self.why_not(command_id) is not None

    def why_not(self, command_id: str) -> str | None:
        """Why a command that decides is refused now; None if it is not, and for every other command."""
        action, task = ACTIONS.get(command_id), self._task
        return why_not(task, action, self._clock()) if action is not None and task is not None else None

    @property
    def _task(self) -> Task | None:
        task_id = self._task_id()
        return None if task_id is None else self._monitor.tree.tasks.get(task_id)
