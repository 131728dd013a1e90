"""One task on the whole screen: its details, where the terminal has no room for them beside the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from agentwatch.app.commands import PANE_COMMANDS, Home, Place, bindings
from agentwatch.app.messages import KeysChanged, TreeUpdated
from agentwatch.app.offered import Offered
from agentwatch.app.widgets.details import TABS, DetailsPane
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.header import Header
from agentwatch.app.widgets.needs_you import next_asking

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor


_PERIOD: Final = 5.0
"""Seconds after which the details say anew how long ago something was."""


class TaskScreen(Screen[str]):
    """Shows one task from a tab on, and ends with the id of the task that it shows last.

    `clock` gives seconds since the epoch.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.PAGE)

    DEFAULT_CSS = """
    TaskScreen { layout: vertical; background: $background; }
    TaskScreen DetailsPane { height: 1fr; padding: 0 1; }
    """

    def __init__(self, monitor: Monitor, clock: Callable[[], float], task_id: str, tab: int) -> None:
        super().__init__()
        self._monitor = monitor
        self._clock = clock
        self._tab = tab
        self.task_id = task_id
        self.header = Header(monitor)
        self.details = DetailsPane()
        self._offered = Offered(monitor, clock, lambda: self.task_id)
        self.footer = Footer(Place.PAGE, is_useless=self._is_useless, why_not=self._offered.why_not)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.details
        yield self.footer

    def on_mount(self) -> None:
        self.details.activate(TABS[self._tab][0])
        self.details.focus()
        self._show()
        self.set_interval(1.0, self.tick)
        self.set_interval(_PERIOD, self._show)

    def tick(self) -> None:
        """A second has passed."""
        self.header.redraw()
        self.footer.redraw()

    def _show(self) -> None:
        task = self._monitor.tree.tasks.get(self.task_id)
        self.details.show(task, self._monitor.tree, self._monitor.content, self._clock())

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        self.header.redraw()
        self.footer.redraw()
        if self.task_id in event.changed:
            self._show()

    def _is_useless(self, command_id: str) -> bool:
        return (
            (command_id in PANE_COMMANDS and command_id not in self.details.offered)
            or (command_id == "needs.next" and not self._monitor.tree.totals.needs_operator)
            or self._offered.is_useless(command_id)
        )

    @on(KeysChanged)
    def _show_keys(self) -> None:
        self.footer.redraw()

    def action_back(self) -> None:
        self.dismiss(self.task_id)

    def action_tab(self, number: int) -> None:
        """Bring a tab to the front."""
        self.details.activate(TABS[number][0])

    def action_inspect(self) -> None:
        self.details.action_inspect()

    def action_compare(self, step: int) -> None:
        self.details.action_compare(step)

    def action_next_asking(self) -> None:
        self._go_asking(1)

    def action_previous_asking(self) -> None:
        self._go_asking(-1)

    def _go_asking(self, step: int) -> None:
        task_id = next_asking(self._monitor.tree, self.task_id, step)
        if task_id is None:
            self.notify("Nobody needs you now.", markup=False, timeout=2)
        else:
            self.task_id = task_id
            self._show()
