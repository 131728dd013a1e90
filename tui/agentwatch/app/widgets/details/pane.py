"""The details of one task: a head that is always there, and its tabs."""

import asyncio
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Self

from rich.cells import cell_len
from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.content import Content
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Input, Static, Tab, Tabs

from agentwatch.app.actions import Home, bindings
from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.messages import Inspect, Missing, PageTranscript, ReadStep
from agentwatch.app.widgets.details.blocks import (
    ACCENT,
    FAINT,
    LABEL_WIDTH,
    MAX_LINES,
    faint,
    gist,
    in_color,
    plain,
    remark,
)
from agentwatch.app.widgets.details.live import LiveLog
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import TABS, NotMadeError, View
from agentwatch.app.widgets.line import clip, clip_name
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.events import Claim
from agentwatch.delegation.standing import HAVE_FAILED
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.text import LINE_LIMIT, exact, shown, summary
from agentwatch.view import looks, times
from agentwatch.view.words import aside_words, decision_of, in_line, question_at, whereabouts

_ROOMY = 20
"""Lines of the pane from which the head takes what it needs; in a lower one each part of it gets one line."""
_MOST = 6
"""Lines of each part of the head, where there is room."""


class DetailsPane(Widget):
    """Everything about the selected task. Only the visible tab is written."""

    BINDINGS = bindings(Home.PANE)

    DEFAULT_CSS = """
    DetailsPane { layout: vertical; height: 1fr; width: 1fr; }
    DetailsPane #head { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    DetailsPane Tab { padding: 0 1 0 0; color: $text-muted; }
    DetailsPane Tab.-active { color: $foreground; text-style: bold; }
    DetailsPane Underline > .underline--bar { color: $text-accent; background: $border-blurred; }
    DetailsPane #live-state { height: 1; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    DetailsPane Input { display: none; height: 1; border: none; padding: 0 0 0 1; background: $background; }
    """

    offered: var[frozenset[str]] = var(frozenset[str]())
    """Ids of the commands for the visible tab that would do something now."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.log_page = LiveLog()
        self._search = Input(compact=True, placeholder="words", max_length=100, select_on_focus=False)
        self._state = Static(id="live-state", markup=False)
        self._head = Static(id="head", markup=False)
        self._tabs = Tabs(*(Tab(tab.title, id=tab_id) for tab_id, tab in TABS.items()))
        self._tabs.can_focus = False
        self._view: View | None = None
        self._written = ("", "")
        """Task id and tab that are shown."""

    def compose(self) -> ComposeResult:
        yield from (self._head, self._tabs, self.page, self.log_page, self._search, self._state)

    def on_mount(self) -> None:
        self.watch(self.page, "chosen", self._tell)
        for name in ("chosen", "scroll_y", "look"):
            self.watch(self.log_page, name, self._tell)

    def _tell(self) -> None:
        _put(self._state, self.log_page.status())
        compares = self._view is not None and self.active == "attempts" and len(self._view.task.attempts) > 2
        ids = "compare.earlier compare.later" if compares else "live.search live.pager" if self._is_live else ""
        self.offered = frozenset([*ids.split(), *(["inspect"] if self._shown.chosen is not None else [])])

    @property
    def active(self) -> str:
        """Id of the tab that is shown."""
        return self._tabs.active or next(iter(TABS))

    @property
    def _is_live(self) -> bool:
        return self.log_page.transcript is not None

    @property
    def _shown(self) -> Page:
        return self.log_page if self._is_live else self.page

    def show(self, task: Task | None, tree: Tree, monitor: Monitor, now: float) -> None:
        """Show a task, or how it stands by now. `now` is in seconds since the epoch."""
        before, self._view = self._view, None if task is None else View(task, tree, monitor, now)
        if self._view and before and before.task.task_id == self._view.task.task_id:
            self._view.made, self._view.back = before.made, before.back
        self._write()

    def activate(self, number: int) -> None:
        """Bring a tab to the front."""
        self._tabs.active = list(TABS)[number]
        self._write()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the page: it is what the keys scroll."""
        # At once, unlike `Widget.focus`: the next key may stand in the queue.
        self.screen.set_focus(self._shown, scroll_visible)
        return self

    def action_next_tab(self, by: int) -> None:
        """Bring the next tab to the front (`by` 1), or the one before (-1)."""
        self.activate((list(TABS).index(self.active) + by) % len(TABS))

    def action_inspect(self) -> None:
        """Look at the file of the claim that the cursor is on, or at the whole of an entry of the transcript."""
        step, transcript, chosen = self.log_page.step, self.log_page.transcript, self.page.chosen
        if transcript is not None and step is not None:
            self.post_message(ReadStep(transcript, step))
        elif self._view is not None and isinstance(chosen, Claim):
            self.post_message(Inspect(self._view.task.task_id, chosen))

    def action_search(self) -> None:
        """Look for words in the transcript; elsewhere the key is another's."""
        if not self._is_live:
            raise SkipAction
        self._search.display = True
        self.screen.set_focus(self._search)

    def action_page_transcript(self) -> None:
        """Open the whole transcript in the operator's pager."""
        if self.log_page.transcript is None:
            self.post_message(Missing("No transcript is shown: the Live tab of a session's task has it."))
        else:
            self.post_message(PageTranscript(self.log_page.transcript))

    def leave_search(self) -> bool:
        """Show all of the transcript again; False where nothing was looked for."""
        was_open, self._search.display, self._search.value = self._search.display, False, ""
        if was_open:
            self.focus()
        return was_open

    @on(Input.Changed)
    @on(Input.Submitted)
    def _seek(self, event: Input.Changed | Input.Submitted) -> None:
        event.stop()
        self.log_page.sought = event.value
        self.log_page.lay_out()
        if isinstance(event, Input.Submitted):
            self._search.display = bool(event.value.strip())
            self.focus()

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
        view, was_at = self._view, self.page.has_focus or self.log_page.has_focus
        if not self.size:
            return
        self._tabs.display = view is not None
        head = head_lines(view.task, view.now, self.size.width - 2, self.size.height) if view else ()
        _put(self._head, Content("\n").join(head))
        labels = labels_of(view.task, self.size.width) if view else {}
        for tab in self._tabs.query(Tab):
            if not (label := labels.get(tab.id or "", tab.label)).is_same(tab.label):
                tab.label = label
        self.log_page.follow(view if self.active == "live" else None)
        self.log_page.display = self._state.display = self._is_live
        self.page.display = not self._is_live
        shown = (view.task.task_id, self.active) if view else ("", "")
        before, self._written = self._written, shown
        if shown != before:
            self._search.display, self._search.value = False, ""
        if was_at:
            self.focus()
        try:
            blocks = list(
                islice(TABS[self.active].write(view) if view else [remark("No task is selected.")], MAX_LINES)
            )
            self.page.show(blocks, keep=shown == before)
        except NotMadeError as missing:
            self._make(view, *missing.args)
            # The last that was whole stays until the next one is.
            if shown != before:
                self.page.show([remark("reading…")], keep=False)
        self._tell()

    @work(exclusive=True, exit_on_error=False)
    async def _make(self, view: View, key: Hashable, make: Callable[[], object]) -> None:
        view.made[key] = await asyncio.to_thread(make)
        self.call_next(self._write)

    @on(events.Hide)
    def _rest(self) -> None:
        """Nobody sees it: nothing is followed."""
        self.log_page.follow(None)


def _put(widget: Static, words: Content) -> None:
    """Show words where they are others. Textual would lay the screen out anew for as many lines, too."""
    before = widget.content
    if not isinstance(before, Content) or not words.is_same(before):
        widget.update(words, layout=str(before).count("\n") != words.plain.count("\n"))


def labels_of(task: Task, width: int) -> dict[str, Content]:
    """The titles of the tabs by their ids, with what is counted. Where that is wider, the counts go that the head has,
    too, then half of the longest title."""
    is_broken = any(one.severity is Severity.ERROR for one in task.findings)
    false, todos = len(looks.false_claims(task)), "/".join(map(str, task.progress or ()))
    wrong = {
        "findings": (str(len(task.findings) or ""), "$text-error" if is_broken else "$text-warning"),
        "attestation": (f"{false}!" if false else "", f"${looks.LOOKS['false'].color}"),
    }
    tries = str(len(task.attempts)) if len(task.attempts) > 1 else ""
    all_counts = {**wrong, "attempts": (tries, FAINT), "handoff": (todos if task.todos else "", FAINT)}
    for counts, longest in ((all_counts, "Attestation"), (wrong, "Attestation"), (wrong, "Attest")):
        titles = {name: longest if name == "attestation" else tab.title for name, tab in TABS.items()}
        labels = {name: Content.assemble(title, " ", counts.get(name, "")).rstrip() for name, title in titles.items()}
        if sum(label.cell_length + 1 for label in labels.values()) <= width + 1:
            break
    return labels


def head_lines(task: Task, now: float, width: int, height: int) -> Iterator[Content]:
    """The task, how it stands, what it needs and what was decided, for a pane of so many lines."""
    is_roomy, aside, decision = height >= _ROOMY, aside_words(task, now), decision_of(task)
    parts: list[tuple[str, str, Content]] = []
    if question := question_at(task, now) if task.ask else task.question:
        label = "NEEDS YOU" if task.ask else aside or "history"
        parts.append((label, ACCENT if task.ask else FAINT, Content(in_line(task, question, LINE_LIMIT))))
    if task.retry.hint:
        parts.append(("hint", FAINT, gist(task.retry.hint)))
    if decision is not None:
        trouble = warning(decision, now)
        words = Content.styled(f"{trouble}   " if trouble else "", "$text-warning")
        parts.append(("decided", FAINT, words + receipt_line(decision, now)))
    name = shown(exact(whereabouts(task.workspace) if task.workspace else task.own_id), 1_000)
    called = "" if task.title in task.own_id else clip(summary(task.title), width)
    if called:
        name = clip_name(name, width - cell_len(called) - 2)
        yield Content.assemble((called, "bold"), "  " if name else "", (name, FAINT))
    else:
        yield Content.styled(clip_name(name, width), "bold")
    yield from _limited(_standing(task, now), width, 2 if is_roomy else 1)
    if is_roomy:
        yield Content("")
    for label, style, content in parts:
        title = Content.styled(label, style).pad_right(max(LABEL_WIDTH - len(label), 1))
        for line in _limited(content, width - len(title), _MOST if is_roomy else 1):
            yield title + line
            title = Content(" " * len(title))
    if is_roomy and parts:
        yield Content("")


def _standing(task: Task, now: float) -> Content:
    look, since = looks.look(task), task.since
    parts = [in_color(look)]
    # Nobody has handed a session out, so nobody can retry it.
    if task.attempts and not task.is_session:
        left = task.retry.remaining if task.own_state in HAVE_FAILED else 0
        of = f" of {task.attempt + left}" if left else ""
        parts.append(Content.assemble(("attempt ", FAINT), f"{task.attempt}{of}"))
    error = task.result.error_code if task.result else None
    parts += [plain(error or "", 40).stylize("$text-error"), plain(task.agent or "", 24)]
    parts.append(faint("" if since is None else times.ago(since, now)))
    return Content("   ").join(filter(None, parts))


def _limited(content: Content, width: int, lines: int) -> list[Content]:
    """The content in at most so many lines; a cut is shown by an ellipsis."""
    wrapped = content.wrap(max(width, 8))
    return wrapped if len(wrapped) <= lines else [*wrapped[: lines - 1], wrapped[lines - 1].truncate(width - 1) + "…"]
