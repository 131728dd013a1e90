"""The transcript of a task's run, one line a step, newest below. It follows until one leaves the end."""

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.reactive import var

from agentwatch.app.widgets.details.blocks import FAINT, NOTHING, Line, faint
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import View
from agentwatch.app.widgets.line import clip, clip_sentence, right
from agentwatch.delegation.events import RunState
from agentwatch.sources.sessions.entries import EntryKind, Follower, Look, Outcome, RunTranscript, Step, place_of
from agentwatch.text import folded, shown, summary, within
from agentwatch.view import times

_TOOK = 5
"""Cells for how long a call took."""
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
}
"""How a call came out."""


def line_of(step: Step, width: int, now: float, *, is_working: bool = True, name: str = "") -> Content:
    """A step in one line: time, kind, and how it came out. It begins with a blank for the cursor.

    `is_working`: open calls are at work; `name`: of the task that a call handed work to.
    """
    is_call, is_open = step.kind is EntryKind.CALL, step.outcome is Outcome.OPEN
    mark, style = ("◐", "$state-working") if is_open and is_working else ENDED[step.outcome]
    if step.outcome is Outcome.DONE and (not is_call or step.is_checklist):
        mark, style = ("≡", "$state-completed") if is_call else _MARKS.get(step.kind, (" ", ""))
    clock = times.local(step.at)[11:19] if step.at else ""
    start = Content.assemble((f" {clock:>8}  ", FAINT), (mark, style), " ")
    room = max(width - start.cell_length - _TOOK, 1)
    if not is_call:
        is_told = step.kind in (EntryKind.WORDS, EntryKind.PROMPT) and step.outcome is Outcome.DONE
        return start + Content.styled(clip(summary(step.about), room), "" if is_told else style)
    tool, handed = shown(step.tool), f"▸ {summary(name)}  " if name else ""
    result = "" if mark == "≡" or not step.result else _ARROW + shown(step.result)
    about = "" if name and name == step.about else shown(step.about)
    # A long result leaves more than half of the line to the call, of whose paths the ends are kept.
    said = clip_sentence(f"{tool} {handed}{about}".rstrip(), max(room - cell_len(result), int(room * 0.6)))
    body = Content(said).stylize("bold", 0, len(tool)).stylize("$text-accent", len(tool) + 1, len(tool + handed))
    if step.outcome is Outcome.REFUSED:
        body = Content.styled(said, "strike")
    body += Content.styled(clip(result, room - body.cell_length), FAINT if is_open else style)
    ended = now if is_open and is_working else step.ended_at
    if ended and step.at and ended - step.at >= 1:
        body = body.pad_right(room - body.cell_length) + faint(right(times.duration(ended - step.at), _TOOK))
    return start + body


class LiveLog(Page):
    """Follows one transcript, in a thread of its own as long as it is shown; a line is made when it is drawn."""

    look: var[Look] = var(Look(), always_update=True)
    """The last look at the transcript: it is there once its steps are shown."""
    transcript: RunTranscript | None = None
    steps: Sequence[Step] = ()
    """Those that are shown, oldest first."""
    sought = ""
    now = 0.0
    is_working = False
    spellings: Sequence[str] = ()
    """The spellings of the workspace."""
    names: Mapping[str, str] = {}
    """The names of tasks by the digests of their prompts."""
    _key: Hashable = None
    _is_reading = True
    """The thread has not told yet."""

    def __init__(self) -> None:
        super().__init__()
        self._follower = Follower(lambda transcript, look: self.call_later(self._read, transcript, look))

    @property
    def follows(self) -> bool:
        """Whether the cursor is on the end: then it goes to each new step."""
        return not self.steps or self.chosen == self.steps[-1].place

    @property
    def step(self) -> Step | None:
        """The one that the cursor is on."""
        return self.steps[self.places[self.chosen]] if self.chosen in self.places else None

    def line(self, number: int) -> Line:
        if number >= len(self.steps):
            return Line(NOTHING)
        step, width = self.steps[number], self.scrollable_content_region.width
        name = self.names.get(step.handed, "")
        step = step._replace(about=within(step.about, self.spellings), result=within(step.result, self.spellings))
        return Line(line_of(step, width, self.now, is_working=self.is_working, name=name), step.place)

    def follow(self, view: View | None) -> None:
        """Show the transcript of a task, or how it stands by now; None for no task."""
        run = view.task.run if view is not None else None
        key = (run.source, run.session_id, run.place) if run is not None else None
        if view is not None and run is not None:
            children = filter(None, map(view.tree.tasks.get, view.task.children))
            runs = ((child.title, attempt.run) for child in children for attempt in child.attempts)
            self.names = {run.prompt.digest: name for name, run in runs if run is not None and run.prompt is not None}
            self.is_working = run.state is RunState.WORKING and not run.process_gone
            self.now, self.spellings = view.now, view.monitor.spellings
        if key != self._key:
            self._key, self._is_reading, self.steps = key, True, ()
            self.transcript = view.monitor.transcript(run) if view is not None and run is not None else None
            self.update(Look())
            self._follower.follow(self.transcript)
        self.refresh()

    def on_unmount(self) -> None:
        self.follow(None)

    def _read(self, transcript: RunTranscript, look: Look) -> None:
        if transcript is self.transcript:
            self._is_reading = False
            self.update(look)

    def update(self, look: Look) -> None:
        """Show the steps that are known by now, of those the ones with the words that are sought."""
        follows, above = self.follows, self.steps[self.top].place if self.top < len(self.steps) else None
        sought, self.steps = folded(self.sought.strip()), look.steps
        if sought:
            words = [folded(f"{one.tool} {one.about} {one.result} {self.names.get(one.handed)}") for one in look.steps]
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
        """How it stands, in words."""
        look, words, style = self.look, "following" if self.look.steps else "It has said nothing yet.", FAINT
        if self._is_reading:
            words = "reading…"
        elif look.trouble or not self.follows:
            words, style = look.trouble or "not following: the end follows again", "$text-warning"
        found = f"{len(self.steps):,} of {len(look.steps):,} match, esc shows all   " if self.sought.strip() else ""
        return Content.assemble((found, FAINT), (words, style))
