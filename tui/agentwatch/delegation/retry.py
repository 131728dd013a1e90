"""The retry arithmetic of error-propagation: total attempts = 1 + max_retries."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Final

from agentwatch.delegation.decision import SENDS_ON, Action
from agentwatch.delegation.task import Attempt, Retry, State, Task

FITTER: Final = "fitter"  # the mode that a line fault is escalated to

MITIGATED_MAX_RETRIES: Final = 2  # with a material mitigation: changed inputs, reduced scope, corrected constraints

_LINE_FAULT: Final = r"(?i)line[\s_-]*fault"
HAVE_FAILED: Final = frozenset({State.FAILED, State.INVALID})


def budget(task: Task, *, max_retries: int, restored: Collection[float] = ()) -> Retry:
    """How many retries the policy leaves a task."""
    allowed = 1 + _begun(task, max(restored)) if restored else max_retries
    result = task.result
    return Retry(
        allowed,
        max(allowed - _used(task), 0),
        result.retry_recommended if result else None,
        result.retry_hint if result else None,
        bool(restored),
    )


def budget_words(retry: Retry) -> str:
    """`1 retry left`, `1 of 2 retries left`."""
    if retry.remaining == retry.max_retries:
        return f"{retry.remaining} {'retry' if retry.remaining == 1 else 'retries'} left"
    return f"{retry.remaining} of {retry.max_retries} retries left"


def is_retry(action: Action, attempt: Attempt | None) -> bool:
    """Whether what follows is a retry: not after an answer to a blocked child, nor of a part that is to be resumed."""
    if attempt is not None and (
        _is_to_be_resumed(attempt) or (action is Action.RESPOND and attempt.state is State.BLOCKED)
    ):
        return False
    return action in SENDS_ON


def _is_to_be_resumed(attempt: Attempt) -> bool:
    return attempt.state is State.PARTIAL and attempt.result is not None and attempt.result.retry_recommended is True


def calls_fitter(action: Action, mode: str | None) -> bool:
    """Whether a decision hands a task to the fitter, whose end is the end of the decision."""
    return action is Action.ESCALATE and mode == FITTER


def is_restored(task: Task) -> bool:
    """Whether a fitter was called for the latest attempt, and has restored the line."""
    return task.decision is not None and task.decision.restored


def mitigated(task: Task) -> Retry:
    """How many retries the policy leaves a task whose next attempt comes with a material mitigation."""
    allowed = max(task.retry.max_retries, MITIGATED_MAX_RETRIES)
    return task.retry._replace(max_retries=allowed, remaining=max(allowed - _used(task), 0))


def is_line_fault(task: Task) -> bool:
    """Whether the line is at fault and not the work: a fitter restores it, then the station gets one more retry."""
    code = task.result.error_code if task.result else None
    return code is not None and re.search(_LINE_FAULT, code) is not None


def failed_alike(task: Task) -> bool:
    """Whether the last two attempts failed in the same way, so that a retry would most likely as well."""
    failed = [attempt.result for attempt in task.attempts[-2:] if attempt.state in HAVE_FAILED and attempt.result]
    reasons = {one.error_code or one.error_message or one.summary for one in failed}
    return len(failed) == 2 and len(reasons) == 1 and reasons != {None}


def _used(task: Task) -> int:
    """How many retries were begun or decided."""
    latest = task.latest
    if latest is None:
        return 0
    # One that was decided about a return that was rewritten since is used up as well: the ledger keeps it.
    rewritten = sum(one.action is Action.RETRY and not one.expired for one in latest.superseded)
    decided = latest.binding is not None and is_retry(latest.binding.action, latest)
    return _begun(task) + decided + rewritten


def _begun(task: Task, until: float = math.inf) -> int:
    """How many retries were begun until then."""
    attempts = task.attempts
    # Attempts whose files were rewritten before anybody looked are known by their number only.
    first = attempts[0].number - 1 if attempts else 0
    begun = ((one.number, one.started_at, one.returned.at if one.returned else 0.0) for one in attempts)
    last = max((number for number, at, seen_at in begun if (seen_at if at is None else at) <= until), default=first)
    # An attempt after a question was no retry, as far as can be seen, unless the operator decided one.
    others = sum(
        _is_to_be_resumed(one)
        or (one.state is State.BLOCKED and not (one.decision is not None and one.decision.action is Action.RETRY))
        for one in attempts
        if one.number < last
    )
    return max(last - 1 - others, 0)
