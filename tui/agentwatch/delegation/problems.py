"""The rules of linking: what can be wrong between documents that are right by themselves."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import ERROR, WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Finding

_rule: Final = RuleMaker(None)

CYCLE: Final = _rule(
    "LNK001",
    "Linking",
    "parents form a cycle",
    "The chain of parents comes back to this task ({other}); name the task that really handed it over.",
    why="A task cannot be its own ancestor. The tasks of a cycle are shown as roots until one parent is corrected.",
    right='a: {"parent_task_id": "root"}   b: {"parent_task_id": "a"}',
    wrong='a: {"parent_task_id": "b"}   b: {"parent_task_id": "a"}',
)
SELF_PARENT: Final = _rule(
    "LNK002",
    "Linking",
    "a task is its own parent",
    "`parent_task_id` names the task itself ({other}); name the parent, or leave the key out.",
    why="A task that is its own parent has none; it is shown as a root.",
    right='{"task_id": "a.b", "parent_task_id": "a"}',
    wrong='{"task_id": "a.b", "parent_task_id": "a.b"}',
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
)
DUPLICATE_RETURN: Final = _rule(
    "LNK005",
    "Linking",
    "an attempt is returned twice",
    "Another file returns the same attempt ({other}); remove one, or number them with `attempt` or `session_id`.",
    why="Two returns of one attempt cannot both be true. The one that was seen first is shown.",
    right="task_id: a / attempt: 1   and   task_id: a / attempt: 2",
    wrong="task_id: a   in two files",
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

RULES: Final[tuple[Rule, ...]] = (
    CYCLE,
    SELF_PARENT,
    ORPHAN,
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
)


def found(rule: Rule, other: str) -> Finding:
    """The finding of a rule; `other` is the other party: a task id, a path or a session id."""
    return Finding(rule.id, rule.severity, rule.message.format(other=other))
