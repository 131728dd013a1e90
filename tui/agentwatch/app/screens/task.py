"""One task on the whole screen: its details, where the terminal has no room for them beside the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.guards import leave
from agentwatch.app.screens.detailed import PERIOD, DetailedScreen
from agentwatch.app.widgets.details import TABS, DetailsPane
from agentwatch.app.widgets.footer import Footer
from agentwatch.view.query import Query

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor


class TaskScreen(DetailedScreen[str]):
    """Shows one task from a tab on, and ends with the id of the task that it shows last.

    `clock` gives seconds since the epoch.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.PAGE)

    DEFAULT_CSS = "TaskScreen DetailsPane { height: 1fr; padding: 0 1; }"

    def __init__(self, monitor: Monitor, clock: Callable[[], float], task_id: str, tab: int, sought: Query) -> None:
        super().__init__(monitor, clock)
        self._sought = sought
        self._tab = tab
        self._task_id = task_id
        self.details: DetailsPane = DetailsPane(dict(monitor.settings.prices))
        self.footer = Footer(Place.PAGE, is_useless=self.is_useless, why_not=self.why_not)

    @property
    def task_id(self) -> str:
        return self._task_id

    @property
    def sought(self) -> Query:
        return self._sought

    def show_task(self, task_id: str) -> None:
        self._task_id = task_id
        self.show_details()

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.details
        yield self.footer

    def on_mount(self) -> None:
        self.details.activate(list(TABS)[self._tab])
        self.details.focus()
        self.show_details()
        self.set_interval(PERIOD, self.show_details)

    def action_back(self) -> None:
        if not self.details.leave_search():
            leave(self, self.task_id)

    def action_tab(self, number: int) -> None:
        """Bring a tab to the front."""
        self.details.activate(list(TABS)[number])
