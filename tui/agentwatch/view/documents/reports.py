"""`agentwatch report --format json`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from agentwatch.contracts.shapes import Contract, TodoStatus
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.decision import Action
from agentwatch.view.documents.lists import LoggedState
from agentwatch.view.documents.tasks import Attempt, Finding, Problem, SeenTask


class ReportedSummary(TypedDict):
    """Counts of the tasks that are not past, and of those that are."""

    tasks: int
    by_state: dict[str, int]
    needs_operator: int
    verified: int
    contradicted: int
    unchecked: int
    stale: int
    past: int


class Attention(TypedDict):
    """A task that somebody has to look at, since when, and how many open tasks it holds up."""

    task_id: str
    ask: str
    since: str | None
    holds: int


class Wait(TypedDict):
    """A time in which nobody worked on a task and somebody waited; null: until now."""

    after_attempt: int
    began_at: str | None
    ended_at: str | None


class Todo(TypedDict):
    text: str
    status: TodoStatus
    phase: str | None
    line: int


class HandedOver(TypedDict):
    path: str
    objective: str | None


class HandedBack(TypedDict):
    """A return, with what others say of its model and mode."""

    path: str
    sha256: str
    contract: Contract
    reported_state: str | None
    summary: str | None
    error_code: str | None
    error_message: str | None
    retry_hint: str | None
    next_steps: str | None
    review_reason: str | None
    blockers: list[str]
    limitations: list[str]
    model: str | None
    mode: str | None
    confidence: float | None
    artifacts: list[str]
    files_created: list[str]
    files_modified: list[str]
    others_say: str


class ReportedAttempt(Attempt):
    handoff: HandedOver | None
    returned: HandedBack | None
    prompt: str | None
    answer: str | None


class Signed(TypedDict):
    """The last statement that was signed about a task."""

    sha256: str
    keyid: str
    made_at: str
    attempt: int
    state: str
    current: bool


class ReportedTask(SeenTask):
    """A task of a report."""

    attempts: list[ReportedAttempt]
    verdict: Verdict | None
    below: int
    statement: Signed | None
    waits: list[Wait]
    todos: list[Todo]


class ReportedDecision(TypedDict):
    task_id: str
    attempt: int
    action: Action
    note: str
    operator: str
    at: str | None
    receipt: str


class Elsewhere(TypedDict):
    """Another worktree in which something is not history."""

    workspace: str
    tasks: int
    needs_operator: int


class Report(TypedDict):
    """`agentwatch report --format json` of one workspace."""

    schema_version: Literal[1]
    workspace: str
    host: NotRequired[str]
    generated_at: str | None
    verdict: str
    summary: ReportedSummary
    attention: list[Attention]
    tasks: list[ReportedTask]
    decisions: list[ReportedDecision]
    changes: list[LoggedState]
    notices: list[Finding]
    worktrees: list[Elsewhere]
    complete: bool
    problems: list[Problem]


class Reports(TypedDict):
    """`agentwatch report A B --format json`."""

    schema_version: Literal[1]
    workspaces: list[Report]
