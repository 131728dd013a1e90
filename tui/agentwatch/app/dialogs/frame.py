"""What every dialog that signs something is: a frame that foreign text cannot enter, and the one key that records.

From top to bottom: the frame of ours with the facts, the operator's choices and what is true now; then what is handed
on, and foreign words. Only `ctrl+s` decides, not before the operator could have read what it is about.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.dialogs.fields import LABEL, Choice, Facts, Row, Standing, Unlock, line_input
from agentwatch.app.dialogs.forms import Form
from agentwatch.app.leaving import leave
from agentwatch.app.once import once
from agentwatch.app.typeahead import Arming
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions.errors import DecisionError, QueuedError
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.delegation.decision import Action
from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.decisions.face import OperatorDesk

_PERIOD: Final = 1.0
_REMARK_SECONDS: Final = 5.0
"""After which an agent that waits has read what was decided: before, nothing is said of nobody reading it."""
_WIDE: Final = 110
"""Cells from which foreign words stand beside what is handed on."""
_TALL: Final = 24
"""Lines of screen from which the whole frame is in sight: in fewer its last line stands below what scrolls."""
_LEAST: Final = 30, 10
"""Cells and lines of screen below which nothing is recorded: what it is about could not be read."""


End = Enum("End", "DECIDED SKIPPED LEFT")
"""How a dialog was left, where not for another action."""


class Wanted(NamedTuple):
    """What has to be done before a decision can be recorded, and in which field, if it can be done here."""

    reason: str
    field: Widget | None = None


class Dialog(ModalScreen[End | Action]):
    """Ends with how it was left, or with the action that is wanted instead.

    Each kind of dialog says what its facts are, what has changed, what is missing, and how it is recorded. `steady`
    gives the seconds of a clock that nobody sets. `queue` is its place in a review, and how many there are.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.DECIDE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}
    AUTO_FOCUS = ".first"
    ADVICE: ClassVar[str] = "Leave with escape, look at it, and open this again."
    """What to do once it is not as the operator saw it."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background; }
    Dialog > .details--faint { color: $text-muted; }
    Dialog:ansi > .details--faint { text-style: dim; }
    Dialog > #decision { width: 1fr; height: 1fr; overflow-y: auto; scrollbar-size-vertical: 1; }
    Dialog #below { height: 1fr; min-height: 8; layout: vertical; }
    Dialog.-wide #below { layout: horizontal; }
    Dialog.-wide Document, Dialog.-wide #answers { height: 1fr; width: 3fr; }
    Dialog.-wide #words { height: 1fr; width: 2fr; }
    Dialog.-low #below { height: auto; }
    Dialog.-low Document { height: 8; }
    Dialog.-low #answers { height: auto; }
    Dialog.-low #words { height: 8; }
    Dialog.-low.-wide #below { height: 12; }
    Dialog.-low.-wide Document, Dialog.-low.-wide #answers, Dialog.-low.-wide #words { height: 1fr; }
    Dialog #ours {
        height: auto; border: double $accent; padding: 0 1;
        border-title-color: $text-accent; border-title-style: bold; border-subtitle-color: $text-accent;
    }
    Dialog #facts { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    Dialog #standing { height: auto; }
    Dialog #standing-low { display: none; height: auto; padding: 0 1; background: $panel; }
    Dialog.-low #standing, Dialog.-small > #decision { display: none; }
    Dialog.-low #standing-low, Dialog.-small #standing-low { display: block; }
    Dialog.-small #standing-low { height: 1fr; }
    Dialog #words { height: 1fr; }
    Dialog #answers { height: 2fr; }
    Dialog #words, Dialog #answers { min-height: 4; border: round $line; border-title-color: $text-muted; }
    Dialog #words:focus-within, Dialog #answers:focus-within { border: round $text-muted; }
    Dialog Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    Dialog Input:focus { border: none; background: $cursor-row; background-tint: transparent; }
    Dialog .-wanted, Dialog Input.-wanted:focus { background: $error 25%; }
    Dialog #answers Input { margin-left: 2; }
    Dialog:ansi Input { text-style: underline; }
    """

    def __init__(
        self, form: Form, desk: OperatorDesk, steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.form = form
        self.seen_at: float | None = None
        """When it was on the screen for the first time, by the clock of events: it hears nothing that was typed before.
        """
        self._queue = queue
        self._arming = Arming(self, steady, self.look)
        self._trouble = ""
        self._recording = self._is_decided = False
        self._note = line_input(form.note_placeholder, id="note")
        (form.first or self._note).add_class("first")
        self._unlock = Unlock(desk)
        self._facts = Facts()
        self._standings = Standing(id="standing", markup=False), Standing(id="standing-low", markup=False)
        self._wanted: Wanted | None = None
        """What was missing when the key that records was pressed: it is said where one looks."""
        self._footer = Footer(Place.DECIDE, is_useless=self.is_useless, refused=self._refused)

    # What each kind says

    @abstractmethod
    def facts(self, width: int) -> Iterable[Content]:
        """What it is about: lines of ours with their labels, of values up to `width` cells."""

    def rows(self) -> Iterator[Row]:
        """What stands between the facts and the note."""
        yield from self.form.rows()

    def below(self) -> ComposeResult:
        """What stands below the frame."""
        yield from self.form.below()

    @abstractmethod
    def change(self) -> str | None:
        """What is not as the operator saw it, a sentence; None if all is."""

    def missing(self) -> Wanted | None:
        """What is missing before it can be recorded, if anything is."""
        reason = self.form.missing()
        return Wanted(reason, self.form.wanted) if reason else None

    async def is_sound(self) -> bool:
        """Whether what takes a while to look at is sound, too."""
        return True

    @abstractmethod
    async def sign(self) -> DecisionMade:
        """Record what the fields say now. Raises DecisionError."""

    @abstractmethod
    def outcome(self, decided: DecisionMade) -> str:
        """What became of it, in a sentence."""

    def effect(self) -> str:
        """What the key does, now that nothing is missing."""
        return "records this decision; nothing is recorded before"

    async def remark(self) -> str:
        """What to warn of a while after it was recorded and delivered, a sentence; blank for nothing."""
        return ""

    def is_useless(self, command_id: str) -> bool:
        """Whether a key does nothing here: the footer leaves it out."""
        return (command_id == "dialog.record" and self.has_class("-small")) or (
            command_id == "dialog.skip" and self._queue is None
        )

    @property
    def note(self) -> str:
        return self._note.value

    # The screen

    def compose(self) -> ComposeResult:
        with Vertical(id="decision"):
            with Vertical(id="ours") as ours:
                ours.border_title = f"◆ {self.form.glyph} {self.form.word}"
                if self._queue is not None:
                    ours.border_subtitle = f"{self._queue[0]} of {self._queue[1]}"
                yield self._facts
                yield from self.rows()
                if self.form.note_label:
                    yield Row(self.form.note_label, self._note)
                yield self._unlock
                yield self._standings[0]
            with Vertical(id="below"):
                yield from self.below()
        yield self._standings[1]
        yield self._footer

    def on_mount(self) -> None:
        self.app.app_resume_signal.subscribe(self, lambda _app: self._arming.begin())
        self.set_interval(_PERIOD, self.look)
        self.call_after_refresh(self._be_seen)

    def _be_seen(self) -> None:
        self.seen_at = time.monotonic()
        self._arming.begin()
        self.look()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _WIDE, "-wide")
        self.set_class(event.size.height < _TALL, "-low")
        was_small = self.has_class("-small")
        self.set_class(event.size.width < _LEAST[0] or event.size.height < _LEAST[1], "-small")
        if was_small and not self.has_class("-small"):
            # What was out of sight has lost the focus.
            self.call_after_refresh(self.focus_next, self.AUTO_FOCUS)
        self.call_after_refresh(self.look)

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take_change(self) -> None:
        """The operator has changed something: what was wrong before may be right now."""
        self._trouble = ""
        self._mark(None)
        self.look()
        if self.focused is not None and self.has_class("-low"):
            # What is written may be out of sight, once the facts above have the lines that they need.
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    def look(self) -> None:
        """Say what is true now, once keys are heard: the operator types as soon as the last line stands."""
        if self.seen_at is None or not self.is_attached:
            return
        self.form.update()
        if self._wanted is not None and self._missing() != self._wanted:
            self._mark(None)
        width = (self._facts.size.width or self.size.width - 6) - LABEL
        self._facts.tell(list(self.facts(width)))
        for standing in self._standings:
            standing.tell(self._standing())
        self._footer.redraw()

    def _standing(self) -> Content:
        """The last line that is ours: what the key would do, or why it does nothing."""
        if self._recording:
            return Content("recording…")
        if self._trouble:
            return Content.styled(f"✗ {self._trouble}", "bold $text-error")
        if change := self.change():
            return Content.styled(f"✗ {change} {self.ADVICE}", "bold $text-error")
        if missing := self._missing():
            return Content.styled(f"○ not yet: {missing.reason}", "$text-warning")
        if not self._arming.is_over:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), f" {self.effect()}")

    def _missing(self) -> Wanted | None:
        if self.has_class("-small"):
            return Wanted(f"this window is too small, {_LEAST[0]} × {_LEAST[1]} is needed")
        return self.missing()

    def _refused(self) -> str:
        return self._wanted.reason if self._wanted is not None else ""

    def _mark(self, wanted: Wanted | None) -> None:
        """Say at its field what is missing, and go there; None: nothing is."""
        if self._wanted is not None and self._wanted.field is not None:
            self._wanted.field.remove_class("-wanted")
        self._wanted = wanted
        if wanted is not None and wanted.field is not None:
            field = wanted.field
            field.add_class("-wanted")
            if isinstance(field, Input):
                field.placeholder = wanted.reason
            field.focus()
            self.call_after_refresh(field.scroll_visible, animate=False)

    def action_record(self) -> None:
        """Record the decision. A key that is held down, from the dialog before perhaps, decides nothing."""
        if self._recording:
            return
        if not self._arming.is_over:
            self._arming.begin()
            self.look()
            return
        self._trouble = ""
        if self.change() is None:
            wanted = self._missing()
            self._mark(wanted)
            if wanted is None:
                self._recording = True
                self._record()
        self.look()

    @work
    async def _record(self) -> None:
        try:
            decided = await self._decide()
        except DecisionError as error:
            self._trouble = clean(str(error), 1_000)
            if isinstance(error, QueuedError):
                self.app.notify(self._trouble, severity="warning", markup=False, timeout=12)
                self._decided()
            decided = None
        finally:
            self._recording = False
        if decided is not None:
            words = "\n".join(filter(None, (self.outcome(decided), clean(decided.doubt or "", 500))))
            if decided.doubt is None and decided.undelivered is None:
                self.app.notify(words, markup=False, timeout=4)
            else:
                self.app.notify(words, severity="warning", markup=False, timeout=12)
            if decided.undelivered is None:
                once(self.app, _REMARK_SECONDS, self._say_remark)
            self._decided()
        else:
            self.look()

    def _decided(self) -> None:
        self._is_decided = True
        leave(self, End.DECIDED)

    def on_screen_resume(self) -> None:
        """It was below another screen when it was decided."""
        if self._is_decided:
            leave(self, End.DECIDED)

    async def _say_remark(self) -> None:
        if remark := await self.remark():
            self.app.notify(remark, severity="warning", markup=False, timeout=12)

    async def _decide(self) -> DecisionMade | None:
        """Record it; None if something is missing. Raises DecisionError."""
        if locked := await self._unlock.open():
            self._trouble = locked
            return None
        # What was found true before the disk was asked may be so no more.
        if not await self.is_sound() or self.change() is not None or self._missing() is not None:
            return None
        return await self.sign()

    def action_leave(self) -> None:
        if not self._recording:
            leave(self, End.LEFT)

    def action_copy_or_leave(self) -> None:
        """What a field does not take: copy what is selected with the mouse, else leave."""
        try:
            self.action_copy_text()
        except SkipAction:
            self.action_leave()

    def action_skip(self) -> None:
        if self._queue is not None and not self._recording:
            leave(self, End.SKIPPED)

    def action_next_field(self) -> None:
        self.focus_next()

    def action_previous_field(self) -> None:
        self.focus_previous()
