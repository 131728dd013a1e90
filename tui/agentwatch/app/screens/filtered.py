"""A tree that a filter narrows: writing one, saved views, and who needs the operator inside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, on
from textual.actions import SkipAction

from agentwatch.app.actions import VIEWS
from agentwatch.app.messages import Missing, Refused
from agentwatch.app.screens.detailed import DetailedScreen
from agentwatch.app.widgets.filter_bar import FilterBar, FilterInput
from agentwatch.app.widgets.needs_you import NeedsYou
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.text import clean, quoted
from agentwatch.view.query import Query, parse
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor


class FilteredScreen(DetailedScreen[None]):
    """A screen with a tree and its filter. `clock` gives seconds since the epoch."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float]) -> None:
        super().__init__(monitor, clock)
        self.task_tree = TaskTree(monitor.tree, clock)
        self.header.counted = self.task_tree.count_now
        self.filter_bar = FilterBar(monitor.tree)
        self.needs_you = NeedsYou(monitor.tree, clock)

    @property
    def task_id(self) -> str | None:
        return self.task_tree.cursor_id

    @property
    def sought(self) -> Query:
        return self.filter_bar.sought

    def show_task(self, task_id: str) -> None:
        """Go to a task. A filter that hides it is cleared."""
        self.task_tree.select(task_id)
        if self.task_id != self.task_tree.outline.row_of(task_id) and self.sought:
            self.filter_bar.seek()
            self.task_tree.set_filter(Query())
            self.task_tree.select(task_id)

    def _has_tasks(self) -> bool:
        """Whether there is something to show; if there is not, that is said."""
        if not self._monitor.tree.tasks:
            self.post_message(Refused())
            self.post_message(Missing("There is no task yet."))
        return bool(self._monitor.tree.tasks)

    def action_filter(self) -> None:
        if self._is_in_details and self.details is not None and "live.search" in self.details.offered:
            self.details.action_search()
        # Tasks or not: without the field, what is typed would be commands.
        elif self.filter_bar.is_attached:
            self.filter_bar.write()

    def on_paste(self, event: events.Paste) -> None:
        """A filter that is pasted, slash and all, is as good as a typed one."""
        line = next(iter(event.text.splitlines()), "")
        if line.startswith("/") and self.filter_bar.is_attached:
            self.filter_bar.write(line[1:])

    def action_filter_state(self, step: int) -> None:
        """Show what is in the next state that there is."""
        if self._has_tasks() and self.filter_bar.is_attached:
            totals = self._monitor.tree.totals
            self.filter_bar.step(totals.states, step, asks=totals.needs_operator > 0)

    @property
    def _views(self) -> dict[str, str]:
        """The saved views, by their names."""
        return dict(self._monitor.settings.views[:VIEWS])

    def action_view(self, number: int) -> None:
        """Show what a saved view looks for; the key of the one that is on shows everything again."""
        # Without views, and before the filter's line is there, the key is that of a tab.
        if not self._views or not self.filter_bar.is_attached:
            raise SkipAction
        if number >= len(self._views):
            self.notify(f"Your settings have {plural(len(self._views), 'view')}.", markup=False, timeout=3)
            return
        name, text = list(self._views.items())[number]
        fault = parse(text).fault
        if fault:
            words = f"The view {quoted(name)} of your settings is wrong: {fault}"
            self.notify(clean(words, 300), severity="warning", markup=False)
        else:
            self.filter_bar.seek("" if self.sought.text == text else text)

    @on(FilterBar.Changed)
    def _take_filter(self, event: FilterBar.Changed) -> None:
        self.task_tree.set_filter(event.sought)
        self.needs_you.seek(event.sought)
        self.footer.redraw()

    @on(TaskTree.Filtered)
    def _take_count(self, event: TaskTree.Filtered) -> None:
        self.filter_bar.show_count(event.matches)

    @on(FilterInput.Left)
    def _leave_filter(self, event: FilterInput.Left) -> None:
        self.set_focus(None if self.has_class("-empty") else self.task_tree)
        if event.drop:
            self.filter_bar.seek()
        # Of the focus, the line is told later.
        self.filter_bar.display = bool(self.filter_bar.sought)
