"""What a task is said to be, read off its latest attempt: its state, its end, who does it, its name."""

from __future__ import annotations

from posixpath import basename, dirname
from typing import Final

from agentwatch.contracts.shapes import Handoff, Outcome, Return
from agentwatch.delegation import identity
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Attempt, State, Task
from agentwatch.text import exact

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


def agent_of(task: Task, result: Return | None, packet: Handoff | None) -> str | None:
    """Who does a task: by the session store, else the return, else the mode, else its place in a delegation path."""
    if task.run is not None and task.run.agent:
        return task.run.agent
    if result is None and packet is None:
        return None if task.run is not None else task.task_id.rpartition("/")[2]
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
    if _is_stated(task):
        return _exact(task.task_id, task)
    if run is not None:
        words = run.prompt.opening if run.prompt is not None and task.is_session else ""
        return next((name for name in (run.title, words, run.agent) if name and name.strip()), _exact("", task))
    name = basename(task.task_id) or task.task_id
    if parent is not None or task.agent is None:
        return _exact(name, task)
    directory, separator, extra = task.task_id.partition("#")
    directory = dirname(directory) if basename(directory) == task.agent else directory
    return _exact((basename(directory) or name) + separator + extra, task)


def _exact(name: str, task: Task) -> str:
    """A part of an id; where that is blank, all of it."""
    return exact(name if name.strip() else task.task_id)


def _is_stated(task: Task) -> bool:
    """Whether a document itself gives this id: then a slash in it separates nothing."""
    documents = (task.packet, task.result)
    return any(document is not None and document.task_id == task.task_id for document in documents)
