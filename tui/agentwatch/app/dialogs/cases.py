"""The two subjects of a dialog: an attempt of a task, and a request of a program."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

from agentwatch.app.widgets.details.blocks import FAINT, Block, Line, Text, faint, text
from agentwatch.decisions.form import (
    DIGITS_OF_FILE,
    DecisionForm,
    Fact,
    RequestForm,
    fact,
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
from agentwatch.text import clean, clean_lines, quoted, whole
from agentwatch.view.requests import standing_words
from agentwatch.view.words import name_of, plural, program_of, told_apart

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.monitor import Monitor

_COMPARED: Final = 100
"""Tasks that ask, to which the name of the one that asks this is compared."""
_MOST_LINES: Final = 400
"""Lines of a return that are shown beside a decision; the details have the rest."""
BAR: Final = "┊ "
"""In front of every line of foreign text."""
_GOES_ON: Final = "┊›"
"""The same, where the line above has not ended."""
_QUOTED: Final = 13
"""Cells of the column with the labels of foreign words."""
SHORT: Final = 200
"""Characters of a call that is whole among the facts, where the words below are out of sight."""
_DONE: Final = {Action.ALLOW: "Allowed for", Action.DENY: "Denied to", Action.ANSWER: "Answered"}
_EFFECTS: Final = {Action.ALLOW: "allows it, this once", Action.DENY: "denies it", Action.ANSWER: "answers it"}


class Case(ABC):
    """One decision as it was begun, and what is true of it now. `where` is the top row of its workspace, else ""."""

    advice = "Leave with escape, look at it, and open this again."
    title = "the child's words"
    to_read = 0
    """Of the words below, so many have to be read before the key counts."""
    form: DecisionForm | RequestForm

    def __init__(self, monitor: Monitor, desk: DecisionService, where: str) -> None:
        self.monitor, self.desk, self.where = monitor, desk, where

    @abstractmethod
    def facts(self, now: float, cautions: Iterable[str], *, low: bool) -> Iterator[Fact]:
        """The facts; `low`: the words below the frame are out of sight."""

    @abstractmethod
    def change(self, now: float) -> str | None:
        """The difference to what the operator saw, a sentence; None if there is none."""

    @abstractmethod
    async def words(self) -> list[Block]:
        """The words of others, each line of them behind the bar."""

    def effect(self) -> str:
        """The effect of the key, now that nothing is missing."""
        return "records this decision; nothing is recorded before"

    @abstractmethod
    async def sign(self, document: str, note: str) -> DecisionMade:
        """Record it as it is filled in. Raises DecisionError."""

    @abstractmethod
    def outcome(self, decided: DecisionMade, width: int) -> str:
        """How that came out, in a sentence of so many cells if it can be."""

    def place(self) -> Iterator[Fact]:
        """Its workspace and its host."""
        if self.where:
            yield fact("in", quoted(self.where, 200))
        if self.monitor.host:
            yield fact("host", quoted(self.monitor.host, 200), "bold")


class AttemptCase(Case):
    """One attempt of one task, as it stood when the dialog opened, and the action about it."""

    form: DecisionForm

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, action: Action, where: str = "") -> None:
        super().__init__(monitor, desk, where)
        self.seen, self.subject, self.action = task, desk.subject(task), action
        self.form = DecisionForm(task, self.subject, action, monitor.tree.tasks.values(), dict(monitor.settings.modes))

    @property
    def task(self) -> Task | None:
        """The task as it is now, None if it has gone."""
        return self.monitor.tree.tasks.get(self.subject.task_id)

    def change(self, now: float) -> str | None:  # noqa: ARG002 - it is the task that changes
        task = self.task
        if task is None:
            return "The task is gone."
        subject = self.desk.subject(task)
        if subject.attempt != self.subject.attempt:
            return f"Attempt {subject.attempt} has begun meanwhile."
        for name in ("return", "handoff"):
            if getattr(subject, f"{name}_sha256") != getattr(self.subject, f"{name}_sha256"):
                return f"The {name} has changed since you opened this."
        return f"It was decided meanwhile: {task.binding.action}." if task.binding is not None else None

    def facts(self, now: float, cautions: Iterable[str], *, low: bool) -> Iterator[Fact]:  # noqa: ARG002
        where = "in the ledger, copy in .agentwatch/decisions"
        if self.monitor.host:
            where = f"in the ledger of {quoted(self.monitor.host, 60)}, once it has checked this"
        elif self.monitor.settings.read_only:
            where = "in the ledger, nowhere else (read only)"
        writes = f"{self.subject.decision_id[:DIGITS_OF_FILE]}….json {where}"
        about = self.seen, self.task or self.seen, self.subject, self.action, self.form.params()
        first, *others = facts(*about, now=now, writes=writes)
        return chain([first], self.place(), others)

    async def words(self) -> list[Block]:
        task = self.task
        version = task.latest.returned if task is not None and task.latest is not None else None
        returned = await asyncio.to_thread(self.monitor.content, version) if version is not None else None
        blocks: list[Block] = [_Quotation(*part) for part in words_of_child(self.seen)]
        if self.seen.result is None:
            blocks.insert(0, text(faint("The child has returned nothing that can be read.")))
        return [*blocks, *([_Quotation("whole return", returned)] if returned else [])]

    async def sign(self, document: str, note: str) -> DecisionMade:
        return await self.monitor.decide(
            self.subject, self.action, with_document(self.action, self.form.params(), document), note
        )

    def outcome(self, decided: DecisionMade, width: int) -> str:  # noqa: ARG002 - each has its own length
        task = quoted(name_of(self.seen), 24)
        done = "recorded" if decided.fresh else "the very same was recorded before"
        delivered = "delivered" if decided.undelivered is None else f"not delivered: {clean(decided.undelivered, 500)}"
        return f"{self.form.spec.word} {task}: {done}, {delivered}."


class RequestCase(Case):
    """A request as it was when its dialog opened. It stays with its request, whatever else is asked meanwhile."""

    advice = "Leave with escape."
    form: RequestForm

    def __init__(self, monitor: Monitor, desk: DecisionService, task_id: str, request: Request, where: str) -> None:
        super().__init__(monitor, desk, where)
        self._task_id, self.request, self.form = task_id, request, RequestForm(request)
        is_permission = request.kind is RequestKind.PERMISSION
        self.title = "what it wants to do" if is_permission else "what belongs to it"
        self.to_read = 2 if request.beside else 1

    def change(self, now: float) -> str | None:
        asked, seen = self.monitor.tree.request(self.request.request_id), self.request
        if asked is None:
            return "It is not offered any more."
        request = asked.request
        if not request.waits_for_operator:
            return f"It cannot be answered any more: {standing_words(request, now)}."
        if (request.input_sha256, request.shown) != (seen.input_sha256, seen.shown):
            return "It is not the one that you looked at."
        return "Its time is over: answer it in its terminal." if now >= (request.until or now + 1) else None

    @property
    def call(self) -> str:
        """The call, whole: a line break in it is made visible where it stands in one line."""
        pieces = whole(self.request.shown or self.request.input)
        return "".join(f"{chr(10) if piece.begins else ''}{piece.text}" for piece in pieces).removeprefix("\n")

    def facts(self, now: float, cautions: Iterable[str], *, low: bool) -> Iterator[Fact]:
        first, *others = request_facts(self.request, now, asker=self._asker(), more=self._beside(), cautions=cautions)
        yield from chain([first], self.place(), others)
        if low and self.request.kind is RequestKind.PERMISSION:
            # The words below the frame are out of sight there.
            yield fact("the call", quoted(self.call, SHORT))

    def _asker(self) -> str:
        tree = self.monitor.tree
        asked = tree.request(self.request.request_id)
        task_id = asked.task_id if asked is not None else self._task_id
        if task_id not in tree.tasks:
            return quoted(task_id, 200)
        names = [tree.tasks[one].called for one in (*reversed(tree.ancestors(task_id)), task_id)]
        task, asking = tree.tasks[task_id], [tree.tasks[one] for one in tree.queue[:_COMPARED]]
        alike = [task, *(one for one in asking if one.task_id != task_id and one.called == task.called)]
        which = f", {quoted(told_apart(alike)[0], 30)}" if len(alike) > 1 else ""
        return quoted(BETWEEN.join(names), 200) + which

    def _beside(self) -> Iterator[str]:
        """Equal requests of the same task, and others, that wait as well."""
        request, tree = self.request, self.monitor.tree
        asked = tree.request(request.request_id)
        task = tree.tasks.get(asked.task_id) if asked is not None else None
        others = sorted(
            (one for one in task.requests if one.waits_for_operator) if task else (),
            key=lambda one: (one.asked_at, one.request_id),
        )
        ids = [one.request_id for one in others if (one.tool, one.input_sha256) == (request.tool, request.input_sha256)]
        if len(ids) > 1 and request.request_id in ids:
            yield f"number {ids.index(request.request_id) + 1} of {len(ids)} equal ones"
        if ids and len(others) > len(ids):
            yield f"{plural(len(others) - len(ids), 'other')} open beside it"

    async def words(self) -> list[Block]:
        return [_Verbatim(*part) for part in words_of_request(self.request)]

    def effect(self) -> str:
        if self.form.params().rule is not None:
            return "allows it, and what the rule covers"
        action = self.form.action or Action.ANSWER
        always = " (“always”: only in its program)" if action is Action.ALLOW and not self.form.rules else ""
        return _EFFECTS[action] + always

    async def sign(self, document: str, note: str) -> DecisionMade:  # noqa: ARG002 - it hands nothing on
        return await self.monitor.answer(self.request, self.form.action or Action.DENY, self.form.params(), note)

    def outcome(self, decided: DecisionMade, width: int) -> str:
        request, before = self.request, "" if decided.fresh else " before"
        program = clean(program_of(request.source), 20)
        done = f"{_DONE[self.form.action or Action.DENY]}{before} {program}: "
        query = request.queries[0].question if request.queries else ""
        return done + quoted(query or request.shown or request.input, max(width - len(done), 8))


class _Verbatim(NamedTuple):
    """Foreign text under a label of ours, whole, line by line: a line that goes on is told from a new one."""

    label: str
    source: str

    def lines(self, width: int) -> Iterator[Line]:
        under, goes_on = " " * _QUOTED + BAR, " " * _QUOTED + _GOES_ON
        first = faint(f"{self.label:<{_QUOTED}}{BAR}")
        for piece in whole(self.source):
            part = Content.styled(piece.text, FAINT if piece.counted else "")
            yield from Text(part, first if piece.begins else faint(goes_on), goes_on, wrap=False).lines(width)
            first = faint(under)


class _Quotation(NamedTuple):
    """Foreign text under a label of ours: whatever is in it, each of its lines begins behind the bar."""

    label: str
    source: str

    def lines(self, width: int) -> Iterator[Line]:
        lines, cut = clean_lines(self.source.removesuffix("\n"), _MOST_LINES)
        first, under = faint(f"{self.label:<{_QUOTED}}{BAR}"), " " * _QUOTED + BAR
        for line in lines:
            yield from Text(Content(line), first, under).lines(width)
            first = faint(under)
        if cut:
            yield Line(faint(cut))
