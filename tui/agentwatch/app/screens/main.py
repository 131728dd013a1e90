"""The main screen: tree and details, who needs the operator, and what the keys do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import VIEWS, Home, Place, bindings
from agentwatch.app.messages import STILL_READING, Missing, TreeUpdated
from agentwatch.app.screens.detailed import PERIOD, DetailedScreen, TaskScreen
from agentwatch.app.widgets.cells import shown
from agentwatch.app.widgets.filter_bar import FilterBar, FilterInput
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.needs_you import NeedsYou
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.text import clean, quoted
from agentwatch.view.order import end_of_chain
from agentwatch.view.query import Query, parse

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_WIDE: Final = 100
"""Columns from which the details stand beside the tree."""
_ROOMY: Final = 140
"""Columns from which the tree is the wider one: the details keep what their columns need."""


_LOOKS_FOR: Final = """\
  handoff packet   *.handoff.md, *.todos.md
  return-format    *.return.md
  subagent-return  *.return.json
  return-meta      .return-meta.json
  report-contract  *.report.json"""


def _empty_words(monitor: Monitor) -> Content:
    """The page in place of the tree while there is no task."""
    health, watched = monitor.health, shown(monitor.watched, 500)
    if health.mode == "replay":
        return Content.styled("There was no delegation at this moment of the recording.", "bold")
    if health.mode == "starting":
        detail = (f"\n\n{shown(health.detail, 300)}", "$text-muted")
        return Content.assemble((f"Looking through {watched} …", "bold"), detail)
    return Content.assemble(
        ("No delegation here yet." if not health.problems else "No delegation can be seen.", "bold"),
        *((f"\n{shown(str(one), 300)}", "$text-warning") for one in health.problems[:5]),
        *(("\n\nWatched  ", "$text-muted"), watched),
        *(("\nDemo     ", "$text-muted"), ("agentwatch demo", "bold $accent")),
        *(("\nSet up   ", "$text-muted"), ("agentwatch init", "bold $accent")),
        ("  has your agent hand off, return and wait for you", "$text-muted"),
        "\n\nA task appears as soon as an agent's program hands work on here (agentwatch sources lists those that were"
        " found), or an agent writes one of these, in any .md or .json file:\n\n",
        (_LOOKS_FOR, "$text-muted"),
    )


class MainScreen(DetailedScreen[None]):
    """The screen of one monitor. `clock` gives seconds since the epoch."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.MAIN)

    DEFAULT_CSS = """
    MainScreen #body { height: 1fr; }
    MainScreen #left { width: 1fr; height: 1fr; }
    MainScreen DetailsPane { display: none; }
    MainScreen.-wide #left { width: 10fr; padding-top: 1; }
    MainScreen.-wide DetailsPane {
        display: block; width: 10fr; height: 1fr; padding: 1 1 0 1;
        border-left: solid $line;
    }
    MainScreen.-wide.-roomy #left { width: 15fr; }
    MainScreen.-wide.-roomy DetailsPane { width: 13fr; }
    MainScreen.-wide DetailsPane:focus-within { border-left: solid $text-muted; }
    MainScreen.-empty TaskTree, MainScreen.-empty DetailsPane { display: none; }
    MainScreen #empty { display: none; height: 1fr; padding: 1 2; }
    MainScreen.-empty #empty { display: block; }
    """

    def __init__(self, monitor: Monitor, clock: Callable[[], float]) -> None:
        super().__init__(monitor, clock)
        self.task_tree = TaskTree(monitor.tree, clock)
        self.header.counted = self.task_tree.count_now
        self.filter_bar = FilterBar(monitor.tree, self._leave_filter)
        self.needs_you = NeedsYou(monitor.tree, clock)
        self.footer = Footer(Place.TREE, self.is_useless, self._is_on, self.why_not)
        self._empty = Static(id="empty", markup=False)
        self._told: set[str] = set()

    @property
    def marked(self) -> tuple[str, ...]:
        return self.task_tree.marked

    def compose(self) -> ComposeResult:
        # Before anything is styled: each of these later is another layout before the first frame.
        self._fit(self.app.size.width, update=False)
        self.set_class(not self._monitor.tree.tasks, "-empty", update=False)
        yield self.header
        with Horizontal(id="body"), Vertical(id="left"):
            yield self.task_tree
            yield self._empty
            yield self.filter_bar
        yield self.needs_you
        yield self.footer

    def on_mount(self) -> None:
        if self.has_class("-empty"):
            self.footer.show_place(Place.EMPTY)
        else:
            self.set_focus(self.task_tree)
        self.needs_you.fit()
        self.set_interval(PERIOD, self.show_details)
        self.run_worker(self._add_details())

    async def _add_details(self) -> None:
        """They need all contracts and pydantic: a tenth of a second, in which the operator may press keys."""
        await asyncio.to_thread(import_module, "agentwatch.app.widgets.details")
        from agentwatch.app.widgets.details import DetailsPane  # imported on the line above

        body = self.query_one("#body")
        if body.is_attached:
            self.details = DetailsPane()
            await body.mount(self.details)
            self.show_details()

    def tick(self) -> None:
        super().tick()
        self.task_tree.tick()
        self.needs_you.redraw()
        self._show_emptiness()
        self._tell_notices()

    def _tell_notices(self) -> None:
        """Each sentence about what agentwatch itself keeps is told once; `!` lists them for as long as they hold."""
        for sentence in self._monitor.notices:
            if sentence not in self._told:
                self._told.add(sentence)
                self.notify(clean(sentence, 500), severity="warning", markup=False, timeout=12)

    # What comes from the tree

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self.task_tree.refresh_tasks(event.changed, settled=event.settled)
        self.needs_you.fit()
        self._show_emptiness()
        super().refresh_tasks(event)

    def _show_emptiness(self) -> None:
        empty = not self._monitor.tree.tasks
        if empty:
            words = _empty_words(self._monitor)
            if words != self._empty.content:
                self._empty.update(words)
        if empty != self.has_class("-empty"):
            self.set_class(empty, "-empty")
            if empty:
                self.set_focus(None)
            elif self.focused is None:
                self.set_focus(self.task_tree)
            self._show_place()

    @on(TaskTree.Selected)
    def _take_selection(self, event: TaskTree.Selected) -> None:
        self.needs_you.cursor_id = event.task_id
        self.needs_you.redraw()
        self.footer.redraw()
        self.show_details()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.width)
        if not self.has_class("-wide") and self._is_in_details:
            self.set_focus(self.task_tree)
        self.call_after_refresh(self.show_details)
        self.needs_you.fit()
        self._show_emptiness()

    def _fit(self, width: int, *, update: bool = True) -> None:
        self.set_class(width >= _WIDE, "-wide", update=update)
        self.set_class(width >= _ROOMY, "-roomy", update=update)

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_place(self) -> None:
        """The footer says what the keys do where the focus is."""
        if isinstance(self.focused, FilterInput):
            place = Place.FILTER
        elif self.has_class("-empty"):
            place = Place.EMPTY
        elif self._is_in_details:
            place = Place.DETAILS
        else:
            place = Place.TREE
        self.footer.show_place(place)

    def _is_on(self, command_id: str) -> bool:
        sought = self.filter_bar.sought
        return {
            "follow": self.task_tree.follows,
            "filter": len(sought.terms) > int(sought.step is not None),
            "filter.state": sought.step is not None,
            "views": sought.text in self._views.values(),
        }.get(command_id, False)

    def is_useless(self, command_id: str) -> bool:
        useless = {
            "focus.next": not self.has_class("-wide"),
            "notices": not (self._monitor.tree.notices or self._monitor.messages),
            "views": not self._views,
            "back": not self.filter_bar.sought and not self._is_in_details,
        }
        return useless.get(command_id, False) or super().is_useless(command_id)

    # Commands

    @on(TaskTree.Opened)
    def action_open(self) -> None:
        """Beside the tree where the details are there, else as a screen of its own."""
        if not self.has_class("-wide"):
            self._open_page(0)
        elif self.details is not None and self.task_id is not None:
            self.show_details()
            self.details.focus()

    def _open_page(self, tab: int) -> None:
        if self.task_id is not None:
            page = TaskScreen(self._monitor, self._clock, self.task_id, tab, self.sought)
            page.header.counted = self.header.counted
            self.app.push_screen(page, self._return_from_page)

    def action_timeline(self) -> None:
        """The same tasks over time."""
        from agentwatch.app.screens.timeline import TimelineScreen  # not for the first frame

        # While the first look goes on, they may come; what is typed behind the key is for the timeline.
        if not self._monitor.is_settled or self._has_tasks():
            timeline = TimelineScreen(self._monitor, self._clock, self.task_tree)
            timeline.header.counted = self.header.counted
            self.app.push_screen(timeline, self._return_from_page)

    def _return_from_page(self, task_id: str | None) -> None:
        """The cursor is where the page was."""
        if task_id is not None and task_id != self.task_id:
            self.show_task(task_id)

    def action_back(self) -> None:
        if self._is_in_details and self.details is not None and self.details.leave_search():
            return
        if self._is_in_details:
            self.set_focus(self.task_tree)
        elif self.filter_bar.sought:
            self.filter_bar.seek()

    def action_switch(self) -> None:
        """From the tree to the details beside it, from anywhere else to the tree."""
        if self.task_tree.has_focus and self.has_class("-wide"):
            self.action_open()
        elif not self.has_class("-empty"):
            self.set_focus(self.task_tree)

    def action_tab(self, number: int) -> None:
        """Bring a tab to the front, opening the details if they are not in sight."""
        if not self.has_class("-wide"):
            self._open_page(number)
        elif self.details is not None:
            from agentwatch.app.widgets.details import TABS  # there by now

            self.details.activate(list(TABS)[number])

    @on(NeedsYou.Picked)
    def _pick(self, event: NeedsYou.Picked) -> None:
        self.show_task(event.task_id)
        self.set_focus(self.task_tree)

    def action_follow(self) -> None:
        self.task_tree.follows = not self.task_tree.follows
        self.footer.redraw()
        # A narrow footer does not name the key, so it cannot show that it is on.
        words = "Following: the cursor goes to what changed last." if self.task_tree.follows else "Following no more."
        self.notify(words, markup=False, timeout=2)

    def action_notices(self) -> None:
        from agentwatch.app.screens.pages import PageScreen, notices_of  # rarely wanted

        notices, own = self._monitor.tree.notices, self._monitor.messages
        if not notices and not own and self._monitor.health.mode == "starting":
            own = [STILL_READING]
        self.app.push_screen(PageScreen("Problems", notices_of(notices, own)))

    # The filter

    @property
    def task_id(self) -> str | None:
        return self.task_tree.cursor_id

    @property
    def sought(self) -> Query:
        return self.filter_bar.sought

    def show_task(self, task_id: str) -> None:
        """Go to a task. A filter that hides it is cleared."""
        self.task_tree.select(task_id)
        if self.task_id != end_of_chain(self._monitor.tree.tasks, task_id) and self.sought:
            self.filter_bar.seek()
            self.task_tree.set_filter(Query())
            self.task_tree.select(task_id)

    def _has_tasks(self) -> bool:
        """Whether there is something to show; if there is not, that is said."""
        if not self._monitor.tree.tasks:
            self.post_message(Missing("There is no task yet."))
        return bool(self._monitor.tree.tasks)

    def action_filter(self) -> None:
        if self._is_in_details and self.details is not None and "live.search" in self.details.offered:
            self.details.action_search()
        else:
            self.filter_bar.write()

    def action_filter_state(self, step: int) -> None:
        """Show what is in the next state that there is."""
        totals = self._monitor.tree.totals
        if self._has_tasks():
            self.filter_bar.seek(self.sought.stepped(totals.states, step, asks=totals.needs_operator > 0))

    @property
    def _views(self) -> dict[str, str]:
        """The saved views, by their names."""
        return dict(self._monitor.settings.views[:VIEWS])

    def action_view(self, number: int) -> None:
        """Show what a saved view looks for; the key of the one that is on shows everything again."""
        # Without such a view the key is that of a tab.
        if number >= len(self._views):
            raise SkipAction
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

    def _leave_filter(self) -> None:
        self.set_focus(None if self.has_class("-empty") else self.task_tree)
