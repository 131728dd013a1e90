"""The dialog of one decision: what is decided, and the key that records it, in a frame that foreign text cannot enter.

From top to bottom: the frame of ours with the facts, the operator's choices and what is true now; the document that is
handed on; the child's words. Only `ctrl+s` decides, not before the operator could have read what it is about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import Enum
from typing import ClassVar, Final, NamedTuple

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.case import Case, facts
from agentwatch.app.dialogs.document import Document
from agentwatch.app.dialogs.fields import LABEL, Choice, Row, Standing, line_input
from agentwatch.app.dialogs.forms import FORMS, said
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.details.blocks import Block
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions import policy
from agentwatch.decisions.delivery import is_told_of
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import Mitigation
from agentwatch.delegation.decision import Action
from agentwatch.text import clean

ARMING_SECONDS: Final = 0.6
"""How long a dialog is open before its key decides: keys that were meant for the screen below decide nothing."""
_PERIOD: Final = 1.0
_WIDE: Final = 110
"""Cells from which the child's words stand beside the document."""
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


class DecisionScreen(ModalScreen["End | Action"]):
    """One decision about one attempt. Ends with how it was left, or with the action that is wanted instead.

    `clock` gives seconds since the epoch, `steady` those of a clock that nobody sets. `queue` are the place of the task
    in a review and its length.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.DECIDE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}
    AUTO_FOCUS = ".first"

    DEFAULT_CSS = """
    DecisionScreen { align: center middle; background: $background; }
    DecisionScreen > .details--faint { color: $text-muted; }
    DecisionScreen:ansi > .details--faint { text-style: dim; }
    DecisionScreen > #decision { width: 1fr; height: 1fr; overflow-y: auto; scrollbar-size-vertical: 1; }
    DecisionScreen #below { height: 1fr; min-height: 8; layout: vertical; }
    DecisionScreen.-wide #below { layout: horizontal; }
    DecisionScreen.-wide Document, DecisionScreen.-wide #answers { height: 1fr; width: 3fr; }
    DecisionScreen.-wide #words { height: 1fr; width: 2fr; }
    DecisionScreen.-low #below { height: auto; }
    DecisionScreen.-low Document { height: 8; }
    DecisionScreen.-low #answers { height: auto; }
    DecisionScreen.-low #words { height: 8; }
    DecisionScreen.-low.-wide #below { height: 12; }
    DecisionScreen.-low.-wide Document, DecisionScreen.-low.-wide #answers, DecisionScreen.-low.-wide #words {
        height: 1fr;
    }
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
    DecisionScreen #words { height: 1fr; }
    DecisionScreen #answers { height: 2fr; }
    DecisionScreen #words, DecisionScreen #answers {
        min-height: 4; border: round $line; border-title-color: $text-muted;
    }
    DecisionScreen #words:focus-within, DecisionScreen #answers:focus-within { border: round $text-muted; }
    DecisionScreen Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    DecisionScreen Input:focus { border: none; background: $cursor-row; background-tint: transparent; }
    DecisionScreen .-wanted, DecisionScreen Input.-wanted:focus { background: $error 25%; }
    DecisionScreen #answers Input { margin-left: 2; }
    DecisionScreen:ansi Input { text-style: underline; }
    """

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.case = case
        self.seen_at: float | None = None
        """When it was on the screen for the first time, by the clock of events: it hears nothing that was typed before.
        """
        self._clock, self._steady, self._queue = clock, steady, queue
        self._armed_at = 0.0
        self._arming: Timer | None = None
        self._trouble = ""
        self._recording = False
        self._form = FORMS[case.action](case)
        self._document = self._form.document
        self._note = line_input(self._form.note_placeholder, id="note")
        (self._form.first or self._note).add_class("first")
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True, id="passphrase"
        )
        self._facts = Static(id="facts", markup=False)
        self._standings = Standing(id="standing", markup=False), Standing(id="standing-low", markup=False)
        self._words = Page()
        self._wanted: Wanted | None = None
        """What was missing when the key that records was pressed: it is said where one looks."""
        self._footer = Footer(Place.DECIDE, is_useless=self._is_useless, refused=lambda: self._refused)

    @property
    def note(self) -> str:
        return self._note.value

    # The screen

    def compose(self) -> ComposeResult:
        with Vertical(id="decision"):
            with Vertical(id="ours") as ours:
                ours.border_title = f"◆ {self._form.glyph} {self._form.word}"
                if self._queue is not None:
                    ours.border_subtitle = f"{self._queue[0]} of {self._queue[1]}"
                yield self._facts
                yield from self._form.rows()
                if self._document is not None:
                    yield Row(self._document.label, self._document.status)
                yield Row(self._form.note_label, self._note)
                yield Row("unlock", self._passphrase, id="locked")
                yield self._standings[0]
            with Vertical(id="below"):
                yield from self._form.below()
                with Vertical(id="words") as words:
                    words.border_title = "the child's words"
                    yield self._words
        yield self._standings[1]
        yield self._footer

    def on_mount(self) -> None:
        self._arm()
        self.app.app_resume_signal.subscribe(self, lambda _app: self._arm())
        self.set_interval(_PERIOD, self.look)
        self._read_return()
        self.call_after_refresh(self._be_seen)

    def _be_seen(self) -> None:
        self.seen_at = time.monotonic()
        self.look()

    @property
    def is_armed(self) -> bool:
        """Whether the dialog has been open, and its key left alone, for long enough."""
        return self._steady() >= self._armed_at

    def _arm(self) -> None:
        """The moment before the key counts begins again."""
        self._armed_at = self._steady() + ARMING_SECONDS
        if self._arming is not None:
            self._arming.stop()
        self._arming = self.set_timer(ARMING_SECONDS, self.look)

    @work
    async def _read_return(self) -> None:
        task = self.case.task
        version = task.latest.returned if task is not None and task.latest is not None else None
        returned = await asyncio.to_thread(self.case.monitor.content, version) if version is not None else None
        blocks: list[Block] = list(said(self.case.seen, returned))
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

    @on(Document.Checked)
    def _take_check(self) -> None:
        self.look()

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        if self.case.subject.task_id in event.changed:
            self.look()

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take_change(self) -> None:
        """The operator has changed something: what was wrong before may be right now."""
        self._trouble = ""
        self._mark(None)
        if self._document is not None:
            self._document.remake(self.note)
        self.look()
        if self.focused is not None and self.has_class("-low"):
            # What is written may be out of sight, once the facts above have the lines that they need.
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    def look(self) -> None:
        """Say what is true now, once keys are heard: the operator types as soon as the last line stands."""
        if self.seen_at is None or not self.is_attached:
            return
        self._form.update()
        if self._wanted is not None and self._why_not() != self._wanted.reason:
            self._mark(None)
        params, width = self._form.params(), (self._facts.size.width or self.size.width - 6) - LABEL
        cautions = self._document.cautions(params.mitigation) if self._document is not None else ()
        self._facts.update(Content("\n").join(facts(self.case, params, cautions, now=self._clock(), width=width)))
        for standing in self._standings:
            standing.update(self._standing())
        self._footer.redraw()

    def _standing(self) -> Content:
        """The last line that is ours: what the key would do, or why it does nothing."""
        if self._recording:
            return Content("recording…")
        if self._trouble:
            return Content.styled(f"✗ {self._trouble}", "bold $text-error")
        if change := self.case.change():
            return Content.styled(f"✗ {change} Leave with escape, look at it, and open this again.", "bold $text-error")
        if why_not := self._why_not():
            return Content.styled(f"○ not yet: {why_not}", "$text-warning")
        if not self.is_armed:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), " records this decision; nothing is recorded before")

    def _why_not(self) -> str | None:
        """Why it cannot be recorded as it is now, in small letters; None if it can."""
        missing = self._missing()
        return missing.reason if missing is not None else None

    def _missing(self) -> Wanted | None:
        """What is missing before it can be recorded, if anything is."""
        if self.has_class("-small"):
            return Wanted(f"this window is too small, {_LEAST[0]} × {_LEAST[1]} is needed")
        task = self.case.task
        if task is None:
            return Wanted("the task has gone")
        if reason := policy.refusal(task, self.case.action, self._form.params(), self.note):
            # With a mitigation it may be allowed: then the operator can do something about it here.
            option = policy.options(task, mitigation=Mitigation.REDUCED_SCOPE)[self.case.action]
            return Wanted(reason, (self._form.wanted or self._note) if option.allowed else None)
        if reason := self._form.missing():
            return Wanted(reason, self._form.wanted)
        if self._document is not None and (reason := self._document.missing()):
            return Wanted(reason, self._document.area if self._document.problems else None)
        return None

    @property
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

    # Commands

    def action_record(self) -> None:
        """Record the decision. A key that is held down, from the dialog before perhaps, decides nothing."""
        if self._recording:
            return
        if not self.is_armed:
            self._arm()
            self.look()
            return
        self._trouble = ""
        if self.case.change() is None:
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
            decided = None
        finally:
            self._recording = False
        if decided is not None:
            unread = "" if decided.undelivered else await self._why_unread()
            words = f"{self._form.word}: {_outcome(decided)}{unread}"
            if decided.doubt is None and decided.undelivered is None and not unread:
                self.app.notify(words, markup=False, timeout=4)
            else:
                self.app.notify(words, severity="warning", markup=False, timeout=12)
            self.dismiss(End.DECIDED)
        else:
            self.look()

    async def _why_unread(self) -> str:
        """That no agent here reads decisions, as far as can be seen."""
        tasks = list(self.case.monitor.tree.tasks.values())
        if any(one.is_read for task in tasks for attempt in task.attempts for one in attempt.decisions):
            return ""
        if await asyncio.to_thread(is_told_of, self.case.monitor.workspace):
            return ""
        return "\nNothing reads decisions here yet: `agentwatch init` sets that up."

    async def _decide(self) -> DecisionMade | None:
        """Record it; None if something is missing. Raises DecisionError."""
        case = self.case
        if not await self._unlock():
            return None
        params = self._form.params()
        if self._document is not None:
            text = await self._document.sound_text(self.note)
            if text is None:
                return None
            params = self._form.recorded(text)
        # What was found true before the disk was asked may be so no more.
        if case.change() is not None or self._why_not() is not None:
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
        reason = "this is its dialog" if is_open else why_not(task, action, self._clock())
        if reason is None:
            self.dismiss(action)
        else:
            self.app.notify(f"{FORMS[action].word}: {reason}.", severity="warning", markup=False, timeout=6)

    def action_next_field(self) -> None:
        self.focus_next()

    def action_previous_field(self) -> None:
        self.focus_previous()

    def action_changes(self) -> None:
        """Show what is changed in the last handoff, or go on editing."""
        if self._document is not None:
            self._document.toggle_changes()
            self._footer.redraw()

    @work(group="edit", exclusive=True)
    async def action_edit_document(self) -> None:
        """Open the document in the operator's editor; the screen waits."""
        if self._document is not None:
            # Whatever was typed for the editor is not meant for this dialog.
            trouble = await self._document.edit(ended=self._arm)
            if trouble is not None:
                self.app.notify(trouble, severity="warning", markup=False, timeout=6)
            self.look()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Without a document its keys are those of the field that has the focus."""
        return self._document is not None or action not in {"edit_document", "changes"}

    def _is_useless(self, command_id: str) -> bool:
        return (
            (command_id == "dialog.record" and self.has_class("-small"))
            or (command_id == "dialog.skip" and self._queue is None)
            or (command_id in {"dialog.edit", "dialog.changes"} and self._document is None)
        )


def _outcome(decided: DecisionMade) -> str:
    """What became of a decision, in sentences."""
    done = "recorded" if decided.fresh else "the very same was recorded before"
    undelivered = decided.undelivered
    words = f"{done}, {'delivered' if undelivered is None else f'not delivered: {clean(undelivered, 500)}'}."
    return f"{words}\n{clean(decided.doubt, 500)}" if decided.doubt else words
