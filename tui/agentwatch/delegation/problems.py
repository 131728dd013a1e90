"""The rules of linking: what can be wrong between documents that are right by themselves, and what is there."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.rules import Rule, read_rules
from agentwatch.contracts.shapes import Contract, Finding, Outcome, Return
from agentwatch.delegation.task import PlacedFinding, Task

RULES: Final = tuple(rule for rule in read_rules().values() if rule.id.startswith("LNK"))
(
    CYCLE,
    SELF_PARENT,
    ORPHAN,
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
    ARTIFACT_MISSING,
    TASK_MISMATCH,
    OVERRUN,
    PROSE,
    UNASKED,
) = RULES


def finding_of(rule: Rule, other: str) -> Finding:
    """The finding of a rule; `other` is the other party: a task id, a path or a session id."""
    return Finding(rule.id, rule.severity, rule.message.format(other=other))


def answered_in_prose(task: Task) -> list[PlacedFinding]:
    """That the latest attempt was handed a packet and came back with words that follow no contract."""
    handoff = task.latest.handoff if task.latest is not None else None
    if not task.answers_in_prose or handoff is None:
        return []
    return [PlacedFinding(finding_of(PROSE, task.task_id), handoff.path)]


def promises_artifacts(result: Return) -> bool:
    """Whether all artifacts that a return names have to exist."""
    has_artifacts = result.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META)
    return has_artifacts and result.outcome is Outcome.COMPLETED


def missing_artifacts(task: Task) -> list[PlacedFinding]:
    """Artifacts that the latest return says are there, as far as its claims were checked: rule 6 of subagent-return.

    The task keeps its state; for exit codes, errors.json and the retry policy the attempt counts as failed.
    """
    result, latest = task.result, task.latest
    if result is None or latest is None or latest.returned is None or not promises_artifacts(result):
        return []
    missing = (claim for claim in task.claims if claim.kind == "artifact" and claim.is_missing)
    paths = {claim.file or claim.path: claim.path for claim in missing}
    return [PlacedFinding(finding_of(ARTIFACT_MISSING, path), latest.returned.path) for path in paths.values()]
