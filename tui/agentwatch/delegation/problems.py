"""The rules of linking: what can be wrong between documents that are right by themselves, and what is there."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Finding, Outcome, Return
from agentwatch.delegation.task import PlacedFinding, Task

_error, _warning = makers(None)
_LINKING: Final = "Linking"
_VALIDATION: Final = "Orchestrator Validation (Stage 6)"

CYCLE: Final = (
    _warning("LNK001", _LINKING, "parents form a cycle")
    .says("The chain of parents comes back to this task ({other}); name the task that really handed it over.")
    .because("A task cannot be its own ancestor. The tasks of a cycle are shown as roots until it is corrected.")
    .example(
        'a: {"parent_task_id": "root"}   b: {"parent_task_id": "a"}',
        'a: {"parent_task_id": "b"}   b: {"parent_task_id": "a"}',
    )
)
SELF_PARENT: Final = (
    _warning("LNK002", _LINKING, "a task is its own parent")
    .says("`parent_task_id` names the task itself ({other}); name the parent, or leave the key out.")
    .because("A task that is its own parent has none; it is shown as a root.")
    .example('{"task_id": "a.b", "parent_task_id": "a"}', '{"task_id": "a.b", "parent_task_id": "a.b"}')
)
ORPHAN: Final = (
    _warning("LNK003", _LINKING, "the parent is not known")
    .says("No handoff or return speaks of the parent {other}; correct `parent_task_id`, or write the parent's handoff.")
    .because("The parent may still come: until then the task is linked by its next best basis.")
    .example(
        '{"task_id": "a.b", "parent_task_id": "a"}, beside the handoff of a',
        '{"task_id": "a.b", "parent_task_id": "a"}, and nothing speaks of a',
    )
)
DUPLICATE_HANDOFF: Final = (
    _warning("LNK004", _LINKING, "a task is handed off twice")
    .says("Another file hands off the same task ({other}); give one its own `task_id`, or number them with `attempt`.")
    .because("Two handoffs of one task cannot both be true. The one that was seen first is shown.")
    .example('{"task_id": "a"} and {"task_id": "a", "attempt": 2}', '{"task_id": "a"} in two files')
)
DUPLICATE_RETURN: Final = (
    _warning("LNK005", _LINKING, "an attempt is returned twice")
    .says("Another file returns the same attempt ({other}); remove one, or number them with `attempt` or `session_id`.")
    .because("Two returns of one attempt cannot both be true. The one that was seen first is shown.")
    .example("task_id: a / attempt: 1   and   task_id: a / attempt: 2", "task_id: a   in two files")
)
SESSION_MISMATCH: Final = (
    _error("LNK006", _VALIDATION, "the return is of another session")
    .says("The return's `session_id` is not the one of the delegation ({other}); return the one that was handed over.")
    .because("metadata.session_id must match the expected session_id: subagent-return, validation rule 4.")
    .example(
        'handoff: {"session_id": "sess_1_a"}   return: {"metadata": {"session_id": "sess_1_a"}}',
        'handoff: {"session_id": "sess_1_a"}   return: {"metadata": {"session_id": "sess_2_b"}}',
    )
)
ARTIFACT_MISSING: Final = (
    _error("LNK007", _VALIDATION, "an artifact does not exist")
    .says("The status says that the work is done, and the artifact {other} is not on disk; create it, or leave it out.")
    .because("All artifact paths of a completed return must exist on disk: subagent-return, validation rule 6.")
    .only_warns_in(Contract.RETURN_META)
    .example(
        '"artifacts": [{"path": "plan.md"}], and plan.md is there',
        '"artifacts": [{"path": "plan.md"}], and there is no plan.md',
    )
)
TASK_MISMATCH: Final = (
    _warning("LNK008", _LINKING, "the return names another task")
    .says("The return names the task {other}, which is not the one that its session was handed; name that one.")
    .because("Who goes by the task id takes it for another task's. It stands on the task of its session.")
    .example(
        'handoff: {"task_id": "a"}   return of that session: {"report_metadata": {"task_id": "a"}}',
        'handoff: {"task_id": "a"}   return of that session: {"report_metadata": {"task_id": "b"}}',
    )
)
OVERRUN: Final = (
    _warning("LNK009", "Retry Policy (MVP)", "a child was retried too often")
    .says("{other} without a decision; stop retrying it: let the operator decide, escalate to another mode, or abort.")
    .because(
        "A parent retries once, or twice with a material mitigation, then escalates: error-propagation, retry policy."
    )
    .example("one failed attempt, one retry, then an escalation", "four attempts that failed, and nobody was asked")
)
PROSE: Final = (
    _warning("LNK010", "Minimum MVP Fields", "a packet is answered in prose")
    .says("The child was handed the packet of {other} and answered in prose; ask for the sections of return-format.")
    .because("Whether it is done cannot be told from prose. A child that was handed a packet answers by a contract.")
    .example("## Status / state: SUCCESS / …", "All done, have a look!")
)
UNASKED: Final = (
    _warning("LNK011", _LINKING, "nobody handed out the attempt")
    .says("The attempt before failed, and nobody handed out attempt {other}; hand it off, or let the operator decide.")
    .because("A child that numbers its own attempts could hide a failure. The task asks until the operator decides.")
    .example(
        'handoff: {"task_id": "a", "attempt": 2}   return: task_id: a / attempt: 2',
        "task_id: a / attempt: 2   after a failure, with no handoff and no decision for it",
    )
)

RULES: Final[tuple[Rule, ...]] = (
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
)


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
