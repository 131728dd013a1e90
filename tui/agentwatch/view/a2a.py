"""The state of a task as A2A, the Agent2Agent protocol, has it: for programs that know that and not us.

Version 1.0 spells states as ProtoJSON does (`TASK_STATE_INPUT_REQUIRED`), version 0.3 as words (`input-required`). Both
are told: the word is also what the filter takes, and the other is a `TaskStatus` that a client of 1.0 parses as it is.

A program that waits for a permission is `auth-required`, and not `input-required`. The enumeration says only that
"authentication is required"; section 7.6, "In-Task Authorization", is about what happens here: an agent that is under
way may not go on until somebody authorizes it, and whoever is asked may also refuse. Nothing is missing that the agent
has to be told. A question, a form and a blocked return lack just that, so they are `input-required`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentwatch.delegation.request import RequestKind
from agentwatch.delegation.task import State, Task
from agentwatch.view.times import iso, stands_since

if TYPE_CHECKING:
    from agentwatch.view.documents import tasks

AUTH: Final = "auth-required"
INPUT: Final = "input-required"
REJECTED: Final = "rejected"

_STATES: Final[dict[State, tasks.A2AState]] = {
    State.CANCELED: "canceled",
    State.COMPLETED: "completed",
    State.PARTIAL: "completed",
    State.UNKNOWN: "unknown",
    State.SUBMITTED: "submitted",
    State.WORKING: "working",
    State.RETRYING: "working",
    State.ESCALATED: "working",
    State.BLOCKED: INPUT,
    State.FAILED: "failed",
    State.INVALID: "failed",
}
_IN_1_0: Final[dict[tasks.A2AState, tasks.A2AEnum]] = {
    "submitted": "TASK_STATE_SUBMITTED",
    "working": "TASK_STATE_WORKING",
    "input-required": "TASK_STATE_INPUT_REQUIRED",
    "auth-required": "TASK_STATE_AUTH_REQUIRED",
    "completed": "TASK_STATE_COMPLETED",
    "failed": "TASK_STATE_FAILED",
    "canceled": "TASK_STATE_CANCELED",
    "rejected": "TASK_STATE_REJECTED",
    "unknown": "TASK_STATE_UNSPECIFIED",
}


def a2a_state(task: Task) -> tasks.A2AState:
    """The state in the words of A2A 0.3. An agent that says itself that it will not do the task has rejected it."""
    said = (task.reported_state or "").strip().casefold().replace("_", "-")
    if task.state is not State.BLOCKED:
        state = _STATES[task.state]
        return REJECTED if state == "failed" and said == REJECTED else state
    if task.request is not None:
        return AUTH if task.request.kind is RequestKind.PERMISSION else INPUT
    asks_leave = task.run is not None and task.run.waiting.startswith("a permission")
    return AUTH if asks_leave or said == AUTH else INPUT


def a2a_status(task: Task) -> tasks.A2AStatus:
    """The `TaskStatus` of A2A 1.0: the state, and since when it is so, where that is known."""
    state = _IN_1_0[a2a_state(task)]
    since = iso(stands_since(task))
    return {"state": state} if since is None else {"state": state, "timestamp": since}
