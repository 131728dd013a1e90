"""The retry arithmetic of error-propagation: total attempts = 1 + max_retries."""

from __future__ import annotations

from typing import Final

from agentwatch.delegation.task import Retry, Task

DEFAULT_MAX_RETRIES: Final = 1
"""A parent retries a child once. (A child's own retries are 0, so it never appears here.)"""

MITIGATED_MAX_RETRIES: Final = 2
"""With a material mitigation: changed inputs, reduced scope, corrected constraints."""


def budget(task: Task, *, max_retries: int = DEFAULT_MAX_RETRIES, restored: int = 0) -> Retry:
    """How many retries the policy leaves a task.

    `restored` counts the fitters whose restoration of this task succeeded: each lets the blocked station be retried
    exactly once more.
    """
    allowed = max_retries + restored
    used = max(task.attempt - 1, 0)
    result = task.result
    return Retry(
        max_retries=allowed,
        remaining=max(allowed - used, 0),
        recommended=result.retry_recommended if result else None,
        hint=result.retry_hint if result else None,
        restored=restored,
    )


def mitigated(task: Task) -> Retry:
    """How many retries the policy leaves a task whose next attempt comes with a material mitigation."""
    own = task.retry.max_retries - task.retry.restored
    return budget(task, max_retries=max(own, MITIGATED_MAX_RETRIES), restored=task.retry.restored)
