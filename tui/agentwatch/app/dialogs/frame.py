"""The dialog of one decision: what is decided, and the key that records it, in a frame that foreign text cannot enter.

From top to bottom: the frame of ours with the facts, the operator's choices and what is true now; the document that is
handed on; the child's words. Only `ctrl+s` decides, not before the operator could have read what it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import ClassVar, Final

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.arming import Arming
from agentwatch.app.dialogs.case import GLYPHS, WORDS, Case, facts, recorded
from agentwatch.app.dialogs.choice import Choice
from agentwatch.app.dialogs.fields import LABEL, Row, Standing
from agentwatch.app.dialogs.words import said
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.details.blocks import Block
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions import policy
from agentwatch.decisions.desk import Decided
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Params
from agentwatch.delegation import decision as told
from agentwatch.delegation.decision import Action
from agentwatch.text import clean

_PERIOD: Final = 1.0
_WIDE: Final = 110
"""Cells from which the child's words stand beside the document."""
_TALL: Final = 24
"""Lines of screen from which the whole frame is in sight: in fewer its last line stands below what scrolls."""
_LEAST: Final = 30, 10
"""Cells and lines of screen below which nothing is recorded: what it is about could not be read."""
_OF_DOCUMENTS: Final = frozenset({"dialog.edit", "dialog.changes"})


class End(StrEnum):
    """How a dialog was left, where not for another action."""

    DECIDED = "decided"
    SKIPPED = "skipped"
    LEFT = "left"


class DecisionScreen(ModalScreen["End | Action"]):
    """One decision about one attempt. Ends with how it was left, or with the action that is wanted instead.

    `clock` gives seconds since the epoch, `steady` those of a clock that nobody sets. `queue` are the place of the task
    in a review and its length.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.DECIDE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}
    AUTO_FOCUS = "#note"

    DEFAULT_CSS = """
    DecisionScreen { align: center middle; background: $background; }
    DecisionScreen > .details--faint { color: $text-muted; }
    DecisionScreen:ansi > .details--faint { text-style: dim; }
    DecisionScreen > #decision { width: 1fr; height: 1fr; overflow-y: auto; scrollbar-size-vertical: 1; }
    DecisionScreen #below { height: 1fr; min-height: 8; layout: vertical; }
    DecisionScreen.-wide #below { layout: horizontal; }
    DecisionScreen.-wide Document { height: 1fr; width: 3fr; }
    DecisionScreen.-wide #words { height: 1fr; width: 2fr; }
    DecisionScreen.-low #below { height: auto; }
    DecisionScreen.-low Document { height: 8; }
    DecisionScreen.-low #words { height: 8; }
    DecisionScreen.-low.-wide #below { height: 12; }
    DecisionScreen.-low.-wide Document { height: 1fr; }
    DecisionScreen.-low.-wide #words { height: 1fr; }
    DecisionScreen #ours {
        height: auto; border: double $accent; padding: 0 1;
        border-title-color: $text-accent; border-title-style: bold; border-subtitle-color: $text-accent;
    }
    DecisionScreen #facts { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    DecisionScreen #standing { height: auto; }
    DecisionScreen #standing-low { display: none; height: auto; padding: 0 1; background: $panel; }
    DecisionScreen.-low #standing, DecisionScreen.-small > #decision { display: none; }
    DecisionScreen.-low #standing-low, DecisionScreen.-small #standing-low { display: block; }
    DecisionScreen.-small #standing-low { height: 1fr; }
    DecisionScreen #locked { display: none; }
    DecisionScreen.-locked #locked { display: block; }
    DecisionScreen #words { height: 1fr; min-height: 4; border: round $line; border-title-color: $text-muted; }
    DecisionScreen #words:focus-within { border: round $text-muted; }
    """

    hands_on: ClassVar[bool] = False
    """Whether there is a document that can be edited."""
    note_label: ClassVar[str] = "note"
    note_placeholder: ClassVar[str] = "in your words, for the agent that carries it out"

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.case = case
        self._clock = clock
        self._queue = queue
        self.arming = Arming(self, steady, self.look)
        self._trouble = ""
        self._recording = False
        self._returned: str | None = None
        self._task_seen = case.task
        self._note = Input(placeholder=self.note_placeholder, compact=True, select_on_focus=False, id="note")
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True, id="passphrase"
        )
        self._facts = Static(id="facts", markup=False)
        self._standings = Standing(id="standing", markup=False), Standing(id="standing-low", markup=False)
        self._words = Page()
        self._footer = Footer(Place.DECIDE, is_useless=self._is_useless)

    # What each action adds

    def fields(self) -> Iterator[Row]:
        """The rows above the note."""
        yield from ()

    def below(self) -> ComposeResult:
        """What stands between the frame and the child's words."""
        yield from ()

    def plain_params(self) -> Params:
        """The parameters as far as the policy asks for them."""
        return Params()

    def missing(self) -> str | None:
        """What the operator has to do first, a sentence in small letters; None if all is there."""
        return None

    async def params(self) -> Params | None:
        """What is recorded; None if it is not sound, which `missing` tells then."""
        return self.plain_params()

    @property
    def note(self) -> str:
        return self._note.value

    # The screen

    def compose(self) -> ComposeResult:
        with Vertical(id="decision"):
            with Vertical(id="ours") as ours:
                ours.border_title = f"◆ {GLYPHS[self.case.action]} {WORDS[self.case.action]}"
                if self._queue is not None:
                    ours.border_subtitle = f"{self._queue[0]} of {self._queue[1]}"
                yield self._facts
                yield from self.fields()
                yield Row(self.note_label, self._note)
                yield Row("unlock", self._passphrase, id="locked")
                yield self._standings[0]
            with Vertical(id="below"):
                yield from self.below()
                with Vertical(id="words") as words:
                    words.border_title = "the child's words"
                    yield self._words
        yield self._standings[1]
        yield self._footer

    @property
    def seen_at(self) -> float | None:
        """Since when it is on the screen, by the clock of events: it hears nothing that was typed before."""
        return self.arming.seen_at

    def on_mount(self) -> None:
        self.arming.begin()
        self.set_interval(_PERIOD, self.look)
        self._read_return()
        self.call_after_refresh(self._be_seen)

    def _be_seen(self) -> None:
        self.arming.be_seen()
        self.look()

    @work
    async def _read_return(self) -> None:
        task = self.case.task
        version = task.latest.returned if task is not None and task.latest is not None else None
        if version is not None:
            self._returned = await asyncio.to_thread(self.case.monitor.content, version)
        self._show_words()

    def _show_words(self) -> None:
        task = self._task_seen
        if task is not None:
            blocks: list[Block] = list(said(task, self._returned))
            self._words.show(lambda: blocks, keep=False)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _WIDE, "-wide")
        self.set_class(event.size.height < _TALL, "-low")
        was_small = self.has_class("-small")
        self.set_class(event.size.width < _LEAST[0] or event.size.height < _LEAST[1], "-small")
        if was_small and not self.has_class("-small"):
            # What was out of sight has lost the focus.
            self.call_after_refresh(self.focus_next, self.AUTO_FOCUS)
        self.call_after_refresh(self.look)

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        if self.case.subject.task_id in event.changed:
            self.look()

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take_change(self) -> None:
        """The operator has changed something: what was wrong before may be right now."""
        self._trouble = ""
        self.changed()
        self.look()
        if self.focused is not None and self.has_class("-low"):
            # What is written may be out of sight, once the facts above have the lines that they need.
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    def changed(self) -> None:
        """Something that the document is made from has changed."""

    def cautions(self) -> Iterator[str]:
        """What else the operator should know before the decision is recorded, in sentences of ours."""
        return iter(())

    def look(self) -> None:
        """Say what is true now."""
        task = self.case.task or self._task_seen
        width = self._facts.size.width or self.size.width - 6
        if task is None or not self.is_attached:
            return
        params = self.plain_params()
        lines = [
            Content.styled(f"{label:<{LABEL}}", "$text-muted") + value
            for label, value in facts(self.case, task, params, now=self._clock(), width=width - LABEL)
        ]
        option = policy.options(task, mitigation=params.mitigation)[self.case.action]
        found = (*option.warnings, *self.cautions())
        warnings = [line for warning in found for line in Content(warning).wrap(max(width - LABEL, 8))]
        lines += [
            Content.styled(f"{'' if number else 'beware':<{LABEL}}{line}", "$text-warning")
            for number, line in enumerate(warnings)
        ]
        self._facts.update(Content("\n").join(lines))
        for standing in self._standings:
            standing.update(self.standing())
        self._footer.redraw()

    def standing(self) -> Content:
        """The last line that is ours: what the key would do, or why it does nothing."""
        if self._recording:
            return Content("recording…")
        if self._trouble:
            return Content.styled(f"✗ {self._trouble}", "bold $text-error")
        if change := self.case.change():
            return Content.styled(f"✗ {change} Leave with escape, look at it, and open this again.", "bold $text-error")
        if why_not := self.why_not():
            return Content.styled(f"○ not yet: {why_not}", "$text-warning")
        if not self.arming.is_armed:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), " records this decision; nothing is recorded before")

    def why_not(self) -> str | None:
        """Why it cannot be recorded as it is now, in small letters; None if it can."""
        if self.has_class("-small"):
            return f"this window is too small, {_LEAST[0]} × {_LEAST[1]} is needed"
        task = self.case.task
        if task is None:
            return "the task has gone"
        params = self.plain_params()
        return policy.refusal(task, self.case.action, params, self.note) or self.missing()

    # Commands

    def action_record(self) -> None:
        """Record the decision. A key that is held down, from the dialog before perhaps, decides nothing."""
        if self._recording:
            return
        if not self.arming.is_armed:
            self.arming.begin()
            self.look()
            return
        self._trouble = ""
        if self.case.change() is None and self.why_not() is None:
            self._recording = True
            self._record()
        self.look()

    @work
    async def _record(self) -> None:
        try:
            decided = await self._decide()
        except DecisionError as error:
            self._trouble = clean(str(error), 1_000)
            decided = None
        finally:
            self._recording = False
        if decided is not None:
            words = recorded(self.case.action, decided)
            if decided.doubt is None and decided.waits is None:
                self.app.notify(words, markup=False, timeout=4)
            else:
                self.app.notify(words, severity="warning", markup=False, timeout=12)
            self.dismiss(End.DECIDED)
        else:
            self.look()

    async def _decide(self) -> Decided | None:
        """Record it; None if something is missing. Raises DecisionError."""
        case = self.case
        if not await self._unlock():
            return None
        params = await self.params()
        # What was found true before the disk was asked may be so no more.
        if params is None or case.change() is not None or self.why_not() is not None:
            return None
        return await case.monitor.decide(case.subject, case.action, params, self.note.strip())

    async def _unlock(self) -> bool:
        """Whether the key can sign: it is asked for its passphrase if it has one. Raises KeyProblemError."""
        desk = self.case.desk
        if not self._passphrase.value:
            why = await asyncio.to_thread(desk.why_locked)
            if why is None:
                return True
            self.add_class("-locked")
            self._passphrase.focus()
            self._trouble = f"{clean(why[:1].upper() + why[1:], 1_000)}: type its passphrase, then press ctrl+s."
            return False
        with self._passphrase.prevent(Input.Changed):
            passphrase, self._passphrase.value = self._passphrase.value, ""
        await asyncio.to_thread(desk.unlock, passphrase)
        self.remove_class("-locked")
        return True

    def action_leave(self) -> None:
        if not self._recording:
            self.dismiss(End.LEFT)

    def action_copy_or_leave(self) -> None:
        """What a field does not take: copy what is selected with the mouse, else leave."""
        try:
            self.action_copy_text()
        except SkipAction:
            self.action_leave()

    def action_skip(self) -> None:
        if self._queue is not None and not self._recording:
            self.dismiss(End.SKIPPED)

    def action_instead(self, number: int) -> None:
        """Decide otherwise about the same attempt."""
        action, task = list(Action)[number], self.case.task
        if self._recording or task is None:
            return
        is_open = action is self.case.action
        reason = "this is its dialog" if is_open else why_not(task, told.Action(action), self._clock())
        if reason is None:
            self.dismiss(action)
        else:
            self.app.notify(f"{WORDS[action]}: {reason}.", severity="warning", markup=False, timeout=6)

    def action_next_field(self) -> None:
        self.focus_next()

    def action_previous_field(self) -> None:
        self.focus_previous()

    def _is_useless(self, command_id: str) -> bool:
        return (
            (command_id == "dialog.record" and self.has_class("-small"))
            or (command_id == "dialog.skip" and self._queue is None)
            or (command_id in _OF_DOCUMENTS and not self.hands_on)
        )
