"""What a report tells, in values: the account that Markdown, HTML and JSON are made from, and JSON is.

Times are seconds since the epoch, None where they are not known. Every text is foreign and unsanitised, but for
`verdict`, `why` and the reasons of findings and claims, which quote foreign text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Contract, Severity, Todo
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Basis, State
from agentwatch.history.log import Change
from agentwatch.view.looks import Look
from agentwatch.view.spans import Span
from agentwatch.view.times import Took

SCHEMA_VERSION: Final = 1

FOR_PEOPLE: Final = frozenset({"look", "took", "spans"})
"""What the JSON leaves out: it has the states and the times that these are made from."""


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """What the operator decided on an attempt, and how far the decision has got (`receipt`)."""

    task_id: str
    attempt: int
    action: str
    note: str
    operator: str
    at: float | None
    receipt: str


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What the parent gave."""

    path: str
    objective: str | None


@dataclass(frozen=True, slots=True)
class HandedBack:
    """What the child gave back. `sha256` is that of the file, in hex; what a contract lacks is None or empty."""

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
    blockers: tuple[str, ...]
    limitations: tuple[str, ...]
    model: str | None
    mode: str | None
    others_say: str
    """What others say of model and mode where that is something else, else ""."""
    confidence: float | None
    artifacts: tuple[str, ...]
    files_created: tuple[str, ...]
    files_modified: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One execution: it ran from `started_at` to `ended_at`, which is None while it runs or if it never came back.
    How it is shown and how long it took is for people: the JSON has the state and the times.

    `prompt` and `answer` are the first lines of what a session was told and said where that follows no contract.
    """

    number: int
    state: State
    session_id: str | None
    started_at: float | None
    ended_at: float | None
    handoff: HandedOver | None
    returned: HandedBack | None
    prompt: str | None
    answer: str | None
    look: Look
    took: Took | None


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which nobody worked on a task: behind an attempt, until the next one began or, with None, to now."""

    after_attempt: int
    began_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One rule broken, as in `tree --json`."""

    rule: str
    severity: Severity
    message: str
    path: str
    line: int | None


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """What the return claims, and what the evidence says of it, as in `tree --json`."""

    kind: str
    path: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True)
class RetryLine:
    """The retries that the policy leaves, and what the child said of one."""

    max_retries: int
    remaining: int
    recommended: bool | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task. Its keys are those of `tree --json`, and those that tell when, who waited, and what was said."""

    task_id: str
    parent_id: str | None
    parent_basis: Basis
    depth: int
    title: str
    agent: str | None
    state: State
    reported_state: str | None
    contract: Contract | None
    inferred: bool
    deleted: bool
    why: str
    needs_operator: bool
    ask: str | None
    stale: bool
    verdict: Verdict | None
    contradicted: bool
    below: int
    """How many tasks are below."""
    attempt: int
    attempts: tuple[AttemptLine, ...]
    waits: tuple[Wait, ...]
    updated_at: float | None
    retry: RetryLine
    todos: tuple[Todo, ...]
    claims: tuple[ClaimLine, ...]
    unclaimed_changes: tuple[str, ...]
    """Files that changed while nobody else was at work, and that no return claims."""
    unattributed_changes: tuple[str, ...]
    """The same, where others were at work, too."""
    findings: tuple[FindingLine, ...]
    look: Look
    took: Took | None
    """The latest attempt."""
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Attention:
    """A task that somebody has to look at: the exact ask, since when, and how many open tasks it holds up."""

    task_id: str
    ask: str
    since: float | None
    holds: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of tasks. `unchecked` ones are completed, and nothing that they claim could be checked."""

    tasks: int
    by_state: dict[State, int]
    needs_operator: int
    verified: int
    contradicted: int
    unchecked: int
    stale: int


@dataclass(frozen=True, slots=True)
class ProblemLine:
    """Something that could not be read: by which source, where, and why."""

    source: str
    place: str
    message: str


@dataclass(frozen=True, slots=True)
class Account:
    """A session as it stood at `generated_at`. Tasks are in preorder, siblings in the order first seen."""

    schema_version: int
    workspace: str
    generated_at: float
    verdict: str
    summary: Summary
    attention: tuple[Attention, ...]
    """The most pressing first."""
    tasks: tuple[TaskLine, ...]
    decisions: tuple[DecisionLine, ...]
    changes: Sequence[Change]
    """Every state change that the history holds; empty where nobody watched."""
    notices: tuple[FindingLine, ...]
    """What is wrong with files that belong to no task."""
    complete: bool = True
    problems: tuple[ProblemLine, ...] = ()

    def branches_with(self, holds: Callable[[TaskLine], bool]) -> set[str]:
        """Ids of the tasks for which something holds, or for one below them."""
        found: set[str] = set()
        for task in reversed(self.tasks):
            if task.task_id in found or holds(task):
                found.add(task.task_id)
                if task.parent_id is not None:
                    found.add(task.parent_id)
        return found

    def decisions_by_task(self) -> dict[str, list[DecisionLine]]:
        """The decisions on each task that has any, in their order."""
        decided: dict[str, list[DecisionLine]] = {}
        for decision in self.decisions:
            decided.setdefault(decision.task_id, []).append(decision)
        return decided
