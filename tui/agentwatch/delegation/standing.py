"""How a task stands by its attempts: its state, its end, who does it, its name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.shapes import Handoff, Outcome, Return, Severity
from agentwatch.delegation import identity
from agentwatch.delegation.attempt import Attempt
from agentwatch.delegation.decision import ENDING, Action
from agentwatch.delegation.request import RequestStage
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import State, Task, Version
from agentwatch.text import exact

if TYPE_CHECKING:
    from agentwatch.delegation.attempts import Attempts
    from agentwatch.delegation.events import Ran

_ENDED_BADLY: Final = (RunState.FAILED, RunState.CANCELED)
"""Whatever a run had said by then, it is not what it was asked for."""

_STATES: Final = {
    Outcome.WORKING: State.WORKING,
    Outcome.COMPLETED: State.COMPLETED,
    Outcome.PARTIAL: State.PARTIAL,
    Outcome.BLOCKED: State.BLOCKED,
    Outcome.FAILED: State.FAILED,
}

_DECIDED: Final = {
    Action.RETRY: State.RETRYING,
    Action.RESPOND: State.RETRYING,
    Action.ESCALATE: State.ESCALATED,
    Action.ABORT: State.CANCELED,
}


def is_early(version: Version) -> bool:
    """Whether a return is an early marker (`in_progress`), which says nothing about the end."""
    document = version.document
    return isinstance(document, Return) and document.outcome is Outcome.WORKING


def state_of(attempt: Attempt, *, strict: bool, demands: bool) -> State:
    """How an attempt stands by its handoff, its return and its run; `strict` and `demands` are those of `fold`."""
    returned, result, run = attempt.returned, attempt.result, attempt.run
    if strict and (answers_another_session(attempt) or attempt.rival is not None):
        return State.INVALID
    if run is not None and (result is None or run.state in _ENDED_BADLY):
        return _state_of_run(run, demands=demands)
    if returned is None or result is None:
        return State.SUBMITTED
    is_broken = strict and any(finding.severity is Severity.ERROR for finding in returned.findings)
    if is_broken or result.outcome is None or attempt.ended_without_result:
        return State.INVALID
    return _STATES[result.outcome]


def _state_of_run(run: Run, *, demands: bool) -> State:
    """What the store says, of a run that gave back nothing that the contracts know."""
    if run.state is not RunState.ENDED:
        return State.BLOCKED if run.waiting else State(run.state.value)
    if run.parent_session is None:
        return State.COMPLETED
    return State.INVALID if run.said is None or demands else State.COMPLETED


def answers_another_session(attempt: Attempt) -> bool:
    """subagent-return, validation rule 4: the session id must match the one of the delegation."""
    packet, result = attempt.packet, attempt.result
    if packet is None or result is None or packet.session_id is None or result.session_id is None:
        return False
    return packet.session_id != result.session_id


def decided_state(attempt: Attempt) -> State:
    """The state of a task by its latest attempt: what was decided about it stands above what it says itself."""
    decision, result = attempt.binding, attempt.result
    if decision is None:
        return attempt.state
    if decision.action is not Action.ACCEPT:
        return _DECIDED[decision.action]
    return State.PARTIAL if result is not None and result.outcome is Outcome.PARTIAL else State.COMPLETED


def decided_at(task: Task) -> float | None:
    """When the operator decided that a task stands as it does (epoch seconds); None where its files say so."""
    decision = task.binding
    return decision.at if decision is not None and _DECIDED.get(decision.action) is task.own_state else None


def ended_at(attempt: Attempt) -> float | None:
    """When an attempt ended (epoch seconds): with its return, else its run, else what the operator decided; None while
    it goes on, and where nobody knows."""
    if attempt.state not in (State.SUBMITTED, State.WORKING):
        if attempt.returned is not None:
            return attempt.returned.at
        if attempt.run is not None and attempt.run.ended_at is not None:
            return attempt.run.ended_at
    decision = attempt.binding
    return decision.at if decision is not None and decision.action in ENDING else None


def _agent_of(task: Task, packet: Handoff | None, result: Return | None) -> str | None:
    """Who does a task: by the session store, else the return, else the mode, else its place in a delegation path."""
    if (run := task.run) is not None and run.agent:
        return run.agent
    if run is None and result is None and packet is None:
        if task.requests:
            return None
        return task.task_id.rpartition("/")[2]
    agent = (identity.agent_of(result) or result.mode) if result else None
    return agent or (packet.mode if packet else None)


def title(task: Task) -> str:
    """The short name of a task, never blank, foreign and unsanitised; where it comes of an id, no two look the same.

    `checkout.api` below `checkout` is `api`. A task that is known by its directory and agent goes by the directory
    while it is a root (the agent has a column of its own), and by the agent below another task.
    """
    parent, run = task.parent_id, task.run
    if parent is not None and task.task_id.startswith(parent + "."):
        return _exact(task.task_id[len(parent) + 1 :], task)
    packet, result = task.packet, task.result
    if task.task_id in (packet and packet.task_id, result and result.task_id):
        # A document itself gives this id: then a slash in it separates nothing.
        return _exact(task.task_id, task)
    if run is not None:
        words = run.prompt.opening if run.prompt is not None and task.is_session else ""
        return next((name for name in (run.title, words, run.agent) if name and name.strip()), _exact("", task))
    if task.requests and task.latest is None:
        asker = task.requests[0]
        return f"{asker.source.partition('-')[0]} · {_exact(asker.session_id, task)}"
    name = basename(task.task_id) or task.task_id
    if parent is not None or task.agent is None:
        return _exact(name, task)
    directory, separator, extra = task.task_id.partition("#")
    directory = dirname(directory) if basename(directory) == task.agent else directory
    return _exact((basename(directory) or name) + separator + extra, task)


def _exact(name: str, task: Task) -> str:
    """A part of an id; where that is blank, all of it."""
    return exact(name if name.strip() else task.task_id)


def fill(task: Task, attempts: Attempts, versions: Sequence[Version], runs: Sequence[Ran]) -> None:
    """What a task's attempts, versions and runs say of it, whatever was checked or is elsewhere in the tree."""
    task.inferred = not versions and not runs and not task.requests
    task.attempts = tuple(attempts.all)
    task.todos, task.todo_moved = attempts.todos, attempts.moved
    packet, result = task.packet, task.result
    task.agent = _agent_of(task, packet, result)
    task.reported_state = result.reported_state if result else None
    task.contract = document.contract if (document := result or packet) else None
    lives = [version.at for version in versions]
    lives += [ran.run.updated_at for ran in runs if ran.run is not None]
    lives += [at for one in task.requests for at in (one.asked_at, one.ended_at) if at is not None]
    task.updated_at = max(lives, default=0.0)
    latest = task.latest
    task.own_state = _waiting_state(task, decided_state(latest) if latest else State.SUBMITTED)
    task.started_at = latest.started_at if latest else None
    task.ended_at = ended_at(latest) if latest else None


def _waiting_state(task: Task, state: State) -> State:
    """The state with what its program asks: an open request stops an agent that is at work, whatever it said before.
    One that was answered stops it no more, also where its store does not know that yet."""
    if task.request is not None:
        return state if state is State.CANCELED else State.BLOCKED
    run = task.run
    if run is None or not run.waiting or state is not State.BLOCKED:
        return state
    answered = (one.ended_at for one in task.requests if one.stage is not RequestStage.GONE)
    return State.WORKING if max(filter(None, answered), default=0.0) >= run.updated_at else state


def silent_from(task: Task, seconds: float) -> float | None:
    """From when on (epoch seconds) a working task counts as silent, with all that works below it, if it shows no sign
    of life for so long; None for one that does not work, or waits for somebody."""
    if task.state is not State.WORKING:
        return None
    if task.run is not None and task.run.process_gone:
        return float("-inf")
    waits = task.below and any(one.state.is_open and one.state is not State.WORKING for one in task.below.counts)
    return None if waits or task.alive_at is None else task.alive_at + seconds


def tokens_of(task: Task) -> int | None:
    """What all attempts together have used; None where no store tells."""
    used = [attempt.run.tokens for attempt in task.attempts if attempt.run and attempt.run.tokens is not None]
    return sum(used) if used else None
