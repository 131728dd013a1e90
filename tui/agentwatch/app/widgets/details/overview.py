"""The overview tab: what was asked, what came back, why the task stands where it does, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details import session, wording
from agentwatch.app.widgets.details.blocks import (
    Block,
    Field,
    Gap,
    Rich,
    faint,
    field,
    gist,
    plain,
    rich_field,
    text,
)
from agentwatch.app.widgets.details.view import View
from agentwatch.contracts.shapes import Contract, Outcome, Return, Severity
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.task import Basis, State, Task
from agentwatch.text import exact
from agentwatch.view import looks
from agentwatch.view.progress import decision_of
from agentwatch.view.runtime import Agreement, mode_of, model_of
from agentwatch.view.words import ADVICE, BASES, plural, retries_left, why_at

ITEMS: Final = 20
"""Blockers or limitations shown here; the rest is in the return."""


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    yield from _asked_and_returned(view)
    yield Gap()
    yield from _standing(view)
    yield Gap()
    yield from _provenance(view)


def _asked_and_returned(view: View) -> Iterator[Block]:
    task = view.task
    packet = task.packet
    if packet and packet.objective:
        yield rich_field("asked", packet.objective)
    elif packet:
        yield field("asked", faint("the handoff states no objective"))
    elif task.run is not None and task.run.prompt is not None:
        yield field("asked", gist(task.run.prompt.opening))
    else:
        yield field("asked", faint("no handoff was seen"))
    result = task.result
    if result is None:
        if task.run is not None and task.run.said is not None:
            yield field("answered", gist(task.run.said.opening))
            return
        waiting = "nothing: no file speaks of it" if task.inferred else "nothing" if task.ended_at else "nothing yet"
        yield field("returned", faint(waiting))
        return
    yield Field("returned", tuple(_returned(result)))
    limits = Field("limits", tuple(_items(result.limitations, "•", FAINT))) if result.limitations else None
    if limits and result.outcome is Outcome.PARTIAL:
        # What a part leaves out is the first thing to know of it.
        yield limits
    if result.error_code:
        yield field("error", plain(result.error_code).stylize("$text-error"))
    if result.error_message and result.error_message != result.summary:
        yield rich_field("message", result.error_message)
    if result.blockers:
        yield Field("blockers", tuple(_items(result.blockers, "■", "$state-blocked")))
    if result.retry_hint:
        yield rich_field("hint", result.retry_hint)
    if result.next_steps:
        yield rich_field("next", result.next_steps)
    if result.review_reason:
        yield rich_field("review", result.review_reason)
    if limits and result.outcome is not Outcome.PARTIAL:
        yield limits


def _items(items: tuple[str, ...], marker: str, style: str) -> Iterator[Block]:
    for item in items[:ITEMS]:
        yield Rich(item, Content.styled(f"{marker} ", style), "  ")
    if len(items) > ITEMS:
        yield text(faint(f"… and {len(items) - ITEMS:,} more, see Return"))


def _returned(result: Return) -> Iterator[Block]:
    if result.summary:
        yield Rich(result.summary)
    elif result.contract is Contract.REPORT_CONTRACT:
        yield text(faint("a report carries no summary: its findings are in the Return tab"))
    else:
        yield text(faint("the return has no summary"))
    counted = [
        f"{len(items):,} {one if len(items) == 1 else several}"
        for items, one, several in (
            (result.artifacts, "artifact", "artifacts"),
            (result.files_created, "file created", "files created"),
            (result.files_modified, "file modified", "files modified"),
        )
        if items
    ]
    if counted:
        yield text(faint(", ".join(counted)))


def _standing(view: View) -> Iterator[Block]:
    task = view.task
    if task.why:
        yield field("why", gist(why_at(task, view.now)))
    errors = sum(1 for placed in task.findings if placed.finding.severity is Severity.ERROR)
    if errors and task.own_state is not State.INVALID:
        words = f"✗ {plural(errors, 'error')} in its files, see Findings"
        yield field("findings", Content.styled(words, "$text-error"))
    if false := sum(1 for claim in task.claims if claim.verdict is Verdict.CONTRADICTED):
        words = f"{looks.CONTRADICTED.glyph} {plural(false, 'false claim')}, see Attestation"
        yield field("claims", Content.styled(words, "$state-contradicted"))
    if (decision := decision_of(task)) is not None:
        yield from _decided(decision)
    result = task.result
    if result and (result.model or result.mode):
        yield field("model", _attested(task, result))
    if result and result.confidence is not None:
        yield field("confidence", Content(f"{result.confidence:.2f}"))
    if task.attempts and not task.is_session:
        yield field("retries", _retries(task))
    if task.below and task.below.tasks:
        yield field("below", _below(task))
    if holds := view.tree.holds(task):
        waits = "waits" if holds == 1 else "wait"
        yield field("holds", Content(f"{plural(holds, 'task')} {waits} on it"))


def _attested(task: Task, result: Return) -> Content:
    """The model and mode that a return reports, and what others say where that is something else."""
    model = plain(result.model) if result.model else faint("not reported")
    mode = Content.assemble(("   mode  ", FAINT), plain(result.mode)) if result.mode else Content("")
    others = (
        (wording.MODEL_WORDS, model_of(result.model, task.run)),
        (wording.MODE_WORDS, mode_of(result.mode, task.packet)),
    )
    differing = [
        Content.assemble("   ", (words[one.agreement], "$text-warning"), plain(one.known or "", 60))
        for words, one in others
        if one.agreement is Agreement.DIFFERS
    ]
    return Content.assemble(model, mode, *(differing or [Content.styled("   (attested)", FAINT)]))


def _decided(decision: Decision) -> Iterator[Block]:
    """What came along with the decision; how far it has got stands in the head."""
    if decision.mitigation:
        yield field("mitigated", plain(f"by {decision.mitigation.replace('_', ' ')}", 60))
    if decision.note:
        yield field("your note", plain(decision.note, 400))


def _retries(task: Task) -> Content:
    said = ADVICE[task.retry.recommended]
    return Content.assemble(retries_left(task.retry), (f"   {said}" if said else "", FAINT))


def _below(task: Task) -> Content:
    states = task.below.states if task.below else {}
    parts = [Content(f"{plural(sum(states.values()), 'task')}")]
    for state in sorted(states, key=lambda one: -one.urgency):
        if states[state]:
            look = looks.LOOKS[state]
            parts.append(Content.styled(f"{look.glyph} {states[state]:,} {look.word}", f"${look.color}"))
    return Content("   ").join(parts)


def _provenance(view: View) -> Iterator[Block]:
    task = view.task
    yield field("task", plain(exact(task.task_id)))
    if task.title not in task.task_id:
        yield field("title", gist(task.title))
    if task.agent:
        yield field("agent", plain(task.agent))
    if task.contract:
        yield field("contract", Content(wording.CONTRACT_WORDS[task.contract]))
    words = BASES[task.parent_basis]
    if task.parent_id is None or task.parent_basis is Basis.NONE:
        yield field("linked", Content(BASES[Basis.NONE]))
    else:
        parent = view.tree.tasks.get(task.parent_id)
        # As the tree calls it: the id of a session says nothing.
        called = gist(parent.title) if parent and parent.title not in parent.task_id else plain(exact(task.parent_id))
        yield field("linked", Content.assemble("below ", called, (f"   {words}", FAINT)))
    latest = task.latest
    if latest and latest.session_id:
        yield field("session", plain(latest.session_id))
    if task.run is not None:
        yield from session.facts(task.run)
    if latest and latest.started_at is not None:
        yield field("took", wording.took(task, latest, view.now))
    if handed := view.handed:
        yield field("handoff", plain(handed.handoff.path if handed.handoff else ""))
    if returned := view.returned:
        yield field("return", plain(returned.returned.path if returned.returned else ""))
