"""The session over time: a bar for each task on a shared clock, nested as the delegation tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.guards import leave
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.timeline import Reading, Ruler, TimelineChart
from agentwatch.app.widgets.tree import TaskTree

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_TALL: Final = 30
"""Lines of screen from which the words about the selected task stand apart."""


class TimelineScreen(MonitorScreen[str]):
    """Shows the tasks of a tree over time; ends with the id of a task to go to, None if there is none."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.TIMELINE)

    def __init__(self, monitor: Monitor, clock: Callable[[], float], tree: TaskTree) -> None:
        super().__init__(monitor, clock)
        self._tree = tree
        self.chart = TimelineChart(monitor.tree, clock, tree)
        self.ruler = Ruler(self.chart)
        self.reading = Reading(self.chart, clock)
        self.footer = Footer(Place.TIMELINE, self.is_out_of_question, self._is_on)

    @property
    def task_id(self) -> str | None:
        return self.chart.cursor_id

    @property
    def marked(self) -> tuple[str, ...]:
        return self._tree.marked

    def compose(self) -> ComposeResult:
        self.reading.set_class(self.app.size.height >= _TALL, "-tall")
        yield self.header
        yield self.ruler
        yield self.chart
        yield self.reading
        yield self.footer

    def on_mount(self) -> None:
        self.chart.focus()

    def tick(self) -> None:
        super().tick()
        self.chart.tick()
        self.reading.redraw()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self.chart.refresh_tasks(event.changed, settled=event.settled)
        if self.task_id in event.changed:
            self.reading.redraw()

    @on(TaskTree.Selected)
    def _take_selection(self) -> None:
        self.reading.redraw()
        self.footer.redraw()

    @on(TimelineChart.Drawn)
    def _take_picture(self) -> None:
        self.ruler.redraw()
        self.footer.redraw()

    def on_resize(self, event: events.Resize) -> None:
        self.reading.set_class(event.size.height >= _TALL, "-tall")

    def _is_on(self, command_id: str) -> bool:
        return (
            (command_id == "timeline.now" and self.chart.window.follows)
            or (command_id == "timeline.fit" and self.chart.window.fits)
            or (command_id == "timeline.idle" and self.chart.window.folds_idle)
        )

    @on(TaskTree.Opened)
    def action_open(self) -> None:
        leave(self, self.task_id)

    def action_back(self) -> None:
        leave(self, None)

    def action_timeline(self) -> None:
        leave(self, None)
