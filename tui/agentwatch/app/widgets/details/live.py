"""The live tab: the transcript of a task's run, one line a step, newest below. It follows until one leaves the end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from agentwatch.app.widgets.cells import clip, right
from agentwatch.app.widgets.details.blocks import FAINT, NOTHING, Line, faint
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import View
from agentwatch.delegation.run import RunState
from agentwatch.sources.sessions.entries import EntryKind
from agentwatch.sources.sessions.following import Follower, Look, Outcome, RunTranscript, Step, place_of
from agentwatch.text import folded
from agentwatch.view import times
from agentwatch.view.plain import shown, summary

_NARROW: Final = 56
"""Cells from which lines say the seconds and how long a call took."""
_TOOK: Final = 5
_ARROW: Final = "  → "
_LEAST_CALL: Final = 36
"""Cells from which there is room for a result."""
_SHARE: Final = 0.6
"""The part of a line that a result leaves to what was called."""
_MARKS: Final = {
    EntryKind.PROMPT: ("›", "bold $text-accent"),
    EntryKind.THOUGHT: ("·", FAINT),
    EntryKind.NOTE: ("!", "$text-warning"),
}
_ENDED: Final = {
    Outcome.OPEN: ("○", FAINT),
    Outcome.DONE: ("✓", FAINT),
    Outcome.FAILED: ("✗", "$text-error"),
    Outcome.REFUSED: ("⊘", "$text-warning"),
}


def line_of(step: Step, width: int, now: float, *, is_working: bool = True, name: str = "") -> Content:
    """A step in one line: time, kind, and how it came out. It begins with a blank for the cursor.

    `is_working`: open calls are at work; `name`: of the task that a call handed work to.
    """
    is_wide, is_open = width >= _NARROW, step.outcome is Outcome.OPEN
    clock = times.local(step.at)[11 : 19 if is_wide else 16] if step.at else ""
    mark = ("◐", "$state-working") if is_open and is_working else _ENDED[step.outcome]
    if step.kind is not EntryKind.CALL and step.outcome is Outcome.DONE:
        mark = _MARKS.get(step.kind, (" ", ""))
    start = Content.assemble(" ", (right(clock, 8 if is_wide else 5), FAINT), "  ", mark, " ")
    room = max(width - start.cell_length - (_TOOK if is_wide else 0), 1)
    style = mark[1] if step.outcome in (Outcome.FAILED, Outcome.REFUSED) else ""
    if step.kind is not EntryKind.CALL:
        is_faint = step.kind in (EntryKind.THOUGHT, EntryKind.NOTE)
        return start + Content.styled(clip(summary(step.about), room), style or (FAINT if is_faint else ""))
    tool, result, handed = shown(step.tool), shown(step.result), f"▸ {summary(name)}  " if name else ""
    about = "" if name and name == step.about else shown(step.about)
    if step.is_checklist or room < _LEAST_CALL:
        result = ""
    most = max(int(room * _SHARE), room - len(_ARROW + result)) if result else room
    body = Content(clip(f"{tool} {handed}{about}".rstrip(), most)).stylize("bold", 0, len(tool))
    if step.outcome is Outcome.REFUSED:
        body = body.stylize("strike")
    elif handed:
        body = body.stylize("$text-accent", len(tool) + 1, len(tool + handed))
    if result:
        body += Content.assemble((_ARROW, FAINT), (clip(result, room - body.cell_length - len(_ARROW)), style or FAINT))
    ended = now if is_open and is_working else step.ended_at
    if is_wide and ended and step.at and ended - step.at >= 1:
        body = body.pad_right(room - body.cell_length) + faint(right(times.duration(ended - step.at), _TOOK))
    return start + body


class LiveLog(Page):
    """The steps that are shown, each a line that is made when it is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.look = Look()
        self.steps: Sequence[Step] = ()
        """Those that are shown, oldest first."""
        self.sought = ""
        self.view: View | None = None

    @property
    def allow_select(self) -> bool:
        return False

    @property
    def follows(self) -> bool:
        """Whether the cursor is on the end: then it goes to each new step."""
        return not self.steps or self.chosen == self.steps[-1].place

    @property
    def step(self) -> Step | None:
        """The one that the cursor is on."""
        return self.steps[self.places[self.chosen]] if self.chosen in self.places else None

    def line(self, number: int) -> Line:
        if number >= len(self.steps) or self.view is None:
            return Line(NOTHING)
        step, run = self.steps[number], self.view.task.run
        is_working = run is not None and run.state is RunState.WORKING and not run.process_gone
        width, name = self.scrollable_content_region.width, self._name_of(step)
        return Line(line_of(step, width, self.view.now, is_working=is_working, name=name), step.place)

    def _name_of(self, step: Step) -> str:
        """The name of the task that was given the words of a call."""
        tasks, children = (self.view.tree.tasks, self.view.task.children) if self.view and step.handed else ({}, [])
        for child in filter(None, map(tasks.get, children)):
            prompts = (attempt.run.prompt for attempt in child.attempts if attempt.run is not None)
            if any(prompt is not None and prompt.digest == step.handed for prompt in prompts):
                return child.title
        return ""

    def update(self, look: Look) -> None:
        """Show the steps that are known by now, of those the ones with the words that are sought."""
        follows, above = self.follows, self.steps[self.top].place if self.top < len(self.steps) else None
        sought, self.look, self.steps = folded(self.sought.strip()), look, look.steps
        if sought:
            words = [folded(f"{one.tool} {one.about} {one.result} {self._name_of(one)}") for one in look.steps]
            self.steps = [one for one, said in zip(look.steps, words, strict=True) if sought in said]
        if follows:
            self.chosen = self.steps[-1].place if self.steps else None
        places: dict[Hashable, int] = {step.place: at for at, step in enumerate(self.steps)}
        self.place(places, Size(self.scrollable_content_region.width, len(self.steps)))
        y = self.max_scroll_y if follows or above is None else bisect_left(self.steps, above, key=place_of)
        self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def lay_out(self) -> None:
        self.update(self.look)


class LiveTab(Widget):
    """Follows one transcript, in a thread of its own as long as it is shown."""

    DEFAULT_CSS = """
    LiveTab { layout: vertical; height: 1fr; display: none; }
    LiveTab #live-state { height: 1; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    LiveTab Input { display: none; height: 1; border: none; padding: 0 0 0 1; background: $background; }
    """

    @dataclass
    class Read(Message):
        """The thread has looked."""

        transcript: RunTranscript
        look: Look

    def __init__(self) -> None:
        super().__init__()
        self.page = LiveLog()
        self.transcript: RunTranscript | None = None
        self._search = Input(compact=True, placeholder="words", max_length=100, select_on_focus=False)
        self._state = Static(id="live-state", markup=False)
        self._follower = Follower(lambda transcript, look: self.post_message(self.Read(transcript, look)))
        self._key: Hashable = None
        self._is_reading = True
        """The thread has not told yet about the end, or about the steps before."""

    def compose(self) -> ComposeResult:
        yield from (self.page, self._search, self._state)

    def on_mount(self) -> None:
        self.watch(self.page, "chosen", self._tell)
        self.watch(self.page, "scroll_y", self._tell)

    def show(self, view: View) -> None:
        """Show the transcript of a task, or how it stands by now."""
        run, self.page.view = view.task.run, view
        key = (run.source, run.session_id, run.place) if run is not None else None
        if key != self._key:
            self._key, self._is_reading, self._search.value = key, True, ""
            self.transcript = view.monitor.transcript(run) if run is not None else None
            self.display = self.transcript is not None
            self.page.steps = ()
            self.page.update(Look())
            self._follower.follow(self.transcript)
        self.page.refresh()

    @on(events.Unmount)
    def leave(self) -> None:
        """It is not shown any more."""
        self.display = False
        self._key = self.transcript = None
        self._follower.follow(None)

    def search(self) -> None:
        """Write the words that are looked for."""
        self._search.display = True
        self._search.focus()

    def leave_search(self) -> bool:
        """Show all steps again; False where all are shown."""
        was_open, self._search.display, self._search.value = self._search.display, False, ""
        if was_open:
            self.page.focus()
        return was_open

    @on(Input.Changed)
    def _seek(self, event: Input.Changed) -> None:
        event.stop()
        self.page.sought = event.value
        self.page.update(self.page.look)
        self._tell()

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        self._search.display = bool(event.value.strip())
        self.page.focus()

    @on(Read)
    def _update(self, event: Read) -> None:
        event.stop()
        if event.transcript is self.transcript:
            self._is_reading = False
            self.page.update(event.look)
            self._tell()

    def _tell(self) -> None:
        """Read what was before when the beginning comes into sight, and say in a line below how it stands."""
        log, look = self.page, self.page.look
        if look.has_older and log.top <= log.height and not self._is_reading and not look.trouble:
            self._is_reading = True
            self._follower.ask_for_older()
        words, style = "following" if look.steps else "It has said nothing yet.", FAINT
        if self._is_reading:
            words = "reading…"
        elif look.trouble or not log.follows:
            words, style = look.trouble or "not following: the end follows again", "$text-warning"
        matches = f"{len(log.steps):,} of {len(look.steps):,} match, esc shows all   " if log.sought.strip() else ""
        self._state.update(Content.assemble((matches, FAINT), (words, style)))
