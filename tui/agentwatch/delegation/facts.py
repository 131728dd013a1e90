"""What a task is said to be, read off its latest attempt: its state, its end, who does it."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.shapes import Handoff, Outcome, Return
from agentwatch.delegation import identity
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Attempt, State, Task

_DECIDED: Final = {
    Action.RETRY: State.RETRYING,
    Action.RESPOND: State.RETRYING,
    Action.ESCALATE: State.ESCALATED,
    Action.ABORT: State.CANCELED,
}


def state_of(attempt: Attempt) -> State:
    """The state of a task by its latest attempt: what was decided about it stands above what it says itself."""
    decision = attempt.binding
    if decision is None:
        return attempt.state
    if decision.action is not Action.ACCEPT:
        return _DECIDED[decision.action]
    result = attempt.result
    return State.PARTIAL if result is not None and result.outcome is Outcome.PARTIAL else State.COMPLETED


def ended_at(attempt: Attempt) -> float | None:
    """When an attempt ended (epoch seconds): with its return, else its run, else what the operator decided; None while
    it goes on, and where nobody knows."""
    if attempt.state not in (State.SUBMITTED, State.WORKING):
        if attempt.returned is not None:
            return attempt.returned.at
        if attempt.run is not None and attempt.run.ended_at is not None:
            return attempt.run.ended_at
    decision = attempt.binding
    return decision.at if decision is not None and decision.action in (Action.ABORT, Action.ACCEPT) else None


def prompt(attempt: Attempt) -> str | None:
    """The first line of what a session was told, None where that is a handoff or not known; foreign."""
    run = attempt.run
    return run.prompt.opening if attempt.packet is None and run is not None and run.prompt is not None else None


def answer(attempt: Attempt) -> str | None:
    """The first line of what a session said in the end, None where that is a return or not known; foreign."""
    run = attempt.run
    return run.said.opening if attempt.result is None and run is not None and run.said is not None else None


def agent_of(task: Task, result: Return | None, packet: Handoff | None) -> str | None:
    """Who does a task: by the session store, else the return, else the mode, else its place in a delegation path."""
    if task.run is not None and task.run.agent:
        return task.run.agent
    if result is None and packet is None:
        return None if task.run is not None else task.task_id.rpartition("/")[2]
    agent = (identity.agent_of(result) or result.mode) if result else None
    return agent or (packet.mode if packet else None)
