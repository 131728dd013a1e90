"""What screens share: header and footer, the details of a task, and the way to the next that needs the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual import on
from textual.screen import Screen, ScreenResultType

from agentwatch.app.actions import COMMANDS, Home
from agentwatch.app.decision_words import ACTIONS, why_not
from agentwatch.app.messages import KeysChanged, TreeUpdated
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.header import Header
from agentwatch.view.query import Query

if TYPE_CHECKING:
    from agentwatch.app.widgets.details import DetailsPane
    from agentwatch.monitor import Monitor

_OF_TABS: Final = frozenset(command.id for command in COMMANDS if command.homes == (Home.PANE,) and command.footer)
"""Ids of what the keys do in some tabs of the details only."""
PERIOD: Final = 5.0
"""Seconds after which the details update how long ago something was."""


class MonitorScreen(Screen[ScreenResultType]):
    """A screen with a header and a footer. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = "MonitorScreen { layout: vertical; background: $background; }"

    footer: Footer

    def __init__(self, monitor: Monitor, clock: Callable[[], float]) -> None:
        super().__init__()
        self._monitor = monitor
        self._clock = clock
        self.header = Header(monitor)

    @property
    def task_id(self) -> str | None:
        """The id of the task that commands are about."""
        raise NotImplementedError

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the tasks that are marked for a review."""
        return ()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        """Show what has changed in the tree."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.set_interval(1.0, self.tick)

    def tick(self) -> None:
        """A second has passed."""
        self.header.redraw()
        self.footer.redraw()

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        self.refresh_tasks(event)
        self.header.redraw()
        self.footer.redraw()

    def is_useless(self, command_id: str) -> bool:
        """Whether the footer need not name a command that decides: nobody asks for it, and it is not possible."""
        clerk, tree = self._monitor.clerk, self._monitor.tree
        if command_id == "review":
            return clerk is None or (len(self.marked) or tree.totals.needs_operator) < 2
        task = tree.tasks.get(self.task_id or "")
        if command_id not in ACTIONS:
            return False
        return clerk is None or task is None or (not task.needs_operator and self.why_not(command_id) is not None)

    def is_out_of_question(self, command_id: str) -> bool:
        """Whether it is useless, or refused: for a footer in which there is no room for what cannot be done."""
        return self.is_useless(command_id) or self.why_not(command_id) is not None

    def why_not(self, command_id: str) -> str | None:
        """Why a command that decides is refused now; None if it is not, and for every other command."""
        action, task = ACTIONS.get(command_id), self._monitor.tree.tasks.get(self.task_id or "")
        return why_not(task, action, self._clock()) if action is not None and task is not None else None


class DetailedScreen(MonitorScreen[ScreenResultType]):
    """The screen of one task at a time."""

    details: DetailsPane | None = None
    """The details, once they are there."""

    @property
    def sought(self) -> Query:
        """The filter that is on: what goes to another task stays inside it."""
        raise NotImplementedError

    def show_task(self, task_id: str) -> None:
        """Go to another task."""
        raise NotImplementedError

    def show_details(self) -> None:
        """Show how the task stands by now, where the details are in sight."""
        if self.details is not None and self.details.display:
            task = self._monitor.tree.tasks.get(self.task_id or "")
            self.details.show(task, self._monitor.tree, self._monitor.content, self._clock())

    def refresh_tasks(self, event: TreeUpdated) -> None:
        if self.task_id in event.changed:
            self.show_details()

    def on_screen_resume(self) -> None:
        """What was to be done after a refresh was left to the dialog above, which may have ended before."""
        if self.details is not None:
            self.details.resume()

    @on(KeysChanged)
    def _show_keys(self) -> None:
        self.footer.redraw()

    def is_useless(self, command_id: str) -> bool:
        """Whether a command has nothing to do now."""
        offered = self.details.offered if self.details is not None else ()
        return (
            (command_id in _OF_TABS and command_id not in offered)
            or (command_id == "needs.next" and not self._monitor.tree.totals.needs_operator)
            or super().is_useless(command_id)
        )

    def action_inspect(self) -> None:
        if self.details is not None:
            self.details.action_inspect()

    def action_compare(self, step: int) -> None:
        if self.details is not None:
            self.details.action_compare(step)

    def action_go_asking(self, step: int) -> None:
        """Go to the next task that needs the operator (`step` 1), or to the one before (-1), of those in sight."""
        tree = self._monitor.tree
        now = self._clock()
        asking = tree.queue.some(len(tree.queue), self.task_id)
        in_sight = [task_id for task_id in asking if self.sought.matches(tree.tasks[task_id], now)]
        if not in_sight:
            words = "Nobody that the filter shows needs you now." if self.sought else "Nobody needs you now."
            self.notify(words, markup=False, timeout=2)
        else:
            self.show_task(in_sight[-1 if step < 0 else int(in_sight[0] == self.task_id) % len(in_sight)])
