"""The live tab: the transcript of a task's run, one line a step, newest below. It follows until one scrolls up."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

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
from agentwatch.app.widgets.details.view import View
from agentwatch.delegation.run import RunState
from agentwatch.delegation.task import Task
from agentwatch.sources.sessions.entries import EntryKind, Place
from agentwatch.sources.sessions.following import (
    Follower,
    Look,
    Outcome,
    RunTranscript,
    Step,
    index_of,
    place_of,
)
from agentwatch.text import folded
from agentwatch.view import times
from agentwatch.view.plain import shown, summary

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

NameOf = Callable[[str], str]
"""How the task is called that was handed a prompt, by the digest of that; "" where none is known."""

_FAMILY: Final = 2_000
"""Tasks below that are looked through for the name of one."""
_CLOCK: Final = 8
_DATED: Final = 16
_SHORT: Final = 5
"""Cells of a time: with its seconds, with its date, without both."""
_NARROW: Final = 56
"""Cells from which lines say the seconds and how long a call took."""
_TOOK: Final = 5
_ARROW: Final = "  → "
_LEAST_RESULT: Final = 10
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


class Pose(NamedTuple):
    """All that a line depends on besides its step. `clock`: cells of the time; `is_working`: open calls are at work."""

    width: int
    now: float
    clock: int
    is_working: bool = True


def line_of(step: Step, pose: Pose, name: str = "") -> Content:
    """A step in one line: time, kind, and how it came out. It begins with a blank for the cursor."""
    clock = times.clock(step.at, pose.now) if step.at else ""
    start = Content.assemble(" ", (right(clock[: pose.clock], pose.clock), FAINT), "  ", _mark(step, pose), " ")
    is_wide = pose.width >= _NARROW
    room = max(pose.width - start.cell_length - (_TOOK if is_wide else 0), 1)
    if step.kind is not EntryKind.CALL:
        style = "$text-error" if step.outcome is Outcome.FAILED else FAINT if step.kind in _FAINT_KINDS else ""
        return start + Content.styled(clip(summary(step.about), room), style)
    body = _call(step, room, name)
    ended = step.ended_at if step.outcome is not Outcome.OPEN else pose.now if pose.is_working else None
    if is_wide and ended and step.at and ended - step.at >= 1:
        took = right(times.duration(ended - step.at), _TOOK)
        body = body.pad_right(room - body.cell_length) + faint(took)
    return start + body


def _mark(step: Step, pose: Pose) -> tuple[str, str]:
    if step.outcome is Outcome.OPEN:
        return ("◐", "$state-working") if pose.is_working else ("○", FAINT)
    if step.kind is not EntryKind.CALL and step.outcome is not Outcome.FAILED:
        return _MARKS[step.kind]
    is_list = step.is_checklist and step.outcome is Outcome.DONE
    return ("≡", "$state-completed") if is_list else _ENDED[step.outcome]


def _call(step: Step, room: int, name: str) -> Content:
    tool, result, about = shown(step.tool), shown(step.result), shown(step.about)
    handed = f"▸ {summary(name)}  " if name else ""
    if name and summary(name) == summary(step.about):
        about = ""
    if step.is_checklist and step.outcome is Outcome.DONE:
        result = ""
    wanted = max(int(room * _SHARE), room - len(_ARROW) - len(result)) if result else room
    has_room = room - wanted >= len(_ARROW) + _LEAST_RESULT
    line = Content(clip(f"{tool} {handed}{about}".rstrip(), wanted if has_room else room))
    if step.outcome is Outcome.REFUSED:
        line = line.stylize("strike")
    else:
        line = line.stylize("bold", 0, len(tool))
        line = line.stylize("$text-accent", len(tool) + 1, len(tool) + 1 + len(handed.rstrip())) if handed else line
    rest = room - line.cell_length - len(_ARROW)
    if not result or rest < _LEAST_RESULT:
        return line
    style = "$text-error" if step.outcome is Outcome.FAILED else FAINT
    return Content.assemble(line, (_ARROW, FAINT), (clip(result, rest), style))


class LiveLog(Page):
    """The steps that are shown. As long as it `follows`, the cursor goes to each new one."""

    class Moved(Message):
        """The cursor, or what is in sight, is another."""

    def __init__(self) -> None:
        super().__init__()
        self.follows = True
        self.look = Look()
        self.steps: Sequence[Step] = ()
        """Those that are shown, oldest first."""
        self.sought = ""
        self.pose = Pose(0, 0.0, _CLOCK)
        self.name_of: NameOf = lambda _: ""
        self._newest: Place | None = None
        """The last one that there was when it followed."""
        self._is_moving = False
        """It scrolls of its own accord."""

    @property
    def allow_select(self) -> bool:
        return False

    @property
    def unseen(self) -> int:
        """Steps that came since it follows no more."""
        if self.follows or self._newest is None:
            return 0
        return len(self.look.steps) - bisect_right(self.look.steps, self._newest, key=place_of)

    @property
    def wants_older(self) -> bool:
        """Whether the beginning of what is known is in sight, and there is more before it."""
        return self.look.has_older and self.scroll_offset.y <= self.height

    def current(self, place: Hashable) -> Step | None:
        """A step as it is known by now."""
        at = index_of(self.look.steps, cast("Place", place))
        return self.look.steps[at] if at is not None else None

    def line(self, number: int) -> Line:
        if number >= len(self.steps):
            return Line(NOTHING)
        step = self.steps[number]
        name = self.name_of(step.handed) if step.handed else ""
        return Line(line_of(step, self.pose, name), choice=step.place)

    def update(self, look: Look) -> None:
        """Show the steps that are known by now, of those the ones with the words that are sought."""
        above = self.steps[self.top].place if self.top < len(self.steps) else None
        self.look = look
        self.steps = [step for step in look.steps if self._fits(step)] if self.sought.strip() else look.steps
        first = self.steps[0].at if self.steps else 0.0
        dated = bool(first) and len(times.clock(first, self.pose.now)) > _CLOCK
        clock = _SHORT if self.pose.width < _NARROW else _DATED if dated else _CLOCK
        self.pose = self.pose._replace(clock=clock)
        if self.follows:
            self._newest = look.steps[-1].place if look.steps else None
            self.chosen = self.steps[-1].place if self.steps else None
        places: dict[Hashable, range] = {step.place: range(at, at + 1) for at, step in enumerate(self.steps)}
        self._is_moving = True
        self.place(places, Size(self.pose.width, len(self.steps)))
        if self.follows or above is not None:
            y = self.max_scroll_y if self.follows else bisect_left(self.steps, above, key=place_of)
            self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self._is_moving = False
        self.post_message(self.Moved())

    def _fits(self, step: Step) -> bool:
        sought = folded(self.sought.strip())
        handed = folded(self.name_of(step.handed)) if step.handed else ""
        return sought in folded(f"{step.tool} {step.about} {step.result}") or sought in handed

    def choose(self, entry: Hashable) -> None:
        """The operator has moved: at the end, it follows."""
        super().choose(entry)
        self.follows = bool(self.steps) and entry == self.steps[-1].place and self.scroll_offset.y >= self.max_scroll_y
        if self.follows:
            self._newest = self.look.steps[-1].place
        self.post_message(self.Moved())

    def action_move_pages(self, pages: int) -> None:
        at = (self.places[self.chosen].start if self.steps else 0) + pages * max(self.height - 1, 1)
        self._choose_at(at)

    def action_first_line(self) -> None:
        self._choose_at(0)

    def action_last_line(self) -> None:
        self._choose_at(len(self.steps) - 1)

    def _choose_at(self, at: int) -> None:
        if self.steps:
            self.choose(self.steps[min(max(at, 0), len(self.steps) - 1)].place)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # A wheel or the bar moves what is in sight, and the cursor with it.
        if self._is_moving or not self.steps or not self.height:
            return
        top, at, last = int(new_value), self.places[self.chosen].start, len(self.steps) - 1
        if new_value >= self.max_scroll_y and new_value > old_value:
            self._choose_at(last)
        elif not top <= at < top + self.height:
            self._choose_at(min(max(at, top), top + self.height - 1))

    def lay_out(self) -> None:
        self.pose = self.pose._replace(width=self.scrollable_content_region.width)
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
        run = view.task.run
        key = (run.source, run.session_id, run.place) if run is not None else None
        if key != self._key:
            self._key = key
            self.transcript = view.monitor.transcript(run) if run is not None else None
            self.display = self.transcript is not None
            self._is_reading, self._search.value, self.page.follows = True, "", True
            self.page.update(Look())
            self._follower.follow(self.transcript)
            self._write_state()
        if run is not None:
            is_working = run.state is RunState.WORKING and not run.process_gone
            self.page.pose = self.page.pose._replace(now=view.now, is_working=is_working)
            names: dict[str, str] = {}
            self.page.name_of = lambda digest: names.setdefault(digest, _name(view.tree, view.task, digest))
            self.page.refresh()

    @on(events.Hide)
    @on(events.Unmount)
    def leave(self) -> None:
        """It is not shown any more."""
        self._key = self.transcript = None
        self._follower.follow(None)

    def search(self) -> None:
        """Write the words that are looked for."""
        self._search.display = True
        self._search.focus()
        self._write_state()

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
        if not self._search.value.strip():
            self.leave_search()
        self.page.focus()

    @on(Read)
    def _take(self, event: Read) -> None:
        event.stop()
        if event.transcript is self.transcript:
            had_steps, self._is_reading = bool(self.page.look.steps), False
            self.page.update(event.look)
            if had_steps != bool(event.look.steps):
                self.post_message(self.Changed())

    @on(LiveLog.Moved)
    def _moved(self, event: LiveLog.Moved) -> None:
        event.stop()
        if self.page.wants_older and not self._is_reading and not self.page.look.trouble:
            self._is_reading = True
            self._follower.ask_for_older()
        self._write_state()

    def _write_state(self) -> None:
        """How it stands, in one line below."""
        log, look = self.page, self.page.look
        parts: list[Content] = []
        if self._search.display and self._search.value.strip():
            parts.append(faint(f"{len(log.steps):,} of {len(look.steps):,} match, esc shows all"))
        if self._is_reading and not look.steps:
            parts = [faint("reading…")]
        elif look.trouble:
            words = f"{look.trouble}{': this is what it said.' if look.steps else '.'}"
            parts.append(Content.styled(words, "$text-warning"))
        elif not log.follows:
            new = f"{log.unseen:,} new below, " if log.unseen else ""
            parts.append(Content.styled(f"not following: {new}the end follows again", "$text-warning"))
        else:
            parts.append(faint("following" if look.steps else "It has said nothing yet."))
        if self._is_reading and look.steps and log.top == 0:
            parts.append(faint("reading what was before…"))
        self._state.update(faint("   ").join(parts))


def _name(tree: Tree, task: Task, digest: str) -> str:
    """The name of the task below that was given these words."""
    below = list(task.children)
    # It grows while it is gone through: the nearest come first.
    for child_id in islice(below, _FAMILY):
        if (child := tree.tasks.get(child_id)) is None:
            continue
        prompts = (attempt.run.prompt for attempt in child.attempts if attempt.run is not None)
        if any(prompt is not None and prompt.digest == digest for prompt in prompts):
            return child.title
        below += child.children
    return ""
