"""The lines of a transcript, one a step, newest below: how each is written, and how one moves through them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.visual import Visual

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.cells import clip, right
from agentwatch.app.widgets.details.blocks import faint
from agentwatch.app.widgets.details.page import CursorView
from agentwatch.sources.sessions.doing import EntryKind
from agentwatch.sources.sessions.following import Look
from agentwatch.sources.sessions.steps import Outcome, Place, Step, index_of, place_of
from agentwatch.text import folded
from agentwatch.view import times
from agentwatch.view.plain import shown, summary

NameOf = Callable[[str], str]
"""What the task is called that was handed a prompt, by the digest of that; "" where none is known."""

_CLOCK: Final = 8
_DATED: Final = 16
_SHORT: Final = 5
_NARROW: Final = 56
"""Cells from which lines say the seconds and how long a call took."""
_TOOK: Final = 5
_ARROW: Final = "  → "
_LEAST_RESULT: Final = 10
_SHARE: Final = 0.6
"""What the result leaves of a line to what was called."""
_DRAWN: Final = 500
_MARKS: Final = {
    EntryKind.PROMPT: ("›", "bold $text-accent"),
    EntryKind.WORDS: (" ", ""),
    EntryKind.THOUGHT: ("·", FAINT),
    EntryKind.NOTE: ("!", "$text-warning"),
}
_STYLES: Final = {EntryKind.PROMPT: "", EntryKind.WORDS: "", EntryKind.THOUGHT: FAINT, EntryKind.NOTE: FAINT}
_ENDED: Final = {
    Outcome.DONE: ("✓", FAINT),
    Outcome.FAILED: ("✗", "$text-error"),
    Outcome.REFUSED: ("⊘", "$text-warning"),
}
_CHECKLIST: Final = "≡"


class Pose(NamedTuple):
    """What a line depends on besides its step. `clock`: cells of the time; `is_working`: open calls are at work."""

    width: int
    now: float
    clock: int
    is_working: bool = True


def line_of(step: Step, pose: Pose, name: str = "") -> Content:
    """A step in one line: time, what it is, and what came of it. It begins with a blank for the cursor."""
    clock = times.clock(step.at, pose.now) if step.at else ""
    start = Content.assemble(" ", (right(clock[: pose.clock], pose.clock), FAINT), "  ", _mark(step, pose), " ")
    is_wide = pose.width >= _NARROW
    room = max(pose.width - start.cell_length - (_TOOK if is_wide else 0), 1)
    if step.kind is EntryKind.CALL:
        body = _call(step, room, name)
        if is_wide and (took := _took(step, pose)):
            body = body.pad_right(room - body.cell_length) + faint(right(took, _TOOK))
        return start + body
    style = "$text-error" if step.outcome is Outcome.FAILED else _STYLES[step.kind]
    return start + Content.styled(clip(summary(step.about), room), style)


def _mark(step: Step, pose: Pose) -> tuple[str, str]:
    if step.outcome is Outcome.OPEN:
        return ("◐", "$state-working") if pose.is_working else ("○", FAINT)
    if step.kind is not EntryKind.CALL and step.outcome is not Outcome.FAILED:
        return _MARKS[step.kind]
    if step.is_checklist and step.outcome is Outcome.DONE:
        return _CHECKLIST, "$state-completed"
    return _ENDED[step.outcome]


def _took(step: Step, pose: Pose) -> str:
    ended = step.ended_at if step.outcome is not Outcome.OPEN else pose.now if pose.is_working else None
    seconds = ended - step.at if ended and step.at else 0.0
    return times.duration(seconds) if seconds >= 1 else ""


def _call(step: Step, room: int, name: str) -> Content:
    tool, result = shown(step.tool), shown(step.result)
    handed, about = f"▸ {summary(name)}  " if name else "", shown(step.about)
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
        if handed:
            line = line.stylize("$text-accent", len(tool) + 1, len(tool) + 1 + len(handed.rstrip()))
    rest = room - line.cell_length - len(_ARROW)
    if not result or rest < _LEAST_RESULT:
        return line
    style = "$text-error" if step.outcome is Outcome.FAILED else FAINT
    return Content.assemble(line, (_ARROW, FAINT), (clip(result, rest), style))


class LiveLog(CursorView):
    """The steps that are shown, drawn one by one, so that its cost is that of what is on screen.

    The cursor is bound to a step. As long as it `follows`, it goes to each new one.
    """

    ALLOW_SELECT = False

    class Moved(Message):
        """The cursor, or what is in sight, is another."""

    def __init__(self) -> None:
        super().__init__()
        self.follows = True
        self.look = Look()
        self.steps: Sequence[Step] = ()
        """Those that are shown, oldest first."""
        self._chosen: Place | None = None
        self._sought = ""
        self._newest: Place | None = None
        """The last one that there was when it followed."""
        self._pose = Pose(0, 0.0, _CLOCK)
        self._name_of: NameOf = lambda _: ""
        self._is_moving = False
        """It scrolls of its own accord."""
        self._drawn: dict[Place, tuple[Step, tuple[object, ...], Strip]] = {}
        """Lines as they were drawn last: with each new one all others move up."""

    @property
    def chosen(self) -> Step | None:
        """The one that the cursor is on."""
        at = self._cursor
        return self.steps[at] if at is not None else None

    @property
    def lines(self) -> tuple[str, ...]:
        """What it says, line by line."""
        return tuple(self._line(step).plain.rstrip() for step in self.steps)

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

    @property
    def _cursor(self) -> int | None:
        return index_of(self.steps, self._chosen)

    def current(self, place: Place) -> Step | None:
        """A step as it is known by now."""
        at = index_of(self.look.steps, place)
        return self.look.steps[at] if at is not None else None

    def begin(self) -> None:
        """Another transcript is shown from here on."""
        self.follows, self._chosen, self._newest = True, None, None
        self.take(Look())

    def take(self, look: Look) -> None:
        """Show what is known by now."""
        self.look = look
        self._show()

    def seek(self, words: str) -> None:
        """Show only the steps with these words; all for ""."""
        self._sought = folded(words.strip())
        self._show()

    def pose(self, now: float, name_of: NameOf, *, is_working: bool) -> None:
        """What lines depend on besides their steps has changed."""
        before, top = self._pose, int(self.scroll_offset.y)
        self._pose = before._replace(now=now, is_working=is_working)
        self._name_of = name_of
        in_sight = self.steps[top : top + self.height]
        if before.is_working != is_working or not all(map(_is_final, in_sight)):
            self.refresh()

    def _show(self) -> None:
        top, former = int(self.scroll_offset.y), self._cursor or 0
        above = self.steps[top].place if top < len(self.steps) else None
        steps = self.look.steps
        self.steps = [step for step in steps if self._fits(step)] if self._sought else steps
        if self.follows:
            self._newest = _last_of(steps)
            self._chosen = _last_of(self.steps)
        elif self._cursor is None and self.steps:
            self._chosen = self.steps[min(former, len(self.steps) - 1)].place
        first = self.steps[0].at if self.steps else 0.0
        dated = bool(first) and len(times.clock(first, self._pose.now)) > _CLOCK
        clock = _SHORT if self._pose.width < _NARROW else _DATED if dated else _CLOCK
        self._pose = self._pose._replace(clock=clock)
        self.virtual_size = Size(self._pose.width, len(self.steps))
        if self.follows:
            self._go_to(self.max_scroll_y)
        elif above is not None:
            self._go_to(bisect_left(self.steps, above, key=place_of))
        self.refresh()
        self.post_message(self.Moved())

    def _fits(self, step: Step) -> bool:
        words = folded(f"{step.tool} {step.about} {step.result}")
        return self._sought in words or bool(step.handed and self._sought in folded(self._name_of(step.handed)))

    def _go_to(self, y: int) -> None:
        self._is_moving = True
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self._is_moving = False

    # Moving

    def _move_to(self, at: int) -> None:
        """The operator has moved: at the end, it follows."""
        self._chosen = self.steps[at].place
        self.follows = at == len(self.steps) - 1 and self.scroll_offset.y >= self.max_scroll_y
        if self.follows:
            self._newest = _last_of(self.look.steps)
        self.refresh()
        self.post_message(self.Moved())

    def _choose(self, at: int) -> None:
        if not self.steps:
            return
        at = min(max(at, 0), len(self.steps) - 1)
        self._chosen = self.steps[at].place
        top = int(self.scroll_offset.y)
        if not top <= at < top + self.height:
            self._go_to(min(max(top, at - self.height + 1), at))
        self._move_to(at)

    def action_move_by(self, step: int) -> None:
        self._choose((self._cursor or 0) + step)

    def action_move_pages(self, pages: int) -> None:
        self.action_move_by(pages * max(self.height - 1, 1))

    def action_first_line(self) -> None:
        self._choose(0)

    def action_last_line(self) -> None:
        self._choose(len(self.steps) - 1)

    def on_click(self, event: events.Click) -> None:
        at = int(self.scroll_offset.y) + event.y
        if at < len(self.steps):
            self._choose(at)
            if event.chain == 2:
                self.post_message(self.Opened())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # A wheel or the bar moves what is in sight, and the cursor with it.
        top, height, at, last = int(new_value), self.height, self._cursor, len(self.steps) - 1
        if at is None or not height:
            return
        if new_value >= self.max_scroll_y and new_value > old_value:
            if not self.follows and at < last and not self._is_moving:
                self._move_to(last)
        elif not top <= at < top + height:
            self._move_to(min(max(at, top), top + height - 1, last))

    # Drawing

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width != self._pose.width:
            self._pose = self._pose._replace(width=width)
            self._show()
        elif self.follows:
            self._go_to(self.max_scroll_y)

    def _line(self, step: Step) -> Content:
        return line_of(step, self._pose, self._name_of(step.handed) if step.handed else "")

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = int(self.scroll_offset.y) + y
        if number >= len(self.steps):
            return Strip.blank(width, self.visual_style.rich_style)
        step = self.steps[number]
        is_under = step.place == self._chosen and self.has_focus
        basis = (is_under, width, self._pose.width, self._pose.clock, self.app.theme)
        drawn = self._drawn.get(step.place) if _is_final(step) else None
        if drawn is not None and drawn[0] is step and drawn[1] == basis:
            return drawn[2]
        content = self._line(step)
        if is_under:
            content = self._under_cursor(content, width)
        strip = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)[0]
        if len(self._drawn) > _DRAWN:
            self._drawn.clear()
        self._drawn[step.place] = step, basis, strip
        return strip


def _is_final(step: Step) -> bool:
    """What is still open changes with the time, and a name may be found later."""
    return step.outcome is not Outcome.OPEN and not step.handed


def _last_of(steps: Sequence[Step]) -> Place | None:
    return steps[-1].place if steps else None
