"""The details of one task: a head that is always there, and one page whose content depends on the tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Final, Self

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details import attestation, findings, handoff, overview, raw, returned, wording
from agentwatch.app.widgets.details.blocks import Block, faint, text
from agentwatch.app.widgets.details.head import ROOMY, Head
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tab_bar import TABS, Count, TabBar
from agentwatch.app.widgets.details.view import Documents, View
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Task, Version
from agentwatch.delegation.tree import DelegationTree

_WRITERS: Final[dict[str, Callable[[View], Iterable[Block]]]] = {
    "overview": overview.write,
    "handoff": handoff.write,
    "return": returned.write,
    "attestation": attestation.write,
    "findings": findings.write,
    "raw": raw.write,
}

_TIMED: Final = frozenset({"overview"})
"""Tabs that say how long something has taken: they change with nothing but the time."""


class DetailsPane(Widget):
    """Everything about the selected task. Only the visible tab is written, at most once a refresh."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "next_tab", "Next tab", show=False),
        Binding("left,h", "previous_tab", "Previous tab", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}

    DEFAULT_CSS = """
    DetailsPane { layout: vertical; height: 1fr; width: 1fr; }
    DetailsPane > .details--faint { color: $text-muted; }
    DetailsPane:ansi > .details--faint { text-style: dim; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._head = Head()
        self._bar = TabBar()
        self._bar.display = False
        self._page = Page()
        self._documents = Documents()
        self._view: View | None = None
        self._written: tuple[str, str] | None = None
        """Task id and tab that the page holds."""
        self._basis: tuple[object, ...] | None = None
        self._offsets: dict[str, float] = {}
        """Where each tab of this task was left."""
        self._scheduled = False

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._bar
        yield self._page

    @property
    def active(self) -> str:
        """Id of the tab that is shown."""
        return self._bar.active

    @property
    def shown_text(self) -> str:
        """The text of the visible tab, as it is laid out now."""
        return "\n".join(self._page.lines)

    def show(
        self, task: Task | None, tree: DelegationTree, content: Callable[[Version], str | None], now: float
    ) -> None:
        """Show a task, or how it stands by now. `content` gives a version's text, `now` is in seconds since the epoch.

        Cheap to call often: drawing waits for the next refresh, and then only what changed is drawn.
        """
        self._view = None if task is None else View(task, tree, content, now, self._documents)
        self._schedule()

    def activate(self, tab_id: str) -> None:
        """Bring a tab to the front; one that does not exist is a `ValueError`."""
        if tab_id not in _WRITERS:
            raise ValueError(f"no tab {tab_id!r}: use one of {', '.join(_WRITERS)}")
        if tab_id == self._bar.active:
            return
        self._remember()
        self._bar.active = tab_id
        self._schedule()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the page: it is what the keys scroll."""
        self._page.focus(scroll_visible)
        return self

    def action_next_tab(self) -> None:
        self._step(1)

    def action_previous_tab(self) -> None:
        self._step(-1)

    @on(TabBar.Chosen)
    def _chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.activate(event.tab_id)
        self.focus()

    def on_mount(self) -> None:
        self._schedule()

    def on_show(self) -> None:
        self._schedule()

    def on_resize(self) -> None:
        self._schedule()

    def _step(self, by: int) -> None:
        ids = [tab_id for tab_id, _ in TABS]
        self.activate(ids[(ids.index(self.active) + by) % len(ids)])

    def _remember(self) -> None:
        if self._written:
            self._offsets[self._written[1]] = self._page.scroll_offset.y

    def _schedule(self) -> None:
        if self._scheduled or not self.is_attached:
            return
        self._scheduled = self.call_after_refresh(self._write)

    def _write(self) -> None:
        """Bring head, titles and page up to date. A pane that is not displayed has no size: it waits until it is."""
        self._scheduled = False
        if not self.size:
            return
        view = self._view
        self._head.show(view.task if view else None, view.now if view else 0.0, roomy=self.size.height >= ROOMY)
        self._bar.display = view is not None
        if view is None:
            self._written = self._basis = None
            self._offsets.clear()
            self._page.show(_nothing, keep=False)
            return
        task_id, tab_id = view.task.task_id, self.active
        if self._written is None or self._written[0] != task_id:
            self._offsets.clear()
        self._bar.counts = _counts(view.task)
        keep = self._written == (task_id, tab_id)
        if keep and tab_id not in _TIMED and view.basis == self._basis:
            return
        self._written, self._basis = (task_id, tab_id), view.basis
        self._page.show(lambda: _WRITERS[tab_id](view), keep=keep, offset=self._offsets.get(tab_id, 0))


def _nothing() -> Iterator[Block]:
    yield text(faint("No task is selected."))


def _counts(task: Task) -> dict[str, Count]:
    severities = {placed.finding.severity for placed in task.findings}
    counts = {}
    if severities:
        worst = Severity.ERROR if Severity.ERROR in severities else Severity.WARNING
        counts["findings"] = Count(str(len(task.findings)), f"${wording.SEVERITY_LOOKS[worst].color}")
    if false := sum(1 for claim in task.claims if claim.verdict is Verdict.CONTRADICTED):
        counts["attestation"] = Count(f"{false}!", f"${wording.VERDICT_LOOKS[Verdict.CONTRADICTED].color}")
    if task.todos:
        done, total = task.progress or (0, 0)
        counts["handoff"] = Count(f"{done}/{total}", FAINT)
    return counts
