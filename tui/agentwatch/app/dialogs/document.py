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
from textual.timer import Timer
from textual.widgets import Static, TextArea

from agentwatch.app.dialogs.case import Case
from agentwatch.app.editor import hand_over
from agentwatch.app.once import once
from agentwatch.app.widgets.details.blocks import Block, faint, text
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.source import Difference, compare
from agentwatch.decisions.errors import DecisionError, NoAnswerError
from agentwatch.decisions.proposal import Proposal, blank_handoff, cautions
from agentwatch.decisions.record import Mitigation
from agentwatch.delegation.task import Task
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


class Document(Vertical):
    """An editor on a proposal, or what was changed in it. `text` is what would be handed on.

    `maker` gets the task and the operator's note, and returns what makes the document in a thread: from what the fields
    say, until the operator edits it. From then on it is the operator's. `label` is how sentences call it.
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
        """The text was checked."""

    class Appeared(Message):
        """A text that could not be had is there now: nobody has read it yet."""

    def __init__(
        self,
        case: Case,
        maker: Callable[[Task, str], Callable[[], Proposal]],
        label: str = "handoff",
        title: str = "the next handoff: agents' words, as amended",
    ) -> None:
        super().__init__()
        self.label = label
        self.border_title = title
        self.status = Static(id="checked", markup=False)
        """One line about the text: whether it is valid, and what is changed in it."""
        self._case = case
        self._maker = maker
        self._note = ""
        self._area = TextArea(show_cursor=False, show_line_numbers=True, compact=True, highlight_cursor_line=False)
        self._area.match_cursor_bracket = False
        self._page = Page()
        self._proposal: Proposal | None = None
        self._why_blank = ""
        self._no_answer = ""
        """Why the text cannot be had now, and is asked for again; "" where it is here."""
        self._unseen = ""
        """A text that is too large for the screen, until the operator's editor has had it."""
        self._turn = 0
        self._is_lent = False
        self._making: Timer | None = None
        self._checking: Timer | None = None
        self.text = ""
        self.problems: list[str] | None = None
        """What is wrong with the text, None as long as it is being checked."""
        self._difference: Difference | None = None
        self._is_plain = False

    def compose(self) -> ComposeResult:
        yield self._area
        yield self._page

    def on_mount(self) -> None:
        self._make_later()

    @property
    def is_edited(self) -> bool:
        """Whether the operator has changed what was proposed."""
        return self._proposal is not None and self.text != self._proposal.text

    def remake(self, note: str) -> None:
        """The fields, or the note, say something else now."""
        self._note = note
        if not self.is_edited:
            if self._making is not None:
                self._making.stop()
            self._making = once(self, _PAUSE, self._make_later)
            # It is not what is signed any more.
            self.problems = None
            self.post_message(self.Checked())

    @work(group="propose", exclusive=True)
    async def _make_later(self) -> None:
        await self._make()

    async def _make(self) -> None:
        self._turn += 1
        turn = self._turn
        task = self._case.task
        if task is None:
            return
        try:
            proposal = await asyncio.to_thread(self._maker(task, self._note))
            self._why_blank = "none was ever seen: write one, or the next attempt gets your note only"
        except NoAnswerError as error:
            if turn == self._turn and not self.is_edited:
                self._no_answer = clean(str(error), 500)
                self._area.read_only = True
                self._making = once(self, _AGAIN, self._make_later)
                self.post_message(self.Checked())
            return
        except DecisionError as error:
            proposal, self._why_blank = blank_handoff(task, self._case.subject), clean(str(error), 500)
        # Else the operator has begun to edit it meanwhile, or it is made anew with what was said since.
        if turn == self._turn and not self.is_edited:
            self._proposal = proposal
            if self._no_answer:
                self._no_answer = ""
                self.post_message(self.Appeared())
            self.write(proposal.text)

    def write(self, text: str) -> None:
        """Put another text in the place of this one."""
        if text == self.text and self.problems is not None:
            return
        self.text = text
        fits = len(text) <= _LARGEST and all(len(line) <= _LONGEST for line in text.splitlines())
        self._area.read_only = not fits
        self._unseen = "" if fits else text
        with self._area.prevent(TextArea.Changed):
            # What is not on the screen cannot be edited there.
            self._area.text = text if fits else "This text is too large to be edited here: press ctrl+e."
        self._check_later()

    # What is said of it

    def show_status(self) -> None:
        """Say what is true of the text now."""
        self.status.update(self._status())

    def _status(self) -> Content:
        if self._no_answer:
            return Content.styled(f"{self._no_answer}; it is asked again", "$text-warning")
        if self._why_blank and not self.text:
            return Content.styled(self._why_blank, "$text-warning")
        if self.problems is None:
            return Content.styled("… checking", "$text-muted")
        if self.problems:
            more = f"  (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            parts = [Content.styled(f"✗ {clean(self.problems[0], 300)}{more}", "$text-error")]
        else:
            parts = [Content.styled("✓ valid", "$text-success")]
        if self._difference is not None:
            parts.append(self._difference.counted)
        if self.is_edited:
            parts.append(Content.styled("edited by you: a note is handed on beside it", "$text-muted"))
        return Content("   ").join(parts)

    def cautions(self, mitigation: Mitigation | None) -> Iterator[str]:
        """What the operator should know before it is handed on, in sentences."""
        # What was mended counts as long as the operator has not looked at it.
        mended = () if self._proposal is None or self.is_edited else self._proposal.mended
        return cautions(mended=mended, is_plain=self._is_plain, mitigation=mitigation)

    @property
    def area(self) -> TextArea:
        """Where it is written."""
        return self._area

    def missing(self) -> str | None:
        """What the operator has to do before it can be handed on, in small letters; None if it can."""
        if self._is_lent:
            return f"the edited {self.label} is being read"
        if self._no_answer:
            return f"the {self.label} is not here: {self._no_answer}"
        if self._proposal is None or self.problems is None:
            return f"the {self.label} is being checked"
        if self._unseen:
            return f"the {self.label} is too large to be shown here: read it with ctrl+e"
        if self.problems:
            return f"correct the {self.label} first: {clean(self.problems[0], 300)}"
        return None

    def toggle_changes(self) -> None:
        """Show what was changed, or the editor."""
        had_focus = self.has_focus_within
        self.toggle_class("-changes")
        if had_focus:
            (self._page if self.has_class("-changes") else self._area).focus()
        self._show_changes()

    async def is_sound(self, note: str) -> bool:
        """Whether the text that is on the screen can be handed on; else `missing` tells what is wrong with it.

        It is made once more: a key that was typed right after the note comes before the news of the note. What that
        changes is shown, and not handed on unseen.
        """
        shown = self.text
        self._note = note
        if self._making is not None:
            self._making.stop()
        if not self.is_edited:
            await self._make()
        problems = await self._check()
        return self.text == shown and not problems and self.missing() is None

    async def _check(self) -> list[str]:
        """What is wrong with the text as it is now, in sentences."""
        proposal, checked = self._proposal, self.text
        if proposal is None:
            return []
        problems = await asyncio.to_thread(proposal.problems, checked)
        difference = None
        if proposal.before is not None:
            difference = await asyncio.to_thread(compare, proposal.before, checked)
        is_plain = await asyncio.to_thread(proposal.is_plain, checked)
        if checked == self.text:
            self.problems, self._difference, self._is_plain = problems, difference, is_plain
            self._show_changes()
            self.post_message(self.Checked())
        return problems

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
            directory = await asyncio.to_thread(_private_directory, self._case.desk.state)
            path = Path(directory.name) / Path(self._proposal.name).name
            await asyncio.to_thread(_put_down, path, self.text)
            trouble = hand_over(self.app, self._case.monitor.settings.editor, path)
            ended()
            if trouble is None:
                if (text := await asyncio.to_thread(_take_back, path)) != self.text:
                    self.write(text)
                self._unseen = ""
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
        self._area.show_cursor = self._area.match_cursor_bracket = self._area.has_focus

    @on(TextArea.Changed)
    def _take_text(self, event: TextArea.Changed) -> None:
        event.stop()
        # The editor knows one kind of line break; a text that nobody touched keeps its own.
        if not self._area.read_only and self._area.text != self.text:
            self.text = self._area.text
            self._check_later()

    def _check_later(self) -> None:
        self.problems = None
        self.post_message(self.Checked())
        if self._checking is not None:
            self._checking.stop()
        self._checking = once(self, _PAUSE, self._check_now)

    @work(group="check", exclusive=True)
    async def _check_now(self) -> None:
        await self._check()

    def _show_changes(self) -> None:
        if self.has_class("-changes"):
            self._page.show(list(self._changes()), keep=True)

    def _changes(self) -> Iterator[Block]:
        difference = self._difference
        if difference is None:
            yield text(faint("There is no earlier one to compare it with."))
        elif not difference.rows:
            yield text(faint("It is the same as the last one."))
        else:
            yield from difference.noted


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
