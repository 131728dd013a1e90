"""The details of one task: a head that is always shown, its tabs, and the transcript of its run."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Self

from rich.cells import cell_len
from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
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
    NOTHING,
    Line,
    Page,
    faint,
    gist,
    in_color,
    plain,
    remark,
    show_words,
)
from agentwatch.app.widgets.details.tabs import TABS, NotMadeError, View
from agentwatch.app.widgets.line import clip, clip_name, clip_sentence, right
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.events import Claim, RunState
from agentwatch.delegation.standing import HAVE_FAILED
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.sources.sessions.entries import (
    EntryKind,
    Follower,
    Outcome,
    RunTranscript,
    Step,
    TranscriptEnd,
    place_of,
)
from agentwatch.text import LINE_LIMIT, clean_name, clean_row, clean_summary, fold_case, shorten_paths
from agentwatch.view.words import (
    LOOKS,
    ago,
    aside_words,
    decision_of,
    duration,
    false_claims,
    in_line,
    local,
    look,
    question_at,
    whereabouts,
)

_ROOMY = 20  # the fewest lines of the pane for which parts of the head may have several lines, not only one
_SHORTEST = 3  # the fewest cells to which a tab's title is cut
_MOST = 6  # the most lines of each part of the head


class DetailsPane(Widget):
    """The details of the selected task. Only the visible tab is written."""

    BINDINGS = bindings(Home.PANE)

    DEFAULT_CSS = """
    DetailsPane { layout: vertical; height: 1fr; width: 1fr; }
    DetailsPane #head { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    DetailsPane Tab { padding: 0 1 0 0; color: $text-muted; }
    DetailsPane Tab:last-child { padding: 0; }
    DetailsPane Tab.-active { color: $foreground; text-style: bold; }
    DetailsPane Underline > .underline--bar { color: $text-accent; background: $border-blurred; }
    DetailsPane #live-state { height: 1; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    DetailsPane Input { display: none; height: 1; border: none; padding: 0 0 0 1; background: $background; }
    """

    # The ids of the visible tab's commands that have an effect now.
    offered: var[frozenset[str]] = var(frozenset[str]())

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.log_page = LiveLog()
        self._search = Input(compact=True, placeholder="words", max_length=100, select_on_focus=False)
        self._state = Static(id="live-state", markup=False)
        self._head = Static(id="head", markup=False)
        self._tabs = Tabs(*(Tab(tab_id.capitalize(), id=tab_id) for tab_id in TABS))
        self._tabs.can_focus = False
        self._view: View | None = None
        self._written = ("", "")  # the task id and tab that are shown

    def compose(self) -> ComposeResult:
        yield from (self._head, self._tabs, self.page, self.log_page, self._search, self._state)

    def on_mount(self) -> None:
        self.watch(self.page, "chosen", self._tell)
        for name in ("chosen", "scroll_y", "look"):
            self.watch(self.log_page, name, self._tell)

    def _tell(self) -> None:
        show_words(self._state, self.log_page.status())
        compares = self._view is not None and self.active == "attempts" and len(self._view.task.attempts) > 2
        ids = "compare.earlier compare.later" if compares else "live.search live.pager" if self._is_live else ""
        self.offered = frozenset([*ids.split(), *(["inspect"] if self._shown.chosen is not None else [])])

    @property
    def active(self) -> str:
        """The id of the tab that is shown."""
        return self._tabs.active or next(iter(TABS))

    @property
    def _is_live(self) -> bool:
        return self.log_page.transcript is not None

    @property
    def _shown(self) -> Page:
        return self.log_page if self._is_live else self.page

    def show(self, task: Task | None, tree: Tree, monitor: Monitor, now: float) -> None:
        """Show a task as it is at `now` (epoch seconds)."""
        before, self._view = self._view, None if task is None else View(task, tree, monitor, now)
        if self._view and before and before.task.task_id == self._view.task.task_id:
            self._view.made, self._view.back = before.made, before.back
        self._write()

    def activate(self, number: int) -> None:
        """Show a tab."""
        self._tabs.active = list(TABS)[number]
        self._write()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the page, which the keys scroll."""
        # At once, unlike `Widget.focus`, because the next key may already be in the queue.
        self.screen.set_focus(self._shown, scroll_visible)
        return self

    def action_next_tab(self, by: int) -> None:
        """Show the next tab (`by` 1), or the one before (-1)."""
        self.activate((list(TABS).index(self.active) + by) % len(TABS))

    def action_inspect(self) -> None:
        """Open the file of the selected claim, or the whole selected entry of the transcript."""
        step, transcript, chosen = self.log_page.step, self.log_page.transcript, self.page.chosen
        if transcript and step:
            self.post_message(ReadStep(transcript, step))
        elif self._view and isinstance(chosen, Claim):
            self.post_message(Inspect(self._view.task.task_id, chosen))

    def action_search(self) -> None:
        """Open the search in the transcript; outside of it, leave the key to others."""
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
        """End the search, which shows the whole transcript again; return False if there was none."""
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
        """Compare later attempts (`step` 1), or earlier ones (-1)."""
        if self._view and self.active == "attempts":
            self._view.back = min(max(self._view.back - step, 0), max(len(self._view.task.attempts) - 2, 0))
            self._write()

    @on(Tabs.TabActivated)
    @on(events.Show)
    @on(events.Resize)
    def _write(self) -> None:
        """Update head, titles and page; do nothing while the pane is not displayed, when it has no size."""
        view, was_at = self._view, self.page.has_focus or self.log_page.has_focus
        if not self.size:
            return
        self._tabs.display = view is not None
        head = head_lines(view.task, view.now, self.size.width - 2, self.size.height) if view else ()
        show_words(self._head, Content("\n").join(head))
        titles = titles_of(view.task, self.active, self.size.width) if view else {}
        for tab in self._tabs.query(Tab) if view else ():
            if not titles[tab.id or ""].is_same(tab.label):
                tab.label = titles[tab.id or ""]
        self.log_page.follow(view if self.active == "live" else None)
        self.log_page.display = self._state.display = self._is_live
        self.page.display = not self._is_live
        shown = (view.task.task_id, self.active) if view else ("", "")
        is_same, self._written = shown == self._written, shown
        if not is_same:
            self._search.display, self._search.value = False, ""
        if was_at:
            self.focus()
        try:
            written = TABS[self.active](view) if view else [remark("No task is selected.")]
            self.page.show(list(islice(written, MAX_LINES)), keep=is_same)
        except NotMadeError as missing:
            self._make(view, *missing.args)
            # Keep the previous content of the same tab until the new one is made.
            if not is_same:
                self.page.show([remark("reading…")], keep=False)
        self._tell()

    @work(exclusive=True, exit_on_error=False)
    async def _make(self, view: View, key: Hashable, make: Callable[[], object]) -> None:
        view.made[key] = await asyncio.to_thread(make)
        self.call_next(self._write)

    @on(events.Hide)
    def _rest(self) -> None:
        """Stop following the transcript while the pane is hidden."""
        self.log_page.follow(None)


def titles_of(task: Task, active: str, room: int) -> dict[str, Content]:
    """Return the titles of the tabs with their counts; without room, the longest but the active one's are cut."""
    is_broken = any(one.severity is Severity.ERROR for one in task.findings)
    false, todos = len(false_claims(task)), "/".join(map(str, task.progress or ()))
    counts = {
        "findings": (str(len(task.findings) or ""), "$text-error" if is_broken else "$text-warning"),
        "attestation": (f"{false}!" if false else "", f"${LOOKS['false'].color}"),
        "attempts": (str(len(task.attempts)) if len(task.attempts) > 1 else "", FAINT),
        "handoff": (todos if task.todos else "", FAINT),
    }
    most, titles = max(map(len, TABS)), dict[str, Content]()
    while not titles or (sum(title.cell_length + 1 for title in titles.values()) > room + 1 and most > _SHORTEST):
        for tab_id in TABS:
            title = tab_id.capitalize() if tab_id == active else clip(tab_id.capitalize(), most)
            titles[tab_id] = Content.assemble(title, " ", counts.get(tab_id, "")).rstrip()
        most -= 1
    return titles


def head_lines(task: Task, now: float, width: int, height: int) -> Iterator[Content]:
    """Yield the name of a task, its state, its question and its decision, for a pane of `width` and `height`."""
    is_roomy, aside, decision = height >= _ROOMY, aside_words(task, now), decision_of(task)
    parts: list[tuple[str, str, Content]] = []
    if question := question_at(task, now) if task.ask else task.question:
        label = "NEEDS YOU" if task.ask else aside or "history"
        parts.append((label, ACCENT if task.ask else FAINT, Content(in_line(task, question, LINE_LIMIT))))
    if task.retry.hint:
        parts.append(("hint", FAINT, gist(task.retry.hint)))
    if decision:
        trouble = warning(decision, now)
        words = Content.styled(f"{trouble}   " if trouble else "", "$text-warning")
        parts.append(("decided", FAINT, words + receipt_line(decision, now)))
    name = clean_row(clean_name(whereabouts(task.workspace) if task.workspace else task.own_id), 1_000)
    called = "" if task.title in task.own_id else clip(clean_summary(task.title), width)
    if called:
        name = clip_name(name, width - cell_len(called) - 2)
        yield Content.assemble((called, "bold"), "  " if name else "", (name, FAINT))
    else:
        yield Content.styled(clip_name(name, width), "bold")
    *first, agent, age = _standing(task, now)
    standing, shorter = (Content("   ").join(filter(None, some)) for some in ([*first, agent, age], [*first, age]))
    # Leave out the agent, which the tree shows as well, if the age would be cut.
    is_cut = not is_roomy and standing.cell_length > width
    yield from _limited(shorter if is_cut else standing, width, 2 if is_roomy else 1)
    if is_roomy:
        yield Content("")
    for label, style, content in parts:
        title = Content.styled(label, style).pad_right(max(LABEL_WIDTH - len(label), 1))
        for line in _limited(content, width - len(title), _MOST if is_roomy else 1):
            yield title + line
            title = Content(" " * len(title))
    if is_roomy and parts:
        yield Content("")


def _standing(task: Task, now: float) -> list[Content]:
    parts = [in_color(look(task))]
    # A session was not handed out by anybody, so it cannot be retried.
    if task.attempts and not task.is_session:
        left = task.retry.remaining if task.own_state in HAVE_FAILED else 0
        of = f" of {task.attempt + left}" if left else ""
        parts.append(Content.assemble(("attempt ", FAINT), f"{task.attempt}{of}"))
    error = task.result.error_code if task.result else None
    parts += [plain(error or "", 40).stylize("$text-error"), plain(task.agent or "", 24)]
    return [*parts, faint("" if task.since is None else ago(task.since, now))]


def _limited(content: Content, width: int, lines: int) -> list[Content]:
    """Return the content wrapped into at most so many lines, with an ellipsis if it is cut."""
    wrapped = content.wrap(max(width, 8))
    return wrapped if len(wrapped) <= lines else [*wrapped[: lines - 1], wrapped[lines - 1].truncate(width - 1) + "…"]


# The transcript

_TOOK = 5  # cells for the duration of a call
_ARROW = "  → "
_MARKS = {
    EntryKind.PROMPT: ("›", "bold $text-accent"),
    EntryKind.THOUGHT: ("·", FAINT),
    EntryKind.NOTE: ("!", "$text-warning"),
}
ENDED = {
    Outcome.OPEN: ("○", FAINT),
    Outcome.DONE: ("✓", FAINT),
    Outcome.FAILED: ("✗", "$text-error"),
    Outcome.REFUSED: ("⊘", "$text-warning"),
}  # the mark and style of each outcome of a call


def line_of(step: Step, width: int, now: float, *, is_working: bool = True, name: str = "") -> Content:
    """Return a step as a line with time, kind and outcome. It begins with a blank for the cursor.

    `is_working`: open calls still run. `name`: the task to which a call handed work.
    """
    is_call, is_open = step.kind is EntryKind.CALL, step.outcome is Outcome.OPEN
    mark, style = ("◐", "$state-working") if is_open and is_working else ENDED[step.outcome]
    if step.outcome is Outcome.DONE and (not is_call or step.is_checklist):
        mark, style = ("≡", "$state-completed") if is_call else _MARKS.get(step.kind, (" ", ""))
    clock = local(step.at)[11:19] if step.at else ""
    start = Content.assemble((f" {clock:>8}  ", FAINT), (mark, style), " ")
    room = max(width - start.cell_length - _TOOK, 1)
    if not is_call:
        is_told = step.kind in (EntryKind.WORDS, EntryKind.PROMPT) and step.outcome is Outcome.DONE
        return start + Content.styled(clip(clean_summary(step.about), room), "" if is_told else style)
    tool, handed = clean_row(step.tool), f"▸ {clean_summary(name)}  " if name else ""
    result = "" if mark == "≡" or not step.result else _ARROW + clean_row(step.result)
    about = "" if name and name == step.about else clean_row(step.about)
    # A long result leaves more than half of the line to the call, in which the ends of paths are kept.
    said = clip_sentence(f"{tool} {handed}{about}".rstrip(), max(room - cell_len(result), int(room * 0.6)))
    body = Content(said).stylize("bold", 0, len(tool)).stylize("$text-accent", len(tool) + 1, len(tool + handed))
    if step.outcome is Outcome.REFUSED:
        body = Content.styled(said, "strike")
    body += Content.styled(clip(result, room - body.cell_length), FAINT if is_open else style)
    ended = now if is_open and is_working else step.ended_at
    if ended and step.at and ended - step.at >= 1:
        body = body.pad_right(room - body.cell_length) + faint(right(duration(ended - step.at), _TOOK))
    return start + body


class LiveLog(Page):
    """Follows one transcript in a thread while it is shown; each line is made when it is drawn."""

    # The last look at the transcript, set after its steps are shown.
    look: var[TranscriptEnd] = var(TranscriptEnd(), always_update=True)
    transcript: RunTranscript | None = None
    steps: Sequence[Step] = ()  # the steps that are shown, oldest first
    sought = ""
    now = 0.0
    is_working = False
    spellings: Sequence[str] = ()  # the paths of the workspace, as transcripts may write it
    names: Mapping[str, str] = {}  # the names of tasks by the digests of their prompts
    _key: Hashable = None
    _is_reading = True  # whether the thread has reported nothing yet

    def __init__(self) -> None:
        super().__init__()
        self._follower = Follower(lambda transcript, look: self.call_later(self._read, transcript, look))

    @property
    def follows(self) -> bool:
        """Whether the cursor is on the last step, and so goes on to each new one."""
        return not self.steps or self.chosen == self.steps[-1].place

    @property
    def step(self) -> Step | None:
        """The selected step, None if there is none."""
        return self.steps[self.places[self.chosen]] if self.chosen in self.places else None

    def line(self, number: int) -> Line:
        if number >= len(self.steps):
            return Line(NOTHING)
        step, width = self.steps[number], self.scrollable_content_region.width
        name = self.names.get(step.handed, "")
        step = step._replace(
            about=shorten_paths(step.about, self.spellings), result=shorten_paths(step.result, self.spellings)
        )
        return Line(line_of(step, width, self.now, is_working=self.is_working, name=name), step.place)

    def follow(self, view: View | None) -> None:
        """Show and follow the transcript of a task; None ends that."""
        run = view.task.run if view else None
        key = (run.source, run.session_id, run.place) if run else None
        if view and run:
            children = filter(None, map(view.tree.tasks.get, view.task.children))
            runs = ((child.title, attempt.run) for child in children for attempt in child.attempts)
            self.names = {run.prompt.digest: name for name, run in runs if run and run.prompt is not None}
            self.is_working = run.state is RunState.WORKING and not run.process_gone
            self.now, self.spellings = view.now, view.monitor.spellings
        if key != self._key:
            self._key, self._is_reading, self.steps = key, True, ()
            self.transcript = view.monitor.transcript(run) if view and run else None
            self.update(TranscriptEnd())
            self._follower.follow(self.transcript)
        self.refresh()

    def on_unmount(self) -> None:
        self.follow(None)

    def _read(self, transcript: RunTranscript, look: TranscriptEnd) -> None:
        if transcript is self.transcript:
            self._is_reading = False
            self.update(look)

    def update(self, look: TranscriptEnd) -> None:
        """Show the known steps, or only those that hold the words of the search."""
        follows, above = self.follows, self.steps[self.top].place if self.top < len(self.steps) else None
        sought, self.steps = fold_case(self.sought.strip()), look.steps
        if sought:
            words = [
                fold_case(f"{one.tool} {one.about} {one.result} {self.names.get(one.handed)}") for one in look.steps
            ]
            self.steps = [one for one, said in zip(look.steps, words, strict=True) if sought in said]
        if follows:
            self.chosen = self.steps[-1].place if self.steps else None
        places: dict[Hashable, int] = {step.place: at for at, step in enumerate(self.steps)}
        self.place(places, Size(self.scrollable_content_region.width, len(self.steps)))
        self.refresh()
        y = self.max_scroll_y if follows or above is None else bisect_left(self.steps, above, key=place_of)
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self.look = look

    def lay_out(self) -> None:
        self.update(self.look)

    def status(self) -> Content:
        """Return words on whether the log follows, reads or has trouble, and what the search finds."""
        look, words, style = self.look, "following" if self.look.steps else "It has said nothing yet.", FAINT
        if self._is_reading:
            words = "reading…"
        elif look.trouble or not self.follows:
            words, style = look.trouble or "not following: the end follows again", "$text-warning"
        found = f"{len(self.steps):,} of {len(look.steps):,} match, esc shows all   " if self.sought.strip() else ""
        return Content.assemble((found, FAINT), (words, style))
