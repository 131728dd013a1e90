"""The two subjects of a dialog: an attempt of a task, and a request of a program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

from agentwatch.app.widgets.details.blocks import FAINT, Block, Line, Text, faint, text
from agentwatch.decisions.form import (
    DIGITS_OF_FILE,
    DecisionForm,
    Fact,
    Missing,
    RequestForm,
    facts,
    request_facts,
    with_document,
    words_of_child,
    words_of_request,
)
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.text import clean, quoted, whole
from agentwatch.view.requests import standing_words
from agentwatch.view.words import name_of, program_of

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.monitor import Monitor

_QUOTED: Final = 13
"""Cells of the column with the labels of foreign words."""
_DONE: Final = {Action.ALLOW: "Allowed for", Action.DENY: "Denied to", Action.ANSWER: "Answered"}
_EFFECTS: Final = {Action.ALLOW: "allows it, this once", Action.DENY: "denies it", Action.ANSWER: "answers it"}


class AttemptCase:
    """A decision about one attempt of a task, as it stood when the dialog opened."""

    advice = "Leave with escape, look at it, and open this again."
    title = "the child's words"
    asker = "the child's"
    to_read = 0

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, action: Action) -> None:
        self.monitor, self.desk, self.seen, self.action = monitor, desk, task, action
        self.subject = desk.subject(task)
        self.form = DecisionForm(task, self.subject, action, monitor.tree.tasks.values(), dict(monitor.settings.modes))

    @property
    def task(self) -> Task | None:
        """The task as it is now, None if it has gone."""
        return self.monitor.tree.tasks.get(self.subject.task_id)

    def change(self, now: float) -> str | None:  # noqa: ARG002 - it is the task that changes
        """The difference to what the operator saw, a sentence; None if there is none."""
        if (task := self.task) is None:
            return "The task is gone."
        subject, seen = self.desk.subject(task), self.subject
        if subject.attempt != seen.attempt:
            return f"Attempt {subject.attempt} has begun meanwhile."
        if subject.return_sha256 != seen.return_sha256:
            return "The return has changed since you opened this."
        if subject.handoff_sha256 != seen.handoff_sha256:
            return "The handoff has changed since you opened this."
        return f"It was decided meanwhile: {task.binding.action}." if task.binding is not None else None

    def facts(self, now: float) -> Iterator[Fact]:
        """The facts of the frame."""
        where = "in the ledger, copy in .agentwatch/decisions"
        if self.monitor.host:
            where = f"in the ledger of {quoted(self.monitor.host, 60)}, once it has checked this"
        elif self.monitor.settings.read_only:
            where = "in the ledger, nowhere else (read only)"
        writes = f"{self.subject.decision_id[:DIGITS_OF_FILE]}….json {where}"
        about = self.seen, self.task or self.seen, self.subject, self.action, self.form.params()
        return facts(*about, now=now, writes=writes)

    def missing(self, note: str, unread: str) -> Missing | None:  # noqa: ARG002 - nothing has to be read first
        """The step that the operator has to take first."""
        return self.form.missing(self.task, note) if self.task is not None else None

    async def words(self) -> list[Block]:
        """The words of others, each line of them behind the bar."""
        returned = self.seen.latest.returned
        content = await asyncio.to_thread(self.monitor.content, returned) if returned is not None else None
        nothing = [] if self.seen.result else [text(faint("The child has returned nothing that can be read."))]
        parts = [*words_of_child(self.seen), *([("whole return", content)] if content else [])]
        return [*nothing, *(Quotation(*part, wrap=True) for part in parts)]

    def effect(self) -> str:
        """The effect of the key, now that nothing is missing."""
        return "records this decision; nothing is recorded before"

    async def sign(self, document: str, note: str) -> DecisionMade:
        """Record it as it is filled in. Raises DecisionError."""
        params = with_document(self.action, self.form.params(), document)
        return await self.monitor.decide(self.subject, self.action, params, note)

    def outcome(self, decided: DecisionMade) -> str:
        """How that came out, in a sentence."""
        delivered = "delivered" if decided.undelivered is None else f"not delivered: {clean(decided.undelivered, 500)}"
        return f"{self.form.spec.word} {quoted(name_of(self.seen), 24)}: recorded, {delivered}."


class RequestCase:
    """A request as it was when its dialog opened. It stays with its request, whatever else is asked meanwhile."""

    advice = "Leave with escape."
    asker = "its"

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, request: Request) -> None:
        self.monitor, self.desk, self.request, self.form = monitor, desk, request, RequestForm(request)
        is_permission = request.kind is RequestKind.PERMISSION
        self.title = "what it wants to do" if is_permission else "what belongs to it"
        self.to_read = 2 if request.beside else 1
        """Of the blocks of words, so many have to be read before it can be allowed."""
        above = [monitor.tree.tasks[one] for one in reversed(monitor.tree.ancestors(task.task_id))]
        self._asker = quoted(BETWEEN.join(one.called for one in (*above, task)), 200)

    def change(self, now: float) -> str | None:
        """As that of an attempt."""
        asked, seen = self.monitor.tree.request(self.request.request_id), self.request
        if asked is None:
            return "It is not offered any more."
        request = asked.request
        if not request.waits_for_operator:
            return f"It cannot be answered any more: {standing_words(request, now)}."
        if (request.input_sha256, request.shown) != (seen.input_sha256, seen.shown):
            return "It is not the one that you looked at."
        return "Its time is over: answer it in its terminal." if now >= (request.until or now + 1) else None

    def facts(self, now: float) -> Iterator[Fact]:
        """As those of an attempt."""
        return request_facts(self.request, now, asker=self._asker)

    def missing(self, note: str, unread: str) -> Missing | None:
        """The same; `unread` is the part of the call that was not in sight yet."""
        return self.form.missing(note.strip(), unread)

    async def words(self) -> list[Block]:
        """The call, whole, and what belongs to it."""
        return [Quotation(*part) for part in words_of_request(self.request)]

    def effect(self) -> str:
        """As that of an attempt."""
        if self.form.params().rule is not None:
            return "allows it, and what the rule covers"
        action = self.form.action or Action.ANSWER
        always = " (“always”: only in its program)" if action is Action.ALLOW and not self.form.rules else ""
        return _EFFECTS[action] + always

    async def sign(self, document: str, note: str) -> DecisionMade:  # noqa: ARG002 - it hands nothing on
        """Record the answer. Raises DecisionError."""
        return await self.monitor.answer(self.request, self.form.action or Action.DENY, self.form.params(), note)

    def outcome(self, decided: DecisionMade) -> str:  # noqa: ARG002 - there is nothing to deliver
        """As that of an attempt."""
        request, done = self.request, _DONE[self.form.action or Action.DENY]
        query = request.queries[0].question if request.queries else request.shown or request.input
        return f"{done} {clean(program_of(request.source), 20)}: {quoted(query, 30)}"


Case = AttemptCase | RequestCase


class Quotation(NamedTuple):
    """Foreign text under a label of ours, whole: each line of it begins behind a bar, one that goes on behind another.
    `wrap` is False for what is folded at the edge, character by character."""

    label: str
    source: str
    wrap: bool = False

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` cells."""
        under = " " * _QUOTED
        first = faint(f"{self.label:<{_QUOTED}}┊ ")
        for piece in whole(self.source):
            part = Content.styled(piece.text, FAINT if piece.counted else "")
            yield from Text(part, first if piece.begins else faint(f"{under}┊›"), f"{under}┊›", self.wrap).lines(width)
            first = faint(f"{under}┊ ")
