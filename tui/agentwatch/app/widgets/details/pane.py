"""The details of one task: a head that is always there, and its tabs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from rich.cells import cell_len
from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static, TabbedContent, TabPane
from textual.widgets._tabbed_content import ContentTabs
from textual.worker import get_current_worker

from agentwatch.app.actions import Home, bindings
from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.messages import Inspect, KeysChanged, PageTranscript, ReadStep
from agentwatch.app.widgets.cells import clip, shown, summary
from agentwatch.app.widgets.details.blocks import ACCENT, GAP, LABEL_WIDTH, WIDE, faint, gist, in_color, plain, text
from agentwatch.app.widgets.details.live import LiveTab
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import TABS, Entry, comparable, compared_attempt
from agentwatch.app.widgets.details.view import Texts, View
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import LINE_LIMIT, exact
from agentwatch.view import looks, times
from agentwatch.view.words import aside_words, decision_of, in_line, question_at, whereabouts

_ID: Final = 1_000
"""Characters of an id that are looked at."""
_AGENT: Final = 24
"""Cells of an agent's name."""
_ROOMY: Final = 20
"""Lines of the pane from which the head takes what it needs; in a lower one each part of it gets one line."""
_AMPLE: Final = 28
"""Lines of the pane from which each part may take twice as many."""


class DetailsPane(Widget):
    """Everything about the selected task. Only the visible tab is written."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.PANE)

    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}

    DEFAULT_CSS = """
    DetailsPane { layout: vertical; height: 1fr; width: 1fr; }
    DetailsPane > .details--faint { color: $text-muted; }
    DetailsPane:ansi > .details--faint { text-style: dim; }
    DetailsPane #head { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    DetailsPane TabbedContent, DetailsPane ContentSwitcher, DetailsPane TabPane { height: 1fr; }
    DetailsPane Tab { padding: 0 1; color: $text-muted; }
    DetailsPane.-tight Tab { padding: 0 1 0 0; }
    DetailsPane Tab.-active { color: $foreground; text-style: bold; }
    DetailsPane Underline > .underline--bar { color: $text-accent; background: $border-blurred; }
    """

    def __init__(self, prices: Mapping[str, float] = MappingProxyType({})) -> None:
        """`prices` are those of a million tokens, by model."""
        super().__init__()
        self._prices = prices
        self._view: View | None = None
        self._made: dict[Hashable, Any] = {}
        self._written: tuple[str, str] | None = None
        """Task id and tab that were written last."""
        self._compared: int | None = None
        """The attempt that is compared with the one before, None for the last."""
        self._offered = frozenset[str]()
        self._is_ready = False
        """The tabs are there."""
        self.instead: tuple[str, ...] = ()
        """The lines in the place of a task where none is selected, the first as a title."""

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Page(id="instead")
        with TabbedContent():
            for tab_id, tab in TABS.items():
                with TabPane(tab.title, id=tab_id):
                    if tab_id == "live":
                        yield LiveTab()
                    yield Page(id=f"page-{tab_id}")

    @property
    def active(self) -> str:
        """Id of the tab that is shown."""
        return self.query_one(TabbedContent).active or next(iter(TABS))

    @property
    def live_tab(self) -> LiveTab:
        return self.query_one(LiveTab)

    @property
    def page(self) -> Page:
        """The page in front."""
        return self.query_one(f"#page-{self.active}" if self._view is not None else "#instead", Page)

    @property
    def offered(self) -> frozenset[str]:
        """Ids of the commands for the visible tab that would do something now."""
        if self._view is None or not self._is_ready:
            return frozenset()
        if self.active == "attempts" and len(comparable(self._view.task.attempts)) > 1:
            return frozenset({"compare.earlier", "compare.later"})
        if self._is_live:
            return frozenset({"live.search", "live.pager", *(("inspect",) if self.live_tab.page.steps else ())})
        return frozenset({"inspect"} if self.page.chosen is not None else ())

    @property
    def _is_live(self) -> bool:
        return self.active == "live" and self.live_tab.transcript is not None

    def show(self, task: Task | None, tree: Tree, monitor: Texts, now: float) -> None:
        """Show a task, or how it stands by now. `now` is in seconds since the epoch."""
        if task is None or self._view is None or task.task_id != self._view.task.task_id:
            self._compared = None
            self._made = {}
        self._view = None if task is None else View(task, tree, monitor, now, self._prices, made=self._made)
        self._write()

    def activate(self, tab_id: str) -> None:
        """Bring a tab to the front; one that does not exist is a `ValueError`."""
        if tab_id not in TABS:
            raise ValueError(f"no tab {tab_id!r}: use one of {', '.join(TABS)}")
        had_focus = self.has_focus_within
        self.query_one(TabbedContent).active = tab_id
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
        if self._view is None:
            return
        log, transcript = self.live_tab.page, self.live_tab.transcript
        if self._is_live and transcript is not None:
            if log.chosen is not None:
                self.post_message(ReadStep(transcript, partial(log.current, log.chosen)))
        elif isinstance(entry := self.page.chosen, Entry):
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
        if (view := self._view) is not None and self.active == "attempts":
            view.compared = self._compared
            if numbers := comparable(view.task.attempts):
                at = numbers.index(compared_attempt(view)) + step
                # At the last one, the comparison goes on with the attempts to come.
                self._compared = numbers[max(at, 0)] if at < len(numbers) - 1 else None
            self._write()

    @on(TabbedContent.TabActivated)
    def _show_tab(self, event: TabbedContent.TabActivated) -> None:
        # The keys go to the page below.
        event.tabbed_content.query_one(ContentTabs).can_focus = False
        self._is_ready = True
        if self._view is None or self._written != (self._view.task.task_id, self.active):
            self._write()

    @on(events.Show)
    @on(events.Resize)
    def _write(self) -> None:
        """Bring head, titles and page up to date. A pane that is not displayed has no size: it waits until it is."""
        if not self.size or not self._is_ready:
            return
        view, tabs, instead = self._view, self.query_one(TabbedContent), self.query_one("#instead", Page)
        tabs.display, instead.display = view is not None, view is None
        head = head_lines(view.task, view.now, self.size.width - 2, self.size.height) if view else ()
        self.query_one("#head", Static).update(Content("\n").join(head))
        if view is None:
            self._written = None
            self.live_tab.leave()
            told = [text(Content(line)) if line else GAP for line in self.instead[1:]]
            first = Content.styled(self.instead[0], "bold") if self.instead else faint("No task is selected.")
            instead.show([text(first), *told], keep=False)
        else:
            titles = {
                tab_id: Content.assemble(TABS[tab_id].title, " " if count[0] else "", count)
                for tab_id, count in counts_of(view).items()
            }
            for tab_id, title in titles.items():
                if not (tab := tabs.get_tab(tab_id)).label.is_same(title):
                    tab.label = title
            is_tight = sum(map(len, titles.values())) + 2 * len(titles) > self.size.width
            if is_tight != self.has_class("-tight") or self._written is None:
                self.set_class(is_tight, "-tight")
                self.call_after_refresh(self._move_line)
            self._write_tab(view)
        if self.offered != self._offered:
            self._offered = self.offered
            self.post_message(KeysChanged())

    def _move_line(self) -> None:
        # Tabs move the line below the active one when that is labelled, but not when it has moved.
        tab = self.query_one(TabbedContent).get_tab(self.active)
        tab.label = tab.label

    def _write_tab(self, view: View) -> None:
        shown, page = (view.task.task_id, self.active), self.page
        if shown[1] == "live":
            self.live_tab.show(view)
            page.display = not self._is_live
        else:
            self.live_tab.leave()
        is_same, view.compared = shown == self._written, self._compared
        view.missing.clear()
        blocks = list(TABS[self.active].write(view))
        if view.missing:
            self._make(dict(view.missing))
        # The last that was whole stays until the next one is.
        if not (is_same and view.missing):
            self._written = shown
            page.show(blocks, keep=is_same)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _make(self, missing: Mapping[Hashable, Callable[[], object]]) -> None:
        made = {key: make() for key, make in missing.items()}
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._take, made)

    def _take(self, made: Mapping[Hashable, object]) -> None:
        self._made.update(made)
        self._write()

    @on(events.Hide)
    def _rest(self) -> None:
        """Nobody sees it: nothing is followed."""
        if self._is_ready:
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
    is_roomy, more = height >= _ROOMY, 2 if height >= _AMPLE else 1
    yield _identity(task, width)
    gap = Content("   " if width >= WIDE else "  ")
    yield from _limited(gap.join(_standing(task, now, wide=width >= WIDE)), width, 2 if is_roomy else 1)
    hint, decision = task.retry.hint, decision_of(task)
    if is_roomy and (task.question or hint or decision):
        yield Content("")
    if task.ask:
        words = Content(in_line(task, question_at(task, now), LINE_LIMIT))
        yield from _labelled("NEEDS YOU", ACCENT, words, width, 5 * more if is_roomy else 1)
    elif task.question:
        aside = aside_words(task, now)
        words = Content(f"{aside}: " if aside else "") + Content(in_line(task, task.question, LINE_LIMIT))
        yield from _labelled("put aside" if aside else "history", FAINT, words, width, 2 * more if is_roomy else 1)
    if hint:
        yield from _labelled("hint", FAINT, gist(hint), width, 3 * more if is_roomy else 1)
    if decision is not None:
        trouble = warning(decision, now)
        # In one line, what is wrong with it comes first.
        if is_roomy or trouble is None:
            yield from _labelled("decided", FAINT, receipt_line(decision, now), width, 2 * more if is_roomy else 1)
        if trouble is not None:
            words = Content.styled(trouble, "$text-warning")
            yield from _labelled("" if is_roomy else "decided", FAINT, words, width, 3 * more if is_roomy else 1)
    if is_roomy:
        yield Content("")


def _identity(task: Task, width: int) -> Content:
    """The id, cut at its beginning if it is too long, and the agent at the right edge where it fits.

    Where the tree calls it otherwise, such as by the title of a session, that name comes first.
    """
    agent = clip(shown(task.agent), _AGENT) if task.agent and width >= WIDE else ""
    room = width - cell_len(agent) - 2 if agent else width
    name = shown(exact(whereabouts(task.workspace) if task.workspace else task.own_id), _ID)
    called = clip(summary(task.title), room) if task.title not in task.own_id else ""
    if called:
        name = clip(name, max(room - cell_len(called) - 2, 0))
    while cell_len(name) > max(room, 1):
        name = "…" + name[max(cell_len(name) - room, 1) + 1 :]
    words = Content.assemble((called, "bold"), "  ", (name, FAINT)) if called else Content.styled(name, "bold")
    return Content.assemble(words, " " * (width - words.cell_length - cell_len(agent)), (agent, FAINT)).rstrip()


def _standing(task: Task, now: float, *, wide: bool) -> Sequence[Content]:
    look, behind = looks.look(task), looks.LOOKS[task.state]
    parts = [in_color(look) if look is behind else Content.assemble(in_color(look), "  ", in_color(behind))]
    # Nobody has handed a session out, so nobody can retry it.
    if task.attempts and not task.is_session:
        most = max(1 + task.retry.max_retries, task.attempt)
        parts.append(Content.assemble(("attempt ", FAINT), f"{task.attempt} of {most}"))
    if task.result and task.result.error_code:
        parts.append(plain(task.result.error_code, 40).stylize("$text-error"))
    if task.agent and not wide:
        parts.append(plain(task.agent, _AGENT))
    if (since := times.stands_since(task)) is not None:
        parts.append(faint(times.ago(since, now)))
    return parts


def _labelled(label: str, style: str, content: Content, width: int, lines: int) -> Iterator[Content]:
    """A label and its text, which hangs behind it if there is room."""
    if width < WIDE:
        yield from _limited(Content.assemble((label, style), "  ", content), width, lines)
        return
    title = Content.styled(label, style).pad_right(LABEL_WIDTH - len(label))
    for line in _limited(content, width - LABEL_WIDTH, lines):
        yield title + line
        title = Content(" " * LABEL_WIDTH)


def _limited(content: Content, width: int, lines: int) -> Sequence[Content]:
    """The content in at most so many lines; what does not fit is cut off with an ellipsis."""
    wrapped = content.wrap(max(width, 8))
    return wrapped if len(wrapped) <= lines else [*wrapped[: lines - 1], wrapped[lines - 1].truncate(width - 1) + "…"]
