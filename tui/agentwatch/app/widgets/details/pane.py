"""The details of one task: a head, tabs, and the transcript of the task's run."""

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
from agentwatch.app.decision_words import decision_warning, receipt_line
from agentwatch.app.messages import InspectClaim, NoEffect, PageTranscript, ReadStep
from agentwatch.app.widgets.details.blocks import (
    ACCENT,
    FAINT,
    LABEL_WIDTH,
    MAX_LINES,
    NOTHING,
    Line,
    Page,
    faint,
    look_words,
    remark,
    safe_line,
    summary_line,
    update_words,
)
from agentwatch.app.widgets.details.tabs import TABS, NotMadeError, View
from agentwatch.app.widgets.line import align_right, clip, clip_name, clip_sentence
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
    ask_line,
    decision_of,
    false_claims,
    format_local,
    look_of,
    question_at,
    short_span,
    workspace_address,
)

_ROOMY = 20  # lines: in a pane of this height or more, parts of the head may have several lines
_SHORTEST = 3  # the fewest cells to which a tab's title is cut
_MOST_LINES = 6  # the most lines of each part of the head


class DetailsPane(Widget):
    """The details of the selected task. Only the content of the visible tab is made."""

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

    # The visible tab's commands (ids) that have an effect now.
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
        self._shown_tab = ("", "")  # the id of the task and the id of the tab that are shown

    def compose(self) -> ComposeResult:
        yield from (self._head, self._tabs, self.page, self.log_page, self._search, self._state)

    def on_mount(self) -> None:
        self.watch(self.page, "chosen", self._update_state)
        for name in ("chosen", "scroll_y", "look"):
            self.watch(self.log_page, name, self._update_state)

    def _update_state(self) -> None:
        update_words(self._state, self.log_page.status_words())
        compares = self._view is not None and self.active == "attempts" and len(self._view.task.attempts) > 2
        ids = "compare.earlier compare.later" if compares else "live.search live.pager" if self._is_live else ""
        self.offered = frozenset([*ids.split(), *(["inspect"] if self._visible_page.chosen is not None else [])])

    @property
    def active(self) -> str:
        """The id of the tab that is shown."""
        return self._tabs.active or next(iter(TABS))

    @property
    def _is_live(self) -> bool:
        return self.log_page.transcript is not None

    @property
    def _visible_page(self) -> Page:
        return self.log_page if self._is_live else self.page

    def show(self, task: Task | None, tree: Tree, monitor: Monitor, now: float) -> None:
        """Show a task as it is at `now` (epoch seconds). None stands for no task."""
        before, self._view = self._view, None if task is None else View(task, tree, monitor, now)
        if self._view and before and before.task.task_id == self._view.task.task_id:
            self._view.made_values, self._view.steps_back = before.made_values, before.steps_back
        self._show_view()

    def activate(self, number: int) -> None:
        """Show the tab with this number, from 0 on."""
        self._tabs.active = list(TABS)[number]
        self._show_view()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the page of the visible tab."""
        # `Widget.focus` would do this later, but the next key may already be in the queue.
        self.screen.set_focus(self._visible_page, scroll_visible)
        return self

    def action_next_tab(self, by: int) -> None:
        """Show the next tab (`by` 1) or the previous tab (-1)."""
        self.activate((list(TABS).index(self.active) + by) % len(TABS))

    def action_inspect(self) -> None:
        """Open the file of the selected claim, or the whole selected entry of the transcript."""
        step, transcript, chosen = self.log_page.step, self.log_page.transcript, self.page.chosen
        if transcript and step:
            self.post_message(ReadStep(transcript, step))
        elif self._view and isinstance(chosen, Claim):
            self.post_message(InspectClaim(self._view.task.task_id, chosen))

    def action_search(self) -> None:
        """Open the search in the transcript. In any other tab, leave the key to other widgets."""
        if not self._is_live:
            raise SkipAction
        self._search.display = True
        self.screen.set_focus(self._search)

    def action_page_transcript(self) -> None:
        """Open the whole transcript in the operator's pager."""
        if self.log_page.transcript is None:
            self.post_message(NoEffect("No transcript is shown: the Live tab of a session's task has it."))
        else:
            self.post_message(PageTranscript(self.log_page.transcript))

    def leave_search(self) -> bool:
        """End the search in the transcript, and show all entries again. Return False if there was no search."""
        was_open, self._search.display, self._search.value = self._search.display, False, ""
        if was_open:
            self.focus()
        return was_open

    @on(Input.Changed)
    @on(Input.Submitted)
    def _search_transcript(self, event: Input.Changed | Input.Submitted) -> None:
        event.stop()
        self.log_page.searched = event.value
        self.log_page.lay_out()
        if isinstance(event, Input.Submitted):
            self._search.display = bool(event.value.strip())
            self.focus()

    def action_compare(self, step: int) -> None:
        """Compare later attempts (`step` 1) or earlier attempts (-1)."""
        if self._view and self.active == "attempts":
            self._view.steps_back = min(max(self._view.steps_back - step, 0), max(len(self._view.task.attempts) - 2, 0))
            self._show_view()

    @on(Tabs.TabActivated)
    @on(events.Show)
    @on(events.Resize)
    def _show_view(self) -> None:
        """Update head, titles and page. A hidden pane has no size and is not updated."""
        view, had_focus = self._view, self.page.has_focus or self.log_page.has_focus
        if not self.size:
            return
        self._tabs.display = view is not None
        head = head_lines(view.task, view.now, self.size.width - 2, self.size.height) if view else ()
        update_words(self._head, Content("\n").join(head))
        titles = tab_titles(view.task, self.active, self.size.width) if view else {}
        for tab in self._tabs.query(Tab) if view else ():
            if not titles[tab.id or ""].is_same(tab.label):
                tab.label = titles[tab.id or ""]
        self.log_page.follow_task(view if self.active == "live" else None)
        self.log_page.display = self._state.display = self._is_live
        self.page.display = not self._is_live
        shown = (view.task.task_id, self.active) if view else ("", "")
        is_same, self._shown_tab = shown == self._shown_tab, shown
        if not is_same:
            self._search.display, self._search.value = False, ""
        if had_focus:
            self.focus()
        try:
            written = TABS[self.active](view) if view else [remark("No task is selected.")]
            self.page.show(list(islice(written, MAX_LINES)), keep_position=is_same)
        except NotMadeError as missing:
            self._make_value(view, *missing.args)
            # If the tab is the same, keep its old content until a thread has made the value.
            if not is_same:
                self.page.show([remark("reading…")], keep_position=False)
        self._update_state()

    @work(exclusive=True, exit_on_error=False)
    async def _make_value(self, view: View, key: Hashable, make: Callable[[], object]) -> None:
        view.made_values[key] = await asyncio.to_thread(make)
        self.call_next(self._show_view)

    @on(events.Hide)
    def _stop_following_when_hidden(self) -> None:
        self.log_page.follow_task(None)


def tab_titles(task: Task, active: str, room: int) -> dict[str, Content]:
    """Return the titles of the tabs with counts. If room is missing, cut long titles except the active tab's."""
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
    """Yield the lines of the head: name, state, question, hint and decision of a task."""
    is_roomy, aside, decision = height >= _ROOMY, aside_words(task, now), decision_of(task)
    parts: list[tuple[str, str, Content]] = []
    if question := question_at(task, now) if task.ask else task.question:
        label = "NEEDS YOU" if task.ask else aside or "history"
        parts.append((label, ACCENT if task.ask else FAINT, Content(ask_line(task, question, LINE_LIMIT))))
    if task.retry.hint:
        parts.append(("hint", FAINT, summary_line(task.retry.hint)))
    if decision:
        trouble = decision_warning(decision, now)
        words = Content.styled(f"{trouble}   " if trouble else "", "$text-warning")
        parts.append(("decided", FAINT, words + receipt_line(decision, now)))
    name = clean_row(clean_name(workspace_address(task.workspace) if task.workspace else task.own_id), 1_000)
    short_title = "" if task.title in task.own_id else clip(clean_summary(task.title), width)
    if short_title:
        name = clip_name(name, width - cell_len(short_title) - 2)
        yield Content.assemble((short_title, "bold"), "  " if name else "", (name, FAINT))
    else:
        yield Content.styled(clip_name(name, width), "bold")
    *first, agent, age = _state_parts(task, now)
    standing, shorter = (Content("   ").join(filter(None, some)) for some in ([*first, agent, age], [*first, age]))
    # If the age would be cut, leave out the agent, which the tree shows as well.
    is_cut = not is_roomy and standing.cell_length > width
    yield from _wrap_limited(shorter if is_cut else standing, width, 2 if is_roomy else 1)
    if is_roomy:
        yield Content("")
    for label, style, content in parts:
        title = Content.styled(label, style).pad_right(max(LABEL_WIDTH - len(label), 1))
        for line in _wrap_limited(content, width - len(title), _MOST_LINES if is_roomy else 1):
            yield title + line
            title = Content(" " * len(title))
    if is_roomy and parts:
        yield Content("")


def _state_parts(task: Task, now: float) -> list[Content]:
    parts = [look_words(look_of(task))]
    # No agent handed off a session, so a session cannot be retried.
    if task.attempts and not task.is_session:
        left = task.retry.remaining if task.own_state in HAVE_FAILED else 0
        of = f" of {task.attempt + left}" if left else ""
        parts.append(Content.assemble(("attempt ", FAINT), f"{task.attempt}{of}"))
    error = task.result.error_code if task.result else None
    parts += [safe_line(error or "", 40).stylize("$text-error"), safe_line(task.agent or "", 24)]
    return [*parts, faint("" if task.since is None else ago(task.since, now))]


def _wrap_limited(content: Content, width: int, lines: int) -> list[Content]:
    """Return the content wrapped into at most `lines` lines. If content is cut, the last line ends with an ellipsis."""
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
OUTCOME_MARKS = {
    Outcome.OPEN: ("○", FAINT),
    Outcome.DONE: ("✓", FAINT),
    Outcome.FAILED: ("✗", "$text-error"),
    Outcome.REFUSED: ("⊘", "$text-warning"),
}  # the mark and style of each outcome of a call


def step_line(step: Step, width: int, now: float, *, is_working: bool = True, name: str = "") -> Content:
    """Return a step of a transcript as a line: a blank for the cursor, the time, a mark and words. `is_working` tells
    whether open calls still run. If the call handed work to a task, `name` is the title of that task."""
    is_call, is_open = step.kind is EntryKind.CALL, step.outcome is Outcome.OPEN
    mark, style = ("◐", "$state-working") if is_open and is_working else OUTCOME_MARKS[step.outcome]
    if step.outcome is Outcome.DONE and (not is_call or step.is_checklist):
        mark, style = ("≡", "$state-completed") if is_call else _MARKS.get(step.kind, (" ", ""))
    clock = format_local(step.at)[11:19] if step.at else ""
    start = Content.assemble((f" {clock:>8}  ", FAINT), (mark, style), " ")
    room = max(width - start.cell_length - _TOOK, 1)
    if not is_call:
        is_told = step.kind in (EntryKind.WORDS, EntryKind.PROMPT) and step.outcome is Outcome.DONE
        return start + Content.styled(clip(clean_summary(step.about), room), "" if is_told else style)
    tool, handed = clean_row(step.tool), f"▸ {clean_summary(name)}  " if name else ""
    result = "" if mark == "≡" or not step.result else _ARROW + clean_row(step.result)
    about = "" if name and name == step.about else clean_row(step.about)
    # However long the result is, the call may use at least 60 % of the line.
    said = clip_sentence(f"{tool} {handed}{about}".rstrip(), max(room - cell_len(result), int(room * 0.6)))
    body = Content(said).stylize("bold", 0, len(tool)).stylize("$text-accent", len(tool) + 1, len(tool + handed))
    if step.outcome is Outcome.REFUSED:
        body = Content.styled(said, "strike")
    body += Content.styled(clip(result, room - body.cell_length), FAINT if is_open else style)
    ended = now if is_open and is_working else step.ended_at
    if ended and step.at and ended - step.at >= 1:
        body = body.pad_right(room - body.cell_length) + faint(align_right(short_span(ended - step.at), _TOOK))
    return start + body


class LiveLog(Page):
    """The transcript of a run. While it is shown, a thread reads new steps. A line is made only when it is drawn."""

    # The transcript as the thread last read it. This is set when the steps are shown.
    look: var[TranscriptEnd] = var(TranscriptEnd(), always_update=True)
    transcript: RunTranscript | None = None
    steps: Sequence[Step] = ()  # the steps that are shown, oldest first
    searched = ""
    now = 0.0
    is_working = False
    spellings: Sequence[str] = ()  # the paths by which transcripts may name the workspace
    names: Mapping[str, str] = {}  # the names of tasks by the digests of their prompts
    _key: Hashable = None
    _is_reading = True  # True until the thread has read the transcript

    def __init__(self) -> None:
        super().__init__()
        self._follower = Follower(lambda transcript, look: self.call_later(self._handle_look, transcript, look))

    @property
    def follows(self) -> bool:
        """Whether the cursor is on the last step. If so, the cursor moves to each new step."""
        return not self.steps or self.chosen == self.steps[-1].place

    @property
    def step(self) -> Step | None:
        """The selected step, or None if there is no step."""
        return self.steps[self.places[self.chosen]] if self.chosen in self.places else None

    def line_at(self, number: int) -> Line:
        if number >= len(self.steps):
            return Line(NOTHING)
        step, width = self.steps[number], self.scrollable_content_region.width
        name = self.names.get(step.handed, "")
        step = step._replace(
            about=shorten_paths(step.about, self.spellings), result=shorten_paths(step.result, self.spellings)
        )
        return Line(step_line(step, width, self.now, is_working=self.is_working, name=name), step.place)

    def follow_task(self, view: View | None) -> None:
        """Show the transcript of a task, and follow its growth. With None, show and follow nothing."""
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
            self.show_steps(TranscriptEnd())
            self._follower.follow(self.transcript)
        self.refresh()

    def on_unmount(self) -> None:
        self.follow_task(None)

    def _handle_look(self, transcript: RunTranscript, look: TranscriptEnd) -> None:
        if transcript is self.transcript:
            self._is_reading = False
            self.show_steps(look)

    def show_steps(self, look: TranscriptEnd) -> None:
        """Show all steps of a transcript (`look`), or only the steps that match the search."""
        follows, top_place = self.follows, self.steps[self.top].place if self.top < len(self.steps) else None
        wanted, self.steps = fold_case(self.searched.strip()), look.steps
        if wanted:
            words = [
                fold_case(f"{one.tool} {one.about} {one.result} {self.names.get(one.handed)}") for one in look.steps
            ]
            self.steps = [one for one, said in zip(look.steps, words, strict=True) if wanted in said]
        if follows:
            self.chosen = self.steps[-1].place if self.steps else None
        places: dict[Hashable, int] = {step.place: at for at, step in enumerate(self.steps)}
        self.set_places(places, Size(self.scrollable_content_region.width, len(self.steps)))
        self.refresh()
        y = self.max_scroll_y if follows or top_place is None else bisect_left(self.steps, top_place, key=place_of)
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self.look = look

    def lay_out(self) -> None:
        self.show_steps(self.look)

    def status_words(self) -> Content:
        """Return words on whether the log follows the run, and on how many steps the search finds."""
        look, words, style = self.look, "following" if self.look.steps else "It has said nothing yet.", FAINT
        if self._is_reading:
            words = "reading…"
        elif look.trouble or not self.follows:
            words, style = look.trouble or "not following: the end follows again", "$text-warning"
        found = f"{len(self.steps):,} of {len(look.steps):,} match, esc shows all   " if self.searched.strip() else ""
        return Content.assemble((found, FAINT), (words, style))
