"""Says which decisions the error-propagation contract allows for a task, and why it forbids the rest.

The functions read and write nothing. Their sentences quote only one kind of untrusted text: cleaned names of modes.
"""

from collections.abc import Iterable, Iterator

from agentwatch.decisions.record import Mitigation, Params
from agentwatch.delegation.decision import SPECS, Action
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.standing import (
    FITTER,
    has_failed_alike,
    is_line_fault,
    is_restored,
    is_retry,
    retries_if_mitigated,
    retries_left_words,
)
from agentwatch.delegation.task import State, Task
from agentwatch.text import quote_text

_MOST_MODES = 8  # maximal number of modes that are offered; the operator can write any other mode

_FAILED = frozenset({State.FAILED, State.INVALID})
_AT_WORK = frozenset({State.SUBMITTED, State.WORKING})
_MISSING = {
    "mode": "say which mode to escalate to",
    "answers": "say what the answer is",
    "note": "say why the return is good enough",
}


def why_refused(task: Task, action: Action, params: Params, note: str) -> str | None:
    """Return the reason (one sentence) why this decision is not allowed, or None if it is."""
    if reason := why_impossible(task, action, params.mitigation):
        return reason
    # A blank answer leaves its question open, so every answer must have words.
    answers = params.answers and all(one.answer.strip() for one in params.answers)
    given = {"mode": (params.mode or "").strip(), "answers": answers, "note": note.strip()}
    for need in SPECS[action].needs:
        if not given[need]:
            return _MISSING[need]
    if action is Action.ESCALATE and params.mode == FITTER and is_restored(task):
        return f"the {FITTER} has restored the line: retry first, or escalate to another mode"
    if action is Action.ESCALATE and params.mode == mode_of(task):
        return f"it ran in the mode {quote_text(params.mode or '')} already; escalate to another"
    return None


def suggest_action(task: Task) -> Action | None:
    """Return the action that the contracts suggest, or None if they suggest none."""
    state, retry = task.own_state, task.retry
    if task.gone and not task.is_session:
        return Action.RETRY if retry.remaining else Action.ESCALATE
    if not task.question or state in _AT_WORK:
        return None
    if is_restored(task) and retry.remaining:
        return Action.RETRY
    if is_line_fault(task) and not retry.restored:
        return Action.ESCALATE
    if state is State.BLOCKED:
        return None if _waits_elsewhere(task) else Action.RESPOND
    if state in _FAILED:
        fruitless = retry.recommended is False or has_failed_alike(task)
        return Action.ESCALATE if fruitless or not retry.remaining else Action.RETRY
    if not task.contradicted:
        return Action.ACCEPT
    if retry.remaining:
        return Action.RETRY
    return Action.ESCALATE if missing_artifacts(task) else None


def mode_of(task: Task) -> str | None:
    """Return the mode of the latest attempt, or None if it is unknown."""
    return (task.packet.mode if task.packet else None) or (task.result.mode if task.result else None)


def offered_modes(task: Task, tasks: Iterable[Task], configured: Iterable[str]) -> list[str]:
    """Return the modes to offer for an escalation. After a fault of tools, the fitter comes first."""
    fitter = [FITTER] if is_line_fault(task) else []
    modes = dict.fromkeys((*fitter, *configured, *filter(None, map(mode_of, tasks))))
    return [mode for mode in modes if mode.strip() and mode != mode_of(task)][:_MOST_MODES]


def why_impossible(task: Task, action: Action, mitigation: Mitigation | None = None) -> str | None:
    """Return the reason (one sentence) why an action about the latest attempt is impossible now, or None."""
    if task.own_state is State.CANCELED:
        return "it was aborted"
    if task.own_state in (State.RETRYING, State.ESCALATED):
        return "it was decided, and the next attempt has not been seen yet"
    if task.ended_with:
        return "a task above it was aborted"
    if task.inferred:
        return "no file is about it: decide about the tasks below it"
    state = task.own_state
    if action is Action.ABORT:
        can_end = state.is_open or state in _FAILED or task.contradicted or task.question
        return None if can_end else "it has ended without a failure: there is nothing to abort"
    if action is Action.ACCEPT:
        if state in (State.PARTIAL, State.INVALID) or task.contradicted:
            return None
        if state is State.COMPLETED:
            return None if task.question else "it is completed: nothing needs to be accepted"
        return "there is no result to accept"
    if action is Action.RESPOND:
        if _waits_elsewhere(task):
            return "it waits in its own session, which reads no decision: answer it there"
        if state is not State.BLOCKED and (not task.question or state in _AT_WORK):
            return "it asks nothing"
    if action is not Action.RESPOND or is_retry(Action.RESPOND, task.latest):
        if state in _AT_WORK and not task.stale:
            return "it has not returned yet: wait, or abort it"
        if state in _AT_WORK and task.is_session:
            return "a human began this session: go on with it in its own program, or abort it"
        if state is State.COMPLETED and not (task.contradicted or task.question):
            return "it is completed, and nothing speaks against it"
        if action is not Action.ESCALATE:
            return _why_no_retry(task, mitigation if action is Action.RETRY else None)
    return None


def _why_no_retry(task: Task, mitigation: Mitigation | None) -> str | None:
    retry = retries_if_mitigated(task) if mitigation else task.retry
    if retry.remaining or not is_retry(Action.RETRY, task.latest):
        return None
    used = f"no retry left ({retry.max_retries} allowed): "
    if not mitigation and retries_if_mitigated(task).remaining:
        return used + "a material mitigation earns one more; else escalate or abort"
    return used + "escalate to another mode, or abort"


def _waits_elsewhere(task: Task) -> bool:
    """Tell whether the agent's program waits for a person. Until the person answers, the agent reads no decision."""
    return task.own_state is State.BLOCKED and bool(task.request or task.need_in_program)


def find_warnings(task: Task, action: Action) -> Iterator[str]:
    """Yield warnings about an action that is allowed, each as a sentence."""
    retry = task.retry
    if _waits_elsewhere(task):
        where = "with `a`" if any(request.is_answerable for request in task.requests) else "there"
        yield f"it waits in its own session: answer it {where}, or this is heard too late"
    elif action in (Action.RETRY, Action.ESCALATE) and task.own_state is State.BLOCKED:
        which = "a retry" if action is Action.RETRY else "another mode"
        yield f"{which} does not answer its question: leave, and press `a` to answer"
    if action in (Action.RETRY, Action.ESCALATE):
        if task.gone:
            yield "its process is gone: the agent that handed it out has to begin the next attempt"
        elif not task.latest.returned:
            yield "it has not returned, and may still be at work"
        if not task.packet:
            yield "no handoff was seen: the next attempt gets your note only"
    if action is Action.RETRY and not is_restored(task):
        if retry.recommended is False:
            yield "the child advises against a retry"
        if has_failed_alike(task):
            yield "the last two attempts failed in the same way: escalating is more likely to help"
        if is_line_fault(task) and not retry.restored:
            yield f"a line fault: escalate to the {FITTER}, and retry once it has restored the line"
    if action is Action.ESCALATE and suggest_action(task) is Action.RETRY:
        yield f"{retries_left_words(retry)}: a retry comes first"
