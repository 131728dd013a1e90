"""What a task asks of the operator, and why it has its state, in words.

Texts quoted from documents are foreign and still unsanitised here: faces clean them when they show them.
"""

from __future__ import annotations

from sys import intern
from typing import Final

from agentwatch.contracts.shapes import Return, Severity
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.decision import SAYS_SO, Action, Stage
from agentwatch.delegation.problems import missing_artifacts
from agentwatch.delegation.retry import FITTER, failed_alike, is_line_fault, is_restored
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import State, Task

LOW_CONFIDENCE: Final = 0.5
"""report-contract: results of which the child itself is less sure than this are for a human to look at."""


_OF_RUNS: Final = {
    RunState.SUBMITTED: "asked for; no sign of life yet",
    RunState.WORKING: "its process runs",
    RunState.FAILED: "it failed, and the session store does not say why",
    RunState.CANCELED: "it was aborted",
}

_ACCEPTABLE: Final = frozenset({State.COMPLETED, State.PARTIAL, State.INVALID})

_DECIDED: Final = {
    Action.RETRY: "you decided: retry",
    Action.ESCALATE: "you decided: escalate",
    Action.ABORT: "you decided: abort",
    Action.RESPOND: "you have answered",
    Action.ACCEPT: "you accepted it as it is",
}


def ask(task: Task, verdict: Verdict | None, low_confidence: float = LOW_CONFIDENCE) -> str | None:
    """The one question the operator has to answer for this task, None where there is none."""
    result = task.result
    if task.run is not None and task.run.waiting and task.own_state is State.BLOCKED:
        return f"it waits in its own session: {task.run.waiting}"
    if task.inferred or task.is_session or task.binding is not None or task.ended_with is not None:
        return None
    if result is None:
        return _ask_of_run(task)
    if task.own_state is State.BLOCKED:
        blocker = next(iter(result.blockers), None) or result.error_message
        return f"answer: {blocker}" if blocker else "blocked, and does not say by what: answer or abort"
    before = task.latest.superseded[-1:] if task.latest is not None else ()
    if any(one.action is Action.ACCEPT for one in before) and task.own_state in _ACCEPTABLE:
        return "the return changed since you accepted it: look at it again, then accept or retry"
    if task.own_state is State.INVALID and (dispute := _dispute(task)) is not None:
        return f"{dispute}; look at both, then retry, or accept the first as it is"
    if task.own_state is State.INVALID and task.latest is not None and task.latest.ended_without_result:
        return f"{task.agent or 'the child'} ended without a result; retry, or accept it as it is"
    if task.own_state is State.INVALID:
        return f"{_fix(task)}, then retry; or accept the return as it is"
    if task.own_state is State.FAILED:
        return _ask_after_failure(task)
    if verdict is Verdict.CONTRADICTED:
        return _ask_about_lies(task)
    if task.latest is not None and task.latest.unasked:
        return f"nobody handed out attempt {task.attempt}, and the one before failed: accept, or retry"
    if result.review_reason is not None and task.own_state in (State.PARTIAL, State.COMPLETED):
        return f"review: {result.review_reason}" if result.review_reason else "the child asks for a review"
    if result.confidence is not None and result.confidence < low_confidence and task.own_state is State.COMPLETED:
        return f"review: the child is not sure of its result (confidence {result.confidence:g})"
    return None


def ask_to_mend(path: str) -> str:
    """What a task asks of which a handoff or a return is there and is not read."""
    return f"{path} is not read, so what it says is not known: mend it, or remove it"


def _ask_of_run(task: Task) -> str | None:
    """A child of a session that gave back nothing that the contracts know."""
    if task.own_state is State.FAILED:
        return _ask_after_failure(task)
    if task.own_state is State.INVALID:
        return f"{task.agent or 'the child'} ended without a return; retry, or accept it as it is"
    return None


def _ask_about_lies(task: Task) -> str:
    false = [claim for claim in task.claims if claim.verdict is Verdict.CONTRADICTED]
    # A return may name one file as created, as a deliverable and as evidence.
    others = len({claim.path for claim in false}) - 1
    more = f", and {others} more" if others else ""
    do = "look at it, then accept or retry"
    if missing_artifacts(task):
        do = f"{_fix(task)}, then retry; or accept the return as it is"
    return f"a claim is false: {false[0].path} ({false[0].detail}){more}; {do}"


def _fix(task: Task) -> str:
    """What subagent-return recommends where a return breaks it ("Validation Failures")."""
    return f"Fix {task.agent or task.task_id} subagent return format"


def _ask_after_failure(task: Task) -> str:
    retry = task.retry
    if not retry.remaining:
        return f"no retry left ({retry.max_retries} used): escalate to another mode, or abort"
    left = f"{retry.remaining} of {retry.max_retries} retries left"
    if is_restored(task):
        return f"retry? the {FITTER} has restored the line; {left}"
    if is_line_fault(task) and not retry.restored:
        return f"a line fault: escalate to the {FITTER}? {left}"
    if failed_alike(task):
        return f"escalate? it failed twice in the same way; {left}"
    if retry.recommended is None:
        return f"retry, escalate or abort? {left}"
    if retry.recommended:
        return f"retry? the child recommends it; {left}"
    return f"escalate or abort? the child advises against a retry; {left}"


def why(task: Task) -> str:
    """Why the task has its state: what was seen that made it so."""
    # Interned, for a hundred thousand tasks have one of a few reasons.
    expired = task.latest is not None and any(one.expired for one in task.latest.decisions[-1:])
    words = _why(task) + ("; what you decided about it has expired" if expired else "")
    return intern(words + ("; its files were deleted since" if task.deleted else ""))


def process_words(run: Run | None) -> str:
    """Whether the process of a run still runs."""
    if run is not None and run.process_gone is False:
        return _OF_RUNS[RunState.WORKING]
    return (
        "its process is gone" if run is not None and run.process_gone else "whether its process still runs is not known"
    )


def tells_process(task: Task) -> bool:
    """Whether the reason that a working task has its state says already how its process does."""
    run = task.run
    if run is None or task.inferred or task.binding is not None or not _is_by_run(task, run):
        return False
    return run.state is RunState.WORKING and not run.waiting and (run.process_gone is not False or not run.reason)


def _why(task: Task) -> str:
    if task.inferred:
        return "no file speaks of it: inferred from a delegation path, its state is that of the tasks below"
    if task.ended_with is not None and task.own_state is State.CANCELED:
        return f"you aborted {task.ended_with}, and with it what was open below"
    attempt = task.latest
    result = task.result
    if attempt is not None and (decision := attempt.binding) is not None:
        receipt = decision.receipt
        stage = "carried out" if receipt.stage is Stage.ACTED else receipt.stage
        return f"{_DECIDED[decision.action]}; the decision is {stage}{SAYS_SO if receipt.claimed else ''}"
    if attempt is not None and attempt.run is not None and _is_by_run(task, attempt.run):
        return _why_of_run(task, attempt.run)
    if attempt is None or result is None or attempt.returned is None:
        if task.state is State.WORKING:
            return "its checklist has moved" if task.todos and _moved(task) else "it has handed work on"
        return "handed off; no sign of life yet"
    word = result.reported_state
    if task.state is State.INVALID and (dispute := _dispute(task)) is not None:
        return dispute
    if attempt.ended_without_result:
        return f"it ended without a result: its return still says {word}"
    if task.state is State.INVALID:
        errors = sum(1 for placed in task.findings if placed.finding.severity is Severity.ERROR)
        said = f"it says {word}" if word else "it states no status"
        count = f"{errors} error" if errors == 1 else f"{errors} errors"
        return f"the return breaks its contract ({count}), so it counts as failed; {said}"
    return f"the return says {word}" if word else "the return states no status"


def _dispute(task: Task) -> str | None:
    """Two returns of the latest attempt that say different things."""
    attempt, result = task.latest, task.result
    if attempt is None or attempt.rival is None or attempt.returned is None or result is None:
        return None
    other = attempt.rival.document
    said, said_there = result.reported_state, other.reported_state if isinstance(other, Return) else None
    return (
        f"two returns speak of it and disagree: {attempt.returned.path} says {said}, {attempt.rival.path} {said_there}"
    )


def _is_by_run(task: Task, run: Run) -> bool:
    return bool(task.result is None or run.reason or run.waiting)


def _why_of_run(task: Task, run: Run) -> str:
    if run.state is RunState.ENDED:
        if task.waits_for_work:
            return "the session waits for its background work"
        if run.said is None and not task.is_session:
            return run.reason or "it ended without a word"
        return run.reason or ("the session is idle" if task.is_session else "it ended; its answer follows no contract")
    if run.waiting:
        return "it waits for an answer in its own session"
    if run.state is RunState.WORKING and run.process_gone is not False:
        heard = f"it worked when it was last heard of; {process_words(run)}"
        return heard + (f"; {run.reason}" if run.reason else "")
    return run.reason or _OF_RUNS[run.state]


def _moved(task: Task) -> bool:
    return task.progress is not None and any(todo.status.value != "pending" for todo in task.todos or ())
