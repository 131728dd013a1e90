"""The rules of linking: what can be wrong between documents that are right by themselves, and what is there."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import ERROR, WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract, Finding, Outcome, Return
from agentwatch.delegation.task import PlacedFinding, Task

_rule: Final = RuleMaker(None)

CYCLE: Final = _rule(
    "LNK001",
    "Linking",
    "parents form a cycle",
    "The chain of parents comes back to this task ({other}); name the task that really handed it over.",
    why="A task cannot be its own ancestor. The tasks of a cycle are shown as roots until one parent is corrected.",
    right='a: {"parent_task_id": "root"}   b: {"parent_task_id": "a"}',
    wrong='a: {"parent_task_id": "b"}   b: {"parent_task_id": "a"}',
    severity=WARNING,
)
SELF_PARENT: Final = _rule(
    "LNK002",
    "Linking",
    "a task is its own parent",
    "`parent_task_id` names the task itself ({other}); name the parent, or leave the key out.",
    why="A task that is its own parent has none; it is shown as a root.",
    right='{"task_id": "a.b", "parent_task_id": "a"}',
    wrong='{"task_id": "a.b", "parent_task_id": "a.b"}',
    severity=WARNING,
)
ORPHAN: Final = _rule(
    "LNK003",
    "Linking",
    "the parent is not known",
    "No handoff or return speaks of the parent {other}; correct `parent_task_id`, or write the parent's handoff.",
    why="The parent may still come: until then the task is linked by its next best basis.",
    right='{"task_id": "a.b", "parent_task_id": "a"}, beside the handoff of a',
    wrong='{"task_id": "a.b", "parent_task_id": "a"}, and nothing speaks of a',
    severity=WARNING,
)
DUPLICATE_HANDOFF: Final = _rule(
    "LNK004",
    "Linking",
    "a task is handed off twice",
    "Another file hands off the same task ({other}); give one its own `task_id`, or number them with `attempt`.",
    why="Two handoffs of one task cannot both be true. The one that was seen first is shown.",
    right='{"task_id": "a"} and {"task_id": "a", "attempt": 2}',
    wrong='{"task_id": "a"} in two files',
    severity=WARNING,
)
DUPLICATE_RETURN: Final = _rule(
    "LNK005",
    "Linking",
    "an attempt is returned twice",
    "Another file returns the same attempt ({other}); remove one, or number them with `attempt` or `session_id`.",
    why="Two returns of one attempt cannot both be true. The one that was seen first is shown.",
    right="task_id: a / attempt: 1   and   task_id: a / attempt: 2",
    wrong="task_id: a   in two files",
    severity=WARNING,
)
SESSION_MISMATCH: Final = _rule(
    "LNK006",
    "Orchestrator Validation (Stage 6)",
    "the return is of another session",
    "The return's `session_id` is not the one of the delegation ({other}); return the one that was handed over.",
    why="metadata.session_id must match the expected session_id: subagent-return, validation rule 4.",
    right='handoff: {"session_id": "sess_1_a"}   return: {"metadata": {"session_id": "sess_1_a"}}',
    wrong='handoff: {"session_id": "sess_1_a"}   return: {"metadata": {"session_id": "sess_2_b"}}',
    severity=ERROR,
)
ARTIFACT_MISSING: Final = _rule(
    "LNK007",
    "Orchestrator Validation (Stage 6)",
    "an artifact does not exist",
    "The status says that the work is done, and the artifact {other} is not on disk; create it, or leave it out.",
    why="All artifact paths of a completed return must exist on disk: subagent-return, validation rule 6.",
    right='"artifacts": [{"path": "plan.md"}], and plan.md is there',
    wrong='"artifacts": [{"path": "plan.md"}], and there is no plan.md',
    severity=ERROR,
)
TASK_MISMATCH: Final = _rule(
    "LNK008",
    "Linking",
    "the return names another task",
    "The return names the task {other}, which is not the one that its session was handed; name that one.",
    why="Whoever tells returns by their task id takes it for another task's. It stands on the task of its session.",
    right='handoff: {"task_id": "a"}   return of that session: {"report_metadata": {"task_id": "a"}}',
    wrong='handoff: {"task_id": "a"}   return of that session: {"report_metadata": {"task_id": "b"}}',
    severity=WARNING,
)
OVERRUN: Final = _rule(
    "LNK009",
    "Retry Policy (MVP)",
    "a child was retried too often",
    "{other} without a decision; stop retrying it: let the operator decide, escalate to another mode, or abort.",
    why="A parent retries a child once, or twice with a material mitigation: error-propagation, retry policy. Then it"
    " escalates or aborts. What the operator decides is no retry too many.",
    right="one failed attempt, one retry, then an escalation",
    wrong="four attempts that failed, and nobody was asked",
    severity=WARNING,
)
PROSE: Final = _rule(
    "LNK010",
    "Minimum MVP Fields",
    "a packet is answered in prose",
    "The child was handed the packet of {other} and answered without a return; ask for the sections of return-format.",
    why="Whether it is done cannot be told from prose. A child that was handed a packet answers by a contract.",
    right="## Status / state: SUCCESS / …",
    wrong="All done, have a look!",
    severity=WARNING,
)
UNASKED: Final = _rule(
    "LNK011",
    "Linking",
    "nobody handed out the attempt",
    "The attempt before failed, and nobody handed out attempt {other}; hand it off, or let the operator decide.",
    why="A child that numbers its own attempts could hide a failure. The task asks until the operator decides.",
    right='handoff: {"task_id": "a", "attempt": 2}   return: task_id: a / attempt: 2',
    wrong="task_id: a / attempt: 2   after a failure, with no handoff and no decision for it",
    severity=WARNING,
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
    paths = dict.fromkeys(claim.path for claim in task.claims if claim.kind == "artifact" and claim.is_missing)
    return [PlacedFinding(finding_of(ARTIFACT_MISSING, path), latest.returned.path) for path in paths]
