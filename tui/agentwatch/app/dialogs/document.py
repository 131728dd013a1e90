"""The document that a decision hands on, in an editor: checked while it is written, and compared with the last one."""

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

from agentwatch.app.editor import hand_over
from agentwatch.app.widgets.details.blocks import (
    Block,
    Difference,
    Page,
    Quotation,
    compare,
    faint,
    heading,
    show_words,
    text,
)
from agentwatch.decisions.errors import DecisionError, NoAnswerError
from agentwatch.decisions.form import DecisionForm, Proposal, blank_handoff
from agentwatch.decisions.service import operator_name
from agentwatch.monitor import Monitor
from agentwatch.text import clean, count_unseen, has_hidden_blanks
from agentwatch.view.words import plural

_AGAIN = 2.0  # seconds after which a host that did not answer is asked for the text again
_PAUSE = 0.2  # seconds without a key after which the document is made again and checked
_LONG = 100  # a document with more lines must have been in sight to its end before it is signed
_LARGEST = 128 * 1024  # characters up to which a document is shown; a larger one takes seconds to lay out


def _as_read(text: str) -> str:
    """Return a document as its reader sees it, with line breaks in place of the escapes of JSON."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\n", r"\1\n", text)


class Document(Vertical):
    """An editor of the document that a form proposes, or a page of its changes. `text` is what would be handed on.

    The proposal follows the fields of the form until the operator edits it; from then on only the operator changes it.
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
        """The text, or its check, has changed."""

    def __init__(self, form: DecisionForm, monitor: Monitor, state: Path, appeared: Callable[[], object]):
        """`state` is our directory for the file that the operator's editor opens. `appeared` is called when a text
        comes that a host did not give before, so that nobody has read it yet."""
        super().__init__()
        self.border_title, self.label = form.title, form.spec.document
        # A line on whether the text is valid and how much of it is changed.
        self.status = Static(id="checked", markup=False)
        self._form, self._monitor, self._state, self._appeared = form, monitor, state, appeared
        self.area = TextArea(show_cursor=False, show_line_numbers=True, compact=True, highlight_cursor_line=False)
        self.area.id = "field-document"
        self.area.match_cursor_bracket = False
        self.page = Page()
        self._proposal: Proposal | None = None
        # The note to include, the text, why the text is blank, and why no host has given it.
        self._note = self.text = self._why_blank = self._no_answer = ""
        self.problems: list[str] | None = None  # the faults of the text, None while it is being checked
        self._difference: Difference | None = None
        # Whether an editor would hide a part of the text, so that its page is shown first; whether the user switched.
        self._hides = self._is_turned = False

    def compose(self) -> ComposeResult:
        yield self.area
        yield self.page

    def on_mount(self) -> None:
        self._follow(0)

    @property
    def is_edited(self) -> bool:
        """Whether the operator has changed the proposal."""
        return self._proposal is not None and self.text != self._proposal.text

    @property
    def reading(self) -> tuple[Page | TextArea, int]:
        """The widget in which the text is read, and how many lines must be: 0 for a short text that hides nothing."""
        if self._hides and not self._is_turned:
            return self.page, self.page.end_of(1)
        lines = self.area.wrapped_document.height
        return self.area, lines if self._hides or lines > _LONG else 0

    def remake(self, note: str) -> None:
        """Make the document again after a change of the fields or the note, unless the operator has edited it."""
        self._note = note
        if not self.is_edited:
            self._follow()

    @work(exclusive=True)
    async def _follow(self, pause: float = _PAUSE) -> None:
        """Make the document again and check it after a pause; the one before can no longer be signed."""
        self.problems = None
        self.post_message(self.Checked())
        await asyncio.sleep(pause)
        await self._make()
        while self._no_answer:
            await asyncio.sleep(_AGAIN)
            await self._make()
        await self._check()

    async def _make(self) -> None:
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
        was_away, self._no_answer = self._no_answer, ""
        if not self.is_edited:
            self._proposal = proposal
            self._show(proposal.text)
            if was_away:
                self._appeared()

    def _show(self, text: str) -> None:
        self.text, self.problems = text, None
        self.area.read_only = len(text) > _LARGEST
        if text != self.area.text:
            with self.area.prevent(TextArea.Changed):
                self.area.text = "This text is too large to be shown." if self.area.read_only else text

    # Its state

    def show_status(self) -> None:
        """Show whether the text is valid, and how it was changed."""
        parts = [Content.styled("… checking", "$text-muted")]
        if why := self._no_answer or (not self.text and self._why_blank):
            parts = [Content.styled(why, "$text-warning")]
        elif self.problems is not None:
            parts = [Content.styled("✓ valid", "$text-success")]
            if self.problems:
                parts = [Content.styled(f"✗ {clean(self.problems[0], 300)}", "$text-error")]
            if self._difference is not None:
                parts.append(self._difference.counted)
            if self.is_edited:
                parts.append(Content.styled("edited by you: a note is handed on beside it", "$text-muted"))
            if self._hides:
                parts.append(Content.styled("blanks in it are counted; ctrl+t: editor", "$text-warning"))
        show_words(self.status, Content("   ").join(parts))

    def missing(self) -> str | None:
        """Return what must happen before the document can be handed on, in lower case; None if it can be."""
        if self._no_answer:
            return f"the {self.label} is not here: {self._no_answer}"
        if self._proposal is None or self.problems is None:
            return f"the {self.label} is being checked"
        if len(self.text) > _LARGEST:
            return f"the {self.label} is too large to be shown here: shorten it with ctrl+e, or use `agentwatch decide`"
        return f"correct the {self.label} first: {clean(self.problems[0], 300)}" if self.problems else None

    async def is_same(self, note: str) -> bool:
        """Make and check the document once more, as the last change of the note may not have arrived before the
        recording key. Return whether the text is still the one on the screen; if not, the new one is shown."""
        shown, self._note = self.text, note
        self.workers.cancel_node(self)
        await self._make()
        await self._check()
        return self.text == shown

    async def _check(self) -> None:
        proposal, checked = self._proposal, self.text
        if proposal is None:
            return

        def look() -> tuple[list[str], Difference | None, bool]:
            unseen = count_unseen(checked)
            hidden = f"it holds {plural(unseen, 'character')} that cannot be seen: take them out with ctrl+e"
            problems = [*([hidden] if unseen else []), *proposal.problems(checked)]
            difference = compare(proposal.before, checked) if proposal.before is not None else None
            return problems, difference, has_hidden_blanks(_as_read(checked))

        problems, difference, hidden = await asyncio.to_thread(look)
        if checked == self.text:
            self.problems, self._difference = problems, difference
            if hidden != self._hides:
                # Do not switch to the page while the operator writes in the editor.
                self._hides, self._is_turned = hidden, hidden and self.area.has_focus
            self._show_page()
        self.post_message(self.Checked())

    # Editing

    def edit(self) -> str | None:
        """Let the operator change the text in their editor. Returns a sentence if that failed, else None."""
        if self._no_answer or self._proposal is None:
            return f"The {self.label} is not here yet."
        try:
            # Not in the workspace, where an agent could change the text between editor and signature. Disk access is
            # fine here, as the event loop waits for the editor anyway.
            self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(prefix="editing-", dir=self._state, ignore_cleanup_errors=True) as directory:
                path = Path(directory, Path(self._proposal.name).name)
                path.touch(mode=0o600)
                path.write_bytes(self.text.encode())
                if trouble := hand_over(self.app, self._monitor.settings.editor, path):
                    return trouble
                if (text := path.read_bytes().decode()) != self.text:
                    self._show(text)
                    self._follow()
        except (OSError, ValueError) as error:
            return f"The edited text cannot be read: {clean(str(error), 200)}."
        return None

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_cursor(self) -> None:
        # Textual would draw the cursor and the matching bracket even in an editor without the focus.
        self.area.show_cursor = self.area.match_cursor_bracket = self.area.has_focus

    @on(TextArea.Changed)
    def _edited(self, event: TextArea.Changed) -> None:
        event.stop()
        # The editor has only one kind of line break; a text that nobody touched keeps its own.
        if not self.area.read_only and self.area.text != self.text:
            self.text = self.area.text
            self._follow()

    def toggle_changes(self) -> None:
        """Switch between the page of changes and the editor."""
        self._is_turned = not self._is_turned
        self._show_page()

    def _show_page(self) -> None:
        """Show the editor or the page of changes, which begins with the text if an editor would hide a part of it."""
        had_focus, is_page = self.has_focus_within, self._hides != self._is_turned
        self.set_class(is_page, "-page")
        if had_focus:
            self.screen.set_focus(self.page if is_page else self.area)
        blocks: list[Block] = [text(faint("It is the same as the last one, or there is none."))]
        if self._difference is not None and self._difference.rows:
            blocks = self._difference.noted
        if self._hides:
            blocks = [Quotation(self.label, _as_read(self.text)), *heading("Changes"), *blocks]
        self.page.show(blocks, keep=True)
