"""What the operator saw when a decision was begun: everything that it is held against when it is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content

from agentwatch.app.dialogs.fields import LABEL
from agentwatch.app.widgets.cells import shown
from agentwatch.decisions import policy
from agentwatch.decisions.ledger import NAME as LEDGER
from agentwatch.decisions.proposal import goes_to_fitter
from agentwatch.decisions.record import Params, Subject
from agentwatch.delegation.decision import Action
from agentwatch.delegation.retry import FITTER, is_retry, mitigated
from agentwatch.delegation.task import Task
from agentwatch.state import in_home
from agentwatch.text import exact, quoted
from agentwatch.view import looks, times
from agentwatch.view.words import plural, question_at, retries_left

if TYPE_CHECKING:
    from agentwatch.decisions.face import OperatorDesk
    from agentwatch.monitor import Monitor

DIGITS: Final = 12
"""Hex digits of a digest that are shown; what is compared is all of it."""

_ROOMY: Final = 56
"""Cells from which a fact has room for all that belongs to it."""


class Case(NamedTuple):
    """One attempt of one task, as it stood when the dialog opened, and what is to be decided about it.

    `seen` is the task as it was then. `returned_at` is when its return was seen (epoch seconds), None if there is none.
    """

    monitor: Monitor
    desk: OperatorDesk
    seen: Task
    subject: Subject
    action: Action
    state: looks.Look
    returned_at: float | None
    where: str
    """What the top row of its workspace is called, where several are shown; else "". Foreign."""

    @classmethod
    def of(cls, monitor: Monitor, desk: OperatorDesk, task: Task, action: Action, where: str = "") -> Case:
        latest = task.latest
        returned = latest.returned if latest else None
        look = looks.CONTRADICTED if task.contradicted else looks.LOOKS[task.own_state]
        return cls(monitor, desk, task, desk.subject(task), action, look, returned.at if returned else None, where)

    @property
    def task(self) -> Task | None:
        """The task as it is now, None if it has gone."""
        return self.monitor.tree.tasks.get(self.subject.task_id)

    def change(self) -> str | None:
        """What is not as the operator saw it, a sentence; None if all is."""
        task = self.task
        if task is None:
            return "The task is gone."
        now = self.desk.subject(task)
        if now.attempt != self.subject.attempt:
            return f"Attempt {now.attempt} has begun meanwhile."
        if now.return_sha256 != self.subject.return_sha256:
            return "The return has changed since you opened this."
        if now.handoff_sha256 != self.subject.handoff_sha256:
            return "The handoff has changed since you opened this."
        if (decision := task.binding) is not None:
            return f"It was decided meanwhile: {decision.action}."
        return None


def facts(case: Case, params: Params, cautions: Iterable[str], *, now: float, width: int) -> Iterator[Content]:
    """What is decided about, the budget, where it is written, and warnings: lines of ours, each with its label.

    Foreign in them are the id of the task, what is open about it and the path of the workspace, in quotation marks that
    nothing in them can close. A value is `width` cells wide at most.
    """
    task = case.task or case.seen
    for label, value in _facts(case, task, params, now, width):
        yield Content.styled(f"{label:<{LABEL}}", "$text-muted") + value
    warnings = (*policy.options(task, mitigation=params.mitigation)[case.action].warnings, *cautions)
    label = "beware"
    for line in (line for warning in warnings for line in Content(warning).wrap(max(width, 8))):
        yield Content.styled(f"{label:<{LABEL}}{line}", "$text-warning")
        label = ""


def _facts(case: Case, task: Task, params: Params, now: float, width: int) -> Iterator[tuple[str, Content]]:
    subject = case.subject
    state = Content.styled(f"{case.state.glyph} {case.state.word}", f"${case.state.color}")
    now_and_then = Content.assemble(f"attempt {subject.attempt} ", state), Content(f"→ {_next(case, task, params)}")
    name = Content.styled(_named(subject.task_id, width), "bold")
    standing = Content(" ").join(now_and_then)
    if name.cell_length + 2 + standing.cell_length <= width:
        yield "task", Content.assemble(name, "  ", standing)
    else:
        # The whole id comes first: it is what the decision is about.
        yield "task", name
        for part in (standing,) if width >= _ROOMY else now_and_then:
            yield from (("", line) for line in part.wrap(max(width, 8)))
    if case.where:
        yield "in", Content(quoted(shown(case.where, 200), max(width - 2, 8)))
    if case.monitor.host:
        yield "host", Content.styled(_named(case.monitor.host, width), "bold")
    if question := question_at(task, now):
        asks = Content(quoted(shown(question, 1_000), 2 * max(width, 8) - 2)).wrap(max(width, 8))
        yield from (("…" if number else "asks", line) for number, line in enumerate(asks))
    yield "return", _return(case, now, width)
    yield "retries", _budget(case, task, params, width)
    yield "writes", Content(_places(case, width))


def _named(task_id: str, width: int) -> str:
    """The id in its quotation marks, both ends of it if it is too long."""
    name = quoted(shown(exact(task_id), 1_000), 1_000)
    if cell_len(name) <= width:
        return name
    half = max((width - 1) // 2, 2)
    head, tail = name, name
    while cell_len(head) > half:
        head = head[:-1]
    while cell_len(tail) > half:
        tail = tail[1:]
    return f"{head}…{tail}"


def _next(case: Case, task: Task, params: Params) -> str:
    after = f"attempt {case.subject.attempt + 1}"
    if case.action is Action.ACCEPT:
        return "accepted as it is"
    if case.action is Action.ABORT:
        below = task.below.open if task.below else 0
        return f"ended, with {plural(below, 'open task')} below it" if below else "ended"
    if case.action is Action.RESPOND:
        return f"{after}, with your answer"
    if goes_to_fitter(task, params.mode):
        return f"the {FITTER}, who restores the line"
    return f"{after}, in another mode" if case.action is Action.ESCALATE else after


def _return(case: Case, now: float, width: int) -> Content:
    digest = case.subject.return_sha256
    if digest is None or case.returned_at is None:
        return Content("none yet")
    task = case.task
    changed = task is None or case.desk.subject(task).return_sha256 != digest
    standing = Content.styled("not as you saw it", "$text-error") if changed else Content("unchanged")
    seen = f"seen {times.ago(case.returned_at, now)}, " if width >= _ROOMY else ""
    return Content.assemble((digest[:DIGITS], "bold"), f"  {seen}", standing)


def _budget(case: Case, task: Task, params: Params, width: int) -> Content:
    if goes_to_fitter(task, params.mode):
        more = f", exactly one once the {FITTER} has restored the line" if width >= _ROOMY else ", one then"
        return Content(f"{retries_left(task.retry)}{more}")
    if case.action is not Action.ESCALATE and not is_retry(case.action, task.latest):
        both = ", before and after" if width >= _ROOMY else ""
        return Content(f"{retries_left(task.retry)}{both}")
    retry = mitigated(task) if params.mitigation is not None else task.retry
    after = max(retry.remaining - 1, 0)
    left = f"{retries_left(retry)}{' now' if width >= _ROOMY else ''}, "
    earns = "; the mitigation earns one" if retry.max_retries > task.retry.max_retries and width >= _ROOMY else ""
    return Content.assemble(left, (f"{after} after this", "bold"), (earns, "$text-muted"))


def _places(case: Case, width: int) -> str:
    """Where it is written, as much of it as there is room for: the ends of the paths say most."""
    name = f"{case.subject.decision_id[:DIGITS]}….json"
    if case.monitor.host:
        host = quoted(case.monitor.host, 60)
        return f"{name} on {host}" if width < _ROOMY else f"{name} in the ledger of {host}, once it has checked this"
    if width < _ROOMY:
        return f"{name}, not delivered" if case.monitor.settings.read_only else name
    delivered = ", nowhere else (read only)" if case.monitor.settings.read_only else ", copy in .agentwatch/decisions"
    ledger = shown(in_home(str(case.desk.state / LEDGER)), 1_000)
    room = width - cell_len(f"{name} in {delivered}")
    while cell_len(ledger) > max(room, 12):
        ledger = "…" + ledger[2:]
    return f"{name} in {ledger}{delivered}"
