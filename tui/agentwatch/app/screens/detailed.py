"""The base of screens, with header and footer; and of those of one task at a time, one of which has nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen, ScreenResultType

from agentwatch.app.actions import COMMANDS, Home, Place, bindings
from agentwatch.app.decision_words import ACTIONS, can_answer, to_answer, why_not
from agentwatch.app.messages import KeysChanged, Missing, TreeUpdated
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.header import Header
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State, Task
from agentwatch.view.query import Query

if TYPE_CHECKING:
    from agentwatch.app.widgets.details import DetailsPane
    from agentwatch.monitor import Monitor

_OF_TABS: Final = frozenset(
    name for name, command in COMMANDS.items() if command.homes in ((Home.PANE,), (Home.PAGE,)) and command.footer
)
"""Ids of the commands for some tabs of the details only."""
PERIOD: Final = 5.0
"""Seconds after which the details update how long ago something was."""


class MonitorScreen(Screen[ScreenResultType]):
    """A screen with a header and a footer. `clock` gives seconds since the epoch."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}

    DEFAULT_CSS = """
    MonitorScreen { layout: vertical; background: $background; }
    MonitorScreen > .details--faint { color: $text-muted; }
    MonitorScreen:ansi > .details--faint { text-style: dim; }
    """

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
    def selected(self) -> Task | None:
        """That task, while it is there."""
        return self._monitor.tree.tasks.get(self.task_id or "")

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the tasks that are marked for a review."""
        return ()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        """Show what has changed in the tree."""

    def on_mount(self) -> None:
        self.set_interval(1.0, self._pass_time)

    @on(events.ScreenResume)
    def _pass_time(self) -> None:
        # Below a screen that lets nothing through, Textual would paint that one anew, whole, each second.
        if self.is_current or self.app.screen.is_modal:
            self.tick()

    @on(KeysChanged)
    def _show_keys(self) -> None:
        self.footer.redraw()

    def tick(self) -> None:
        """A second has passed, or the screen is back in sight."""
        self.header.redraw()
        self.footer.redraw()

    def leave(self, result: ScreenResultType | None = None) -> None:
        """End this screen where it is on top. Any other was left before, or Textual would end the one above it."""
        if self.is_active:
            self.dismiss(result)

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        self.refresh_tasks(event)
        self.header.redraw()
        # The keys follow from the task that they are about; from whatever else, within a second.
        if self.task_id in event.changed:
            self.footer.redraw()

    def is_useless(self, command_id: str) -> bool:
        """Whether the footer need not name a command that decides: nobody asks for it, and it is not possible."""
        clerk, task, action = self._monitor.clerk, self.selected, ACTIONS.get(command_id)
        if command_id == "review":
            return clerk is None or not (self.marked or self._monitor.tree.totals.needs_operator)
        if command_id == "acknowledge":
            return not self._monitor.shelves or task is None or task.ask is None
        if action is None or (clerk is not None and self._answers(action)):
            return False
        if clerk is None or task is None:
            return True
        # Its program waits for an answer: what else could be decided is for later.
        is_later = can_answer(task) and action not in (Action.RESPOND, Action.ABORT)
        # Of what needs the operator, most keys that are refused say why; what is blocked has nothing to accept.
        is_plain = not task.needs_operator or (action is Action.ACCEPT and task.own_state is State.BLOCKED)
        return is_later or (is_plain and self.why_not(command_id) is not None)

    def is_out_of_question(self, command_id: str) -> bool:
        """Whether it is useless, or refused: for a footer in which there is no room for what cannot be done."""
        return self.is_useless(command_id) or self.why_not(command_id) is not None

    def why_not(self, command_id: str) -> str | None:
        """Why a command that decides is refused now; None if it is not, and for every other command."""
        action, task = ACTIONS.get(command_id), self.selected
        refused = action is not None and task is not None and not self._answers(action)
        return why_not(task, action, self._clock()) if refused and action and task else None

    def _answers(self, action: Action) -> bool:
        """Whether the action answers a request: that of the task, or the one that comes first."""
        return action is Action.RESPOND and to_answer(self._monitor.tree, self.task_id, self._clock()) is not None


class DetailedScreen(MonitorScreen[ScreenResultType]):
    """The screen of one task at a time."""

    details: DetailsPane | None = None
    """The details, once they are there."""
    _looked_at: tuple[str, str] | None = None
    """The task that is new and was selected a second ago, and its mark."""

    @property
    def sought(self) -> Query:
        """The filter that is on: what goes to another task stays inside it."""
        raise NotImplementedError

    def show_task(self, task_id: str) -> None:
        """Go to another task."""
        raise NotImplementedError

    def tick(self) -> None:
        super().tick()
        task, mark = self.selected, None
        if task is not None and not task.seen and self.app.app_focus and self.app.screen is self:
            mark = task.task_id, mark_of(task)
            monitor, own_id = self._monitor.of(task.task_id)
            # It is seen once it stays selected from one second to the next.
            if mark == self._looked_at and monitor.shelf is not None:
                monitor.shelf.mark_seen({own_id: mark[1]})
        self._looked_at = mark

    @property
    def _is_in_details(self) -> bool:
        """Whether the keys are those of the details."""
        return self.details is not None and self.details.has_focus_within

    def show_details(self) -> None:
        """Show how the task stands by now, where the details are in sight."""
        if self.details is not None and self.details.display:
            own = self._monitor.of(self.task_id or "")[0]
            self.details.show(self.selected, self._monitor.tree, own, self._clock())

    def refresh_tasks(self, event: TreeUpdated) -> None:
        if self.task_id in event.changed:
            self.show_details()

    def is_useless(self, command_id: str) -> bool:
        """Whether a command has nothing to do now."""
        offered = self.details.offered if self.details is not None else ()
        return (
            (command_id in _OF_TABS and command_id not in offered)
            or (command_id == "needs.next" and not self._monitor.tree.totals.needs_operator)
            or (command_id == "unseen.next" and not self._monitor.tree.unseen)
            or super().is_useless(command_id)
        )

    def action_inspect(self) -> None:
        if self.details is not None:
            self.details.action_inspect()

    def action_search(self) -> None:
        if self.details is not None:
            self.details.action_search()

    def action_page_transcript(self) -> None:
        if self.details is not None and "live.pager" in self.details.offered:
            self.details.action_page_transcript()
        else:
            self.post_message(Missing("No transcript is shown: the Live tab of a session's task has it."))

    def action_compare(self, step: int) -> None:
        if self.details is not None:
            self.details.action_compare(step)

    def action_go_asking(self, step: int) -> None:
        """Go to the next task that needs the operator (`step` 1), or to the one before (-1), of those in sight."""
        self._go_on(self._monitor.tree.queue, step, "Nobody needs you now.")

    def action_go_unseen(self, step: int) -> None:
        """The same to the next task that is new, the newest first."""
        self._go_on(self._monitor.tree.unseen, step, "Nothing is new.")

    def _go_on(self, those: list[str], step: int, nothing: str) -> None:
        tree, now = self._monitor.tree, self._clock()
        start = those.index(self.task_id) if self.task_id in those else 0
        names = those[start:] + those[:start]
        in_sight = [task_id for task_id in names if self.sought.matches(tree.tasks[task_id], now)]
        if not in_sight:
            self.post_message(Missing(f"Of what the filter shows: {nothing.lower()}" if self.sought else nothing))
        else:
            self.show_task(in_sight[-1 if step < 0 else int(in_sight[0] == self.task_id) % len(in_sight)])


class TaskScreen(DetailedScreen[str]):
    """One task on the whole screen, where there is no room for its details beside the tree; it ends with the id of the
    task that it shows last."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.PAGE)

    DEFAULT_CSS = "TaskScreen DetailsPane { height: 1fr; padding: 0 1; }"

    details: DetailsPane

    def __init__(self, monitor: Monitor, clock: Callable[[], float], task_id: str, tab: int, sought: Query) -> None:
        from agentwatch.app.widgets.details import DetailsPane  # not for the first frame

        super().__init__(monitor, clock)
        self._task_id, self._tab, self._sought = task_id, tab, sought
        self.details = DetailsPane()
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
        yield from (self.header, self.details, self.footer)

    def on_mount(self) -> None:
        self.action_tab(self._tab)
        self.details.focus()
        self.set_interval(PERIOD, self.show_details)

    def action_back(self) -> None:
        if not self.details.leave_search():
            self.leave(self.task_id)

    def action_tab(self, number: int) -> None:
        """Bring a tab to the front."""
        from agentwatch.app.widgets.details import TABS  # there by now

        self.details.activate(list(TABS)[number])
        self.show_details()
