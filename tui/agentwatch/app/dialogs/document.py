"""The document that a decision hands on, in an editor: checked while it is written, and held against the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from agentwatch.app.editor import hand_over
from agentwatch.app.widgets.details.blocks import faint, text
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.source import Difference, compare
from agentwatch.decisions.errors import DecisionError, NoAnswerError
from agentwatch.decisions.form import DecisionForm
from agentwatch.decisions.handoff import Proposal, blank_handoff, cautions
from agentwatch.decisions.service import operator_name
from agentwatch.monitor import Monitor
from agentwatch.text import clean

_AGAIN: Final = 2.0
"""Seconds after which a host that did not answer is asked for the text again."""
_PAUSE: Final = 0.2
"""Seconds without a key after which the document is made again, or its text is checked."""
_LARGEST: Final = 128 * 1024
"""Characters up to which a document is edited on the screen; a larger one takes seconds to lay out."""
_LONGEST: Final = 4_000
"""The same for one line."""
_LARGEST_FILE: Final = 1024 * 1024
"""Bytes of an edited file that are taken back."""


class Said(Static):
    """Lines of ours that are painted again where they read differently."""

    def tell(self, content: Content) -> None:
        """Say this from now on."""
        if not (isinstance(self.content, Content) and content.is_same(self.content)):
            self.update(content)


class Document(Vertical):
    """An editor on the proposal of a form, or the changes in it. `text` is what would be handed on.

    It follows the fields until the operator edits it. From then on it is the operator's.
    """

    DEFAULT_CSS = """
    Document { height: 2fr; min-height: 5; border: round $line; border-title-color: $text-muted; }
    Document:focus-within { border: round $text-muted; }
    Document > TextArea {
        border: none; padding: 0; height: 1fr; background: $background; scrollbar-size-vertical: 1;
    }
    Document > TextArea:focus { border: none; }
    Document > TextArea > .text-area--gutter { color: $text-muted; }
    Document > Page { display: none; }
    Document.-changes > Page { display: block; }
    Document.-changes > TextArea { display: none; }
    """

    class Checked(Message):
        """The text, or what is known of it, is another."""

    class Appeared(Message):
        """A text that could not be had is there now: nobody has read it yet."""

    def __init__(self, form: DecisionForm, monitor: Monitor, state: Path) -> None:
        """`state` is a directory of ours, for the file that the operator's editor gets."""
        super().__init__()
        self.border_title = form.face.title
        self.label = form.face.document
        self.status = Said(id="checked", markup=False)
        """One line about the text: whether it is valid, and how much of it is changed."""
        self._form, self._monitor, self._state = form, monitor, state
        self._note = ""
        self.area = TextArea(show_cursor=False, show_line_numbers=True, compact=True, highlight_cursor_line=False)
        self.area.match_cursor_bracket = False
        self._page = Page()
        self._proposal: Proposal | None = None
        self._why_blank = ""
        self._no_answer = ""
        """Why the text cannot be had now, and is asked for again; "" where it is here."""
        self._is_unseen = False
        """The text is too large for the screen, and the operator's editor has not had it."""
        self._turn = 0
        self._is_lent = False
        self.text = ""
        self.problems: list[str] | None = None
        """What is wrong with the text, None as long as it is being checked."""
        self._difference: Difference | None = None
        self._is_plain = False

    def compose(self) -> ComposeResult:
        yield self.area
        yield self._page

    def on_mount(self) -> None:
        self._make_later(0)

    @property
    def is_edited(self) -> bool:
        """Whether the operator has changed what was proposed."""
        return self._proposal is not None and self.text != self._proposal.text

    def remake(self, note: str) -> None:
        """The fields, or the note, say something else now."""
        self._note = note
        if not self.is_edited:
            # It is not what is signed any more.
            self.problems = None
            self.post_message(self.Checked())
            self._make_later(_PAUSE)

    @work(group="propose", exclusive=True)
    async def _make_later(self, pause: float) -> None:
        await asyncio.sleep(pause)
        await self._make()
        while self._no_answer:
            await asyncio.sleep(_AGAIN)
            await self._make()

    async def _make(self) -> None:
        self._turn += 1
        turn, form, tree = self._turn, self._form, self._monitor.tree
        if form.task.task_id not in tree.tasks:
            return
        failed = list(tree.failed_below(form.task))
        no_answer = ""
        try:
            arguments = self._monitor.text, self._note, failed, operator_name()
            proposal = await asyncio.to_thread(form.propose, *arguments)
            why_blank = "none was ever seen: write one, or the next attempt gets your note only"
        except NoAnswerError as error:
            no_answer = clean(str(error), 500)
        except DecisionError as error:
            proposal, why_blank = blank_handoff(form.task, form.subject), clean(str(error), 500)
        # Else the operator has begun to edit it meanwhile, or it is made anew with what was said since.
        if turn == self._turn and not self.is_edited:
            before, self._no_answer = self._no_answer, no_answer
            if no_answer:
                self.area.read_only = True
                self.post_message(self.Checked())
                return
            self._proposal, self._why_blank = proposal, why_blank
            if before:
                self.post_message(self.Appeared())
            self.write(proposal.text)

    def write(self, text: str) -> None:
        """Put another text in the place of this one."""
        if text == self.text and self.problems is not None:
            return
        self.text = text
        fits = len(text) <= _LARGEST and all(len(line) <= _LONGEST for line in text.splitlines())
        self.area.read_only = self._is_unseen = not fits
        with self.area.prevent(TextArea.Changed):
            # What is not on the screen cannot be edited there.
            self.area.text = text if fits else "This text is too large to be edited here: press ctrl+e."
        self._check_later()

    # What is true of it

    def show_status(self) -> None:
        """Say what is true of the text now."""
        parts = []
        if self._no_answer:
            parts = [Content.styled(f"{self._no_answer}; it is asked again", "$text-warning")]
        elif self._why_blank and not self.text:
            parts = [Content.styled(self._why_blank, "$text-warning")]
        elif self.problems is None:
            parts = [Content.styled("… checking", "$text-muted")]
        else:
            more = f"  (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            wrong = f"✗ {clean(self.problems[0], 300)}{more}" if self.problems else ""
            parts.append(Content.styled(wrong, "$text-error") if wrong else Content.styled("✓ valid", "$text-success"))
            if self._difference is not None:
                parts.append(self._difference.counted)
            if self.is_edited:
                parts.append(Content.styled("edited by you: a note is handed on beside it", "$text-muted"))
        self.status.tell(Content("   ").join(parts))

    def cautions(self) -> Iterator[str]:
        """What the operator should know before it is handed on, in sentences."""
        # What was mended counts as long as the operator has not looked at it.
        mended = () if self._proposal is None or self.is_edited else self._proposal.mended
        return cautions(mended=mended, is_plain=self._is_plain, mitigation=self._form.params().mitigation)

    def missing(self) -> str | None:
        """What the operator has to do before it can be handed on, in small letters; None if it can."""
        if self._is_lent:
            return f"the edited {self.label} is being read"
        if self._no_answer:
            return f"the {self.label} is not here: {self._no_answer}"
        if self._proposal is None or self.problems is None:
            return f"the {self.label} is being checked"
        if self._is_unseen:
            return f"the {self.label} is too large to be shown here: read it with ctrl+e"
        return f"correct the {self.label} first: {clean(self.problems[0], 300)}" if self.problems else None

    async def is_sound(self, note: str) -> bool:
        """Whether the text that is on the screen can be handed on; else `missing` tells what is wrong with it.

        It is made once more: a key that was typed right after the note comes before the news of the note. What that
        changes is shown, and not handed on unseen.
        """
        shown, self._note = self.text, note
        self.workers.cancel_group(self, "propose")
        if not self.is_edited:
            await self._make()
        problems = await self._check()
        return self.text == shown and not problems and self.missing() is None

    def _check_later(self) -> None:
        self.problems = None
        self.post_message(self.Checked())
        self._check_soon()

    @work(group="check", exclusive=True)
    async def _check_soon(self) -> None:
        await asyncio.sleep(_PAUSE)
        await self._check()

    async def _check(self) -> list[str]:
        """What is wrong with the text as it is now, in sentences."""
        proposal, checked = self._proposal, self.text
        if proposal is None:
            return []

        def look() -> tuple[list[str], Difference | None, bool]:
            before = proposal.before
            difference = compare(before, checked) if before is not None else None
            return proposal.problems(checked), difference, proposal.is_plain(checked)

        problems, difference, is_plain = await asyncio.to_thread(look)
        if checked == self.text:
            self.problems, self._difference, self._is_plain = problems, difference, is_plain
            self._show_changes()
            self.post_message(self.Checked())
        return problems

    # Editing

    async def edit(self, ended: Callable[[], None]) -> str | None:
        """Have the text changed in the operator's editor; the screen waits. `ended` is called when the editor ends.

        Returns what went wrong, a sentence; None if nothing did.
        """
        if self._no_answer or self._proposal is None:
            return f"The {self.label} is not here yet."
        self._is_lent = True
        directory: TemporaryDirectory[str] | None = None
        try:
            # Not in the workspace: an agent could change the text between the editor and the signature.
            directory = await asyncio.to_thread(_private_directory, self._state)
            path = Path(directory.name) / Path(self._proposal.name).name
            await asyncio.to_thread(_put_down, path, self.text)
            trouble = hand_over(self.app, self._monitor.settings.editor, path)
            ended()
            if trouble is None:
                if (text := await asyncio.to_thread(_take_back, path)) != self.text:
                    self.write(text)
                self._is_unseen = False
        except (OSError, ValueError) as error:
            return f"The edited text cannot be read: {clean(str(error), 200)}."
        finally:
            if directory is not None:
                await asyncio.to_thread(directory.cleanup)
            self._is_lent = False
        return trouble

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_cursor(self) -> None:
        # Textual draws the cursor of an editor that nobody is in, and the bracket that belongs to the one below it.
        self.area.show_cursor = self.area.match_cursor_bracket = self.area.has_focus

    @on(TextArea.Changed)
    def _take_text(self, event: TextArea.Changed) -> None:
        event.stop()
        # The editor knows one kind of line break; a text that nobody touched keeps its own.
        if not self.area.read_only and self.area.text != self.text:
            self.text = self.area.text
            self._check_later()

    def toggle_changes(self) -> None:
        """Show what was changed, or the editor."""
        had_focus = self.has_focus_within
        self.toggle_class("-changes")
        if had_focus:
            (self._page if self.has_class("-changes") else self.area).focus()
        self._show_changes()

    def _show_changes(self) -> None:
        if self.has_class("-changes"):
            words = "There is no earlier one to compare it with."
            if self._difference is not None:
                words = "" if self._difference.rows else "It is the same as the last one."
            blocks = [text(faint(words))] if words or self._difference is None else self._difference.noted
            self._page.show(blocks, keep=True)


def _private_directory(state: Path) -> TemporaryDirectory[str]:
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return TemporaryDirectory(prefix="editing-", dir=state, ignore_cleanup_errors=True)


def _put_down(path: Path, text: str) -> None:
    """Write the text into a private file. Raises OSError."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(text.encode())


def _take_back(path: Path) -> str:
    """The text that is there now. Raises OSError, and ValueError if it is too large or none."""
    if path.stat().st_size > _LARGEST_FILE:
        raise ValueError(f"it has more than {_LARGEST_FILE:,} bytes")
    return path.read_bytes().decode()
