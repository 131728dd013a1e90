"""The two things that a dialog is about: an attempt of a task, and a request of a program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, Line, Text
from agentwatch.app.widgets.cells import shown
from agentwatch.app.widgets.details.blocks import Block, faint, text
from agentwatch.contracts.shapes import Severity
from agentwatch.decisions import policy
from agentwatch.decisions.form import LONGEST_RULE, DecisionForm, RequestForm
from agentwatch.decisions.handoff import goes_to_fitter
from agentwatch.decisions.ledger import NAME as LEDGER
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.retry import FITTER, is_retry, mitigated
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.state import in_home
from agentwatch.text import clean, clean_lines, exact, quoted, whole
from agentwatch.view import looks, times
from agentwatch.view.requests import denial_words, left_words, standing_words, whole_input
from agentwatch.view.words import name_of, plural, program_of, question_at, retries_left, told_apart

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.monitor import Monitor

DIGITS: Final = 12
"""Hex digits of a digest that are shown; what is compared is all of it."""
_GROUP: Final = 8
"""Digits of an id that name a request everywhere."""
_ROOMY: Final = 56
_WIDE: Final = 108
"""Cells from which a fact has room for more of what belongs to it."""
_COMPARED: Final = 100
"""Tasks that ask, to which the name of the one that asks this is compared."""
_MOST_LINES: Final = 400
"""Lines of a return that are shown beside a decision; the details have the rest."""
BAR: Final = "┊ "
"""In front of every line of foreign text."""
_GOES_ON: Final = "┊›"
"""The same, where the line above has not ended."""
_QUOTED: Final = 13
"""Cells of the column with the labels of what is quoted."""
_DONE: Final = {Action.ALLOW: "Allowed for", Action.DENY: "Denied to", Action.ANSWER: "Answered"}
_EFFECTS: Final = {Action.ALLOW: "allows it, this once", Action.DENY: "denies it", Action.ANSWER: "answers it"}

Facts = Iterator[tuple[str, Content]]
"""Lines of ours, each with its label."""


def _wrapped(label: str, words: str, width: int, style: str = "", more: str = "") -> Facts:
    for line in Content(words).wrap(max(width, 8)):
        yield label, Content.styled(line.plain, style)
        label = more


class Case:
    """One decision as it was begun, and what is true of it now. `where` is the top row of its workspace, else ""."""

    advice = "Leave with escape, look at it, and open this again."
    title = "the child's words"
    to_read = 0
    """Of the words below, so many have to be read before the key counts."""
    form: DecisionForm | RequestForm

    def __init__(self, monitor: Monitor, desk: DecisionService, where: str) -> None:
        self.monitor, self.desk, self.where = monitor, desk, where

    def facts(self, width: int, now: float, cautions: Iterable[str], *, low: bool) -> Facts:
        """The facts, of values up to `width` cells; foreign words in them stand in quotation marks that they cannot
        close. `low`: the words below the frame are out of sight."""
        raise NotImplementedError

    def change(self, now: float) -> str | None:
        """Says what differs from what the operator saw, in a sentence; None if nothing does."""
        raise NotImplementedError

    async def words(self) -> list[Block]:
        """The words of others, each line of them behind the bar."""
        raise NotImplementedError

    def effect(self) -> str:
        """Do what the key is for, now that nothing is missing."""
        return "records this decision; nothing is recorded before"

    async def sign(self, document: str, note: str) -> DecisionMade:
        """Record it as it is filled in. Raises DecisionError."""
        raise NotImplementedError

    def outcome(self, decided: DecisionMade, width: int) -> str:
        """How that came out, in a sentence of so many cells if it can be."""
        raise NotImplementedError

    def place(self, width: int) -> Facts:
        """Where it is: its workspace and its host."""
        if self.where:
            yield "in", Content(quoted(shown(self.where, 200), max(width - 2, 8)))
        if self.monitor.host:
            yield "host", Content.styled(_named(self.monitor.host, width), "bold")


class AttemptCase(Case):
    """One attempt of one task, as it stood when the dialog opened, and the action about it."""

    form: DecisionForm

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, action: Action, where: str = "") -> None:
        super().__init__(monitor, desk, where)
        self.seen, self.subject, self.action = task, desk.subject(task), action
        self.form = DecisionForm(task, self.subject, action, monitor.tree.tasks.values(), dict(monitor.settings.modes))
        self._state = looks.CONTRADICTED if task.contradicted else looks.LOOKS[task.own_state]
        returned = task.latest.returned if task.latest else None
        self._returned_at = returned.at if returned else None

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
        if subject.return_sha256 != self.subject.return_sha256:
            return "The return has changed since you opened this."
        if subject.handoff_sha256 != self.subject.handoff_sha256:
            return "The handoff has changed since you opened this."
        return f"It was decided meanwhile: {task.binding.action}." if task.binding is not None else None

    def facts(self, width: int, now: float, cautions: Iterable[str], *, low: bool) -> Facts:  # noqa: ARG002
        task, params, roomy = self.task or self.seen, self.form.params(), width >= _ROOMY
        state = Content.styled(f"{self._state.glyph} {self._state.word}", f"${self._state.color}")
        begins = Content.assemble(f"attempt {self.subject.attempt} ", state)
        ends = Content(f"→ {self._next(task, params)}")
        name = Content.styled(_named(self.subject.task_id, width), "bold")
        standing = Content(" ").join([begins, ends])
        if name.cell_length + 2 + standing.cell_length <= width:
            yield "task", Content.assemble(name, "  ", standing)
        else:
            # The whole id comes first: it is what the decision is about.
            yield "task", name
            for part in (standing,) if roomy else (begins, ends):
                yield from (("", line) for line in part.wrap(max(width, 8)))
        yield from self.place(width)
        if question := question_at(task, now):
            yield from _wrapped("asks", quoted(shown(question, 1_000), 2 * max(width, 8) - 2), width, more="…")
        digest = self.subject.return_sha256
        if digest is None or self._returned_at is None:
            yield "return", Content("none yet")
        else:
            is_other = self.task is None or self.desk.subject(self.task).return_sha256 != digest
            seen = f"seen {times.ago(self._returned_at, now)}, " if roomy else ""
            words = ("not as you saw it", "$text-error") if is_other else "unchanged"
            yield "return", Content.assemble((digest[:DIGITS], "bold"), f"  {seen}", words)
        yield "retries", self._budget(task, params, roomy=roomy)
        yield "writes", Content(self._places(width))
        label = "beware"
        for warning in (*policy.options(task, mitigation=params.mitigation)[self.action].warnings, *cautions):
            yield from _wrapped(label, warning, width, "$text-warning")
            label = ""

    def _next(self, task: Task, params: Params) -> str:
        after = f"attempt {self.subject.attempt + 1}"
        if self.action is Action.ACCEPT:
            return "accepted as it is"
        if self.action is Action.ABORT:
            below = task.below.open if task.below else 0
            return f"ended, with {plural(below, 'open task')} below it" if below else "ended"
        if self.action is Action.RESPOND:
            return f"{after}, with your answer"
        if goes_to_fitter(task, params.mode):
            return f"the {FITTER}, who restores the line"
        return f"{after}, in another mode" if self.action is Action.ESCALATE else after

    def _budget(self, task: Task, params: Params, *, roomy: bool) -> Content:
        if goes_to_fitter(task, params.mode):
            more = f", exactly one once the {FITTER} has restored the line" if roomy else ", one then"
            return Content(f"{retries_left(task.retry)}{more}")
        if self.action is not Action.ESCALATE and not is_retry(self.action, task.latest):
            return Content(f"{retries_left(task.retry)}{', before and after' if roomy else ''}")
        retry = mitigated(task) if params.mitigation is not None else task.retry
        left = f"{retries_left(retry)}{' now' if roomy else ''}, "
        earns = "; the mitigation earns one" if retry.max_retries > task.retry.max_retries and roomy else ""
        return Content.assemble(left, (f"{max(retry.remaining - 1, 0)} after this", "bold"), (earns, "$text-muted"))

    def _places(self, width: int) -> str:
        """Where it is written, as much of it as there is room for: the ends of the paths say most."""
        name, read_only = f"{self.subject.decision_id[:DIGITS]}….json", self.monitor.settings.read_only
        if self.monitor.host:
            host = quoted(self.monitor.host, 60)
            where = f"in the ledger of {host}, once it has checked this" if width >= _ROOMY else f"on {host}"
            return f"{name} {where}"
        if width < _ROOMY:
            return f"{name}, not delivered" if read_only else name
        delivered = ", nowhere else (read only)" if read_only else ", copy in .agentwatch/decisions"
        ledger = shown(in_home(str(self.desk.state / LEDGER)), 1_000)
        room = width - cell_len(f"{name} in {delivered}")
        while cell_len(ledger) > max(room, 12):
            ledger = "…" + ledger[2:]
        return f"{name} in {ledger}{delivered}"

    async def words(self) -> list[Block]:
        task = self.task
        version = task.latest.returned if task is not None and task.latest is not None else None
        returned = await asyncio.to_thread(self.monitor.content, version) if version is not None else None
        return list(said(self.seen, returned))

    async def sign(self, document: str, note: str) -> DecisionMade:
        return await self.monitor.decide(self.subject, self.action, self.form.recorded(document), note)

    def outcome(self, decided: DecisionMade, width: int) -> str:  # noqa: ARG002 - each has its own length
        task = quoted(name_of(self.seen), 24)
        done = "recorded" if decided.fresh else "the very same was recorded before"
        delivered = "delivered" if decided.undelivered is None else f"not delivered: {clean(decided.undelivered, 500)}"
        return f"{self.form.face.word} {task}: {done}, {delivered}."


def _named(task_id: str, width: int) -> str:
    """The id in its quotation marks, both ends of it if it is too long."""
    name = head = tail = quoted(shown(exact(task_id), 1_000), 1_000)
    if cell_len(name) <= width:
        return name
    half = max((width - 1) // 2, 2)
    while cell_len(head) > half:
        head = head[:-1]
    while cell_len(tail) > half:
        tail = tail[1:]
    return f"{head}…{tail}"


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

    def facts(self, width: int, now: float, cautions: Iterable[str], *, low: bool) -> Facts:
        request, form = self.request, self.form
        yield from _wrapped("from", f"{clean(program_of(request.source), 20)} · {self._asker(width)}", width, "bold")
        yield from self.place(width)
        yield from _wrapped("asks for", f"{request.kind}: {quoted(request.tool, max(width - 16, 8))}", width)
        yield from _wrapped("asked", ", ".join(self._since(now, low=low)), width)
        if not low:
            digits, counts = request.request_id, "an answer counts for exactly what stands below"
            name = f"{digits[:_GROUP]} …{f'  {counts}' if width >= _ROOMY else ''}"
            if width >= _WIDE:
                name = " ".join(digits[at : at + _GROUP] for at in range(0, len(digits), _GROUP))
                name = f"{name}  {counts} (sha256 {request.input_sha256[:_GROUP]} …)"
            yield from _wrapped("request", name, width)
        for name, rule in form.rules.items():
            words = f"for the rest of its session, without asking: {quoted(rule, LONGEST_RULE)}"
            yield from _wrapped(name, words, width)
        beside = ", ".join(one.name for one in request.beside)
        warnings = [f"besides the call it is given {quoted(beside, 60)}, see below"] if beside else []
        warnings += [*denial_words(request), *([clean(request.why_not, 400)] if request.why_not else []), *cautions]
        for warning in warnings:
            yield from _wrapped("beware", warning, width, "$text-warning")
        if low and request.kind is RequestKind.PERMISSION:
            # What stands below the frame is out of sight there.
            yield from _wrapped("the call", quoted(self.call, max(2 * width, 16)), width)

    def _asker(self, width: int) -> str:
        tree = self.monitor.tree
        asked = tree.request(self.request.request_id)
        task_id = asked.task_id if asked is not None else self._task_id
        if task_id not in tree.tasks:
            return quoted(task_id, 200)
        names = [tree.tasks[one].called for one in (*reversed(tree.ancestors(task_id)), task_id)]
        whole_name = quoted(BETWEEN.join(names), 1_000)
        task, asking = tree.tasks[task_id], [tree.tasks[one] for one in tree.queue[:_COMPARED]]
        alike = [task, *(one for one in asking if one.task_id != task_id and one.called == task.called)]
        which = f", {quoted(told_apart(alike)[0], 30)}" if len(alike) > 1 else ""
        return (whole_name if len(whole_name) <= width * 2 else quoted(names[-1], 1_000)) + which

    def _since(self, now: float, *, low: bool) -> Iterator[str]:
        request, tree = self.request, self.monitor.tree
        yield times.ago(request.asked_at, now)
        if self.change(now) is None:
            left = left_words(request, now) or "still open"
            yield f"{times.duration(request.until - now)} left" if low and request.until is not None else left
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
        """The call itself, and what it is given besides; then what the model says of it, which rule would cover it, and
        the exact input. Questions stand above their answers."""
        request = self.request
        parts = []
        if request.kind is RequestKind.PERMISSION:
            parts += [("the call", request.shown or request.input), ("besides", "\n".join(map(str, request.beside)))]
        covered = f"none allows it; this would: {request.covered_by}" if request.covered_by else ""
        rest = whole_input(request) if request.kind is not RequestKind.QUESTION else ""
        parts += [("model says", request.said), ("own rules", covered), ("as JSON", rest)]
        return [_Verbatim(label, source) for label, source in parts if source]

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
        return done + quoted(query or request.shown or request.input, max(width - len(done), _GROUP))


# Words of others


class _Verbatim(NamedTuple):
    """Foreign text under a label of ours, whole, line by line: what goes on in another line is told from a new one."""

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


def said(task: Task, returned: str | None) -> Iterator[Block]:
    """The words of the child about this attempt. `returned` is the text of its return, None if it is not there."""
    result = task.result
    parts: list[tuple[str, str | None]] = []
    if result is None:
        yield text(faint("The child has returned nothing that can be read."))
    else:
        parts = [
            ("hint", result.retry_hint),
            ("blockers", "\n".join(result.blockers)),
            ("error code", result.error_code),
            ("error", result.error_message),
            ("summary", result.summary if result.summary != result.error_message else None),
            ("review", result.review_reason),
            ("confidence", f"{result.confidence:.2f}" if result.confidence is not None else None),
            ("limits", "\n".join(result.limitations)),
        ]
    # A file that is missing is often claimed in several places.
    lies = dict.fromkeys(f"{claim.path}: {claim.detail}" for claim in looks.false_claims(task))
    errors = [placed for placed in task.findings if placed.severity is Severity.ERROR]
    broken = [f"{one.rule}{f', line {one.line}' if one.line else ''}: {one.message}" for one in errors]
    parts += [("false claims", "\n".join(lies)), ("breaks rules", "\n".join(broken)), ("whole return", returned)]
    yield from (_Quotation(label, source) for label, source in parts if source)
