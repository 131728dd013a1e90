"""The details of one task: a head that is always there, and its tabs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from rich.cells import cell_len
from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static, Tab, Tabs
from textual.worker import get_current_worker

from agentwatch.app.actions import Home, bindings
from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.messages import Inspect, KeysChanged, PageTranscript, ReadStep
from agentwatch.app.widgets.cells import clip, clip_name, shown, summary
from agentwatch.app.widgets.details.blocks import ACCENT, LABEL_WIDTH, faint, gist, in_color, plain, text
from agentwatch.app.widgets.details.live import LiveTab
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import TABS, Entry, NotMadeError, View
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import LINE_LIMIT, exact
from agentwatch.view import looks, times
from agentwatch.view.words import aside_words, decision_of, in_line, question_at, whereabouts

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_AGENT: Final = 24
"""Characters of an agent's name."""
_ROOMY: Final = 20
"""Lines of the pane from which the head takes what it needs; in a lower one each part of it gets one line."""


class DetailsPane(Widget):
    """Everything about the selected task. Only the visible tab is written."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.PANE)

    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}

    DEFAULT_CSS = """
    DetailsPane { layout: vertical; height: 1fr; width: 1fr; }
    DetailsPane > .details--faint { color: $text-muted; }
    DetailsPane:ansi > .details--faint { text-style: dim; }
    DetailsPane #head { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    DetailsPane Tab { padding: 0 1 0 0; color: $text-muted; }
    DetailsPane Tab.-active { color: $foreground; text-style: bold; }
    DetailsPane Underline > .underline--bar { color: $text-accent; background: $border-blurred; }
    """

    def __init__(self, prices: Mapping[str, float] = MappingProxyType({})) -> None:
        """`prices` are those of a million tokens, by model."""
        super().__init__()
        self.page = Page()
        self.live_tab = LiveTab()
        self.instead: tuple[str, ...] = ()
        """The lines in the place of a task where none is selected, the first as a title."""
        self._tabs = Tabs(*(Tab(tab.title, id=tab_id) for tab_id, tab in TABS.items()))
        self._tabs.can_focus = False
        self._prices = prices
        self._view: View | None = None
        self._written: tuple[str, str] | None = None
        """Task id and tab that are shown."""

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield self._tabs
        yield self.page
        yield self.live_tab

    @property
    def active(self) -> str:
        """Id of the tab that is shown."""
        return self._tabs.active or next(iter(TABS))

    @property
    def offered(self) -> frozenset[str]:
        """Ids of the commands for the visible tab that would do something now."""
        if self._view is None:
            return frozenset()
        if self.active == "attempts" and len(self._view.task.attempts) > 2:
            return frozenset({"compare.earlier", "compare.later"})
        if self._is_live:
            return frozenset({"live.search", "live.pager", *(("inspect",) if self.live_tab.page.steps else ())})
        return frozenset({"inspect"} if self.page.chosen is not None else ())

    @property
    def _is_live(self) -> bool:
        return self.active == "live" and self.live_tab.transcript is not None

    def show(self, task: Task | None, tree: Tree, monitor: Monitor, now: float) -> None:
        """Show a task, or how it stands by now. `now` is in seconds since the epoch."""
        before, self._view = self._view, None if task is None else View(task, tree, monitor, now, self._prices)
        if self._view and before and before.task.task_id == self._view.task.task_id:
            self._view.made, self._view.back = before.made, before.back
        self._write()

    def activate(self, tab_id: str) -> None:
        """Bring a tab to the front."""
        had_focus = self.has_focus_within
        self._tabs.active = tab_id
        self._write()
        if had_focus:
            self.call_after_refresh(self.focus)

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the page: it is what the keys scroll."""
        (self.live_tab.page if self._is_live else self.page).focus(scroll_visible)
        return self

    def action_next_tab(self, by: int) -> None:
        """Bring the next tab to the front (`by` 1), or the one before (-1)."""
        ids = list(TABS)
        self.activate(ids[(ids.index(self.active) + by) % len(ids)])

    @on(Page.Opened)
    def action_inspect(self) -> None:
        """Look at the file of the claim that the cursor is on, or at the whole of an entry of the transcript."""
        log, transcript = self.live_tab.page, self.live_tab.transcript
        if self._is_live and transcript is not None:
            if (step := log.step) is not None:
                self.post_message(ReadStep(transcript, step))
        elif self._view is not None and isinstance(entry := self.page.chosen, Entry):
            self.post_message(Inspect(self._view.task.task_id, entry))

    def action_search(self) -> None:
        """Look for words in the transcript, where one is shown."""
        if self._is_live:
            self.live_tab.search()

    def action_page_transcript(self) -> None:
        """Open the whole transcript in the operator's pager; elsewhere the key is another's."""
        if not self._is_live or self.live_tab.transcript is None:
            raise SkipAction
        self.post_message(PageTranscript(self.live_tab.transcript))

    def leave_search(self) -> bool:
        """Show all of the transcript again; False where nothing was looked for."""
        return self._is_live and self.live_tab.leave_search()

    def action_compare(self, step: int) -> None:
        """Compare the attempts before those that are compared now, or after them."""
        if self._view is not None and self.active == "attempts":
            self._view.back = min(max(self._view.back - step, 0), max(len(self._view.task.attempts) - 2, 0))
            self._write()

    @on(Tabs.TabActivated)
    @on(events.Show)
    @on(events.Resize)
    def _write(self) -> None:
        """Bring head, titles and page up to date. A pane that is not displayed has no size: it waits until it is."""
        view, width = self._view, self.size.width
        if not self.size:
            return
        self._tabs.display = view is not None
        head = head_lines(view.task, view.now, width - 2, self.size.height) if view else ()
        self.query_one("#head", Static).update(Content("\n").join(head))
        if view is None:
            self._written = None
            self.live_tab.leave()
            self.page.display = True
            first = Content.styled(self.instead[0], "bold") if self.instead else faint("No task is selected.")
            self.page.show([text(first), *(text(Content(line)) for line in self.instead[1:])], keep=False)
        else:
            for tab_id, count in counts_of(view).items():
                title = Content.assemble(TABS[tab_id].title, " " if count[0] else "", count)
                if not (tab := self._tabs.query_one(f"#{tab_id}", Tab)).label.is_same(title):
                    tab.label = title
            self._write_tab(view)
        self.post_message(KeysChanged())

    def _write_tab(self, view: View) -> None:
        shown, before = (view.task.task_id, self.active), self._written
        if shown[1] == "live":
            self.live_tab.show(view)
        else:
            self.live_tab.leave()
        self.page.display = not self._is_live
        self._written = shown
        try:
            self.page.show(list(TABS[self.active].write(view)), keep=shown == before)
        except NotMadeError as missing:
            self._make(view, missing.key, missing.make)
            # The last that was whole stays until the next one is.
            if shown != before:
                self.page.show([text(faint("reading…"))], keep=False)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _make(self, view: View, key: Hashable, make: Callable[[], object]) -> None:
        made = make()
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._keep, view.made, key, made)

    def _keep(self, where: dict[Hashable, Any], key: Hashable, made: object) -> None:
        where[key] = made
        self._write()

    @on(events.Hide)
    def _rest(self) -> None:
        """Nobody sees it: nothing is followed."""
        self.live_tab.leave()

    @on(LiveTab.Changed)
    def _offer(self) -> None:
        self.post_message(KeysChanged())


def counts_of(view: View) -> dict[str, tuple[str, str]]:
    """The words behind the titles of tabs, with their style; "" for none."""
    task = view.task
    counts: dict[str, tuple[str, str]] = dict.fromkeys(TABS, ("", ""))
    if severities := {placed.severity for placed in task.findings}:
        worst = looks.SEVERITIES[Severity.ERROR if Severity.ERROR in severities else Severity.WARNING]
        counts["findings"] = str(len(task.findings)), f"${worst.color}"
    if false := len(looks.false_claims(task)):
        counts["attestation"] = f"{false}!", f"${looks.CONTRADICTED.color}"
    if len(task.attempts) > 1:
        counts["attempts"] = str(len(task.attempts)), FAINT
    if task.todos:
        done, total = task.progress or (0, 0)
        counts["handoff"] = f"{done}/{total}", FAINT
    return counts


# The head


def head_lines(task: Task, now: float, width: int, height: int) -> Iterator[Content]:
    """The task, how it stands, what it needs and what was decided, for a pane of so many lines."""
    is_roomy = height >= _ROOMY
    hint, decision, aside = task.retry.hint, decision_of(task), aside_words(task, now)
    trouble = warning(decision, now) if decision is not None else None
    parts: list[tuple[str, str, Content, int]] = []
    """Label, its style, words, and the lines that they take in a pane with room."""
    if task.ask:
        parts.append(("NEEDS YOU", ACCENT, Content(in_line(task, question_at(task, now), LINE_LIMIT)), 8))
    elif task.question:
        words = f"{aside}: " * bool(aside) + in_line(task, task.question, LINE_LIMIT)
        parts.append(("put aside" if aside else "history", FAINT, Content(words), 3))
    if hint:
        parts.append(("hint", FAINT, gist(hint), 5))
    # In one line, what is wrong with a decision comes first.
    if decision is not None and (is_roomy or trouble is None):
        parts.append(("decided", FAINT, receipt_line(decision, now), 3))
    if trouble is not None:
        parts.append(("" if is_roomy else "decided", FAINT, Content.styled(trouble, "$text-warning"), 4))
    yield _identity(task, width)
    yield from _limited(Content("   ").join(_standing(task, now)), width, 2 if is_roomy else 1)
    if is_roomy and parts:
        yield Content("")
    for label, style, content, most in parts:
        title = Content.styled(label, style).pad_right(LABEL_WIDTH - len(label))
        for line in _limited(content, width - LABEL_WIDTH, most if is_roomy else 1):
            yield title + line
            title = Content(" " * LABEL_WIDTH)
    if is_roomy:
        yield Content("")


def _identity(task: Task, width: int) -> Content:
    """The id; where the tree calls it otherwise, such as by the title of a session, that name comes first."""
    name = shown(exact(whereabouts(task.workspace) if task.workspace else task.own_id), 1_000)
    if task.title in task.own_id:
        return Content.styled(clip_name(name, width), "bold")
    called = clip(summary(task.title), width)
    return Content.assemble((called, "bold"), "  ", (clip_name(name, max(width - cell_len(called) - 2, 0)), FAINT))


def _standing(task: Task, now: float) -> Sequence[Content]:
    look, behind = looks.look(task), looks.LOOKS[task.state]
    parts = [in_color(look) if look is behind else Content.assemble(in_color(look), "  ", in_color(behind))]
    # Nobody has handed a session out, so nobody can retry it.
    if task.attempts and not task.is_session:
        most = max(1 + task.retry.max_retries, task.attempt)
        parts.append(Content.assemble(("attempt ", FAINT), f"{task.attempt} of {most}"))
    if task.result and task.result.error_code:
        parts.append(plain(task.result.error_code, 40).stylize("$text-error"))
    if task.agent:
        parts.append(plain(task.agent, _AGENT))
    if (since := times.stands_since(task)) is not None:
        parts.append(faint(times.ago(since, now)))
    return parts


def _limited(content: Content, width: int, lines: int) -> Sequence[Content]:
    """The content in at most so many lines; what does not fit is cut off with an ellipsis."""
    wrapped = content.wrap(max(width, 8))
    return wrapped if len(wrapped) <= lines else [*wrapped[: lines - 1], wrapped[lines - 1].truncate(width - 1) + "…"]
