"""How a task stands by its attempts: state, reason, end, agent, name. Pure. Quoted texts are foreign, unsanitised."""

from __future__ import annotations

import math
from posixpath import basename, dirname
from sys import intern
from typing import Final

from agentwatch.contracts.shapes import Outcome, Return, Severity
from agentwatch.delegation import links
from agentwatch.delegation.decision import ENDING, SAYS_SO, SPECS, Stage
from agentwatch.delegation.events import Seen
from agentwatch.delegation.request import RequestKind, RequestStage
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import Attempt, State, Task, has_moved
from agentwatch.text import exact

_OF_RUNS: Final = {
    RunState.SUBMITTED: "asked for; no sign of life yet",
    RunState.WORKING: "its process runs",
    RunState.ENDED: "it ended; its answer follows no contract",
    RunState.FAILED: "it failed, and the session store does not say why",
    RunState.CANCELED: "it was aborted",
}

_ASKS: Final = {
    RequestKind.PERMISSION: "asks for a permission",
    RequestKind.QUESTION: "asks a question",
    RequestKind.FORM: "has a form to fill in",
}


def is_final(version: Seen | None) -> bool:
    """Whether a return says something about the end: an early marker (`in_progress`) does not."""
    document = version.document if version else None
    return isinstance(document, Return) and document.outcome is not Outcome.WORKING


def state_of(attempt: Attempt, *, strict: bool, demands: bool) -> State:
    """How an attempt stands by its handoff, its return and its run; `strict` and `demands` are those of `fold`."""
    returned, result, run = attempt.returned, attempt.result, attempt.run
    if strict and (answers_another_session(attempt) or attempt.rival):
        return State.INVALID
    # Whatever a run that failed had said by then, it is not what it was asked for.
    if run and (not result or run.state in (RunState.FAILED, RunState.CANCELED)):
        if run.state is not RunState.ENDED:
            return State.BLOCKED if run.waiting else State(run.state.value)
        is_broken = run.parent_session and (run.said is None or demands)
        return State.INVALID if is_broken else State.COMPLETED
    if not returned or not result:
        return State.SUBMITTED
    is_broken = strict and any(finding.severity is Severity.ERROR for finding in returned.findings)
    if is_broken or result.outcome is None or attempt.ended_without_result:
        return State.INVALID
    return State(result.outcome.value)


def answers_another_session(attempt: Attempt) -> bool:
    """subagent-return, validation rule 4: the session id must match the one of the delegation."""
    sessions = {one.session_id for one in (attempt.packet, attempt.result) if one}
    return len(sessions - {None}) > 1


def own_state(task: Task) -> State:
    """The state by the latest attempt: a decision stands above its return, and an open request stops who works."""
    state, decision, result, run = task.latest.state, task.binding, task.result, task.run
    if decision:
        is_partial = result is not None and result.outcome is Outcome.PARTIAL
        state = State(SPECS[decision.action].state or ("partial" if is_partial else "completed"))
    if task.request:
        return state if state is State.CANCELED else State.BLOCKED
    if not run or not run.waiting or state is not State.BLOCKED:
        return state
    answered = (one.ended_at for one in task.requests if one.stage is not RequestStage.GONE)
    return State.WORKING if max(filter(None, answered), default=0.0) >= run.updated_at else state


def decided_at(task: Task) -> float | None:
    """When the operator decided that a task stands as it does (epoch seconds); None where its files say so."""
    decision = task.binding
    return decision.at if decision and SPECS[decision.action].state == task.own_state else None


def ended_at(attempt: Attempt) -> float | None:
    """When an attempt ended (epoch seconds): with its return, its run or a decision; None where nobody knows."""
    returned, run, decision = attempt.returned, attempt.run, attempt.binding
    if attempt.state not in (State.SUBMITTED, State.WORKING):
        if returned:
            return returned.at
        if run and run.ended_at is not None:
            return run.ended_at
    return decision.at if decision and decision.action in ENDING else None


def agent_of(task: Task) -> str | None:
    """The agent of a task: by the session store, the return, the mode, or its place in a delegation path."""
    run, packet, result = task.run, task.packet, task.result
    if not run and not result and not packet:
        return None if task.requests else task.task_id.rpartition("/")[2]
    by_return = (links.agent_of(result) or result.mode) if result else None
    return (run.agent if run else None) or by_return or (packet.mode if packet else None)


def title(task: Task) -> str:
    """The short name of a task, never blank, foreign and unsanitised; where it comes of an id, no two look the same."""
    task_id, parent, run, packet, result = task.task_id, task.parent_id, task.run, task.packet, task.result
    name = basename(task_id) or task_id
    if parent and task_id.startswith(parent + "."):
        name = task_id[len(parent) + 1 :]
    elif task_id in (packet and packet.task_id, result and result.task_id):
        # A document itself gives this id: then a slash in it separates nothing.
        name = task_id
    elif run:
        words = run.prompt.opening if run.prompt and task.is_session else ""
        if given := next((one for one in (run.title, words, run.agent) if one and one.strip()), None):
            return given
        name = task_id
    elif task.requests and not task.attempts:
        return f"{task.requests[0].source.partition('-')[0]} · {exact(task_id)}"
    elif not parent and task.agent:
        directory, separator, extra = task_id.partition("#")
        directory = dirname(directory) if basename(directory) == task.agent else directory
        name = (basename(directory) or name) + separator + extra
    return exact(name if name.strip() else task_id)


def silent_from(task: Task, seconds: float) -> float:
    """When a working task has been silent for so long, with all below it; infinity if it waits, or does not work."""
    if task.state is not State.WORKING:
        return math.inf
    if task.run and task.run.process_gone:
        return -math.inf
    waits = task.below and any(one.state.is_open and one.state is not State.WORKING for one in task.below.counts)
    return math.inf if waits or task.alive_at is None else task.alive_at + seconds


def state_with_below(task: Task) -> State:
    """The state with those below: a task that has handed work on works; a mere name has the most urgent one below."""
    if task.inferred:
        states = (one.state for one in task.below.counts) if task.below else ()
        return max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
    if task.below and (task.own_state is State.SUBMITTED or task.waits_for_work):
        return State.WORKING
    return task.own_state


def why(task: Task) -> str:
    """Why the task has its state: what was seen that made it so."""
    words = _why(task)
    if any(one.expired for one in task.latest.decisions[-1:]):
        words += "; what you decided about it has expired"
    # Interned, for a hundred thousand tasks have one of a few reasons.
    return intern(words + ("; its files were deleted since" if task.deleted else ""))


def process_words(run: Run | None) -> str:
    """Whether the process of a run still runs."""
    if not run or run.process_gone is None:
        return "whether its process still runs is not known"
    return "its process is gone" if run.process_gone else _OF_RUNS[RunState.WORKING]


def dispute(task: Task) -> str | None:
    """That two returns of the latest attempt say different things; None where they do not."""
    attempt, result = task.latest, task.result
    if not attempt.rival or not attempt.returned or not result:
        return None
    rival = attempt.rival.document
    there = f"{attempt.rival.path} {rival.reported_state if isinstance(rival, Return) else None}"
    return f"two returns speak of it and disagree: {attempt.returned.path} says {result.reported_state}, {there}"


def _why(task: Task) -> str:
    attempt, result, run, request = task.latest, task.result, task.run, task.request
    if task.state is State.UNKNOWN:
        return "its host cannot be reached"
    if task.inferred:
        return "no file speaks of it: inferred from a delegation path, its state is that of the tasks below"
    if task.ended_with and task.own_state is State.CANCELED:
        return f"you aborted {task.ended_with}, and with it what was open below"
    if request and task.own_state is State.BLOCKED:
        if not request.waits_for_operator:
            return "its program has not got your answer yet"
        return f"its program {_ASKS[request.kind]}" + (
            "" if request.actions else ", which is answered in its own session"
        )
    if decision := task.binding:
        receipt = decision.receipt
        stage = "carried out" if receipt.stage is Stage.ACTED else receipt.stage
        return f"{SPECS[decision.action].decided}; the decision is {stage}{SAYS_SO if receipt.claimed else ''}"
    if run and (not result or run.reason or run.waiting):
        return _why_of_run(task, run)
    if not result:
        if task.state is State.WORKING:
            return "its checklist has moved" if has_moved(task.todos) else "it has handed work on"
        return "handed off; no sign of life yet"
    word = result.reported_state
    if task.state is State.INVALID and (words := dispute(task)):
        return words
    if attempt.ended_without_result:
        return f"it ended without a result: its return still says {word}"
    if task.state is State.INVALID:
        errors = sum(placed.severity is Severity.ERROR for placed in task.findings)
        said = f"it says {word}" if word else "it states no status"
        return f"the return breaks its contract ({errors} error{'s' * (errors != 1)}), so it counts as failed; {said}"
    return f"the return says {word}" if word else "the return states no status"


def _why_of_run(task: Task, run: Run) -> str:
    if task.waits_for_work:
        return "the session waits for its background work"
    if run.waiting and task.own_state is State.BLOCKED:
        return "it waits for an answer in its own session"
    if run.state is RunState.WORKING and run.process_gone is not False:
        heard = f"it worked when it was last heard of; {process_words(run)}"
        return f"{heard}; {run.reason}" if run.reason else heard
    if run.reason:
        return run.reason
    if run.state is RunState.ENDED and task.is_session:
        return "the session is idle"
    return "it ended without a word" if run.state is RunState.ENDED and not run.said else _OF_RUNS[run.state]
