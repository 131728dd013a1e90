"""How far a decision has got, for every place that shows it."""

from __future__ import annotations

from typing import Final

from agentwatch.delegation.decision import ENDING, Decision, Stage
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import DelegationTree

UNREAD_SECONDS: Final = 180.0
"""An agent that waits for a decision reads it within seconds: after this, nobody waits."""


def decision_of(task: Task) -> Decision | None:
    """The decision that still matters: about the latest attempt, else about the one before it."""
    return next((attempt.decision for attempt in reversed(task.attempts[-2:]) if attempt.decision is not None), None)


def is_unread(decision: Decision, now: float) -> bool:
    """Whether it was delivered, and no agent has read it for too long."""
    return decision.receipt.stage is Stage.DELIVERED and now - decision.receipt.at >= UNREAD_SECONDS


def is_on_its_way(decision: Decision) -> bool:
    """Whether an agent has still to do something: read it, and begin the next attempt where there is to be one."""
    if decision.expired:
        return False
    if decision.action in ENDING:
        # It is over when it was read, for nothing will be seen of it: so a claim of that is not enough.
        return not any(one.stage is Stage.READ and not one.claimed for one in decision.receipts)
    return decision.receipt.stage is not Stage.ACTED


def on_their_way(tree: DelegationTree) -> list[Decision]:
    """The decisions that hold and were not carried out yet, oldest first."""
    decided = (attempt.decision for task in tree.tasks.values() for attempt in task.attempts)
    moving = (one for one in decided if one is not None and is_on_its_way(one))
    return sorted(moving, key=lambda one: (one.at, one.decision_id))
