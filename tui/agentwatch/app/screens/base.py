"""The base of the screens: a header, a footer, and which commands the footer shows."""

from collections.abc import Callable
from typing import ClassVar, cast

from textual import events, on
from textual.reactive import var
from textual.screen import Screen, ScreenResultType

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.decision_words import ACTIONS, can_answer, to_answer, why_not
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
        """The id of the selected task, on which commands act."""
        raise NotImplementedError

    @property
    def selected(self) -> Task | None:
        """The selected task, None if it is gone."""
        return self._monitor.tree.tasks.get(self.task_id or "")

    def refresh_tasks(self, event: TreeUpdated) -> None:
        """Show the changes of the tree."""

    def on_mount(self) -> None:
        self.read_facts()
        self.set_interval(1.0, self._pass_time)

    def read_facts(self) -> None:
        """Collect the facts that header and footer show, which are redrawn if a fact differs."""
        monitor, tree, app = self._monitor, self._monitor.tree, cast("AgentwatchApp", self.app)
        now, health = app.main.task_tree.order.tally(Group.NOW).sums, monitor.health
        if health.mode == "live" and not app.is_settled:
            # Say "starting" until then, because keys that find nothing say that agentwatch still reads.
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
            (to_answer(tree, None, 0.0), monitor.clerk is None, bool(monitor.shelves)),
        )

    def watch_facts(self) -> None:
        self.footer.redraw()

    @on(events.ScreenResume)
    def _pass_time(self) -> None:
        # Do nothing below an opaque screen: Textual would repaint that whole screen each second.
        if self.is_current or self.app.screen.is_modal:
            self.tick()

    def tick(self) -> None:
        """Update what time changes: each second, and when the screen is back in sight."""
        self.read_facts()

    def leave(self, result: ScreenResultType | None = None) -> None:
        """End this screen if it is on top; otherwise Textual would end the screen above it."""
        if self.is_active:
            self.dismiss(result)

    def action_back(self) -> None:
        self.leave()

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        self.refresh_tasks(event)
        # Redraw these after the rows: if two lines change at once, Textual renders all lines between them.
        self.call_after_refresh(self.read_facts)
        if self.task_id in event.changed:
            self.call_after_refresh(self.footer.redraw)

    def is_hidden(self, command_id: str) -> bool:
        """Whether the footer can leave a command out because it is neither asked for nor possible."""
        clerk, task, action = self._monitor.clerk, self.selected, ACTIONS.get(command_id)
        if command_id == "review":
            return clerk is None or not (self.facts.marked or self.facts.asking)
        if command_id == "acknowledge":
            return not self._monitor.shelves or task is None or task.ask is None
        if action is None or (clerk and self._answers(action)):
            return False
        if clerk is None or task is None:
            return True
        # While the program waits for an answer, other decisions than an answer or an abort can wait.
        is_later = can_answer(task) and action not in (Action.RESPOND, Action.ABORT)
        # If a task needs the operator, refused keys are shown because they say why; but a blocked one has no result to
        # accept.
        is_plain = not task.needs_operator or (action is Action.ACCEPT and task.own_state is State.BLOCKED)
        return is_later or (is_plain and self.why_not(command_id) is not None)

    def is_hidden_or_refused(self, command_id: str) -> bool:
        """Whether the footer leaves a command out, also if it is only refused; for footers with little room."""
        return self.is_hidden(command_id) or self.why_not(command_id) is not None

    def why_not(self, command_id: str) -> str | None:
        """Return why a deciding command is refused now; None if it is not refused or does not decide."""
        action, task = ACTIONS.get(command_id), self.selected
        if action is None or task is None or self._answers(action):
            return None
        return why_not(task, action, self._clock())

    def _answers(self, action: Action) -> bool:
        """Whether the action would answer a request: that of the selected task, or the first one."""
        return action is Action.RESPOND and to_answer(self._monitor.tree, self.task_id, self._clock()) is not None
