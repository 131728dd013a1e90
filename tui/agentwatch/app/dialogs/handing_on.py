"""A dialog whose decision hands on a document: the operator can edit it here or in the editor, and see what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.document import Document
from agentwatch.app.dialogs.fields import Row
from agentwatch.app.dialogs.frame import DecisionScreen
from agentwatch.app.editor import hand_over
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.proposal import Proposal, blank_handoff, cautions
from agentwatch.delegation.task import Task
from agentwatch.text import clean

_PAUSE: Final = 0.2
"""Seconds after the last key in a field until the document is made again."""
_LARGEST: Final = 1024 * 1024
"""Bytes of an edited file that are taken back."""


class HandingOnScreen(DecisionScreen):
    """The document is made from what the fields say until the operator edits it; from then on it is the operator's."""

    hands_on: ClassVar[bool] = True
    document_label: ClassVar[str] = "handoff"
    document_title: ClassVar[str] = "the next handoff: agents' words, as amended"

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__(case, clock, steady, queue)
        self.document = Document(self.document_title)
        self._checked = Static(id="checked", markup=False)
        self._proposing: Timer | None = None
        self._is_stale = True
        self._why_blank = ""
        self._is_editing = False

    def maker(self, task: Task) -> Callable[[], Proposal]:
        """Makes the document as the fields are now, in a thread."""
        raise NotImplementedError

    def fields(self) -> Iterator[Row]:
        yield Row(self.document_label, self._checked)

    def below(self) -> ComposeResult:
        yield self.document

    def on_mount(self) -> None:
        self._propose_later()

    def changed(self) -> None:
        if not self.document.is_edited:
            self._is_stale = True
            if self._proposing is not None:
                self._proposing.stop()
            self._proposing = self.set_timer(_PAUSE, self._propose_later)

    @work(group="propose", exclusive=True)
    async def _propose_later(self) -> None:
        await self._propose()

    async def _propose(self) -> None:
        self._is_stale = False
        task = self.case.task
        if task is None:
            return
        try:
            proposal = await asyncio.to_thread(self.maker(task))
            self._why_blank = "none was ever seen: write one, or the next attempt gets your note only"
        except DecisionError as error:
            proposal, self._why_blank = blank_handoff(task, self.case.subject), clean(str(error), 500)
        if not self.document.is_edited:
            # Else the operator has begun to edit it meanwhile.
            self.document.propose(proposal)
        self.look()

    @on(Document.Checked)
    def _take_check(self) -> None:
        self.look()

    def look(self) -> None:
        super().look()
        self._checked.update(self._document_line())

    def _document_line(self) -> Content:
        document = self.document
        if self._why_blank and not document.text:
            return Content.styled(self._why_blank, "$text-warning")
        if document.problems is None:
            return Content.styled("… checking", "$text-muted")
        parts = []
        if document.problems:
            more = f"  (and {len(document.problems) - 1} more)" if len(document.problems) > 1 else ""
            parts.append(Content.styled(f"✗ {clean(document.problems[0], 300)}{more}", "$text-error"))
        else:
            parts.append(Content.styled("✓ valid", "$text-success"))
        if document.difference is not None:
            parts.append(document.difference.counted)
        if document.is_edited:
            parts.append(Content.styled("edited by you: a note is handed on beside it", "$text-muted"))
        return Content("   ").join(parts)

    def cautions(self) -> Iterator[str]:
        document = self.document
        yield from cautions(
            mended=document.mended, is_plain=document.is_plain, mitigation=self.plain_params().mitigation
        )

    def missing(self) -> str | None:
        if self._is_editing:
            return f"the edited {self.document_label} is being read"
        if self.document.problems:
            return f"correct the {self.document_label} first: {clean(self.document.problems[0], 300)}"
        return None

    async def sound_text(self) -> str | None:
        """The document as it is handed on; None if it is not sound."""
        if self._is_stale and not self.document.is_edited:
            await self._propose()
        return None if await self.document.check() else self.document.text

    # Commands

    def action_changes(self) -> None:
        self.document.toggle_changes()
        self._footer.redraw()

    @work(group="edit", exclusive=True)
    async def action_edit_document(self) -> None:
        """Open the document in the operator's editor; the screen waits."""
        self._is_editing = True
        try:
            text = await self._edited(self.document.text)
        except (OSError, ValueError) as error:
            self._complain(f"The edited text cannot be read: {clean(str(error), 200)}.")
            text = None
        finally:
            self._is_editing = False
        if text is not None and text != self.document.text:
            self.document.write(text)
        self.look()

    async def _edited(self, text: str) -> str | None:
        """The text as the editor leaves it, None if it failed. Raises OSError and ValueError."""
        # Not in the workspace: an agent could change the text between the editor and the signature.
        directory = await asyncio.to_thread(_private_directory, self.case.desk.ledger.directory.parent)
        try:
            path = Path(directory.name) / Path(self.document.name_of_file).name
            await asyncio.to_thread(_put_down, path, text)
            trouble = hand_over(self.app, self.case.monitor.settings.editor, path)
            # Whatever was typed for the editor is not meant for this dialog.
            self.arming.begin()
            if trouble is None:
                return await asyncio.to_thread(_take_back, path)
            self._complain(trouble)
            return None
        finally:
            await asyncio.to_thread(directory.cleanup)

    def _complain(self, words: str) -> None:
        self.app.notify(words, severity="warning", markup=False, timeout=6)


def _private_directory(state: Path) -> TemporaryDirectory[str]:
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return TemporaryDirectory(prefix="editing-", dir=state)


def _put_down(path: Path, text: str) -> None:
    """Write the text into a private file. Raises OSError."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(text.encode())


def _take_back(path: Path) -> str:
    """The text that is there now. Raises OSError, and ValueError if it is too large or none."""
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} bytes")
    return path.read_bytes().decode()
