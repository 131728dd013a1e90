"""The base class of screens with a header and a footer. It decides which commands the footer shows."""

from collections.abc import Callable
from typing import ClassVar, cast

from textual import events, on
from textual.reactive import var
from textual.screen import Screen, ScreenResultType

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.decision_words import ACTIONS, can_answer, task_to_answer, why_not
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.footer import Footer
from agentwatch.app.widgets.header import Facts, Header
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.monitor import Monitor
from agentwatch.view.rows import Group


class MonitorScreen(Screen[ScreenResultType]):
    """A screen with a header and a footer. `clock` gives epoch seconds."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}

    DEFAULT_CSS = """
    MonitorScreen { layout: vertical; background: $background; }
    MonitorScreen > .details--faint { color: $text-muted; }
    MonitorScreen:ansi > .details--faint { text-style: dim; }
    """

    footer: Footer
    facts: var[Facts] = var(Facts(), init=False)

    def __init__(self, monitor: Monitor, clock: Callable[[], float]):
        super().__init__()
        self._monitor = monitor
        self._clock = clock
        self.header = Header()

    @property
    def task_id(self) -> str | None:
        """The id of the selected task, which commands act on."""
        raise NotImplementedError

    @property
    def selected(self) -> Task | None:
        """The selected task, or None if there is none."""
        return self._monitor.tree.tasks.get(self.task_id or "")

    def refresh_tasks(self, event: TreeUpdated) -> None:
        """Show the changes of the tree."""

    def on_mount(self) -> None:
        self.update_facts()
        self.set_interval(1.0, self._tick_if_visible)

    def update_facts(self) -> None:
        """Collect the values that header and footer show. If a value has changed, both are redrawn."""
        monitor, tree, app = self._monitor, self._monitor.tree, cast("AgentwatchApp", self.app)
        now, health = app.main.task_tree.order.tally(Group.NOW).sums, monitor.health
        if health.mode == "live" and not app.is_settled:
            # During the first scan, say "starting", because keys without effect say that agentwatch is still reading.
            health = health._replace(mode="starting")
        self.facts = Facts(
            monitor.title,
            health,
            monitor.connecting,
            monitor.settings.read_only,
            tree.totals.tasks,
            now.tasks,
            now.shown,
            now.verdicts[Verdict.VERIFIED],
            len(tree.notices) + len(monitor.messages),
            len(tree.unseen),
            tree.totals.needs_operator,
            len(app.main.marked),
            (task_to_answer(tree, None, 0.0), monitor.decision_watcher is None, bool(monitor.all_acknowledgements)),
        )

    def watch_facts(self) -> None:
        self.footer.redraw()

    @on(events.ScreenResume)
    def _tick_if_visible(self) -> None:
        # Do nothing while an opaque screen is above, because Textual would repaint that screen each second.
        if self.is_current or self.app.screen.is_modal:
            self.tick()

    def tick(self) -> None:
        """Update all that depends on the time. Called each second, and when the screen comes back in sight."""
        self.update_facts()

    def leave(self, result: ScreenResultType | None = None) -> None:
        """Close this screen if it is on top. Otherwise Textual would close the screen above."""
        if self.is_active:
            self.dismiss(result)

    def action_back(self) -> None:
        self.leave()

    @on(TreeUpdated)
    def _handle_update(self, event: TreeUpdated) -> None:
        self.refresh_tasks(event)
        # Redraw header and footer after the rows. If they changed together, Textual would render all lines between.
        self.call_after_refresh(self.update_facts)
        if self.task_id in event.changed:
            self.call_after_refresh(self.footer.redraw)

    def is_hidden(self, command_id: str) -> bool:
        """Return whether the footer leaves a command out, because the command is of no use now."""
        clerk, task, action = self._monitor.decision_watcher, self.selected, ACTIONS.get(command_id)
        if command_id == "review":
            return clerk is None or not (self.facts.marked or self.facts.asking)
        if command_id == "acknowledge":
            return not self._monitor.all_acknowledgements or task is None or task.ask is None
        if action is None or (clerk and self._would_answer(action)):
            return False
        if clerk is None or task is None:
            return True
        # While a program waits for an answer, the footer shows only the decisions to answer and to abort.
        is_later = can_answer(task) and action not in (Action.RESPOND, Action.ABORT)
        # If a task needs the operator, also show refused keys, because pressing a key tells why it is refused. But
        # leave out `accept` for a blocked task, which has no result to accept.
        is_plain = not task.needs_operator or (action is Action.ACCEPT and task.own_state is State.BLOCKED)
        return is_later or (is_plain and self.why_not(command_id) is not None)

    def is_hidden_or_refused(self, command_id: str) -> bool:
        """Return whether a footer with little room leaves a command out. Such a footer also drops refused commands."""
        return self.is_hidden(command_id) or self.why_not(command_id) is not None

    def why_not(self, command_id: str) -> str | None:
        """Return why a decision command is refused now. Return None if it is not refused or is no decision command."""
        action, task = ACTIONS.get(command_id), self.selected
        if action is None or task is None or self._would_answer(action):
            return None
        return why_not(task, action, self._clock())

    def _would_answer(self, action: Action) -> bool:
        """Return whether the action would answer a request. This may be a request of a task that is not selected."""
        return action is Action.RESPOND and task_to_answer(self._monitor.tree, self.task_id, self._clock()) is not None
