"""The main screen: tree and details, who needs the operator, and what the keys do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.messages import STILL_READING, ScreenComplete, TreeUpdated
from agentwatch.app.once import once
from agentwatch.app.screens.detailed import PERIOD
from agentwatch.app.screens.filtered import FilteredScreen
from agentwatch.app.widgets.empty import Empty
from agentwatch.app.widgets.filter_bar import FilterInput
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.needs_you import NeedsYou
from agentwatch.app.widgets.task_tree import TaskTree
from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.delegation.task import PlacedFinding
    from agentwatch.monitor import Monitor

_WIDE: Final = 100
"""Columns from which the details stand beside the tree."""
_WITHOUT_TASKS: Final = 2.0
"""Seconds after which the details are loaded, though no task is there yet."""
_BEHIND_TASK: Final = 0.1
"""Seconds in which the first task is drawn."""
_SELDOM: Final = 60.0
"""Seconds after which everything is drawn that may read differently, whatever is known of it."""
_OLD: Final = 3_600.0
"""Seconds after which how long ago something was changes seldom."""
_ROOMY: Final = 140
"""Columns from which the tree is the wider one: the details keep what their columns need."""


class MainScreen(FilteredScreen):
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
    MainScreen Empty { display: none; }
    MainScreen.-empty Empty { display: block; }
    """

    def __init__(self, monitor: Monitor, clock: Callable[[], float]) -> None:
        super().__init__(monitor, clock)
        self.footer = Footer(Place.TREE, self.is_useless, self._is_on, self.why_not)
        self._empty = Empty(monitor)
        self._has_begun_details = False
        self._told: set[str] = set()
        self._said = 0
        """How many sentences were said when the screen was drawn last."""
        self._aged_at = float("-inf")
        self._drawn_at = self._due = float("-inf")
        """When that was, and when something may read differently, if nothing but time passes (epoch seconds)."""

    @property
    def marked(self) -> tuple[str, ...]:
        return self.task_tree.marked

    @property
    def instead(self) -> tuple[str, ...]:
        return self.task_tree.group_lines()

    def compose(self) -> ComposeResult:
        # Before anything is styled: each of these later is another layout before the first frame.
        self.set_class(self.app.size.width >= _WIDE, "-wide", update=False)
        self.set_class(self.app.size.width >= _ROOMY, "-roomy", update=False)
        self.set_class(not self._monitor.tree.tasks, "-empty", update=False)
        yield self.header
        with Horizontal(id="body"), Vertical(id="left"):
            yield self.task_tree
        yield self.needs_you
        yield self.footer

    def on_mount(self) -> None:
        self._monitor.in_sight = self.task_tree.in_sight
        if self.has_class("-empty"):
            self.footer.show_place(Place.EMPTY)
        else:
            self.set_focus(self.task_tree)
        self.needs_you.refresh_tasks(self._monitor.tree.tasks)
        self.set_interval(PERIOD, self._show_ages)
        self.call_after_refresh(self._add_rest)

    async def _add_rest(self) -> None:
        """Mount what the first frame does not wait for."""
        left = self.query_one("#left")
        # Not so where the operator has left already.
        if left.is_attached:
            await left.mount(self._empty, self.filter_bar)
            once(self, _WITHOUT_TASKS, self._begin_details)
            self.post_message(ScreenComplete())

    def _begin_details(self) -> None:
        """Load the details, once: behind the first task, which would wait for them."""
        if not self._has_begun_details:
            self._has_begun_details = True
            # Not after the next refresh: that may be over before the task is drawn.
            once(self, _BEHIND_TASK, lambda: self.run_worker(self._add_details()))

    async def _add_details(self) -> None:
        """They need all contracts and pydantic: a tenth of a second, in which the operator may press keys."""
        await asyncio.to_thread(import_module, "agentwatch.app.widgets.details")
        from agentwatch.app.widgets.details import DetailsPane  # imported on the line above

        body = self.query_one("#body")
        if body.is_attached:
            self.details = DetailsPane(dict(self._monitor.settings.prices))
            await body.mount(self.details)
            self.show_details()

    def tick(self) -> None:
        """A second has passed: what reads differently by now is drawn, and what could not is not looked at."""
        now = self._clock()
        if self._drawn_at <= now < self._due and len(self._monitor.messages) == self._said:
            self._look()
            return
        self._said = len(self._monitor.messages)
        super().tick()
        self.task_tree.tick()
        self.needs_you.redraw()
        self._show_emptiness()
        self._tell_notices()
        counts = any(True for _ in self._monitor.tree.spent())
        self._drawn_at = now
        self._due = now if counts else min(now + _SELDOM, self.task_tree.due(now), self.needs_you.due(now))

    def _stir(self) -> None:
        """Something else than time has changed what is shown: the next second counts."""
        self._due = float("-inf")

    def _tell_notices(self) -> None:
        """Each sentence about what agentwatch itself keeps is told once; `!` lists them for as long as they hold."""
        for sentence in self._monitor.notices:
            if sentence not in self._told:
                self._told.add(sentence)
                self.notify(clean(sentence, 500), severity="warning", markup=False, timeout=12)

    # What comes from the tree

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self._stir()
        self.task_tree.refresh_tasks(event.changed, settled=event.settled)
        self.needs_you.refresh_tasks(event.changed)
        self._show_emptiness()
        super().refresh_tasks(event)
        if self.task_tree.cursor_group is not None:
            self.show_details()
        if self._monitor.tree.tasks or self._monitor.health.mode != "starting":
            self._begin_details()

    def _show_emptiness(self) -> None:
        empty = not self._monitor.tree.tasks
        if empty and self._empty.is_attached:
            self._empty.refresh_text()
        if empty != self.has_class("-empty"):
            self.set_class(empty, "-empty")
            if empty:
                self.set_focus(None)
            elif self.focused is None:
                self.set_focus(self.task_tree)
            self._show_place()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Resize):
            self._stir()
        await super().on_event(event)

    def _show_ages(self) -> None:
        """Have the details say how long ago something was, where that is not the same for minutes."""
        task, now = self._monitor.tree.tasks.get(self.task_id or ""), self._clock()
        is_old = task is not None and not task.state.is_open and now - (task.alive_at or now) > _OLD
        if not is_old or now - self._aged_at >= _SELDOM:
            self._aged_at = now
            self.show_details()

    @on(TaskTree.Selected)
    def _take_selection(self, event: TaskTree.Selected) -> None:
        self._stir()
        self.needs_you.cursor_id = event.task_id
        self.needs_you.redraw()
        self.footer.redraw()
        self.show_details()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        wide = event.size.width >= _WIDE
        if wide != self.has_class("-wide"):
            self.set_class(wide, "-wide")
            if not wide and self._is_in_details:
                self.set_focus(self.task_tree)
            self.call_after_refresh(self.show_details)
        if (roomy := event.size.width >= _ROOMY) != self.has_class("-roomy"):
            self.set_class(roomy, "-roomy")
        self.needs_you.fit()
        self._show_emptiness()

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
        return (
            (command_id == "follow" and self.task_tree.follows)
            or (command_id == "filter" and len(sought.words) + len(sought.terms) > int(sought.step is not None))
            or (command_id == "filter.state" and sought.step is not None)
            or (command_id == "views" and sought.text in self._views.values())
        )

    def is_useless(self, command_id: str) -> bool:
        return (
            (command_id == "focus.next" and not self.has_class("-wide"))
            or (command_id == "notices" and not (self._monitor.tree.notices or self._monitor.messages))
            or (command_id == "views" and not self._views)
            or (command_id == "back" and not self.filter_bar.sought and not self._is_in_details)
            or super().is_useless(command_id)
        )

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
        from agentwatch.app.screens.task import TaskScreen  # it needs what the details need

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

    @on(TaskTree.Marked)
    @on(TaskTree.FollowEnded)
    def _show_mode(self) -> None:
        self.footer.redraw()

    def action_notices(self) -> None:
        from agentwatch.app.screens.pages import NoticesScreen  # rarely wanted

        def read() -> tuple[list[PlacedFinding], list[str]]:
            notices, said = [*self._monitor.tree.notices], [*self._monitor.messages]
            if not notices and not said and self._monitor.health.mode == "starting":
                said = [STILL_READING]
            return notices, said

        self.app.push_screen(NoticesScreen(read))
