"""The tree as the document that others read: `agentwatch tree --json`, schema version 1 (DESIGN.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast

from agentwatch.contracts.shapes import Contract, Finding, Return
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.run import Activity, Run
from agentwatch.delegation.task import Attempt, Task, sums_of
from agentwatch.delegation.tree import Tree
from agentwatch.view import requests
from agentwatch.view.a2a import a2a_state, a2a_status
from agentwatch.view.order import group_of
from agentwatch.view.query import Found
from agentwatch.view.times import ended_at, iso, stands_since
from agentwatch.view.words import answer, mode_of, model_of, prompt, why_at

if TYPE_CHECKING:
    from agentwatch.view.documents import tasks

_Word = TypeVar("_Word", bound=str)
_bare: Final = str.__str__

_NO_RETURN: Final = Return(Contract.RETURN_FORMAT, None, None)
SCHEMA_VERSION: Final[Literal[1]] = 1


def tree_document(
    tree: Tree,
    workspace: str,
    problems: Iterable[tuple[str, str, str]] = (),
    found: Found | None = None,
    prices: Mapping[str, float] = MappingProxyType({}),
) -> tasks.Tree:
    """The whole tree: tasks in preorder, siblings in the order first seen. Texts are as the documents have them.

    `problems` are what could not be read: (source, place, message) each. With `found`, only those tasks are there.
    `prices` are those of a million tokens, by model.
    """
    totals = tree.totals
    now = sums_of(task for task in tree.tasks.values() if not task.past)
    unseen = problem_documents(problems)
    document: tasks.Tree = {
        "schema_version": SCHEMA_VERSION,
        "workspace": workspace,
        "complete": not unseen,
        "problems": unseen,
        "summary": {
            "tasks": totals.tasks,
            "by_state": {state.value: count for state, count in sorted(totals.states.items())},
            "now": {
                "tasks": now.tasks,
                "by_state": {state.value: count for state, count in sorted(now.states.items())},
                "verified": now.verdicts.get(Verdict.VERIFIED, 0),
                "contradicted": now.verdicts.get(Verdict.CONTRADICTED, 0),
            },
            "needs_operator": totals.needs_operator,
            "stale": totals.stale,
            "verified": totals.verdicts.get(Verdict.VERIFIED, 0),
            "contradicted": totals.verdicts.get(Verdict.CONTRADICTED, 0),
            "tokens": totals.tokens,
            "past": totals.tasks - now.tasks,
            "acknowledged": sum(task.acknowledged for task in tree.tasks.values()),
            "snoozed": sum(task.snoozed for task in tree.tasks.values()),
            "unseen": len(tree.unseen),
        },
        "tasks": [
            task_document(tree, task, depth, prices)
            for task, depth in tree.preorder()
            if found is None or task.task_id in found.shown
        ],
        "notices": [finding_document(placed) for placed in tree.notices],
    }
    if tree.host:
        document["host"] = tree.host
    if found is not None:
        document["matches"] = list(found.matches)
    return document


def bare(word: _Word) -> _Word:
    """A word of an enumeration as a mere string, which is written as JSON in a tenth of the time."""
    return _bare(word)  # type: ignore[return-value]


def problem_documents(problems: Iterable[tuple[str, str, str]]) -> list[tasks.Problem]:
    return [{"source": source, "place": place, "message": message} for source, place, message in problems]


def finding_document(finding: Finding) -> tasks.Finding:
    return {
        "rule": finding.rule,
        "severity": bare(finding.severity),
        "message": finding.message,
        "path": finding.path,
        "line": finding.line,
    }


def task_document(
    tree: Tree,
    task: Task,
    depth: int = 0,
    prices: Mapping[str, float] = MappingProxyType({}),
) -> tasks.Task:
    """One task; `depth` is how many are above it."""
    result = task.result
    worst = task.below.worst_waiting if task.below else None
    return {
        "task_id": task.task_id,
        "parent_id": task.parent_id,
        "parent_basis": bare(task.parent_basis),
        "depth": depth,
        "group": None if task.parent_id is not None else bare(group_of(task, tree.now, tree.rules.history_before)),
        "title": task.title,
        "agent": task.agent,
        "host": task.host or None,
        "state": bare(task.state),
        "known_state": bare(task.known_state),
        "lost_since": iso(task.lost_since),
        "a2a_state": a2a_state(task),
        "a2a_status": a2a_status(task),
        "reported_state": task.reported_state,
        "contract": task.contract and bare(task.contract),
        "objective": task.packet.objective if task.packet else None,
        "progress": {"done": task.progress[0], "total": task.progress[1]} if task.progress else None,
        "inferred": task.inferred,
        "deleted": task.deleted,
        "summary": result.summary if result else None,
        "why": why_at(task, tree.now),
        "needs_operator": task.needs_operator,
        "ask": task.ask,
        "requests": [requests.document(one) for one in task.requests],
        "gone": task.gone,
        "since": iso(stands_since(task)),
        "updated_at": iso(task.updated_at or task.alive_at),
        "activity": activity_document(task.doing, tree.now),
        "tokens": task.tokens,
        "tokens_below": task.below.tokens if task.below else None,
        "cost": cost_of(task, prices),
        "stale": task.stale,
        "past": task.past,
        "acknowledged": task.acknowledged,
        "snoozed": task.snoozed,
        "snoozed_until": iso(task.snoozed_until),
        "seen": task.seen,
        "contradicted": task.contradicted,
        "worst_below": str(worst) if worst else None,
        "attempt": task.attempt,
        "attempts": [_attempt(task, attempt) for attempt in task.attempts],
        "retry": {
            "max_retries": task.retry.max_retries,
            "remaining": task.retry.remaining,
            "recommended": task.retry.recommended,
            "hint": task.retry.hint,
        },
        "error_code": result.error_code if result else None,
        "error_message": result.error_message if result else None,
        **_returned(result),  # type: ignore[typeddict-item]  # it fears for `workspace`, which is not in it
        "blockers": list(result.blockers) if result else [],
        "findings": [finding_document(placed) for placed in task.findings],
        "claims": [
            {"kind": bare(claim.kind), "path": claim.path, "verdict": bare(claim.verdict), "detail": claim.detail}
            for claim in task.claims
        ],
        "unsaid": [{"kind": deed.kind, "what": deed.what, "at": iso(deed.call.at)} for deed in task.unsaid],
        "runtime": _runtime(task),
        "limitations": list(result.limitations) if result else [],
        "decision": _decision(task.decision) if task.decision else None,
    }


def _returned(result: Return | None) -> tasks.Returned:
    from agentwatch.view.documents.tasks import Returned

    found = {key: getattr(result or _NO_RETURN, key) for key in Returned.__annotations__}
    return cast(
        "tasks.Returned", {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    )


def _runtime(task: Task) -> tasks.Runtime:
    result = task.result
    model, mode = (result.model, result.mode) if result else (None, None)
    of_model, of_mode = model_of(model, task.run), mode_of(mode, task.packet)
    return {
        "model_reported": model,
        "model_recorded": of_model.known,
        "model": bare(of_model.agreement),
        "mode_reported": mode,
        "mode_asked": of_mode.known,
        "mode": bare(of_mode.agreement),
    }


def _decision(decision: Decision) -> tasks.Decided:
    return {
        "decision_id": decision.decision_id,
        "action": bare(decision.action),
        "receipt": bare(decision.receipt.stage),
        "claimed": decision.receipt.claimed,
        "claimed_by": decision.receipt.taken_by or None,
    }


def _attempt(task: Task, attempt: Attempt) -> tasks.Attempt:
    return {
        "number": attempt.number,
        "state": bare(attempt.state),
        "session_id": attempt.session_id,
        "handoff_path": attempt.handoff.path if attempt.handoff else None,
        "handoff_sha256": attempt.handoff.digest if attempt.handoff else None,
        "return_path": attempt.returned.path if attempt.returned else None,
        "return_sha256": attempt.returned.digest if attempt.returned else None,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(ended_at(task, attempt)),
        "run": _run(attempt, attempt.run) if attempt.run else None,
    }


def _run(attempt: Attempt, run: Run) -> tasks.Run:
    return {
        "source": run.source,
        "place": run.place,
        "tokens": run.tokens,
        "background": run.background,
        "prompt": prompt(attempt),
        "answer": answer(attempt),
    }


def cost_of(task: Task, prices: Mapping[str, float]) -> float | None:
    """What the tokens of a task itself cost, by the price of a million tokens of each model, which is named with or
    without its provider; None where a price is missing, or no store tells of tokens."""
    cost = None
    for run in (attempt.run for attempt in task.attempts):
        if run is None or run.tokens is None:
            continue
        model = run.model or ""
        price = prices.get(model, prices.get(model.rpartition("/")[2]))
        if price is None:
            return None
        cost = (cost or 0.0) + run.tokens * price / 1_000_000
    return cost


def activity_document(doing: Activity | None, now: float) -> tasks.Activity | None:
    """What a task does, for programs; `now` is in epoch seconds. Texts are foreign and unsanitised."""
    if doing is None:
        return None
    return {
        "at": iso(doing.at),
        "kind": doing.kind,
        "what": doing.what,
        "about": doing.about,
        "over": doing.over,
        "repeats": doing.repeats,
        "seconds": round(max(now - doing.at, 0.0), 1) if doing.at and now > float("-inf") else None,
    }
