"""The retry arithmetic of error-propagation: total attempts = 1 + max_retries."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Attempt, Retry, State, Task

FITTER: Final = "fitter"
"""The mode that a line fault is escalated to."""

DEFAULT_MAX_RETRIES: Final = 1
"""A parent retries a child once. (A child's own retries are 0, so it never appears here.)"""

MITIGATED_MAX_RETRIES: Final = 2
"""With a material mitigation: changed inputs, reduced scope, corrected constraints."""

_LINE_FAULT: Final = re.compile(r"line[\s_-]*fault", re.IGNORECASE)
_FAILED: Final = frozenset({State.FAILED, State.INVALID})


def budget(task: Task, *, max_retries: int = DEFAULT_MAX_RETRIES, restored: Collection[float] = ()) -> Retry:
    """How many retries the policy leaves a task.

    `restored` are the times (epoch seconds) at which fitters have restored it: from then on the blocked station is
    retried exactly once more, however many retries it had not used. A retry is another attempt after one that failed:
    what goes on after an answer is none.
    """
    allowed = max_retries
    if restored:
        allowed = 1 + _used([attempt for attempt in task.attempts if _began_at(attempt) <= max(restored)])
    result = task.result
    return Retry(
        max_retries=allowed,
        remaining=max(allowed - _used(task.attempts), 0),
        recommended=result.retry_recommended if result else None,
        hint=result.retry_hint if result else None,
        restored=bool(restored),
    )


def is_restored(task: Task) -> bool:
    """Whether a fitter was called for the latest attempt, and has restored the line."""
    return task.decision is not None and task.decision.restored


def mitigated(task: Task) -> Retry:
    """How many retries the policy leaves a task whose next attempt comes with a material mitigation."""
    allowed = max(task.retry.max_retries, MITIGATED_MAX_RETRIES)
    return task.retry._replace(max_retries=allowed, remaining=max(allowed - _used(task.attempts), 0))


def is_line_fault(task: Task) -> bool:
    """Whether the line is at fault and not the work: a fitter restores it, then the station gets one more retry."""
    code = task.result.error_code if task.result else None
    return code is not None and _LINE_FAULT.search(code) is not None


def failed_alike(task: Task) -> bool:
    """Whether the last two attempts failed in the same way, so that a retry would most likely as well."""
    failed = [attempt.result for attempt in task.attempts[-2:] if attempt.state in _FAILED]
    results = [result for result in failed if result is not None]
    if len(results) < 2:
        return False
    before, last = results
    if before.error_code or last.error_code:
        return before.error_code == last.error_code
    said = last.error_message or last.summary
    return said is not None and said == (before.error_message or before.summary)


def _used(attempts: Sequence[Attempt]) -> int:
    """How many of them were retries."""
    return max(attempts[-1].number - 1 - sum(map(_was_answered, attempts[:-1])), 0) if attempts else 0


def _began_at(attempt: Attempt) -> float:
    if attempt.started_at is not None:
        return attempt.started_at
    return attempt.returned.at if attempt.returned is not None else 0.0


def _was_answered(attempt: Attempt) -> bool:
    decision = attempt.decision
    return attempt.state is State.BLOCKED and (decision is None or decision.action is not Action.RETRY)
