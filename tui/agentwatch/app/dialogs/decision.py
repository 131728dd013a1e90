"""The dialog of one decision about one attempt: its facts, what the policy allows, and the child's words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.case import Case, facts
from agentwatch.app.dialogs.document import Document
from agentwatch.app.dialogs.fields import Choice, Row
from agentwatch.app.dialogs.forms import FORMS, AttemptForm, said
from agentwatch.app.dialogs.frame import Dialog, Wanted
from agentwatch.app.leaving import leave
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.details.blocks import Block
from agentwatch.app.widgets.details.page import Page
from agentwatch.decisions import policy
from agentwatch.decisions.delivery import is_told_of
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import Mitigation
from agentwatch.delegation.decision import OF_ATTEMPTS
from agentwatch.text import clean, quoted
from agentwatch.view.words import name_of


class DecisionScreen(Dialog):
    """`clock` gives seconds since the epoch, the rest is that of every dialog."""

    form: AttemptForm

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None
    ) -> None:
        super().__init__(FORMS[case.action](case), case.desk, steady, queue)
        self.case = case
        self._clock = clock
        self._document = self.form.document
        self._words = Page()

    def rows(self) -> Iterator[Row]:
        yield from super().rows()
        if self._document is not None:
            yield Row(self._document.label, self._document.status)

    def below(self) -> ComposeResult:
        yield from super().below()
        with Vertical(id="words") as words:
            words.border_title = "the child's words"
            yield self._words

    def on_mount(self) -> None:
        # Textual itself calls that of the frame.
        self._read_return()

    @work
    async def _read_return(self) -> None:
        task = self.case.task
        version = task.latest.returned if task is not None and task.latest is not None else None
        returned = await asyncio.to_thread(self.case.monitor.content, version) if version is not None else None
        blocks: list[Block] = list(said(self.case.seen, returned))
        self._words.show(blocks, keep=False)

    @on(TreeUpdated)
    def _take_update(self, event: TreeUpdated) -> None:
        if self.case.subject.task_id in event.changed:
            self.look()

    @on(Document.Checked)
    def _take_check(self) -> None:
        self.look()

    @on(Document.Appeared)
    def _begin_reading(self) -> None:
        self._arming.begin()

    @on(Input.Changed)
    @on(Choice.Changed)
    def _remake(self, event: Input.Changed | Choice.Changed) -> None:
        # A passphrase is no part of it.
        is_secret = isinstance(event, Input.Changed) and event.input.password
        if self._document is not None and not is_secret:
            self._document.remake(self.note)

    def facts(self, width: int) -> Iterator[Content]:
        params = self.form.params()
        cautions = self._document.cautions(params.mitigation) if self._document is not None else ()
        return facts(self.case, params, cautions, now=self._clock(), width=width)

    def change(self) -> str | None:
        return self.case.change()

    def missing(self) -> Wanted | None:
        task = self.case.task
        if task is None:
            return Wanted("the task has gone")
        if reason := policy.refusal(task, self.case.action, self.form.params(), self.note):
            # With a mitigation it may be allowed: then the operator can do something about it here.
            option = policy.options(task, mitigation=Mitigation.REDUCED_SCOPE)[self.case.action]
            return Wanted(reason, (self.form.wanted or self._note) if option.allowed else None)
        if wanted := super().missing():
            return wanted
        if self._document is not None and (reason := self._document.missing()):
            return Wanted(reason, self._document.area if self._document.problems else None)
        return None

    async def is_sound(self) -> bool:
        if self._document is None:
            return True
        shown = self._document.text
        is_sound = await self._document.is_sound(self.note)
        if self._document.text != shown:
            self._trouble = f"The {self._document.label} is not what you saw: read it, then press ctrl+s again."
        return is_sound

    async def sign(self) -> DecisionMade:
        params = self.form.params() if self._document is None else self.form.recorded(self._document.text)
        return await self.case.monitor.decide(self.case.subject, self.case.action, params, self.note.strip())

    def outcome(self, decided: DecisionMade) -> str:
        task = quoted(name_of(self.case.seen), 24)
        done = "recorded" if decided.fresh else "the very same was recorded before"
        undelivered = decided.undelivered
        delivered = "delivered" if undelivered is None else f"not delivered: {clean(undelivered, 500)}"
        return f"{self.form.word} {task}: {done}, {delivered}."

    async def remark(self) -> str:
        """That no agent here has read a decision; one may be waiting for its first, unseen."""
        if self.case.monitor.host:
            # What agents there are told is seen there.
            return ""
        tasks = list(self.case.monitor.tree.tasks.values())
        if any(one.is_read for task in tasks for attempt in task.attempts for one in attempt.decisions):
            return ""
        if await asyncio.to_thread(is_told_of, self.case.monitor.workspace):
            return ""
        return "No decision was read here before: if no agent waits for this one, `agentwatch init` sets that up."

    def action_instead(self, number: int) -> None:
        """Decide otherwise about the same attempt."""
        action, task = OF_ATTEMPTS[number], self.case.task
        if self._recording or task is None:
            return
        is_open = action is self.case.action
        reason = "this is its dialog" if is_open else why_not(task, action, self._clock())
        if reason is None:
            leave(self, action)
        else:
            self.app.notify(f"{FORMS[action].word}: {reason}.", severity="warning", markup=False, timeout=6)

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
            trouble = await self._document.edit(ended=self._arming.begin)
            if trouble is not None:
                self.app.notify(trouble, severity="warning", markup=False, timeout=6)
            self.look()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Without a document its keys are those of the field that has the focus."""
        return self._document is not None or action not in {"edit_document", "changes"}

    def is_useless(self, command_id: str) -> bool:
        return super().is_useless(command_id) or (
            command_id in {"dialog.edit", "dialog.changes"} and self._document is None
        )
