"""What can be wrong between documents: the findings of linking, with their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Finding, Severity


@dataclass(frozen=True, slots=True)
class Problem:
    """One rule of linking. `message` has one `{}` for the other party."""

    rule: str
    severity: Severity
    message: str
    why: str

    def found(self, other: str, line: int | None = None) -> Finding:
        return Finding(self.rule, self.severity, self.message.format(other), line)


CYCLE: Final = Problem(
    "LNK001",
    Severity.ERROR,
    "the chain of parents comes back to this task ({}): name the task that really handed it over",
    "A task cannot be its own ancestor. The tasks of the cycle are shown as roots until one parent is corrected.",
)
SELF_PARENT: Final = Problem(
    "LNK002",
    Severity.ERROR,
    "parent_task_id names the task itself ({}): name the parent, or leave the key out",
    "A task that is its own parent has none; it is shown as a root.",
)
ORPHAN: Final = Problem(
    "LNK003",
    Severity.WARNING,
    "no handoff or return speaks of the parent {}: correct parent_task_id or write the parent's handoff",
    "The parent may still come: the task is linked by its next best basis until then.",
)
DUPLICATE_HANDOFF: Final = Problem(
    "LNK004",
    Severity.ERROR,
    "another file hands off the same task ({}): give one of them its own task_id, or number them with attempt",
    "Two handoffs of one task cannot both be true. The one seen first is shown.",
)
DUPLICATE_RETURN: Final = Problem(
    "LNK005",
    Severity.ERROR,
    "another file returns the same attempt ({}): remove one, or number them with attempt or session_id",
    "Two returns of one attempt cannot both be true. The one seen first is shown.",
)
SESSION_MISMATCH: Final = Problem(
    "LNK006",
    Severity.ERROR,
    "the return's session_id is not the one of the delegation ({}): return the session_id that was handed over",
    "metadata.session_id must match the expected session_id (subagent-return, validation rule 4).",
)

PROBLEMS: Final = (CYCLE, SELF_PARENT, ORPHAN, DUPLICATE_HANDOFF, DUPLICATE_RETURN, SESSION_MISMATCH)
