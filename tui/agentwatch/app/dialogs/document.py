"""The document that a decision hands on, in an editor: checked while it is written, and held against the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea

from agentwatch.app.widgets.details.blocks import Block, faint, text
from agentwatch.app.widgets.details.listing import Difference, compare
from agentwatch.app.widgets.details.page import Page
from agentwatch.decisions.proposal import Proposal

_PAUSE: Final = 0.2
"""Seconds without a key after which the text is checked."""
_LARGEST: Final = 128 * 1024
"""Characters up to which a document is edited on the screen; a larger one takes seconds to lay out."""
_LONGEST: Final = 4_000
"""The same for one line."""


class Document(Vertical):
    """An editor on a proposal, or what was changed in it. `text` is what would be handed on."""

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

    def __init__(self, title: str) -> None:
        super().__init__()
        self.border_title = title
        self._area = TextArea(show_cursor=False, show_line_numbers=True, compact=True, highlight_cursor_line=False)
        self._area.match_cursor_bracket = False
        self._page = Page()
        self._proposal: Proposal | None = None
        self._text = ""
        self._timer: Timer | None = None
        self.problems: list[str] | None = None
        """What is wrong with the text, None as long as it is being checked."""
        self.difference: Difference | None = None
        """What was changed in the last one, None if there is none."""
        self.is_plain = False
        """Nothing in it is the operator's."""

    def compose(self) -> ComposeResult:
        yield self._area
        yield self._page

    @property
    def text(self) -> str:
        return self._text

    @property
    def name_of_file(self) -> str:
        """The name under which the text can be read."""
        return self._proposal.name if self._proposal else "next.handoff.json"

    @property
    def mended(self) -> tuple[str, ...]:
        """The keys that were filled in or corrected, as long as the operator has not looked at them."""
        return () if self._proposal is None or self.is_edited else self._proposal.mended

    @property
    def is_edited(self) -> bool:
        """Whether the operator has changed what was proposed."""
        return self._proposal is not None and self._text != self._proposal.text

    @property
    def shows_changes(self) -> bool:
        return self.has_class("-changes")

    def propose(self, proposal: Proposal) -> None:
        """Put another proposal in the place of the one before."""
        self._proposal = proposal
        self.write(proposal.text)

    def write(self, text: str) -> None:
        """Put another text in the place of the proposed one."""
        self._text = text
        fits = _fits_screen(text)
        self._area.read_only = not fits
        with self._area.prevent(TextArea.Changed):
            # What is not on the screen cannot be edited there; it is handed on all the same.
            self._area.text = text if fits else "This text is too large to be edited here: press ctrl+e."
        self._check_later()

    def toggle_changes(self) -> None:
        """Show what was changed, or the editor."""
        had_focus = self.has_focus_within
        self.toggle_class("-changes")
        if had_focus:
            (self._page if self.shows_changes else self._area).focus()
        self._show_changes()

    async def check(self) -> list[str]:
        """What is wrong with the text as it is now, in sentences."""
        proposal, checked = self._proposal, self._text
        if proposal is None:
            return []
        problems = await asyncio.to_thread(proposal.problems, checked)
        difference = None
        if proposal.before is not None:
            difference = await asyncio.to_thread(compare, proposal.before, checked)
        is_plain = await asyncio.to_thread(proposal.is_plain, checked)
        if checked == self._text:
            self.problems, self.difference, self.is_plain = problems, difference, is_plain
            self._show_changes()
            self.post_message(self.Checked())
        return problems

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_cursor(self) -> None:
        # Textual draws the cursor of an editor that nobody is in, and the bracket that belongs to the one below it.
        self._area.show_cursor = self._area.match_cursor_bracket = self._area.has_focus

    @on(TextArea.Changed)
    def _take_text(self, event: TextArea.Changed) -> None:
        event.stop()
        # The editor knows one kind of line break; a text that nobody touched keeps its own.
        if not self._area.read_only and self._area.text != self._text:
            self._text = self._area.text
            self._check_later()

    def _check_later(self) -> None:
        self.problems = None
        self.post_message(self.Checked())
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PAUSE, self._check)

    @work(group="check", exclusive=True)
    async def _check(self) -> None:
        await self.check()

    def _show_changes(self) -> None:
        if self.shows_changes:
            self._page.show(self._changes, keep=True)

    def _changes(self) -> Iterator[Block]:
        difference = self.difference
        if difference is None:
            yield text(faint("There is no earlier one to compare it with."))
        elif not difference.rows:
            yield text(faint("It is the same as the last one."))
        else:
            yield difference
            if difference.note:
                yield text(Content.styled(difference.note, "$text-warning"))


def _fits_screen(text: str) -> bool:
    return len(text) <= _LARGEST and all(len(line) <= _LONGEST for line in text.splitlines())
