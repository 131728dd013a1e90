"""The details of one task: a head that is always there, and one page whose content depends on the tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, Self

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from agentwatch.app.actions import Home, bindings
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.messages import Inspect, KeysChanged, PageTranscript, ReadStep
from agentwatch.app.widgets.details import attempts, attestation, findings, handoff, live, overview, returned
from agentwatch.app.widgets.details.blocks import Block, Gap, faint, text
from agentwatch.app.widgets.details.head import TABS, Count, Head, TabBar
from agentwatch.app.widgets.details.page import CursorView, Page
from agentwatch.app.widgets.details.view import Reads, View
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.attempts import Unclaimed
from agentwatch.delegation.run import Message, Run
from agentwatch.delegation.task import Task, Version
from agentwatch.delegation.tree import Tree
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.view import looks

_WRITERS: Final[dict[str, Callable[[View], Iterable[Block]]]] = {
    "overview": overview.write,
    "live": live.write,
    "handoff": handoff.write,
    "return": returned.write,
    "attestation": attestation.write,
    "findings": findings.write,
    "attempts": attempts.write,
    "raw": findings.write_raw,
}

_TIMED: Final = frozenset({"overview", "attempts"})
"""Tabs that say how long something has taken: they change with nothing but the time."""


class DetailsPane(Widget):
    """Everything about the selected task. Only the visible tab is written, at most once a refresh."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.PANE)

    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}

    DEFAULT_CSS = """
    DetailsPane { layout: vertical; height: 1fr; width: 1fr; }
    DetailsPane > .details--faint { color: $text-muted; }
    DetailsPane:ansi > .details--faint { text-style: dim; }
    """

    def __init__(self, prices: Mapping[str, float] = MappingProxyType({})) -> None:
        """`prices` are those of a million tokens, by model."""
        super().__init__()
        self._prices = prices
        self._head = Head()
        self._bar = TabBar()
        self._bar.display = False
        self._page = Page()
        self.live_tab = live.LiveTab()
        self._reads = Reads(self.run_worker, self._take_arrival)
        self._view: View | None = None
        self.instead: tuple[str, ...] = ()
        """What is told where no task is selected, line by line, the first as a title."""
        self._written: tuple[str, str] | None = None
        """Task id and tab that the page holds."""
        self._basis: tuple[object, ...] | None = None
        self._offsets: dict[str, float] = {}
        """Where each tab of this task was left, but for the one that is shown."""
        self._scheduled = False
        self._compared: int | None = None
        """The attempt that is compared with the one before, None for the last."""
        self._offered: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._bar
        yield self._page
        yield self.live_tab

    @property
    def active(self) -> str:
        """Id of the tab that is shown."""
        return self._bar.active

    @property
    def offered(self) -> frozenset[str]:
        """Ids of the commands for the visible tab that would do something now."""
        view = self._view
        if view is None:
            return frozenset()
        if self.active == "attempts" and len(attempts.comparable(view.task.attempts)) > 1:
            return frozenset({"compare.earlier", "compare.later"})
        if self.live_tab.display:
            return frozenset({"live.search", "live.pager", *(("inspect",) if self.live_tab.lines.steps else ())})
        return frozenset({"inspect"} if self._page.chosen is not None else ())

    def show(
        self,
        task: Task | None,
        tree: Tree,
        content: Callable[[Version | Message], str | None],
        now: float,
        transcript: Callable[[Run], RunTranscript | None] = lambda _: None,
        *,
        checks: bool = False,
    ) -> None:
        """Show a task, or how it stands by now. `now` is in seconds since the epoch; `checks` is as in `View`.

        `transcript` gives that of a run, None where there is none. `content` gives a version's text; it is called in a
        thread, for it may take its time. Cheap to call often: drawing waits for the next refresh, and then only what
        changed is drawn.
        """
        if task is None or self._view is None or task.task_id != self._view.task.task_id:
            self._compared = None
        compared = self._compared
        given = content, now, self._reads, compared, transcript, self._prices, checks
        self._view = None if task is None else View(task, tree, *given)
        self._schedule()

    def resume(self) -> None:
        """Write what is due, whatever became of the time at which it was to be written."""
        self._scheduled = False
        self._schedule()

    def activate(self, tab_id: str) -> None:
        """Bring a tab to the front; one that does not exist is a `ValueError`."""
        if tab_id not in _WRITERS:
            raise ValueError(f"no tab {tab_id!r}: use one of {', '.join(_WRITERS)}")
        if tab_id == self._bar.active:
            return
        if self._written:
            self._offsets[self._written[1]] = self._page.scroll_offset.y
        self._bar.active = tab_id
        self._schedule()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the page: it is what the keys scroll."""
        (self.live_tab.lines if self.live_tab.display else self._page).focus(scroll_visible)
        return self

    def action_next_tab(self, by: int) -> None:
        """Bring the next tab to the front (`by` 1), or the one before (-1)."""
        ids = [tab_id for tab_id, _ in TABS]
        self.activate(ids[(ids.index(self.active) + by) % len(ids)])

    def action_inspect(self) -> None:
        """Look at the file of the claim that the cursor is on, or at the whole of an entry of the transcript."""
        transcript, log = self.live_tab.transcript, self.live_tab.lines
        if self.live_tab.display and transcript is not None and log.chosen is not None:
            self.post_message(ReadStep(transcript, partial(log.current, log.chosen.place)))
            return
        entry = self._page.chosen
        if self._view is not None and isinstance(entry, attestation.Entry):
            self.post_message(Inspect(self._view.task.task_id, entry))

    def action_search(self) -> None:
        """Look for words in the transcript, where one is shown."""
        if self.live_tab.display:
            self.live_tab.search()

    def action_page_transcript(self) -> None:
        """Open the whole transcript in the operator's pager; elsewhere the key is another's."""
        if not self.live_tab.display or self.live_tab.transcript is None:
            raise SkipAction
        self.post_message(PageTranscript(self.live_tab.transcript))

    def leave_search(self) -> bool:
        """Show all of the transcript again; False where nothing was looked for."""
        return self.live_tab.display and self.live_tab.leave_search()

    def action_compare(self, step: int) -> None:
        """Compare the attempts before those that are compared now, or after them."""
        if self._view is None or self.active != "attempts":
            return
        numbers = attempts.comparable(self._view.task.attempts)
        if numbers:
            at = numbers.index(attempts.compared_attempt(self._view)) + step
            # At the last one, what is compared goes on with the attempts to come.
            self._compared = numbers[max(at, 0)] if at < len(numbers) - 1 else None
            self._view = self._view._replace(compared=self._compared)
            self._schedule()

    @on(CursorView.Opened)
    async def _opened(self, event: CursorView.Opened) -> None:
        event.stop()
        await self.run_action("inspect")

    @on(TabBar.Chosen)
    def _chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.activate(event.tab_id)
        self.focus()

    def _take_arrival(self) -> None:
        """What was missing is there. It is written at once: mostly nothing was painted since it was asked for."""
        self._basis = None
        self._write()

    @on(events.Mount)
    @on(events.Show)
    @on(events.Resize)
    def _schedule(self) -> None:
        if not self._scheduled and self.is_attached:
            self._scheduled = self.call_after_refresh(self._write)

    def _write(self) -> None:
        """Bring head, titles and page up to date. A pane that is not displayed has no size: it waits until it is."""
        self._scheduled = False
        if not self.size:
            return
        view = self._view
        self._head.show(view.task if view else None, view.now if view else 0.0, height=self.size.height)
        self._bar.display = view is not None
        if self._show_live(view):
            # The page has no size before it is laid out.
            self._written = None
            self._schedule()
            return
        if view is None:
            self._written = self._basis = None
            self._offsets.clear()
            self._page.show(lambda: _told(self.instead), keep=False)
            self._offer()
            return
        task_id, tab_id = view.task.task_id, self.active
        if self._written is None or self._written[0] != task_id:
            self._offsets.clear()
        self._bar.counts = _counts(view.task, view.tree.unclaimed(view.task))
        if self.live_tab.display:
            self._written, self._basis = (task_id, tab_id), None
            self._offer()
            return
        same = self._written == (task_id, tab_id)
        if same and tab_id not in _TIMED and view.basis == self._basis:
            return
        self._reads.begin(anew=not same)
        blocks = list(_WRITERS[tab_id](view))
        if same and self._reads.is_waiting:
            # The last that was whole stays until the next one is.
            return
        self._written, self._basis = (task_id, tab_id), view.basis
        self._page.show(lambda: blocks, keep=same and tab_id not in self._offsets, offset=self._offsets.get(tab_id, 0))
        if not self._reads.is_waiting:
            self._offsets.pop(tab_id, None)
        self._offer()

    def _show_live(self, view: View | None) -> bool:
        """Follow the transcript while its tab is shown and there is one. True where the page takes its place again."""
        is_shown = view is not None and self.active == "live" and self.live_tab.show(view)
        if view is None or self.active != "live":
            self.live_tab.leave()
        if is_shown != self.live_tab.display:
            had_focus = self.has_focus_within
            self.live_tab.display, self._page.display = is_shown, not is_shown
            if had_focus:
                self.focus()
            return not is_shown
        return False

    @on(events.Hide)
    def _rest(self) -> None:
        """Nobody sees it: nothing is followed."""
        self.live_tab.leave()

    @on(live.LiveTab.Changed)
    def _offer(self) -> None:
        """Tell the footer where the keys do something else now."""
        if self.offered != self._offered:
            self._offered = self.offered
            self.post_message(KeysChanged())


def _told(lines: Sequence[str]) -> Iterator[Block]:
    """What is said where no task is selected."""
    if not lines:
        yield text(faint("No task is selected."))
        return
    yield text(Content.styled(lines[0], "bold"))
    for line in lines[1:]:
        yield text(Content(line)) if line else Gap()


def _counts(task: Task, unclaimed: Unclaimed | None) -> dict[str, Count]:
    severities = {placed.finding.severity for placed in task.findings}
    counts = {}
    if severities:
        worst = looks.SEVERITIES[Severity.ERROR if Severity.ERROR in severities else Severity.WARNING]
        counts["findings"] = Count(str(len(task.findings)), f"${worst.color}")
    if false := len(looks.false_claims(task)):
        counts["attestation"] = Count(f"{false}!", f"${looks.CONTRADICTED.color}")
    elif unclaimed and unclaimed.alone:
        counts["attestation"] = Count(f"±{len(unclaimed.alone)}", "$text-warning")
    if len(task.attempts) > 1:
        counts["attempts"] = Count(str(len(task.attempts)), FAINT)
    if task.todos:
        done, total = task.progress or (0, 0)
        counts["handoff"] = Count(f"{done}/{total}", FAINT)
    return counts
