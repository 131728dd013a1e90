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

from agentwatch.app.markdown_safe import FAINT, NOTHING, Line
from agentwatch.app.widgets.cells import clip, right
from agentwatch.app.widgets.details.blocks import faint
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import View
from agentwatch.delegation.run import RunState
from agentwatch.sources.sessions.entries import EntryKind
from agentwatch.sources.sessions.following import (
    Follower,
    Look,
    Outcome,
    RunTranscript,
    Step,
    place_of,
)
from agentwatch.text import folded
from agentwatch.view import times
from agentwatch.view.plain import shown, summary

_CLOCK: Final = 8
_SHORT: Final = 5
"""Cells of a time: with its seconds, and without."""
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
    EntryKind.WORDS: (" ", ""),
    EntryKind.THOUGHT: ("·", FAINT),
    EntryKind.NOTE: ("!", "$text-warning"),
}
_FAINT_KINDS: Final = (EntryKind.THOUGHT, EntryKind.NOTE)
_ENDED: Final = {
    Outcome.DONE: ("✓", FAINT),
    Outcome.FAILED: ("✗", "$text-error"),
    Outcome.REFUSED: ("⊘", "$text-warning"),
}


def line_of(
    step: Step, width: int, now: float, *, clock: int = _CLOCK, is_working: bool = True, name: str = ""
) -> Content:
    """A step in one line: time, kind, and how it came out. It begins with a blank for the cursor.

    `clock`: cells of the time; `is_working`: open calls are at work; `name`: of the task that a call handed work to.
    """
    began = times.clock(step.at, now)[:clock] if step.at else ""
    start = Content.assemble(" ", (right(began, clock), FAINT), "  ", _mark(step, is_working=is_working), " ")
    is_wide = width >= _NARROW
    room = max(width - start.cell_length - (_TOOK if is_wide else 0), 1)
    if step.kind is not EntryKind.CALL:
        style = "$text-error" if step.outcome is Outcome.FAILED else FAINT if step.kind in _FAINT_KINDS else ""
        return start + Content.styled(clip(summary(step.about), room), style)
    body = _call(step, room, summary(name))
    ended = step.ended_at if step.outcome is not Outcome.OPEN else now if is_working else None
    if is_wide and ended and step.at and ended - step.at >= 1:
        body = body.pad_right(room - body.cell_length) + faint(right(times.duration(ended - step.at), _TOOK))
    return start + body


def _mark(step: Step, *, is_working: bool) -> tuple[str, str]:
    if step.outcome is Outcome.OPEN:
        return ("◐", "$state-working") if is_working else ("○", FAINT)
    if step.kind is not EntryKind.CALL and step.outcome is not Outcome.FAILED:
        return _MARKS[step.kind]
    is_list = step.is_checklist and step.outcome is Outcome.DONE
    return ("≡", "$state-completed") if is_list else _ENDED[step.outcome]


def _call(step: Step, room: int, name: str) -> Content:
    """The tool and what it was called for, and the beginning of its result in the room that is left."""
    tool, about = shown(step.tool), "" if name and name == summary(step.about) else shown(step.about)
    is_list = step.is_checklist and step.outcome is Outcome.DONE
    result = "" if is_list or room < _LEAST_CALL else shown(step.result)
    handed = f"▸ {name}  " if name else ""
    most = max(int(room * _SHARE), room - len(_ARROW) - len(result)) if result else room
    line = Content(clip(f"{tool} {handed}{about}".rstrip(), most))
    if step.outcome is Outcome.REFUSED:
        line = line.stylize("strike")
    else:
        line = line.stylize("bold", 0, len(tool))
        line = line.stylize("$text-accent", len(tool) + 1, len(tool) + 1 + len(handed.rstrip())) if handed else line
    style = "$text-error" if step.outcome is Outcome.FAILED else FAINT
    words = clip(result, room - line.cell_length - len(_ARROW))
    return Content.assemble(line, (_ARROW, FAINT), (words, style)) if words else line


class LiveLog(Page):
    """The steps that are shown, each a line that is made when it is drawn."""

    class Moved(Message):
        """The cursor, or what is in sight, is another."""

    def __init__(self) -> None:
        super().__init__()
        self.look = Look()
        self.steps: Sequence[Step] = ()
        """Those that are shown, oldest first."""
        self.sought = ""
        self.view: View | None = None
        self._bottom = 0
        """The line behind the last one that was in sight, before a resize, too."""

    @property
    def allow_select(self) -> bool:
        return False

    @property
    def follows(self) -> bool:
        """Whether the end is in sight, and the cursor on it: then both go to each new step."""
        return self._bottom >= len(self.steps) and (not self.steps or self.chosen == self.steps[-1].place)

    @property
    def step(self) -> Step | None:
        """The one that the cursor is on."""
        return self.steps[self.places[self.chosen]] if self.chosen in self.places else None

    def line(self, number: int) -> Line:
        if number >= len(self.steps) or self.view is None:
            return Line(NOTHING)
        step, width, now = self.steps[number], self.scrollable_content_region.width, self.view.now
        run = self.view.task.run
        is_working = run is not None and run.state is RunState.WORKING and not run.process_gone
        clock = len(times.clock(self.steps[0].at, now)) if width >= _NARROW else _SHORT
        name = self._name_of(step)
        return Line(line_of(step, width, now, clock=clock, is_working=is_working, name=name), choice=step.place)

    def _name_of(self, step: Step) -> str:
        """The name of the task that was given the words of a call."""
        tasks, children = (self.view.tree.tasks, self.view.task.children) if self.view and step.handed else ({}, [])
        for child in filter(None, map(tasks.get, children)):
            prompts = (attempt.run.prompt for attempt in child.attempts if attempt.run is not None)
            if any(prompt is not None and prompt.digest == step.handed for prompt in prompts):
                return child.title
        return ""

    def update(self, look: Look, *, at_end: bool = False) -> None:
        """Show the steps that are known by now, of those the ones with the words that are sought."""
        follows, top = at_end or self.follows, self.top
        above = self.steps[top].place if top < len(self.steps) else None
        sought = folded(self.sought.strip())
        self.look = look
        self.steps = [one for one in look.steps if sought in folded(self._words(one))] if sought else look.steps
        if follows:
            self.chosen = self.steps[-1].place if self.steps else None
        places: dict[Hashable, int] = {step.place: at for at, step in enumerate(self.steps)}
        self.place(places, Size(self.scrollable_content_region.width, len(self.steps)))
        y = self.max_scroll_y if follows or above is None else bisect_left(self.steps, above, key=place_of)
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self._bottom = len(self.steps) if follows else self.top + self.height
        self.post_message(self.Moved())

    def _words(self, step: Step) -> str:
        return f"{step.tool} {step.about} {step.result} {self._name_of(step)}"

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._bottom = self.top + self.height
        self.post_message(self.Moved())

    def choose(self, entry: Hashable) -> None:
        super().choose(entry)
        self.post_message(self.Moved())

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

    class Changed(Message):
        """There is, or is no more, something that the keys are about."""

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
        yield self.page
        yield self._search
        yield self._state

    def show(self, view: View) -> None:
        """Show the transcript of a task, or how it stands by now."""
        run, self.page.view = view.task.run, view
        key = (run.source, run.session_id, run.place) if run is not None else None
        if key != self._key:
            self._key = key
            self.transcript = view.monitor.transcript(run) if run is not None else None
            self.display = self.transcript is not None
            self._is_reading, self._search.value = True, ""
            self.page.update(Look(), at_end=True)
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

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            self.leave_search()
        self.page.focus()

    @on(Read)
    def _take(self, event: Read) -> None:
        event.stop()
        if event.transcript is self.transcript:
            self._is_reading = False
            self.page.update(event.look)
            self.post_message(self.Changed())

    @on(LiveLog.Moved)
    def _moved(self, event: LiveLog.Moved) -> None:
        """Read what was before when the beginning comes into sight, and say in a line below how it stands."""
        event.stop()
        log, look = self.page, self.page.look
        if look.has_older and log.top <= log.height and not self._is_reading and not look.trouble:
            self._is_reading = True
            self._follower.ask_for_older()
        if self._is_reading:
            words, style = "reading…", FAINT
        elif look.trouble:
            words, style = f"{look.trouble}{': this is what it said.' if look.steps else '.'}", "$text-warning"
        elif not log.follows:
            words, style = "not following: the end follows again", "$text-warning"
        else:
            words, style = "following" if look.steps else "It has said nothing yet.", FAINT
        matches = f"{len(log.steps):,} of {len(look.steps):,} match, esc shows all   " if log.sought.strip() else ""
        self._state.update(Content.assemble((matches, FAINT), (words, style)))
