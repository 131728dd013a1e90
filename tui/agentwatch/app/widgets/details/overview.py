"""The overview tab: what was asked, what came back, why the task stands where it does, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.attempts import took
from agentwatch.app.widgets.details.attestation import MODE_WORDS, MODEL_WORDS
from agentwatch.app.widgets.details.blocks import (
    Block,
    Field,
    Gap,
    Rich,
    faint,
    field,
    fields,
    gist,
    in_color,
    plain,
    rich_field,
    rich_fields,
    rich_list,
    text,
)
from agentwatch.app.widgets.details.view import View
from agentwatch.contracts.shapes import Contract, Outcome, Return, Severity
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Basis, State, Task
from agentwatch.text import exact
from agentwatch.view import looks
from agentwatch.view.words import ADVICE, BASES, Agreement, decision_of, mode_of, model_of, plural, retries_left, why_at

ITEMS: Final = 20
"""Blockers or limitations shown here; the rest is in the return."""
_CONTRACTS: Final = {
    Contract.HANDOFF_PACKET: "handoff-packet (JSON)",
    Contract.RETURN_FORMAT: "return-format (Markdown)",
    Contract.SUBAGENT_RETURN: "subagent-return (JSON)",
    Contract.RETURN_META: "return-meta, a dialect of subagent-return (JSON)",
    Contract.REPORT_CONTRACT: "report-contract (JSON)",
}


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    yield _asked(view.task)
    yield from _came_back(view.task)
    yield Gap()
    yield from _standing(view)
    yield Gap()
    yield from _provenance(view)


def _asked(task: Task) -> Block:
    packet = task.packet
    if packet and packet.objective:
        return rich_field("asked", packet.objective)
    if packet:
        return field("asked", faint("the handoff states no objective"))
    if task.run is not None and task.run.prompt is not None:
        return field("asked", gist(task.run.prompt.opening))
    return field("asked", faint("no handoff was seen"))


def _came_back(task: Task) -> Iterator[Block]:
    result = task.result
    if result is None:
        if task.run is not None and task.run.said is not None:
            yield field("answered", gist(task.run.said.opening))
            return
        waiting = "nothing: no file speaks of it" if task.inferred else "nothing" if task.ended_at else "nothing yet"
        yield field("returned", faint(waiting))
        return
    yield Field("returned", tuple(_returned(result)))
    limits = _items("limits", result.limitations)
    if result.outcome is Outcome.PARTIAL:
        # What a part leaves out is the first thing to know of it.
        yield from limits
    if result.error_code:
        yield field("error", plain(result.error_code).stylize("$text-error"))
    yield from rich_fields(("message", result.error_message if result.error_message != result.summary else None))
    yield from _items("blockers", result.blockers, "■", "$state-blocked")
    yield from rich_fields(("hint", result.retry_hint), ("next", result.next_steps), ("review", result.review_reason))
    yield from limits


def _items(label: str, items: tuple[str, ...], marker: str = "•", style: str = FAINT) -> Iterator[Block]:
    if items:
        yield Field(label, tuple(rich_list(items, marker, style, ITEMS, ", see Return")))


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
        words = f"{plural(errors, 'error')} in its files, see Findings"
        yield field("findings", in_color(looks.SEVERITIES[Severity.ERROR], words))
    if false := len(looks.false_claims(task)):
        yield field("claims", in_color(looks.CONTRADICTED, f"{plural(false, 'false claim')}, see Attestation"))
    # What came along with the decision; how far it has got stands in the head.
    if (decision := decision_of(task)) is not None and decision.mitigation:
        yield field("mitigated", plain(f"by {decision.mitigation.replace('_', ' ')}", 60))
    if decision is not None and decision.note:
        yield field("your note", plain(decision.note, 400))
    result = task.result
    if result and (result.model or result.mode):
        yield field("model", _attested(task, result))
    if result and result.confidence is not None:
        yield field("confidence", Content(f"{result.confidence:.2f}"))
    if task.attempts and not task.is_session:
        advice = ADVICE[task.retry.recommended]
        yield field("retries", Content.assemble(retries_left(task.retry), (f"   {advice}" if advice else "", FAINT)))
    if task.below and task.below.tasks:
        yield field("below", _below(task.below.states))
    if holds := view.tree.holds(task):
        yield field("holds", Content(f"{plural(holds, 'task')} {'waits' if holds == 1 else 'wait'} on it"))


def _attested(task: Task, result: Return) -> Content:
    """The model and mode that a return reports, and what others say where that is something else."""
    model = plain(result.model) if result.model else faint("not reported")
    mode = Content.assemble(("   mode  ", FAINT), plain(result.mode)) if result.mode else Content("")
    others = ((MODEL_WORDS, model_of(result.model, task.run)), (MODE_WORDS, mode_of(result.mode, task.packet)))
    differing = [
        Content.assemble("   ", (words[one.agreement], "$text-warning"), plain(one.known or "", 60))
        for words, one in others
        if one.agreement is Agreement.DIFFERS
    ]
    return Content.assemble(model, mode, *(differing or [faint("   (attested)")]))


def _below(states: Mapping[State, int]) -> Content:
    some = sorted((state for state in states if states[state]), key=lambda state: -state.urgency)
    counted = [in_color(looks.LOOKS[state], f"{states[state]:,} {looks.LOOKS[state].word}") for state in some]
    return Content("   ").join([Content(plural(sum(states.values()), "task")), *counted])


def _provenance(view: View) -> Iterator[Block]:
    task = view.task
    yield field("task", plain(exact(task.task_id)))
    if task.title not in task.task_id:
        yield field("title", gist(task.title))
    yield from fields(("agent", task.agent), ("contract", _CONTRACTS[task.contract] if task.contract else None))
    if task.parent_id is None or task.parent_basis is Basis.NONE:
        yield field("linked", Content(BASES[Basis.NONE]))
    else:
        parent = view.tree.tasks.get(task.parent_id)
        # As the tree calls it: the id of a session says nothing.
        called = gist(parent.title) if parent and parent.title not in parent.task_id else plain(exact(task.parent_id))
        yield field("linked", Content.assemble("below ", called, (f"   {BASES[task.parent_basis]}", FAINT)))
    latest = task.latest
    yield from fields(("session", latest.session_id if latest else None))
    if task.run is not None:
        yield from _record(task.run)
    if latest and latest.started_at is not None:
        yield field("took", took(task, latest, view.now))
    handed, returned = view.handed, view.returned
    yield from fields(
        ("handoff", handed.handoff.path if handed and handed.handoff else None),
        ("return", returned.returned.path if returned and returned.returned else None),
    )


def _record(run: Run) -> Iterator[Block]:
    """Where a session is recorded, and what it took."""
    where = "   in the background" if run.background else ""
    yield field("source", Content.assemble(plain(run.source), (where, FAINT)))
    if run.model:
        yield field("model", Content.assemble(plain(run.model), ("   (as recorded)", FAINT)))
    yield from fields(("tokens", f"{run.tokens:,}" if run.tokens else None), ("known by", run.link))
    yield field("record", plain(run.place))
