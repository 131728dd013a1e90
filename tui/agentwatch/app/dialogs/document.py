"""The editor of a decision's document (a handoff or a report). It checks the text while the operator writes."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from agentwatch.app.editor import open_in_editor
from agentwatch.app.widgets.details.blocks import (
    Block,
    Difference,
    Page,
    Quotation,
    compare_texts,
    faint,
    heading,
    paragraph,
    update_words,
)
from agentwatch.decisions.errors import DecisionError, NoAnswerError
from agentwatch.decisions.form import DecisionForm, Proposal, blank_handoff
from agentwatch.decisions.service import operator_name
from agentwatch.monitor import Monitor
from agentwatch.text import clean, count_unseen, has_hidden_blanks
from agentwatch.view.words import plural

_RETRY_SECONDS = 2.0  # seconds until a host that sent no text is asked again
_CHECK_DELAY = 0.2  # seconds from the last key press until the document is made and checked again
_LONG_LINES = 100  # lines: the operator must scroll through a longer document before signing
_LARGEST = 128 * 1024  # characters: a larger document is not shown, because its layout takes seconds


def _with_line_breaks(text: str) -> str:
    """Return a JSON text with real line breaks in place of the escapes `\\n`."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\n", r"\1\n", text)


class Document(Vertical):
    """An editor for the document that a form proposes, and a page with the changes since the last document.

    If the form changes, a new text is proposed, unless the operator has edited the text. The decision hands on `text`.
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
    Document.-page > Page { display: block; }
    Document.-page > TextArea { display: none; }
    """

    class Checked(Message):
        """The text or the result of its check has changed."""

    def __init__(self, form: DecisionForm, monitor: Monitor, state: Path, on_new_text: Callable[[], object]):
        """The operator's own editor opens a file in the directory `state`. If a host sends no text at first,
        `on_new_text` is called when the text arrives."""
        super().__init__()
        self.border_title, self.label = form.title, form.spec.document
        # A line that says whether the text is valid, and how many lines differ.
        self.status = Static(id="checked", markup=False)
        self._form, self._monitor, self._state, self._report_new_text = form, monitor, state, on_new_text
        self.area = TextArea(show_cursor=False, show_line_numbers=True, compact=True, highlight_cursor_line=False)
        self.area.id = "field-document"
        self.area.match_cursor_bracket = False
        self.page = Page()
        self._proposal: Proposal | None = None
        # In this order: the operator's note, the text to hand on, why it is blank, and why the host sent no text.
        self._note = self.text = self._why_blank = self._no_answer = ""
        self.problems: list[str] | None = None  # the faults of the text; None during the check
        self._difference: Difference | None = None
        # `_hides`: an editor would hide characters of the text, so the page is shown first.
        # `_is_switched`: the operator has switched between editor and page.
        self._hides = self._is_switched = False

    def compose(self) -> ComposeResult:
        yield self.area
        yield self.page

    def on_mount(self) -> None:
        self._propose_and_check(0)

    @property
    def is_edited(self) -> bool:
        """Whether the operator has changed the proposed text."""
        return self._proposal is not None and self.text != self._proposal.text

    @property
    def text_to_read(self) -> tuple[Page | TextArea, int]:
        """The widget that shows the text, and the number of lines that the operator must read (0 for a short text)."""
        if self._hides and not self._is_switched:
            return self.page, self.page.line_count_of(1)
        lines = self.area.wrapped_document.height
        return self.area, lines if self._hides or lines > _LONG_LINES else 0

    def propose_again(self, note: str) -> None:
        """Propose a new text after the form or the note has changed. Keep a text that the operator has edited."""
        self._note = note
        if not self.is_edited:
            self._propose_and_check()

    @work(exclusive=True)
    async def _propose_and_check(self, pause: float = _CHECK_DELAY) -> None:
        """Wait for `pause` seconds, then propose a new text and check it. The operator cannot sign before this ends."""
        self.problems = None
        self.post_message(self.Checked())
        await asyncio.sleep(pause)
        await self._propose()
        while self._no_answer:
            await asyncio.sleep(_RETRY_SECONDS)
            await self._propose()
        await self._check()

    async def _propose(self) -> None:
        form, tree = self._form, self._monitor.tree
        if self.is_edited or form.task.task_id not in tree.tasks:
            return
        failed = list(tree.failed_below(form.task))
        try:
            proposal = await asyncio.to_thread(form.propose, self._monitor.text, self._note, failed, operator_name())
            self._why_blank = "none was ever seen: write one, or the next attempt gets your note only"
        except NoAnswerError as error:
            self._no_answer = f"{clean(str(error), 500)}; it is asked again"
            self.area.read_only = True
            self.post_message(self.Checked())
            return
        except DecisionError as error:
            proposal, self._why_blank = blank_handoff(form.task, form.subject), clean(str(error), 500)
        was_missing, self._no_answer = self._no_answer, ""
        if not self.is_edited:
            self._proposal = proposal
            self._set_text(proposal.text)
            if was_missing:
                self._report_new_text()

    def _set_text(self, text: str) -> None:
        self.text, self.problems = text, None
        self.area.read_only = len(text) > _LARGEST
        if text != self.area.text:
            with self.area.prevent(TextArea.Changed):
                self.area.text = "This text is too large to be shown." if self.area.read_only else text

    # The check

    def show_status(self) -> None:
        """Update the line that says whether the text is valid, and how many lines differ."""
        parts = [Content.styled("… checking", "$text-muted")]
        if why := self._no_answer or (not self.text and self._why_blank):
            parts = [Content.styled(why, "$text-warning")]
        elif self.problems is not None:
            parts = [Content.styled("✓ valid", "$text-success")]
            if self.problems:
                parts = [Content.styled(f"✗ {clean(self.problems[0], 300)}", "$text-error")]
            if self._difference is not None:
                parts.append(self._difference.counts)
            if self.is_edited:
                parts.append(Content.styled("edited by you: a note is handed on beside it", "$text-muted"))
            if self._hides:
                parts.append(Content.styled("blanks in it are counted; ctrl+t: editor", "$text-warning"))
        update_words(self.status, Content("   ").join(parts))

    def missing_reason(self) -> str | None:
        """Return why the document cannot be handed on yet, in lower case. Return None if it is ready."""
        if self._no_answer:
            return f"the {self.label} is not here: {self._no_answer}"
        if self._proposal is None or self.problems is None:
            return f"the {self.label} is being checked"
        if len(self.text) > _LARGEST:
            return f"the {self.label} is too large to be shown here: shorten it with ctrl+e, or use `agentwatch decide`"
        return f"correct the {self.label} first: {clean(self.problems[0], 300)}" if self.problems else None

    async def is_unchanged(self, note: str) -> bool:
        """Make the document again with this note, and return whether the text on the screen stays the same. The
        text may change, because the recording key can come before the last change of the note is processed."""
        text_on_screen, self._note = self.text, note
        self.workers.cancel_node(self)
        await self._propose()
        await self._check()
        return self.text == text_on_screen

    async def _check(self) -> None:
        proposal, checked = self._proposal, self.text
        if proposal is None:
            return

        def check_text() -> tuple[list[str], Difference | None, bool]:
            unseen = count_unseen(checked)
            warning = f"it holds {plural(unseen, 'character')} that cannot be seen: take them out with ctrl+e"
            problems = [*([warning] if unseen else []), *proposal.problems(checked)]
            difference = compare_texts(proposal.before, checked) if proposal.before is not None else None
            return problems, difference, has_hidden_blanks(_with_line_breaks(checked))

        problems, difference, hidden = await asyncio.to_thread(check_text)
        if checked == self.text:
            self.problems, self._difference = problems, difference
            if hidden != self._hides:
                # Stay in the editor while the operator writes.
                self._hides, self._is_switched = hidden, hidden and self.area.has_focus
            self._show_page()
        self.post_message(self.Checked())

    # Editing

    def open_editor(self) -> str | None:
        """Let the operator change the text in their own editor. Return an error sentence if this fails."""
        if self._no_answer or self._proposal is None:
            return f"The {self.label} is not here yet."
        try:
            # The file is not in the workspace, where an agent could change it before the operator signs. Disk access
            # may block the event loop here, because the loop waits for the editor anyway.
            self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(prefix="editing-", dir=self._state, ignore_cleanup_errors=True) as directory:
                path = Path(directory, Path(self._proposal.name).name)
                path.touch(mode=0o600)
                path.write_bytes(self.text.encode())
                if trouble := open_in_editor(self.app, self._monitor.settings.editor, path):
                    return trouble
                if (text := path.read_bytes().decode()) != self.text:
                    self._set_text(text)
                    self._propose_and_check()
        except (OSError, ValueError) as error:
            return f"The edited text cannot be read: {clean(str(error), 200)}."
        return None

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_cursor(self) -> None:
        # Textual would draw the cursor and the matching bracket even in an editor without the focus.
        self.area.show_cursor = self.area.match_cursor_bracket = self.area.has_focus

    @on(TextArea.Changed)
    def _handle_edit(self, event: TextArea.Changed) -> None:
        event.stop()
        # TextArea makes all line breaks alike. A text that nobody edits must keep its line breaks.
        if not self.area.read_only and self.area.text != self.text:
            self.text = self.area.text
            self._propose_and_check()

    def toggle_changes(self) -> None:
        """Switch between the page of changes and the editor."""
        self._is_switched = not self._is_switched
        self._show_page()

    def _show_page(self) -> None:
        """Show the editor or the page of changes. If an editor would hide characters, the page also has the text."""
        had_focus, is_page = self.has_focus_within, self._hides != self._is_switched
        self.set_class(is_page, "-page")
        if had_focus:
            self.screen.set_focus(self.page if is_page else self.area)
        blocks: list[Block] = [paragraph(faint("It is the same as the last one, or there is none."))]
        if self._difference is not None and self._difference.rows:
            blocks = self._difference.blocks
        if self._hides:
            blocks = [Quotation(self.label, _with_line_breaks(self.text)), *heading("Changes"), *blocks]
        self.page.show(blocks, keep_position=True)
