"""Tasks: the nodes of the delegation tree, as the screen, the commands and the reports read them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return, Severity, Todos, TodoStatus
from agentwatch.delegation.decision import Action, Decision, Request, Session
from agentwatch.delegation.events import Activity, Claim, Run, RunState, Seen, Verdict


class Shown(StrEnum):
    """The state of a task that people see, least urgent first. `is_open`: the task has not ended."""

    glyph: str
    word: str
    is_open: bool
    urgency: int

    CANCELED = "canceled", "–"
    COMPLETED = "completed", "✓"
    IDLE = "idle", "◉", False, "your turn"  # a session of a human that has ended its turn
    PARTIAL = "partial", "◑"
    FALSE = "false", "⚑"  # its return says that it is done, but a claim is false
    UNKNOWN = "unknown", "?", True
    SUBMITTED = "submitted", "○", True
    WAITING = "waiting", "◇", True  # it waits for tasks below, and none of them works
    WORKING = "working", "◐", True
    RETRYING = "retrying", "↻", True
    ESCALATED = "escalated", "↑", True
    SILENT = "silent", "◌", True  # it is working, but has been silent for too long
    GONE = "gone", "⊘", True  # it was working, and its process is known to be gone
    BLOCKED = "blocked", "■", True
    FAILED = "failed", "✗"
    INVALID = "invalid", "‼"

    def __new__(cls, value: str, glyph: str = "", is_open: bool = False, word: str = "") -> Shown:
        shown = str.__new__(cls, value)
        shown._value_, shown.glyph, shown.word = value, glyph, word or value
        shown.is_open, shown.urgency = is_open, len(cls.__members__)
        return shown


class State(StrEnum):
    """The state of a task according to its files, runs and decisions, least urgent first."""

    CANCELED = "canceled"
    COMPLETED = "completed"
    PARTIAL = "partial"
    UNKNOWN = "unknown"
    SUBMITTED = "submitted"
    WORKING = "working"
    RETRYING = "retrying"
    ESCALATED = "escalated"
    BLOCKED = "blocked"
    FAILED = "failed"
    INVALID = "invalid"

    def __init__(self, value: str):
        self.is_open, self.urgency = Shown(value).is_open, Shown(value).urgency


# While the host cannot be reached, tasks in one of these states are shown as unknown.
AT_WORK = frozenset({State.SUBMITTED, State.WORKING, State.RETRYING, State.ESCALATED})

_GOES_ON = frozenset({State.WORKING, State.UNKNOWN})

T = TypeVar("T")

BETWEEN = " › "  # the mark between the names of a workspace and its task in one row


class Basis(StrEnum):
    """The reason why a task is below its parent."""

    PACKET = "packet"
    SESSION = "session"
    DELEGATION_PATH = "delegation_path"
    DOTTED_PREFIX = "dotted_prefix"
    DIRECTORY = "directory"
    NONE = "none"


class Retry(NamedTuple):
    """The retries that the policy allows. `restored`: one more retry is allowed, because a fitter repaired the line."""

    max_retries: int = 1
    remaining: int = 1
    recommended: bool | None = None
    hint: str | None = None
    restored: bool = False


class TaskKind(NamedTuple):
    """The properties of a task that are counted in sums."""

    state: State
    shown: Shown
    asks: bool = False
    verdict: Verdict | None = None  # the verdict, if the task is completed or contradicted
    stale: bool = False
    past: bool = False


@dataclass(slots=True)
class Sums:
    """Sums over several tasks, usually over all tasks below one task."""

    counts: Counter[TaskKind] = field(default_factory=Counter)
    tokens: int = 0  # the tokens that all attempts used
    active_at: float = 0.0  # the last sign of life

    def count(self, key: Callable[[TaskKind], T]) -> Counter[T]:
        """Count the tasks for each value of `key`."""
        found = Counter[T]()
        for kind, count in self.counts.items():
            found[key(kind)] += count
        return found

    @property
    def tasks(self) -> int:
        return self.counts.total()

    @property
    def states(self) -> Counter[State]:
        return self.count(lambda one: one.state)

    @property
    def shown(self) -> Counter[Shown]:
        return self.count(lambda one: one.shown)

    @property
    def verdicts(self) -> Counter[Verdict | None]:
        """Counts of completed tasks that are verified, and of contradicted tasks. All other tasks are under None."""
        return self.count(lambda one: one.verdict)

    @property
    def open(self) -> int:
        """The number of tasks that have not ended."""
        return self.count(lambda one: one.state.is_open)[True]

    @property
    def stale(self) -> int:
        """The number of working tasks that are silent. Past tasks are not counted."""
        return self.count(lambda one: one.stale and not one.past)[True]

    @property
    def needs_operator(self) -> int:
        return self.count(lambda one: one.asks)[True]

    @property
    def worst(self) -> TaskKind | None:
        """The kind of the most urgent task that needs the operator, or None."""
        return max((one for one in self.counts if one.asks), key=lambda one: one.shown.urgency, default=None)


@dataclass(slots=True)
class Attempt:
    """One execution of a task, with its handoff and its return."""

    number: int
    state: State = State.SUBMITTED
    session_id: str | None = None
    handoff: Seen | None = None
    returned: Seen | None = None
    rival: Seen | None = None  # a return, in another file, that contradicts `returned`
    started_at: float | None = None
    first_at: float | None = None  # the first sign of work in files
    run: Run | None = None  # the execution as a session store shows it; None if only files show it
    again: bool = False  # it has the session and the handoff of the attempt before
    superseded: tuple[Decision, ...] = ()  # decisions about a return that has changed since
    unasked: bool = False  # only a return names it, after a failure without a decision
    decisions: tuple[Decision, ...] = ()  # the decisions about it, and about its earlier returns

    @property
    def decision(self) -> Decision | None:
        """The last decision that has not expired, or None."""
        return next((one for one in reversed(self.decisions) if not one.expired), None)

    @property
    def binding(self) -> Decision | None:
        """The last decision, if it is about the current return and handoff. Otherwise None.
        An abort also holds for later returns, while the attempt has failed or is blocked."""
        decision = self.decision
        if not decision or decision.over:
            return None
        is_now = decision.return_sha256 == (self.returned.digest if self.returned else None)
        is_now = is_now and decision.handoff_sha256 in (None, self.packet_digest or decision.handoff_sha256)
        return decision if is_now or (decision.action is Action.ABORT and self.has_no_result) else None

    @property
    def packet_digest(self) -> str | None:
        """The digest of the handoff, or None. A handoff whose checklist was ticked has none."""
        packet = self.packet
        if not self.handoff or not packet or is_begun(packet.todos):
            return None
        return self.handoff.digest

    @property
    def has_no_result(self) -> bool:
        """Whether the attempt failed or is blocked."""
        return self.state in (State.BLOCKED, State.FAILED, State.INVALID)

    @property
    def handed_off_at(self) -> float | None:
        """The time after which changed files may be work of the attempt. None if it has no handoff."""
        if not self.handoff:
            return None
        return self.handoff.at if self.again else self.started_at

    @property
    def began_at(self) -> float | None:
        """The time when work on the attempt began, or else the time of its handoff."""
        signs = [self.first_at, self.run.started_at if self.run else None]
        return min((one for one in signs if one is not None), default=self.started_at)

    @property
    def ended_without_result(self) -> bool:
        """Whether the session has ended although its last return says that work goes on."""
        run, result, returned = self.run, self.result, self.returned
        has_ended = run and run.parent_session and run.state is RunState.ENDED
        is_last = run and returned and returned.at <= (run.ended_at or run.updated_at)
        return bool(has_ended and is_last and result and result.outcome is Outcome.WORKING)

    @property
    def packet(self) -> Handoff | None:
        document = self.handoff.document if self.handoff else None
        return document if isinstance(document, Handoff) else None

    @property
    def result(self) -> Return | None:
        document = self.returned.document if self.returned else None
        return document if isinstance(document, Return) else None


def is_begun(todos: Todos | None) -> bool:
    """Tell whether an item of a checklist is done or in progress."""
    return any(todo.status is not TodoStatus.PENDING for todo in todos or ())


NO_ATTEMPT = Attempt(1)  # for a task that was neither handed out nor returned


class Place(NamedTuple):
    """The facts in documents, runs and requests that decide on the place of a task in the tree."""

    parent_task_id: str | None = None
    asked_by: tuple[Session, ...] = ()  # the sessions that asked for it, the latest first
    path: tuple[str, ...] = ()  # ids of the tasks above it, outermost first, by its delegation path
    directory: str | None = None  # the directory of its files
    file: str = ""  # its first file
    first_seq: int | None = None  # the `seq` of its first document, which orders siblings; None if it has no document


@dataclass(slots=True)
class Task:
    """One node of the tree. Only the tree changes it. Times are in epoch seconds, and texts are untrusted."""

    task_id: str
    title: str
    agent: str | None = None
    parent_id: str | None = None
    parent_basis: Basis = Basis.NONE
    children: Sequence[str] = ()  # task ids, in the order first seen
    inferred: bool = False  # only a delegation path names it, and it has no file
    deleted_at: float | None = None  # when the last of its files was deleted; None if any file exists
    state: State = State.SUBMITTED
    own_state: State = State.SUBMITTED  # the state by its own files; `state` also depends on the tasks below
    shown: Shown = Shown.SUBMITTED  # the state that the screen and all commands show
    since: float | None = None  # since when it has this shown state; None if unknown
    late: bool = False  # it should have begun long ago
    stale: bool = False  # it is working, but silent for too long or without a process
    claims: tuple[Claim, ...] = ()  # the claims of the latest return that were checked
    is_checked: bool = False  # whether the claims of the latest return were checked
    verdict: Verdict | None = None  # the verdict over all claims, if the task is completed or partly done
    past: bool = False  # it is history: its last sign of life was long before the first watch
    question: str | None = None  # its open question, even if the task is past or put aside
    ask: str | None = None  # its open question, unless the task is past or put aside
    tokens: int | None = None  # the tokens that all attempts used; None if unknown
    own_question: str | None = None  # its open question, except one about a process that is gone
    gone: bool = False  # it is working, but its process is gone
    acknowledged: bool = False  # the operator has put its question aside, until the question changes
    snoozed_until: float | None = None  # the time when it needs the operator again; infinity: when it changes
    verdict_at: float | None = None  # since when the claims have this verdict
    seen: bool = True  # whether the operator has looked at it since its last news
    why: str = ""  # the reason for its state, as agentwatch words it
    attempts: Sequence[Attempt] = ()
    retry: Retry = Retry()  # noqa: RUF009  it is immutable, so tasks may share it
    findings: Sequence[Finding] = ()
    requests: tuple[Request, ...] = ()  # the requests of its program, the most urgent first
    todos: Todos | None = None
    todo_moved: Activity | None = None  # the todo, in its files, that was ticked or begun last
    first_seq: int = 0
    updated_at: float = 0.0  # the last sign of life of the task, without the tasks below it
    ended_at: float | None = None
    ended_with: str | None = None  # the id of a task above it that the operator aborted
    below: Sums | None = None  # None for a leaf
    scope: str = ""  # the prefix of the id, if one tree shows several workspaces
    workspace: str = ""  # the path, if this is the top row of a workspace; "" for tasks
    host: str = ""  # the operator's name for the machine of the task; "" for this machine
    lost_since: float | None = None  # since when its host is unreachable; None if reachable, or if the task has ended
    # Fields that only the tree uses
    place: Place = Place()  # noqa: RUF009  it is immutable
    kind: TaskKind | None = None  # how sums count it; None if it shares the row of the task below it
    own_findings: tuple[Finding, ...] = ()  # rules that its own documents and attempts break
    problem: Finding | None = None  # the fault of the link to its parent
    due: float = math.inf  # the next time when it may change without an event

    @property
    def need_in_program(self) -> str:
        """The program's words (untrusted) about its need for a human. "" if there is none, or if a request shows it."""
        run = self.run
        return run.waiting if run and self.own_state is State.BLOCKED and not self.request else ""

    @property
    def own_id(self) -> str:
        """The id that the documents of its workspace use."""
        return self.task_id[len(self.scope) :]

    @property
    def id_in_program(self) -> str:
        """The id without the suffix `#program`, which tells apart tasks of different programs."""
        return self.own_id.removesuffix(f"#{self.run.source}" if self.run else "")

    @property
    def row_title(self) -> str:
        """The title without `›`, which in a row separates the name of a workspace from its task."""
        return self.title.replace("›", ">")

    @property
    def alive_at(self) -> float | None:
        """The last sign of life of the task or of a task below it. None if unknown."""
        return max(self.updated_at, self.below.active_at if self.below else 0.0) or None

    @property
    def open_below(self) -> int:
        """The number of unfinished tasks below, which wait until this task is answered."""
        return self.below.open if self.below else 0

    @property
    def shares_row(self) -> bool:
        """Whether only a delegation path names the task, and it has one child. Then the two share a row."""
        return self.inferred and not self.workspace and len(self.children) == 1

    @property
    def needs_operator(self) -> bool:
        return self.ask is not None

    @property
    def request(self) -> Request | None:
        """The most urgent open request, or None. The operator may have decided it already."""
        return self.requests[0] if self.requests and self.requests[0].is_open else None

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def snoozed(self) -> bool:
        return self.snoozed_until is not None

    @property
    def known_state(self) -> State:
        """The state of the task, or its last known state if the state is unknown now."""
        if self.state is not State.UNKNOWN:
            return self.state
        has_handed_on = self.below is not None and self.own_state not in (State.RETRYING, State.ESCALATED)
        return State.WORKING if has_handed_on else self.own_state

    @property
    def contradicted(self) -> bool:
        """Whether a claim of the return is false."""
        return self.verdict is Verdict.CONTRADICTED

    @property
    def latest(self) -> Attempt:
        return self.attempts[-1] if self.attempts else NO_ATTEMPT

    @property
    def run(self) -> Run | None:
        """The run of the latest attempt, or None."""
        return self.latest.run

    @property
    def doing(self) -> Activity | None:
        """The activity of a working task, from its session, or else from its checklist. None if unknown."""
        return self.last_doing if self.state is State.WORKING else None

    @property
    def last_doing(self) -> Activity | None:
        """The same as `doing`. If the state of the task is unknown now, the last known activity."""
        if self.known_state is not State.WORKING:
            return None
        run = self.run
        if run and run.doing:
            return run.doing if run.state is RunState.WORKING else None
        return self.todo_moved

    @property
    def decision(self) -> Decision | None:
        return self.latest.decision

    @property
    def is_accepted(self) -> bool:
        """Whether the operator has accepted the current return as it is."""
        return self.binding is not None and self.binding.action is Action.ACCEPT

    @property
    def binding(self) -> Decision | None:
        """The decision about the current return, or None."""
        return self.latest.binding

    @property
    def is_session(self) -> bool:
        """Whether the task is a session that a human, not an agent, began."""
        run = self.run
        return run is not None and run.parent_session is None

    @property
    def answers_in_prose(self) -> bool:
        """Whether the task got a handoff packet, but ended with words that are no return."""
        latest, run = self.latest, self.run
        was_handed = latest.packet and not latest.returned and run and run.parent_session
        return bool(was_handed and run and run.state is RunState.ENDED and run.said)

    @property
    def handoff_fault(self) -> str | None:
        """The first error in a handoff on which nobody has begun to work, or None."""
        given = self.latest.handoff if self.own_state is State.SUBMITTED and not self.run else None
        errors = (one.message for one in (given.findings if given else ()) if one.severity is Severity.ERROR)
        return next((one.partition("; ")[0].rstrip(".") for one in errors), None)

    @property
    def waits_for_background(self) -> bool:
        """Whether the task is an idle session for which a task below still works."""
        is_idle = self.own_state is State.COMPLETED and self.is_session and not self.inferred
        return is_idle and self.below is not None and any(one.state in _GOES_ON for one in self.below.counts)

    @property
    def attempt(self) -> int:
        return self.latest.number

    @property
    def packet(self) -> Handoff | None:
        """The latest handoff of the task."""
        return next((packet for attempt in reversed(self.attempts) if (packet := attempt.packet)), None)

    @property
    def result(self) -> Return | None:
        """The return of the latest attempt."""
        return self.latest.result

    @property
    def reported_state(self) -> str | None:
        return self.result.reported_state if self.result else None

    @property
    def contract(self) -> Contract | None:
        document = self.result or self.packet
        return document.contract if document else None

    @property
    def progress(self) -> tuple[int, int] | None:
        """The counts (done, all) of the todos, or else of the phases in the return. None if neither is known."""
        if self.todos:
            return sum(todo.status is TodoStatus.DONE for todo in self.todos), len(self.todos)
        return self.result.progress if self.result else None


def sum_tasks(tasks: Iterable[Task], *, deep: bool = False) -> Sums:
    """Return the sums over some tasks. With `deep`, add all tasks below these tasks."""
    tasks = [*tasks]
    tokens, active_at = sum(task.tokens or 0 for task in tasks), max([task.updated_at for task in tasks], default=0.0)
    sums = Sums(Counter(task.kind for task in tasks if task.kind), tokens, active_at)
    for below in [task.below for task in tasks if task.below] if deep else ():
        sums.counts.update(below.counts)
        sums.tokens += below.tokens
        sums.active_at = max(sums.active_at, below.active_at)
    return sums
