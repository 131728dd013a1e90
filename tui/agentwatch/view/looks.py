"""Glyph, word and colour of what a task, a claim, a finding or a todo is."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Severity, TodoStatus
from agentwatch.delegation.events import Claim, Verdict, merged
from agentwatch.delegation.request import RequestKind
from agentwatch.delegation.task import Attempt, Below, State, Task


class Look(NamedTuple):
    """How something is shown: never by colour alone. `color` is a variable of the theme, `state-…` or `text-…`."""

    glyph: str
    word: str
    color: str


STALE: Final = Look("◌", "silent", "state-stale")
LOOKS: Final = {
    # A theme has one colour for what nobody knows.
    state: Look(state.glyph, state.value, STALE.color if state is State.UNKNOWN else f"state-{state.value}")
    for state in State
}
CONTRADICTED: Final = Look("⚑", "false", "state-contradicted")

VERDICTS: Final = {
    Verdict.CONTRADICTED: Look("⚑", "false", "state-contradicted"),
    Verdict.UNVERIFIABLE: Look("?", "unverifiable", "text-muted"),
    Verdict.VERIFIED: Look("✓", "verified", "state-completed"),
}
"""In the order in which claims are told."""

SEVERITIES: Final = {
    Severity.ERROR: Look("✗", "error", "text-error"),
    Severity.WARNING: Look("!", "warning", "text-warning"),
}

TODOS: Final = {
    TodoStatus.PENDING: Look("○", "pending", "text-muted"),
    TodoStatus.IN_PROGRESS: Look("◐", "in progress", "state-working"),
    TodoStatus.DONE: Look("✓", "done", "state-completed"),
}


def claims_of(task: Task) -> list[Claim]:
    """What a task claims, the false first; what it says of one file in several places is one claim."""
    order = list(VERDICTS)
    return sorted(merged(task.claims), key=lambda claim: order.index(claim.verdict))


def false_claims(task: Task) -> list[Claim]:
    """What a task claims, and is not so."""
    return [claim for claim in merged(task.claims) if claim.verdict is Verdict.CONTRADICTED]


ASKS: Final = {
    RequestKind.PERMISSION: Look("■", "allow?", "state-blocked"),
    RequestKind.QUESTION: Look("■", "asks", "state-blocked"),
    RequestKind.FORM: Look("■", "asks", "state-blocked"),
}
"""Of a task whose program waits for the operator."""


def look(task: Task) -> Look:
    """The look of a task: contradicted and silent come before the state that they qualify."""
    request = task.request
    if request is not None and request.waits_for_operator and task.state is State.BLOCKED:
        return ASKS[request.kind]
    if task.contradicted:
        return CONTRADICTED
    return STALE if task.stale else LOOKS[task.state]


def look_of_attempt(task: Task, attempt: Attempt) -> Look:
    """The look of an attempt; what qualifies the task, or is seen of it below, shows on its last one."""
    is_seen_below = attempt.state is State.SUBMITTED or task.own_state is State.CANCELED
    if attempt is task.latest and (task.contradicted or task.stale or is_seen_below):
        return look(task)
    return LOOKS[attempt.state]


def worst_look(below: Below) -> Look | None:
    """The look of the worst that waits for somebody below; None where nothing does."""
    worst = below.worst_waiting
    return CONTRADICTED if worst == Verdict.CONTRADICTED else None if worst is None else LOOKS[State(worst)]
