"""The main screen: the tree, the details, and the tasks that need the operator."""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import COMMANDS, VIEWS, Home, Place, bindings
from agentwatch.app.messages import STILL_READING, NoEffect, TreeUpdated
from agentwatch.app.screens.base import MonitorScreen
from agentwatch.app.widgets.filter_bar import FilterBar
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.needs_you import NeedsYou
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import Task
from agentwatch.monitor import Monitor
from agentwatch.sources import Health
from agentwatch.text import clean, clean_row
from agentwatch.view.rows import Query, row_owner

if TYPE_CHECKING:
    from agentwatch.app.widgets.details.pane import DetailsPane

_WIDE = 100  # columns: from this width on, the details are beside the tree
_PERIOD = 5.0  # seconds between two updates of ages in the details
_IN_SECONDS = 120.0  # while the task's state is younger than this, the details update each second, like its row
# The ids of the commands that only some tabs of the details have.
_TAB_COMMANDS = frozenset(one.id for one in COMMANDS.values() if one.homes == (Home.PANE,) and one.footer)
_EMPTY_PAGE = """\
[bold]$title[/][$text-warning]$problems[/]

[$text-muted]Watched  [/]$watched
[$text-muted]Demo     [/][bold $accent]agentwatch demo[/]
[$text-muted]Set up   [/][bold $accent]agentwatch init[/]\
[$text-muted]  has your agent hand off, return and wait for you[/]

A task appears as soon as an agent's program hands work on here (agentwatch sources lists those that were found), or an\
 agent writes one of these, in any .md or .json file:

[$text-muted]  handoff packet   *.handoff.md, *.todos.md
  return-format    *.return.md
  subagent-return  *.return.json
  return-meta      .return-meta.json
  report-contract  *.report.json[/]"""


def _empty_words(health: Health, watched: str) -> Content:
    if health.mode == "replay":
        return Content.styled("There was no delegation at this moment of the recording.", "bold")
    if health.mode == "starting":
        detail = (f"\n\n{clean_row(health.detail, 300)}", "$text-muted")
        return Content.assemble((f"Looking through {watched} …", "bold"), detail)
    title = "No delegation can be seen." if health.problems else "No delegation here yet."
    problems = "".join(f"\n{clean_row(str(one), 300)}" for one in health.problems[:5])
    return Content.from_markup(_EMPTY_PAGE, title=title, problems=problems, watched=watched)


def _has_open_request(task: Task) -> bool:
    return task.request is not None and task.request.waits_for_operator


class MainScreen(MonitorScreen[None]):
    """The main screen. A narrow screen shows the tree. With the CSS class `-page`, it shows the details."""

    BINDINGS = bindings(Home.MAIN)

    DEFAULT_CSS = """
    MainScreen #body { height: 1fr; }
    MainScreen #left { width: 1fr; height: 1fr; }
    MainScreen DetailsPane { display: none; height: 1fr; padding: 0 1; }
    MainScreen.-page DetailsPane { display: block; }
    MainScreen.-page #left, MainScreen.-page NeedsYou { display: none; }
    MainScreen.-page.-wide NeedsYou.-asks { display: block; }
    MainScreen.-wide #left { width: 15fr; padding-top: 1; }
    MainScreen.-wide DetailsPane {
        display: block; width: 13fr; padding: 1 1 0 1;
        border-left: solid $line;
    }
    MainScreen.-wide DetailsPane:focus-within { border-left: solid $text-muted; }
    MainScreen.-wide.-page DetailsPane:focus-within { border: none; }
    MainScreen.-empty TaskTree, MainScreen.-empty DetailsPane { display: none; }
    MainScreen #empty { display: none; height: 1fr; padding: 1 2; }
    MainScreen.-empty #empty { display: block; }
    """

    details: "DetailsPane | None" = None  # the details, once they are loaded
    _looked_at: tuple[str, str] | None = None  # id and version of the new task that was selected a second ago

    def __init__(self, monitor: Monitor, clock: Callable[[], float]):
        super().__init__(monitor, clock)
        self.task_tree = TaskTree(monitor.tree, clock)
        self.filter_bar = FilterBar(monitor.tree, self._go_to_tree)
        self.needs_you = NeedsYou(monitor.tree, clock)
        self.footer = Footer(Place.TREE, self.is_hidden, self._is_on, self.why_not)
        self._empty = Static(id="empty", markup=False)
        self._shown_notices: set[str] = set()

    @property
    def task_id(self) -> str | None:
        return self.task_tree.cursor_id

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(one for one in self.task_tree.marked if one in self._monitor.tree.tasks)

    @property
    def active_query(self) -> Query:
        """The active filter."""
        return self.filter_bar.active_query

    def compose(self) -> ComposeResult:
        # Set these classes before anything is styled. Later, each class would cost one more layout.
        self._set_layout_classes(self.app.size.width, update=False)
        self.set_class(not self._monitor.tree.tasks, "-empty", update=False)
        yield self.header.data_bind(MonitorScreen.facts)
        with Horizontal(id="body"), Vertical(id="left"):
            yield self.task_tree
            yield self._empty
            yield self.filter_bar
        yield self.needs_you
        yield self.footer

    def on_mount(self) -> None:
        self._go_to_tree()
        self._show_place()
        self._resize_needs_you()
        self.watch(self.task_tree, "cursor_id", self._show_selected)
        self.watch(self.task_tree, "matches", self.filter_bar.show_count)
        self.watch(self.task_tree, "row_count", self._resize_needs_you)
        self.watch(self.task_tree, "follows", self.footer.redraw)
        self.watch(self.task_tree, "marked", self.update_facts)
        self.set_interval(_PERIOD, self.show_details)
        self._loading = self.run_worker(self._load_details())

    async def _load_details(self) -> None:
        """Load the code of the details in a thread, because pydantic loads slowly. Add the details to the screen."""
        await asyncio.to_thread(import_module, "agentwatch.app.widgets.details.pane")
        from agentwatch.app.widgets.details.pane import DetailsPane  # imported on the line above

        body = self.query_one("#body")
        if body.is_attached:
            self.details = DetailsPane()
            await body.mount(self.details)
            self.watch(self.details, "offered", self.footer.redraw)
            self.show_details()

    def tick(self) -> None:
        super().tick()
        self.task_tree.tick()
        self.needs_you.tick()
        for sentence in self._monitor.notices:
            # Show each notice once. The key `!` lists all present notices.
            if sentence not in self._shown_notices:
                self._shown_notices.add(sentence)
                self.notify(clean(sentence, 500), severity="warning", markup=False, timeout=12)
        task, mark = self.selected, None
        if task and task.since and self._clock() - task.since < _IN_SECONDS:
            self.show_details()
        # If the cursor follows the changes, it may be on a task that the operator has not looked at.
        is_looked_at = self.app.app_focus and self.app.screen is self and not self.task_tree.follows
        if task and not task.seen and is_looked_at:
            mark = task.task_id, mark_of(task)
            monitor, own_id = self._monitor.resolve_task(task.task_id)
            # A task counts as seen after it was selected for a second.
            if mark == self._looked_at and monitor.acknowledgements:
                monitor.acknowledgements.mark_seen({own_id: mark[1]})
        self._looked_at = mark

    # Changes of the tree

    def watch_facts(self) -> None:
        super().watch_facts()
        self._show_empty_page()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        self.task_tree.refresh_tasks(event.changed, settled=event.settled)
        self._resize_needs_you()
        self._show_empty_page()
        if self.task_id in event.changed:
            self.show_details()

    def _show_empty_page(self) -> None:
        empty = not self._monitor.tree.tasks
        if empty:
            words = _empty_words(self.facts.health, clean_row(self._monitor.watched, 500))
            if words != self._empty.content:
                self._empty.update(words)
        if empty != self.has_class("-empty"):
            self.set_class(empty, "-empty")
            if empty or self.focused is None:
                self._go_to_tree()
            self._show_place()

    async def _show_selected(self, cursor_id: str | None) -> None:
        # Textual runs a coroutine later than a function, so the row is drawn before the details.
        self.needs_you.cursor_id = cursor_id
        self.needs_you.redraw()
        self.footer.redraw()
        self.show_details()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        self._set_layout_classes(event.size.width)
        self.call_after_refresh(self.show_details)
        self._resize_needs_you()
        self._show_empty_page()

    def _resize_needs_you(self) -> None:
        others = self.header, self.footer, self.filter_bar
        taken = self.task_tree.row_count + sum(one.display for one in others) + self.has_class("-wide")
        self.needs_you.fit_lines(self.size.height - taken)

    def _set_layout_classes(self, width: int, *, update: bool = True) -> None:
        is_page = self._is_in_details and (width < _WIDE or (self.has_class("-wide") and self.has_class("-page")))
        for name, is_so in {"-wide": width >= _WIDE, "-page": is_page}.items():
            self.set_class(is_so, name, update=update)

    @property
    def _is_in_details(self) -> bool:
        """Whether keys go to the details."""
        return self.has_class("-page") or (self.details is not None and self.details.has_focus_within)

    def show_details(self) -> None:
        """Update the details with the selected task, if the details are in sight."""
        if self.details and (self.has_class("-wide") or self.has_class("-page")):
            own = self._monitor.resolve_task(self.task_id or "")[0]
            self.details.show(self.selected, self._monitor.tree, own, self._clock())

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_place(self) -> None:
        """Make the footer show the keys of the place that has the focus."""
        if self.filter_bar.has_focus_within:
            place = Place.FILTER
        elif self.has_class("-empty"):
            place = Place.EMPTY
        else:
            place = Place.DETAILS if self._is_in_details else Place.TREE
        self.footer.show_place(place)

    def _is_on(self, command_id: str) -> bool:
        return {
            "details.widen": self.has_class("-page"),
            "follow": self.task_tree.follows,
            "filter": len(self.active_query.terms) > int(self.active_query.state_term is not None),
            "filter.state": self.active_query.state_term is not None,
            "views": self.active_query.text in self._saved_views.values(),
        }.get(command_id, False)

    def is_hidden(self, command_id: str) -> bool:
        if command_id in _TAB_COMMANDS:
            return self.details is None or command_id not in self.details.offered
        hidden = {
            "notices": not self.facts.notices,
            "focus.next": not self.has_class("-wide"),
            "details.widen": not self.has_class("-wide"),
            "views": not self._saved_views,
            "back": not (self.active_query or self._is_in_details),
            "needs.next": not self.facts.asking,
            "unseen.next": not self.facts.new,
        }
        return hidden.get(command_id, False) or super().is_hidden(command_id)

    # Commands

    def show_task(self, task_id: str) -> None:
        """Go to a task, and clear the filter if it hides the task."""
        self.task_tree.select(task_id)
        if self.task_id != row_owner(self._monitor.tree.tasks, task_id) and self.active_query:
            self.filter_bar.set_text()
            self.task_tree.set_filter(Query())
            self.task_tree.select(task_id)

    async def action_open(self) -> None:
        """Go to the details. On a narrow screen, the details replace the tree."""
        await self._loading.wait()
        if self.details and self.task_id is not None:
            self.set_class(not self.has_class("-wide"), "-page")
            self.show_details()
            self.details.focus()

    async def action_tab(self, number: int) -> None:
        """Show a tab of the details. Open the details if they are not in sight."""
        await self._loading.wait()
        if self.details:
            self.details.activate(number)
            if not self.has_class("-wide"):
                await self.action_open()

    async def action_widen(self) -> None:
        """Give the details the whole width, or show the tree beside the details again."""
        if self.has_class("-wide") and self.has_class("-page"):
            self.remove_class("-page")
        elif not self.has_class("-page"):
            await self.action_open()
            self.set_class(self._is_in_details, "-page")
        self.footer.redraw()

    def _go_to_tree(self) -> None:
        self.remove_class("-page")
        self.set_focus(None if self.has_class("-empty") else self.task_tree)

    def action_back(self) -> None:
        if not self._is_in_details:
            self.filter_bar.set_text()
        elif self.details is None or not self.details.leave_search():
            self._go_to_tree()

    async def action_switch(self) -> None:
        """Go from the tree to the details, or from any other place to the tree."""
        if self.task_tree.has_focus:
            await self.action_open()
        else:
            self._go_to_tree()

    def action_timeline(self) -> None:
        from agentwatch.app.screens.timeline import TimelineScreen  # not needed for the first frame

        self.app.push_screen(TimelineScreen(self._monitor, self._clock, self.task_tree), self._return_from_timeline)

    def _return_from_timeline(self, task_id: str | None) -> None:
        if task_id is not None:
            self.show_task(task_id)

    def action_pick(self, number: int) -> None:
        """Go to the task in the line `number` of the strip "Needs you"."""
        self.show_task(self.needs_you.shown[number])
        self._go_to_tree()

    def action_go_asking(self, step: int) -> None:
        """Go to the next (`step` 1) or the previous (-1) task that needs the operator and matches the filter. For
        `step` 1, tasks with a new request come first, unless the selected task has a request."""
        tree, selected = self._monitor.tree, self.selected
        preferred = [one for one in tree.queue if _has_open_request(tree.tasks[one]) and not tree.tasks[one].seen]
        is_next = step > 0 and not (selected and _has_open_request(selected))
        self._go_to_next(tree.queue, step, "Nobody needs you now.", preferred if is_next else ())

    def action_go_unseen(self, step: int) -> None:
        """Go to the next (`step` 1) or the previous (-1) new task that matches the filter. The newest comes first."""
        self._go_to_next(self._monitor.tree.unseen, step, "Nothing is new.")

    def _go_to_next(self, ids: list[str], step: int, if_none: str, preferred: Sequence[str] = ()) -> None:
        tree, now = self._monitor.tree, self._clock()
        start = ids.index(self.task_id) if self.task_id in ids else 0
        in_sight = [one for one in ids[start:] + ids[:start] if self.active_query.matches(tree.tasks[one], now)]
        if not in_sight:
            self.post_message(NoEffect(f"Inside the filter: {if_none.lower()}" if self.active_query else if_none))
        elif urgent := next((one for one in preferred if one in in_sight), None):
            self.show_task(urgent)
        else:
            self.show_task(in_sight[-1 if step < 0 else int(in_sight[0] == self.task_id) % len(in_sight)])

    def action_page_transcript(self) -> None:
        if self.details:
            self.details.action_page_transcript()

    def action_history(self) -> None:
        self._go_to_tree()
        self.task_tree.action_history()

    def action_follow(self) -> None:
        self.task_tree.follows = not self.task_tree.follows

    def action_notices(self) -> None:
        from agentwatch.app.screens.pages import PageScreen, notice_blocks  # rarely needed

        notices, own = self._monitor.tree.notices, self._monitor.messages
        if not notices and not own and self.facts.health.mode == "starting":
            own = [STILL_READING]
        self.app.push_screen(PageScreen("Problems", notice_blocks(notices, own)))

    # The filter

    def action_filter(self) -> None:
        self.remove_class("-page")
        self.filter_bar.open_field()

    def action_filter_state(self, step: int) -> None:
        """Filter by the next state that any task has (`step` 1), or by the previous state (-1)."""
        totals = self._monitor.tree.totals
        if not totals.tasks:
            self.post_message(NoEffect("There is no task yet."))
        else:
            self._go_to_tree()
            self.filter_bar.set_text(
                self.active_query.with_next_state(totals.shown, step, asks=totals.needs_operator > 0)
            )

    @property
    def _saved_views(self) -> dict[str, str]:
        return dict(self._monitor.settings.views[:VIEWS])

    def action_view(self, number: int) -> None:
        """Filter by the query of a saved view. If this query is the filter already, show everything again."""
        # If no view has this number, the key opens a tab of the details instead.
        if number >= len(self._saved_views):
            raise SkipAction
        text = list(self._saved_views.values())[number]
        self.filter_bar.set_text("" if self.active_query.text == text else text)

    @on(FilterBar.Changed)
    def _apply_filter(self, event: FilterBar.Changed) -> None:
        self.task_tree.set_filter(event.active_query)
        self.needs_you.set_filter(event.active_query)
        self.footer.redraw()
