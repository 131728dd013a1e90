"""Why a task has its state, in words: what was seen that made it so.

Texts quoted from documents are foreign and still unsanitised here: faces clean them when they show them.
"""

from __future__ import annotations

from sys import intern
from typing import Final

from agentwatch.contracts.shapes import Return, Severity
from agentwatch.delegation.attempt import has_moved
from agentwatch.delegation.decision import SAYS_SO, Action, Stage
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import State, Task

_OF_RUNS: Final = {
    RunState.SUBMITTED: "asked for; no sign of life yet",
    RunState.WORKING: "its process runs",
    RunState.FAILED: "it failed, and the session store does not say why",
    RunState.CANCELED: "it was aborted",
}

_DECIDED: Final = {
    Action.RETRY: "you decided: retry",
    Action.ESCALATE: "you decided: escalate",
    Action.ABORT: "you decided: abort",
    Action.RESPOND: "you have answered",
    Action.ACCEPT: "you accepted it as it is",
}

_ASKS: Final = {
    RequestKind.PERMISSION: "asks for a permission",
    RequestKind.QUESTION: "asks a question",
    RequestKind.FORM: "has a form to fill in",
}


LOST: Final = "its host cannot be reached"


def why(task: Task) -> str:
    """Why the task has its state: what was seen that made it so."""
    expired = task.latest is not None and any(one.expired for one in task.latest.decisions[-1:])
    words = LOST if task.state is State.UNKNOWN else _why(task)
    words += "; what you decided about it has expired" if expired else ""
    # Interned, for a hundred thousand tasks have one of a few reasons.
    return intern(words + ("; its files were deleted since" if task.deleted else ""))


def process_words(run: Run | None) -> str:
    """Whether the process of a run still runs."""
    if run is None or run.process_gone is None:
        return "whether its process still runs is not known"
    return "its process is gone" if run.process_gone else _OF_RUNS[RunState.WORKING]


def tells_process(task: Task) -> bool:
    """Whether the reason that a working task has its state says already how its process does."""
    run = task.run
    if run is None or task.inferred or task.binding is not None or not _is_by_run(task, run):
        return False
    return run.state is RunState.WORKING and not run.waiting and (run.process_gone is not False or not run.reason)


def dispute(task: Task) -> str | None:
    """That two returns of the latest attempt say different things; None where they do not."""
    attempt, result = task.latest, task.result
    if attempt is None or attempt.rival is None or attempt.returned is None or result is None:
        return None
    rival = attempt.rival.document
    there = f"{attempt.rival.path} {rival.reported_state if isinstance(rival, Return) else None}"
    return f"two returns speak of it and disagree: {attempt.returned.path} says {result.reported_state}, {there}"


def _why(task: Task) -> str:
    attempt, result = task.latest, task.result
    if task.inferred:
        return "no file speaks of it: inferred from a delegation path, its state is that of the tasks below"
    if task.ended_with is not None and task.own_state is State.CANCELED:
        return f"you aborted {task.ended_with}, and with it what was open below"
    if task.request is not None and task.own_state is State.BLOCKED:
        return _why_of_request(task.request)
    if (decision := task.binding) is not None:
        receipt = decision.receipt
        stage = "carried out" if receipt.stage is Stage.ACTED else receipt.stage
        return f"{_DECIDED[decision.action]}; the decision is {stage}{SAYS_SO if receipt.claimed else ''}"
    if task.run is not None and _is_by_run(task, task.run):
        return _why_of_run(task, task.run)
    if attempt is None or result is None:
        if task.state is State.WORKING:
            return "its checklist has moved" if has_moved(task.todos) else "it has handed work on"
        return "handed off; no sign of life yet"
    word = result.reported_state
    if task.state is State.INVALID and (words := dispute(task)) is not None:
        return words
    if attempt.ended_without_result:
        return f"it ended without a result: its return still says {word}"
    if task.state is State.INVALID:
        errors = sum(placed.finding.severity is Severity.ERROR for placed in task.findings)
        said = f"it says {word}" if word else "it states no status"
        count = f"{errors} error" if errors == 1 else f"{errors} errors"
        return f"the return breaks its contract ({count}), so it counts as failed; {said}"
    return f"the return says {word}" if word else "the return states no status"


def _is_by_run(task: Task, run: Run) -> bool:
    return bool(task.result is None or run.reason or run.waiting)


def _why_of_request(request: Request) -> str:
    if not request.waits_for_operator:
        return "its program has not got your answer yet"
    return f"its program {_ASKS[request.kind]}" + ("" if request.actions else ", which is answered in its own session")


def _why_of_run(task: Task, run: Run) -> str:
    if run.state is RunState.ENDED:
        if task.waits_for_work:
            return "the session waits for its background work"
        if task.is_session:
            return run.reason or "the session is idle"
        words = "it ended without a word" if run.said is None else "it ended; its answer follows no contract"
        return run.reason or words
    if run.waiting and task.own_state is State.BLOCKED:
        return "it waits for an answer in its own session"
    if run.state is RunState.WORKING and run.process_gone is not False:
        heard = f"it worked when it was last heard of; {process_words(run)}"
        return f"{heard}; {run.reason}" if run.reason else heard
    return run.reason or _OF_RUNS[run.state]
