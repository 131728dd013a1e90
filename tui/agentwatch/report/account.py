"""The account of a session: one pure function from the tree and its history to all that a report tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentwatch.contracts.shapes import Return
from agentwatch.delegation import asks, facts
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.runtime import Agreement, mode_agreement, model_agreement
from agentwatch.delegation.task import Attempt, PlacedFinding, State, Task
from agentwatch.delegation.tree import DelegationTree
from agentwatch.history.log import Change
from agentwatch.report.shapes import (
    SCHEMA_VERSION,
    Account,
    AttemptLine,
    Attention,
    ClaimLine,
    DecisionLine,
    FindingLine,
    HandedBack,
    HandedOver,
    ProblemLine,
    RetryLine,
    Summary,
    TaskLine,
    Wait,
)
from agentwatch.report.wording import verdict_of
from agentwatch.view.looks import look, look_of_attempt
from agentwatch.view.spans import Kind, Span, spans_of
from agentwatch.view.times import ended_at, took, took_last, waits_since


def account_of(
    tree: DelegationTree,
    changes: Sequence[Change],
    *,
    workspace: str,
    now: float,
    decisions: Sequence[DecisionLine] = (),
    problems: Sequence[ProblemLine] = (),
) -> Account:
    """The session in a workspace (its absolute path) as the tree has it `now`, in seconds since the epoch.

    `changes` are the state changes of its past, oldest first.
    """
    summary = _summary(tree)
    return Account(
        schema_version=SCHEMA_VERSION,
        workspace=workspace,
        generated_at=now,
        verdict=verdict_of(summary, unseen=len(problems)),
        summary=summary,
        attention=tuple(_attention(tree)),
        tasks=tuple(_task(tree, task, depth, now) for task, depth in tree.preorder()),
        decisions=tuple(decisions),
        changes=changes,
        notices=tuple(_finding(placed) for placed in tree.notices),
        complete=not problems,
        problems=tuple(problems),
    )


def _summary(tree: DelegationTree) -> Summary:
    completed = [task for task in tree.tasks.values() if task.state is State.COMPLETED]
    return Summary(
        tasks=len(tree.tasks),
        by_state={state: tree.totals.states[state] for state in State if tree.totals.states.get(state)},
        needs_operator=tree.totals.needs_operator,
        verified=sum(task.verdict is Verdict.VERIFIED for task in completed),
        contradicted=sum(task.contradicted for task in tree.tasks.values()),
        unchecked=sum(task.verdict is None for task in completed),
        stale=sum(task.stale for task in tree.tasks.values()),
    )


def _attention(tree: DelegationTree) -> Iterator[Attention]:
    for task in tree.asking():
        yield Attention(task.task_id, task.ask or "", waits_since(task), tree.holds(task))
    silent = sorted((task for task in tree.tasks.values() if task.stale), key=lambda task: task.alive_at or 0.0)
    for task in silent:
        if not task.needs_operator:
            ask = "it works and gives no sign of life: look whether it still runs"
            yield Attention(task.task_id, ask, task.alive_at, tree.holds(task))


def _task(tree: DelegationTree, task: Task, depth: int, now: float) -> TaskLine:
    attempts = tuple(_attempt(task, attempt, now) for attempt in task.attempts)
    spans = tuple(spans_of(task))
    unclaimed = tree.unclaimed(task)
    return TaskLine(
        task_id=task.task_id,
        parent_id=task.parent_id,
        parent_basis=task.parent_basis,
        depth=depth,
        title=task.title,
        agent=task.agent,
        state=task.state,
        reported_state=task.reported_state,
        contract=task.contract,
        inferred=task.inferred,
        deleted=task.deleted,
        why=asks.why_at(task, tree.now),
        needs_operator=task.needs_operator,
        ask=task.ask,
        stale=task.stale,
        verdict=task.verdict,
        contradicted=task.contradicted,
        below=task.below.tasks if task.below else 0,
        attempt=task.attempt,
        attempts=attempts,
        waits=tuple(_waits(spans)),
        updated_at=task.updated_at or task.alive_at,
        retry=RetryLine(task.retry.max_retries, task.retry.remaining, task.retry.recommended, task.retry.hint),
        todos=task.todos or (),
        claims=tuple(ClaimLine(one.kind, one.path, one.verdict, one.detail) for one in task.claims),
        unclaimed_changes=unclaimed.alone if unclaimed else (),
        unattributed_changes=unclaimed.unattributed if unclaimed else (),
        findings=tuple(_finding(placed) for placed in task.findings),
        look=look(task),
        took=took_last(task, now),
        spans=spans,
    )


def _waits(spans: Sequence[Span]) -> Iterator[Wait]:
    for span in spans:
        if span.kind is Kind.WAIT and (span.end is not None or span.asks):
            yield Wait(span.number, span.start, span.end)


def _attempt(task: Task, attempt: Attempt, now: float) -> AttemptLine:
    packet = attempt.packet
    return AttemptLine(
        number=attempt.number,
        state=attempt.state,
        session_id=attempt.session_id,
        started_at=attempt.started_at,
        ended_at=ended_at(task, attempt),
        handoff=HandedOver(attempt.handoff.path, packet.objective) if attempt.handoff and packet else None,
        returned=_returned(attempt),
        prompt=facts.prompt(attempt),
        answer=facts.answer(attempt),
        look=look_of_attempt(task, attempt),
        took=took(task, attempt, now),
    )


def _returned(attempt: Attempt) -> HandedBack | None:
    version, result = attempt.returned, attempt.result
    if version is None or result is None:
        return None
    return HandedBack(
        path=version.path,
        sha256=version.digest,
        contract=result.contract,
        reported_state=result.reported_state,
        summary=result.summary,
        error_code=result.error_code,
        error_message=result.error_message,
        retry_hint=result.retry_hint,
        next_steps=result.next_steps,
        review_reason=result.review_reason,
        blockers=result.blockers,
        limitations=result.limitations,
        model=result.model,
        mode=result.mode,
        others_say=_others_say(attempt, result),
        confidence=result.confidence,
        artifacts=result.artifacts,
        files_created=result.files_created,
        files_modified=result.files_modified,
    )


def _others_say(attempt: Attempt, result: Return) -> str:
    recorded, asked = attempt.run.model if attempt.run else None, attempt.packet.mode if attempt.packet else None
    said = []
    if model_agreement(recorded, result.model) is Agreement.DIFFERS:
        said.append(f"recorded as {recorded}")
    if mode_agreement(asked, result.mode) is Agreement.DIFFERS:
        said.append(f"the handoff asked for {asked}")
    return "; ".join(said)


def _finding(placed: PlacedFinding) -> FindingLine:
    finding = placed.finding
    return FindingLine(finding.rule, finding.severity, finding.message, placed.path, finding.line)
