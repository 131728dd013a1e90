"""What the other commands print: `pending`, `log`, `check`, `sources` and `rules`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from agentwatch.contracts.shapes import Contract, Severity
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.task import State
from agentwatch.view.documents.tasks import Activity, Finding, Problem, Request


class PendingRequest(Request):
    command: str | None


class PendingTask(TypedDict):
    """A task that asks, and what can be decided about it."""

    workspace: NotRequired[str]
    task_id: str
    attempt: int
    state: State
    error_code: str | None
    error_message: str | None
    errors: list[str]
    return_path: NotRequired[str | None]
    return_sha256: NotRequired[str | None]
    ask: str | None
    acknowledged: bool
    snoozed: bool
    snoozed_until: str | None
    suggested: Action | None
    commands: dict[str, str]
    requests: list[PendingRequest]
    not_possible: dict[str, str | None]


class Receipt(TypedDict):
    stage: Stage
    by: str
    age_seconds: int
    claimed: bool


class PendingDecision(TypedDict):
    """A decision on its way."""

    decision_id: str
    task_id: str
    attempt: int
    action: Action
    operator: str
    waits: str | None
    claimed_by: str | None
    receipts: list[Receipt]


class Pending(TypedDict):
    """`agentwatch pending --json` of one workspace."""

    schema_version: Literal[1]
    workspace: str
    complete: bool
    problems: list[Problem]
    tasks: list[PendingTask]
    past: int
    acknowledged: int
    snoozed: int
    decisions: list[PendingDecision]
    notices: list[Finding]
    worktrees: NotRequired[list[Pending]]


class Pendings(TypedDict):
    """`agentwatch pending A B --json`."""

    schema_version: Literal[1]
    workspaces: list[Pending]


class LoggedState(TypedDict):
    at: str | None
    task_id: str
    before: State | None
    after: State | None
    attempt: int
    reason: str
    contradicted: bool


class LoggedActivity(TypedDict):
    at: str | None
    task_id: str
    activity: Activity | None


class LoggedRequest(TypedDict):
    at: str | None
    task_id: str
    request: Request


Logged = LoggedState | LoggedActivity | LoggedRequest
"""A line of `agentwatch log --json`."""


class CheckedFile(TypedDict):
    path: str
    contract: Contract | None
    state: str | None
    findings: list[Finding]


class Checked(TypedDict):
    """`agentwatch check --format json`."""

    files: list[CheckedFile]


class Source(TypedDict):
    source: str
    place: str
    sessions: int
    skipped: str
    children: int


class Sources(TypedDict):
    """`agentwatch sources --json`."""

    sources: list[Source]
    trouble: list[str]
    complete: bool
    problems: list[Problem]


class ListedRule(TypedDict):
    """A rule; an `error` breaks the contract. `contract` is null for those of any document."""

    id: str
    contract: Contract | None
    severity: Severity
    section: str
    title: str
    message: str
    why: str
    right: str
    wrong: str


class Rules(TypedDict):
    """`agentwatch rules --format json`."""

    rules: list[ListedRule]
