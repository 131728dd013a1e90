"""A screen with the details of a task: their keys, and going from one task that needs the operator to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual import on
from textual.screen import Screen, ScreenResultType

from agentwatch.app.messages import KeysChanged
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.search import Filter

if TYPE_CHECKING:
    from agentwatch.app.widgets.details import DetailsPane
    from agentwatch.monitor import Monitor

PERIOD: Final = 5.0
"""Seconds after which the details update how long ago something was."""


class DetailedScreen(Screen[ScreenResultType]):
    """The screen of one task at a time. `clock` gives seconds since the epoch."""

    footer: Footer
    details: DetailsPane | None = None
    """The details, once they are there."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float]) -> None:
        super().__init__()
        self._monitor = monitor
        self._clock = clock

    @property
    def task_id(self) -> str | None:
        """The id of the task that commands are about."""
        raise NotImplementedError

    @property
    def sought(self) -> Filter:
        """The filter that is on: what goes to another task stays inside it."""
        raise NotImplementedError

    def show_task(self, task_id: str) -> None:
        """Go to another task."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """What was to be done after a refresh was left to the dialog above, which may have ended before."""
        if self.details is not None:
            self.details.resume()

    @on(KeysChanged)
    def _show_keys(self) -> None:
        self.footer.redraw()

    def action_inspect(self) -> None:
        if self.details is not None:
            self.details.action_inspect()

    def action_compare(self, step: int) -> None:
        if self.details is not None:
            self.details.action_compare(step)

    def action_go_asking(self, step: int) -> None:
        """Go to the next task that needs the operator (`step` 1), or to the one before (-1), of those in sight."""
        tree = self._monitor.tree
        asking = tree.queue.some(len(tree.queue), self.task_id)
        found = [task_id for task_id in asking if self.sought.matches(tree.tasks[task_id])]
        if not found:
            words = "Nobody that the filter shows needs you now." if self.sought else "Nobody needs you now."
            self.notify(words, markup=False, timeout=2)
        else:
            self.show_task(found[-1 if step < 0 else int(found[0] == self.task_id) % len(found)])
