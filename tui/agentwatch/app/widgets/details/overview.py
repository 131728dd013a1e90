"""The overview tab: what was asked, what came back, why the task stands where it does, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from agentwatch.delegation.decision import Action
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.request import Request
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Basis, State, Task
from agentwatch.text import exact
from agentwatch.view import looks
from agentwatch.view.pulse import cost_of
from agentwatch.view.requests import request_words, standing_words, where
from agentwatch.view.words import ADVICE, BASES, Agreement, decision_of, mode_of, model_of, plural, whereabouts, why_at

ITEMS: Final = 20
"""Blockers or limitations shown here; the rest is in the return."""
_WHOLE: Final = 30
"""Characters of an id or a title that the head shows whole."""
_CAN: Final = {Action.ALLOW: "allow once", Action.DENY: "deny", Action.ANSWER: "answer"}
_CONTRACTS: Final = {
    Contract.HANDOFF_PACKET: "handoff-packet (JSON)",
    Contract.RETURN_FORMAT: "return-format (Markdown)",
    Contract.SUBAGENT_RETURN: "subagent-return (JSON)",
    Contract.RETURN_META: "return-meta, a dialect of subagent-return (JSON)",
    Contract.REPORT_CONTRACT: "report-contract (JSON)",
}


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    if not view.task.workspace:
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
    yield from rich_fields(("message", result.error_message if result.error_message != result.summary else None))
    # What the task asks stands in the head, with the hint.
    asked = task.question or ""
    yield from _items("blockers", tuple(one for one in result.blockers if one not in asked), "■", "$state-blocked")
    review = result.review_reason if (result.review_reason or "") not in asked else None
    yield from rich_fields(("next", result.next_steps), ("review", review))
    yield from limits


def _items(label: str, items: tuple[str, ...], marker: str = "•", style: str = FAINT) -> Iterator[Block]:
    if items:
        yield Field(label, tuple(rich_list(items, marker, style, ITEMS, ", see Return")))


def _returned(result: Return) -> Iterator[Block]:
    if result.summary:
        yield Rich(result.summary)
    elif result.contract is Contract.REPORT_CONTRACT:
        yield text(faint("what it found is in the Return tab"))
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
        why = why_at(task, view.now)
        # Of a host it says what to do, too.
        yield field("why", plain(why, 1_000) if task.workspace else gist(why))
    if answered := where(task):
        yield field("answer", plain(answered, 400))
    yield from _requests(task.requests, view.now)
    # A missing artifact is a false claim, too, and told as that.
    told = len(missing_artifacts(task))
    errors = sum(1 for placed in task.findings if placed.finding.severity is Severity.ERROR) - told
    if errors > 0 and task.own_state is not State.INVALID:
        words = f"{plural(errors, 'error')} in its files, see Findings"
        yield field("findings", in_color(looks.SEVERITIES[Severity.ERROR], words))
    if false := len(looks.false_claims(task)):
        yield field("claims", in_color(looks.CONTRADICTED, f"{plural(false, 'false claim')}, see Attestation"))
    # What came along with the decision; how far it has got stands in the head.
    if (decision := decision_of(task)) is not None and decision.mitigation:
        yield field("different", plain(decision.mitigation.replace("_", " "), 60))
    if decision is not None and decision.note:
        yield field("your note", plain(decision.note, 400))
    result = task.result
    if result and (result.model or result.mode):
        yield field("model", _attested(task, result))
    if result and result.confidence is not None:
        yield field("confidence", Content(f"{result.confidence:.2f}"))
    # How often it was tried, of how many times, stands in the head, and what it asks after a failure.
    if (advice := ADVICE[task.retry.recommended]) and not (task.question and task.state is State.FAILED):
        yield field("retries", Content(advice))
    if task.below and task.below.tasks:
        yield field("below", _below(task.below.states))
    if holds := task.open_below:
        yield field("holds", Content(plural(holds, "task")))


def _requests(requests: Sequence[Request], now: float) -> Iterator[Block]:
    """What its program has asked, the open ones first, how far each has got, and what can be done about it."""
    for request in requests[:ITEMS]:
        words = in_color(looks.ASKS[request.kind], request_words(request)) if request.waits_for_operator else None
        can = " · ".join(_CAN[action] for action in request.actions) if request.can_answer else ""
        standing = f"{request.request_id[:8]}   {standing_words(request, now)}{f'   a: {can}' if can else ''}"
        yield Field("request", (text(words or plain(request_words(request))), text(faint(standing))))
    if (others := len(requests) - ITEMS) > 0:
        yield field("", faint(f"and {plural(others, 'other')}"))


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
    if task.host:
        yield field("host", plain(exact(task.host)))
    if task.workspace:
        if place := whereabouts(task.workspace):
            yield field("workspace", plain(exact(place)))
        return
    # The head has them as far as there is room.
    if len(task.own_id) > _WHOLE:
        yield field("task", plain(exact(task.own_id)))
    if len(task.title) > _WHOLE and task.title not in task.own_id:
        yield field("title", gist(task.title))
    yield from fields(("contract", _CONTRACTS[task.contract] if task.contract else None))
    if task.parent_id is None or task.parent_basis is Basis.NONE:
        yield field("linked", Content(BASES[Basis.NONE]))
    else:
        parent = view.tree.tasks.get(task.parent_id)
        # As the tree calls it: the id of a session says nothing.
        if parent is None:
            called = plain(exact(task.parent_id))
        else:
            called = plain(exact(parent.own_id)) if parent.title in parent.own_id else gist(parent.title)
        yield field("linked", Content.assemble("below ", called, (f"   {BASES[task.parent_basis]}", FAINT)))
    latest = task.latest
    session = latest.session_id if latest else None
    yield from fields(("session", session if session != task.own_id else None))
    if task.run is not None:
        yield from _record(task.run, cost_of(task, view.prices))
    if latest and latest.started_at is not None:
        yield field("took", took(task, latest, view.now))
    handed, returned = view.handed, view.returned
    for label, attempt, version in (
        ("handoff", handed, handed.handoff if handed else None),
        ("return", returned, returned.returned if returned else None),
    ):
        if attempt is not None and version is not None:
            earlier = f"   of attempt {attempt.number}" if attempt is not latest else ""
            yield field(label, Content.assemble(plain(version.path), (earlier, FAINT)))


def _record(run: Run, cost: float | None) -> Iterator[Block]:
    """Where a session is recorded, and what it took."""
    where = "   in the background" if run.background else ""
    yield field("source", Content.assemble(plain(run.source), (where, FAINT)))
    if run.model:
        yield field("model", Content.assemble(plain(run.model), ("   (as recorded)", FAINT)))
    tokens, spent = f"{run.tokens:,}" if run.tokens else None, None if cost is None else f"{cost:,.2f}"
    yield from fields(("tokens", tokens), ("cost", spent and f"{spent}, all attempts, by your prices"))
    yield from fields(("known by", run.link))
    yield field("record", plain(run.place))
