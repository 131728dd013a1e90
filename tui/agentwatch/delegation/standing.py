"""How an attempt stands: by its handoff, its return and its run. Pure."""

from __future__ import annotations

from agentwatch.contracts.shapes import Outcome, Return, Severity
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import Attempt, State, Version

_ENDED_BADLY = (RunState.FAILED, RunState.CANCELED)
"""Whatever a run had said by then, it is not what it was asked for."""

_STATES = {
    Outcome.WORKING: State.WORKING,
    Outcome.COMPLETED: State.COMPLETED,
    Outcome.PARTIAL: State.PARTIAL,
    Outcome.BLOCKED: State.BLOCKED,
    Outcome.FAILED: State.FAILED,
}


def is_invalid(version: Version, *, strict: bool) -> bool:
    """Whether a return counts as failed because it breaks its contract."""
    document = version.document
    if not isinstance(document, Return):
        return False
    broken = any(finding.severity is Severity.ERROR for finding in version.findings)
    return document.outcome is None or (strict and broken)


def is_early(version: Version) -> bool:
    document = version.document
    return isinstance(document, Return) and document.outcome is Outcome.WORKING


def state_of(attempt: Attempt, *, strict: bool, demands: bool) -> State:
    """How an attempt stands by its handoff, its return and its run; `strict` and `demands` are those of `fold`."""
    returned, document, run = attempt.returned, attempt.result, attempt.run
    if strict and (answers_another_session(attempt) or attempt.rival is not None):
        return State.INVALID
    if run is not None and (returned is None or document is None or run.state in _ENDED_BADLY):
        return _state_of_run(run, demands=demands)
    if attempt.ended_without_result:
        return State.INVALID
    return State.SUBMITTED if returned is None else _state_of_return(returned, strict=strict)


def _state_of_return(version: Version, *, strict: bool) -> State:
    document = version.document
    if not isinstance(document, Return):
        return State.SUBMITTED
    if is_invalid(version, strict=strict) or document.outcome is None:
        return State.INVALID
    return _STATES[document.outcome]


def _state_of_run(run: Run, *, demands: bool) -> State:
    """What the store says, of a run that gave back nothing that the contracts know."""
    if run.state is not RunState.ENDED:
        return State.BLOCKED if run.waiting else State(run.state.value)
    if run.parent_session is None:
        return State.COMPLETED
    return State.INVALID if run.said is None or demands else State.COMPLETED


def answers_another_session(attempt: Attempt) -> bool:
    """subagent-return, validation rule 4: the session id must match the one of the delegation."""
    packet, document = attempt.packet, attempt.result
    if packet is None or document is None or packet.session_id is None or document.session_id is None:
        return False
    return packet.session_id != document.session_id
