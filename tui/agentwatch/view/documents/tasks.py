"""Tasks: `agentwatch tree --json`, and what the other documents tell of tasks."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from agentwatch.contracts.shapes import Contract, Severity
from agentwatch.delegation.claims import DeedKind, Verdict
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.request import RequestKind, RequestStage
from agentwatch.delegation.run import ActivityKind
from agentwatch.delegation.task import Basis, State
from agentwatch.view.order import Group
from agentwatch.view.words import Agreement

A2AState = Literal[
    "submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected", "unknown"
]
A2AEnum = Literal[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_AUTH_REQUIRED",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
]
"""`TaskState` of A2A 1.0. Nobody knows how a task stands that is `UNSPECIFIED`."""


class Problem(TypedDict):
    """What could not be read."""

    source: str
    place: str
    message: str


class Finding(TypedDict):
    """A broken rule, and where."""

    rule: str
    severity: Severity
    message: str
    path: str
    line: int | None


class Claim(TypedDict):
    """What a return claims, and what the evidence says of it."""

    kind: str
    path: str
    verdict: Verdict
    detail: str


class Deed(TypedDict):
    """Something that an attempt did and its return does not speak of."""

    kind: DeedKind
    what: str
    at: str | None


class Option(TypedDict):
    label: str
    description: str


class Query(TypedDict):
    """A question of a request."""

    question: str
    header: str
    options: list[Option]
    several: bool


class Given(TypedDict):
    """What a call is given besides what is shown of it; the value is JSON."""

    name: str
    value: str


class Request(TypedDict):
    """What a program asks, or has asked."""

    request_id: str
    kind: RequestKind
    source: str
    session: str
    tool: str
    shown: str
    beside: list[Given]
    said: str
    input_sha256: str
    asked_at: str | None
    until: str | None
    prompt_hidden: bool
    options: list[str]
    actions: list[Action]
    queries: list[Query]
    rules: list[str]
    answerable: bool
    why_not: str | None
    stage: RequestStage
    allowed: bool | None
    by: str | None
    ended_at: str | None


class Activity(TypedDict):
    """What a task does while it works."""

    at: str | None
    kind: ActivityKind
    what: str
    about: str
    over: bool
    repeats: int
    seconds: float | None


class Run(TypedDict):
    """An attempt as a session store shows it."""

    source: str
    place: str
    tokens: int | None
    background: bool
    prompt: str | None
    answer: str | None


class StatedAttempt(TypedDict):
    """One execution of a task, with its handoff and its return."""

    number: int
    state: State
    session_id: str | None
    handoff_path: str | None
    handoff_sha256: str | None
    return_path: str | None
    return_sha256: str | None
    started_at: str | None
    ended_at: str | None


class Attempt(StatedAttempt):
    run: Run | None


class Retry(TypedDict):
    max_retries: int
    remaining: int
    recommended: bool | None
    hint: str | None


class Progress(TypedDict):
    done: int
    total: int


class Runtime(TypedDict):
    """Model and mode: as the return reports them, as others say, and whether these agree."""

    model_reported: str | None
    model_recorded: str | None
    model: Agreement
    mode_reported: str | None
    mode_asked: str | None
    mode: Agreement


class Decided(TypedDict):
    """What was decided about an attempt, and how far it has got."""

    decision_id: str
    action: Action
    receipt: Stage
    claimed: bool
    claimed_by: str | None


class A2AStatus(TypedDict):
    """`TaskStatus` of A2A 1.0, as it stands in its JSON."""

    state: A2AEnum
    timestamp: NotRequired[str]


class StatedTask(TypedDict):
    """What stays true of a task when nobody looks at it any more."""

    task_id: str
    parent_id: str | None
    title: str
    agent: str | None
    state: State
    reported_state: str | None
    contract: Contract | None
    objective: str | None
    summary: str | None
    why: str
    needs_operator: bool
    ask: str | None
    contradicted: bool
    attempt: int
    error_code: str | None
    error_message: str | None
    blockers: list[str]
    findings: list[Finding]
    claims: list[Claim]
    unsaid: list[Deed]
    runtime: Runtime
    limitations: list[str]


class Returned(TypedDict):
    """Words of the return that are called as in `Return`, and copied from it."""

    errors: list[str]


class SeenTask(StatedTask, Returned):
    """One task of a tree, without its attempts."""

    workspace: NotRequired[str]
    parent_basis: Basis
    depth: int
    group: Group | None
    host: str | None
    known_state: State
    lost_since: str | None
    a2a_state: A2AState
    a2a_status: A2AStatus
    progress: Progress | None
    inferred: bool
    deleted: bool
    requests: list[Request]
    gone: bool
    since: str | None
    updated_at: str | None
    activity: Activity | None
    tokens: int | None
    tokens_below: int | None
    cost: float | None
    stale: bool
    past: bool
    acknowledged: bool
    snoozed: bool
    snoozed_until: str | None
    seen: bool
    worst_below: str | None
    retry: Retry
    decision: Decided | None


class Task(SeenTask):
    """One task of a tree."""

    attempts: list[Attempt]


class Now(TypedDict):
    """Counts without what is past."""

    tasks: int
    by_state: dict[str, int]
    verified: int
    contradicted: int


class Summary(TypedDict):
    tasks: int
    by_state: dict[str, int]
    now: Now
    needs_operator: int
    stale: int
    verified: int
    contradicted: int
    tokens: int | None
    past: int
    acknowledged: int
    snoozed: int
    unseen: int


class Tree(TypedDict):
    """`agentwatch tree --json` of one workspace."""

    schema_version: Literal[1]
    workspace: str
    host: NotRequired[str]
    complete: bool
    problems: list[Problem]
    summary: Summary
    matches: NotRequired[list[str]]
    tasks: list[Task]
    notices: list[Finding]
    worktrees: NotRequired[list[Tree]]


class Trees(TypedDict):
    """`agentwatch tree A B --json`."""

    schema_version: Literal[1]
    workspaces: list[Tree]
