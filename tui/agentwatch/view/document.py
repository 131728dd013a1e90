"""Models of the JSON that other programs read: the output of `agentwatch tree --json` (schema version 1).

The JSON schemas of the manual are generated from these models. Keys may be added, but never removed. Texts are
untrusted, because agents wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict

from agentwatch.contracts.shapes import Contract, Return, Severity
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage, Stage
from agentwatch.delegation.events import Activity, ActivityKind, Verdict
from agentwatch.delegation.task import Attempt, Basis, Shown, State, Sums, Task, sum_tasks
from agentwatch.delegation.tree import Tree
from agentwatch.view.rows import Group, Matches, group_of
from agentwatch.view.words import (
    A2AState,
    Agreement,
    a2a_state,
    answer_line,
    cost_of,
    ended_at,
    iso,
    prompt_line,
    reason_at,
    runtime_of,
    why_unanswerable,
)

SCHEMA_VERSION: Final = 1
_NO_RETURN = Return(Contract.RETURN_FORMAT, None, None)

# A time. It is given in epoch seconds and written as ISO 8601 in UTC. An unknown time is null.
Time = Annotated[str | None, BeforeValidator(lambda at: at if isinstance(at, str) else iso(at))]


class Document(BaseModel):
    """An object of the JSON. A field with a default is included only if it was given."""

    model_config = ConfigDict(from_attributes=True)
    required: ClassVar[Sequence[str]] = ()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.required = [name for name, field in cls.model_fields.items() if field.is_required()]

    @classmethod
    def fill(cls, source: object, **given: Any) -> Self:
        """Build an object. Take each required field from `given`, or else from an attribute of `source`."""
        return cls(**{name: getattr(source, name) for name in cls.required if name not in given}, **given)

    def to_json(self) -> dict[str, Any]:
        """Return the object as plain JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class ProblemDoc(Document):
    """A place that could not be read."""

    source: str
    place: str
    message: str


class FindingDoc(Document):
    """A broken rule, and the place where it is broken."""

    rule: str
    severity: Severity
    message: str
    path: str
    line: int | None


class ClaimDoc(Document):
    """A claim of a return, with its verdict and the evidence."""

    kind: str
    path: str
    verdict: Verdict
    detail: str


class OptionDoc(Document):
    label: str
    description: str


class QueryDoc(Document):
    """A question of a request, with the answers to choose from."""

    question: str
    header: str
    options: list[OptionDoc]
    several: bool


class GivenDoc(Document):
    """A further argument of a call. The value is JSON."""

    name: str
    value: str


class RequestDoc(Document):
    """A request: a question or a call for which a program waits, or waited, for a person."""

    request_id: str
    kind: RequestKind
    source: str
    session: str
    tool: str
    shown: str
    beside: list[GivenDoc]
    said: str
    input_sha256: str
    asked_at: Time
    until: Time
    prompt_hidden: bool
    options: list[str]
    actions: list[Action]
    queries: list[QueryDoc]
    rules: list[str]
    answerable: bool
    why_not: str | None
    stage: RequestStage
    allowed: bool | None
    by: str | None
    ended_at: Time


class ActivityDoc(Document):
    """The activity of a working task."""

    at: Time
    kind: ActivityKind
    what: str
    about: str
    over: bool
    repeats: int
    seconds: float | None


class RunDoc(Document):
    """The run of an attempt, as a session store shows it."""

    source: str
    place: str
    tokens: int | None
    background: bool
    prompt: str | None
    answer: str | None


class AttemptDoc(Document):
    """One execution of a task, with its handoff and its return."""

    number: int
    state: State
    session_id: str | None
    handoff_path: str | None
    handoff_sha256: str | None
    return_path: str | None
    return_sha256: str | None
    started_at: Time
    ended_at: Time
    run: RunDoc | None


class RetryDoc(Document):
    max_retries: int
    remaining: int
    recommended: bool | None
    hint: str | None


class ProgressDoc(Document):
    done: int
    total: int


class RuntimeDoc(Document):
    """The reported model and mode, the model and mode that other records show, and whether they agree."""

    model_reported: str | None
    model_recorded: str | None
    model: Agreement
    mode_reported: str | None
    mode_asked: str | None
    mode: Agreement


class DecidedDoc(Document):
    """The decision about an attempt, and the stage that it has reached."""

    decision_id: str
    action: Action
    receipt: Stage
    claimed: bool
    claimed_by: str | None


class A2AStatusDoc(Document):
    """The `TaskStatus` of A2A 1.0 (Agent2Agent protocol)."""

    state: str
    timestamp: str = ""


class TaskDoc(Document):
    """One task of a tree."""

    workspace: str = ""
    task_id: str
    parent_id: str | None
    parent_basis: Basis
    depth: int
    group: Group | None
    title: str
    agent: str | None
    host: str | None
    state: State
    known_state: State
    shown_state: Shown
    lost_since: Time
    a2a_state: A2AState
    a2a_status: A2AStatusDoc
    reported_state: str | None
    contract: Contract | None
    objective: str | None
    progress: ProgressDoc | None
    inferred: bool
    deleted: bool
    summary: str | None
    why: str
    needs_operator: bool
    ask: str | None
    requests: list[RequestDoc]
    gone: bool
    since: Time
    updated_at: Time
    activity: ActivityDoc | None
    tokens: int | None
    tokens_below: int | None
    cost: float | None
    stale: bool
    past: bool
    acknowledged: bool
    snoozed: bool
    snoozed_until: Time
    seen: bool
    contradicted: bool
    worst_below: str | None
    attempt: int
    attempts: list[AttemptDoc]
    retry: RetryDoc
    error_code: str | None
    error_message: str | None
    errors: list[str]
    blockers: list[str]
    findings: list[FindingDoc]
    claims: list[ClaimDoc]
    runtime: RuntimeDoc
    limitations: list[str]
    decision: DecidedDoc | None
    counted: bool = True


class NowDoc(Document):
    """Counts of tasks, without past tasks."""

    tasks: int
    by_state: dict[str, int]
    verified: int
    contradicted: int


class SummaryDoc(Document):
    tasks: int
    by_state: dict[str, int]
    by_shown_state: dict[str, int]
    now: NowDoc
    needs_operator: int
    stale: int
    verified: int
    contradicted: int
    tokens: int | None
    past: int
    acknowledged: int
    snoozed: int
    unseen: int


class TreeDoc(Document):
    """The output of `agentwatch tree --json` for one workspace."""

    schema_version: Literal[1]
    workspace: str
    complete: bool
    problems: list[ProblemDoc]
    summary: SummaryDoc
    tasks: list[TaskDoc]
    notices: list[FindingDoc]
    host: str = ""
    matches: tuple[str, ...] = ()
    worktrees: tuple[TreeDoc, ...] = ()


class TreesDoc(Document):
    """The output of `agentwatch tree --json` for several workspaces, or for a workspace on another machine."""

    schema_version: Literal[1]
    complete: bool
    workspaces: list[TreeDoc]


def tree_document(
    tree: Tree,
    workspace: str,
    problems: Iterable[tuple[str, str, str]] = (),
    found: Matches | None = None,
    prices: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return a tree as a `TreeDoc` in plain JSON values. Parents come before their children.

    Each of `problems` is (source, place that could not be read, message). With `found`, include only the tasks that a
    query shows. `prices` has the price of a million tokens for each model.
    """
    unseen = problem_documents(problems)
    tasks = tree.tasks.values()
    now = sum_tasks(task for task in tasks if not task.past)
    summary = SummaryDoc.fill(
        tree.totals,
        **_count_tasks(tree.totals),
        by_shown_state={shown.value: count for shown, count in sorted(tree.totals.shown.items())},
        now=NowDoc.fill(now, **_count_tasks(now)),
        past=tree.totals.tasks - now.tasks,
        acknowledged=sum(task.acknowledged for task in tasks),
        snoozed=sum(task.snoozed for task in tasks),
        unseen=len(tree.unseen),
    )
    more: dict[str, Any] = {"host": tree.host} if tree.host else {}
    if found:
        more["matches"] = tuple(found.matches)
    document = TreeDoc(
        schema_version=SCHEMA_VERSION,
        workspace=workspace,
        complete=not unseen,
        problems=unseen,
        summary=summary,
        tasks=[
            task_document(tree, task, depth, prices)
            for task, depth in tree.preorder()
            if found is None or task.task_id in found.shown
        ],
        notices=[FindingDoc.fill(placed) for placed in tree.notices],
        **more,
    )
    return document.to_json()


def _count_tasks(sums: Sums) -> dict[str, Any]:
    return {
        "by_state": {state.value: count for state, count in sorted(sums.states.items())},
        "verified": sums.verdicts.get(Verdict.VERIFIED, 0),
        "contradicted": sums.verdicts.get(Verdict.CONTRADICTED, 0),
    }


def problem_documents(problems: Iterable[tuple[str, str, str]]) -> list[ProblemDoc]:
    return [ProblemDoc(source=source, place=place, message=message) for source, place, message in problems]


def task_document(tree: Tree, task: Task, depth: int = 0, prices: Mapping[str, float] | None = None) -> TaskDoc:
    """Return the JSON of one task. `depth` is the number of tasks above it."""
    result, worst, since = task.result or _NO_RETURN, task.below and task.below.worst, task.since
    a2a = a2a_state(task)
    a2a_word = "UNSPECIFIED" if a2a == "unknown" else a2a.upper().replace("-", "_")
    model, mode = runtime_of(result, task.run, task.packet)
    decision = task.decision
    return TaskDoc.fill(
        task,
        depth=depth,
        group=None if task.parent_id is not None else group_of(task, tree.now, tree.rules.history_before),
        host=task.host or None,
        shown_state=task.shown,
        a2a_state=a2a,
        a2a_status={"state": f"TASK_STATE_{a2a_word}", **({"timestamp": stamp} if (stamp := iso(since)) else {})},
        objective=task.packet.objective if task.packet else None,
        progress=task.progress and dict(zip(("done", "total"), task.progress, strict=True)),
        why=reason_at(task, tree.tasks, tree.now),
        requests=[request_document(one) for one in task.requests],
        updated_at=task.updated_at or task.alive_at,
        activity=activity_document(task.doing, tree.now),
        tokens_below=task.below.tokens if task.below else None,
        cost=cost_of(task, prices or {}),
        worst_below=worst and ("contradicted" if worst.shown is Shown.FALSE else worst.state),
        attempts=[_attempt_document(task, attempt) for attempt in task.attempts],
        runtime=RuntimeDoc(
            model_reported=model.reported,
            model_recorded=model.known,
            model=model.agreement,
            mode_reported=mode.reported,
            mode_asked=mode.known,
            mode=mode.agreement,
        ),
        decision=decision
        and DecidedDoc.fill(
            decision,
            receipt=decision.receipt.stage,
            claimed=decision.receipt.claimed,
            claimed_by=decision.receipt.taken_by or None,
        ),
        **{name: getattr(result, name) for name in _OF_RETURN},
        **({} if task.kind else {"counted": False}),
    )


_OF_RETURN = ("summary", "error_code", "error_message", "errors", "blockers", "limitations")


def _attempt_document(task: Task, attempt: Attempt) -> AttemptDoc:
    run, handoff, returned = attempt.run, attempt.handoff, attempt.returned
    return AttemptDoc.fill(
        attempt,
        handoff_path=handoff and handoff.path,
        handoff_sha256=handoff and handoff.digest,
        return_path=returned and returned.path,
        return_sha256=returned and returned.digest,
        ended_at=ended_at(task, attempt),
        run=run and RunDoc.fill(run, prompt=prompt_line(attempt), answer=answer_line(attempt)),
    )


def activity_document(doing: Activity | None, now: float) -> ActivityDoc | None:
    """Return the JSON of an activity at the time `now` (epoch seconds)."""
    if doing is None:
        return None
    passed = round(max(now - doing.at, 0.0), 1) if doing.at and now > float("-inf") else None
    return ActivityDoc.fill(doing, seconds=passed)


def request_document(request: Request) -> RequestDoc:
    """Return the JSON of one request of a program."""
    labels = [option.label for query in request.queries for option in query.options]
    return RequestDoc.fill(
        request,
        session=request.session_id,
        options=list(request.actions) if request.kind is RequestKind.PERMISSION else labels,
        answerable=request.is_answerable,
        why_not=why_unanswerable(request),
        by=request.by or None,
    )
