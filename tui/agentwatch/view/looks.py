"""Glyph, word and colour of what a task, a claim, a finding or a todo is."""

from collections.abc import Mapping
from typing import NamedTuple

from agentwatch.contracts.shapes import Severity, TodoStatus
from agentwatch.delegation.events import Claim, Verdict, merged
from agentwatch.delegation.request import RequestKind
from agentwatch.delegation.task import Attempt, Shown, State, Task


class Look(NamedTuple):
    """How something is shown: never by colour alone. `color` is a variable of the theme, `state-…` or `text-…`."""

    glyph: str
    word: str
    color: str


_COLORS = {
    # A theme has one colour for what nobody knows.
    Shown.UNKNOWN: "stale",
    Shown.SILENT: "stale",
    Shown.GONE: "failed",
    Shown.FALSE: "contradicted",
    Shown.WAITING: "submitted",
    Shown.IDLE: "partial",
}
LOOKS: Mapping[str, Look] = {
    shown: Look(shown.glyph, shown.word, f"state-{_COLORS.get(shown, shown)}") for shown in Shown
}  # By what is shown, or the state of an attempt

VERDICTS = {
    Verdict.CONTRADICTED: Look("⚑", "false", "state-contradicted"),
    Verdict.UNVERIFIABLE: Look("?", "unverifiable", "text-muted"),
    Verdict.VERIFIED: Look("✓", "verified", "state-completed"),
}  # In the order in which claims are told

SEVERITIES = {
    Severity.ERROR: Look("✗", "error", "text-error"),
    Severity.WARNING: Look("!", "warning", "text-warning"),
}

TODOS = {
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


ASKS = {
    RequestKind.PERMISSION: Look("■", "allow?", "state-blocked"),
    RequestKind.QUESTION: Look("■", "asks", "state-blocked"),
    RequestKind.FORM: Look("■", "asks", "state-blocked"),
}  # Of a task whose program waits for the operator


def look(task: Task) -> Look:
    """The look of a task, by what is shown, and by the kind of its request."""
    request = task.request
    if request is not None and request.waits_for_operator and task.shown is Shown.BLOCKED:
        return ASKS[request.kind]
    return LOOKS[task.shown]


def look_of_attempt(task: Task, attempt: Attempt) -> Look:
    """The look of an attempt: that of the task, for its last one, but for what was decided about it since."""
    is_decided = task.binding is not None and task.own_state is not State.CANCELED
    return look(task) if attempt is task.latest and not is_decided else LOOKS[attempt.state]
