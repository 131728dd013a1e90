"""Tasks: the nodes of the delegation tree, as the faces (screen, commands, reports) read them."""

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
    """The state of a task that faces show, least urgent first; `is_open`: somebody works on it, or waits for it."""

    glyph: str
    word: str
    is_open: bool
    urgency: int

    CANCELED = "canceled", "–"
    COMPLETED = "completed", "✓"
    IDLE = "idle", "◉", False, "your turn"  # a session begun by a human that has ended its turn
    PARTIAL = "partial", "◑"
    FALSE = "false", "⚑"  # it says that it is done, but a claim is false
    UNKNOWN = "unknown", "?", True
    SUBMITTED = "submitted", "○", True
    WAITING = "waiting", "◇", True  # it waits for tasks below it, none of which is at work
    WORKING = "working", "◐", True
    RETRYING = "retrying", "↻", True
    ESCALATED = "escalated", "↑", True
    SILENT = "silent", "◌", True  # it is working, but was silent for too long
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
    """The state of a task by its files, runs and decisions, least urgent first."""

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


# States of current activity: they are unknown while the host cannot be reached.
AT_WORK = frozenset({State.SUBMITTED, State.WORKING, State.RETRYING, State.ESCALATED})

_GOES_ON = frozenset({State.WORKING, State.UNKNOWN})

T = TypeVar("T")

BETWEEN = " › "  # stands between the names of a workspace and its task in one row


class Basis(StrEnum):
    """The reason why a task hangs below its parent."""

    PACKET = "packet"
    SESSION = "session"
    DELEGATION_PATH = "delegation_path"
    DOTTED_PREFIX = "dotted_prefix"
    DIRECTORY = "directory"
    NONE = "none"


class Retry(NamedTuple):
    """The retries that error-propagation allows; `restored`: one was added because a fitter restored the line."""

    max_retries: int = 1
    remaining: int = 1
    recommended: bool | None = None
    hint: str | None = None
    restored: bool = False


class Counted(NamedTuple):
    """The properties by which the sums above count a task."""

    state: State
    shown: Shown
    asks: bool = False
    verdict: Verdict | None = None  # of a completed or a contradicted task
    stale: bool = False
    past: bool = False


@dataclass(slots=True)
class Below:
    """Sums over some tasks, mostly those below one task."""

    counts: Counter[Counted] = field(default_factory=Counter)
    tokens: int = 0  # used by all attempts
    active_at: float = 0.0  # the last sign of life

    def count(self, key: Callable[[Counted], T]) -> Counter[T]:
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
        """Counts of verified completed tasks and of contradicted tasks; None counts all others."""
        return self.count(lambda one: one.verdict)

    @property
    def open(self) -> int:
        """The number of tasks that have not ended."""
        return self.count(lambda one: one.state.is_open)[True]

    @property
    def stale(self) -> int:
        """The number of tasks that are working and silent, without past ones."""
        return self.count(lambda one: one.stale and not one.past)[True]

    @property
    def needs_operator(self) -> int:
        return self.count(lambda one: one.asks)[True]

    @property
    def worst(self) -> Counted | None:
        """The most urgent of the tasks that wait for the operator, or None."""
        return max((one for one in self.counts if one.asks), key=lambda one: one.shown.urgency, default=None)


@dataclass(slots=True)
class Attempt:
    """One execution of a task: the handoff that asked for it and the return that ended it, as far as seen."""

    number: int
    state: State = State.SUBMITTED
    session_id: str | None = None
    handoff: Seen | None = None
    returned: Seen | None = None
    rival: Seen | None = None  # a return in another file that contradicts `returned`
    started_at: float | None = None
    first_at: float | None = None  # the first sign of work in files
    run: Run | None = None  # the execution as a session store shows it, None if only files show it
    again: bool = False  # it goes on in the session of the attempt before, with the same handoff
    superseded: tuple[Decision, ...] = ()  # about a return that was replaced or lost before any agent read the decision
    unasked: bool = False  # only its return gives it a number, after a failure without a decision
    decisions: tuple[Decision, ...] = ()  # also about earlier answers in the same session

    @property
    def decision(self) -> Decision | None:
        """The last decision that has not expired."""
        return next((one for one in reversed(self.decisions) if not one.expired), None)

    @property
    def binding(self) -> Decision | None:
        """The decision, while it is about the current return and handoff."""
        decision = self.decision
        if not decision or decision.over:
            return None
        is_now = decision.return_sha256 == (self.returned.digest if self.returned else None)
        is_now = is_now and decision.handoff_sha256 in (None, self.packet_digest or decision.handoff_sha256)
        return decision if is_now or (decision.action is Action.ABORT and self.has_no_result) else None

    @property
    def packet_digest(self) -> str | None:
        """The digest of the handoff; None without one, or if its checklist was ticked, which amends nothing."""
        packet = self.packet
        if not self.handoff or not packet or has_moved(packet.todos):
            return None
        return self.handoff.digest

    @property
    def has_no_result(self) -> bool:
        """Whether it failed or is blocked; after an abort, such a return is the expected error report."""
        return self.state in (State.BLOCKED, State.FAILED, State.INVALID)

    @property
    def handed_off_at(self) -> float | None:
        """The time from which files count as its own; if the session went on, that of the attempt before."""
        if not self.handoff:
            return None
        return self.handoff.at if self.again else self.started_at

    @property
    def began_at(self) -> float | None:
        """The time when its work began, else when it was handed off."""
        signs = [self.first_at, self.run.started_at if self.run else None]
        return min((one for one in signs if one is not None), default=self.started_at)

    @property
    def ended_without_result(self) -> bool:
        """Whether its session has ended while its last return is an early marker."""
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


def has_moved(todos: Todos | None) -> bool:
    """Tell whether a checklist was begun, which is a sign of life."""
    return any(todo.status is not TodoStatus.PENDING for todo in todos or ())


NO_ATTEMPT = Attempt(1)  # of a task that was neither handed out nor returned


class Place(NamedTuple):
    """The place of a task in the tree, as its documents, runs and requests give it."""

    parent_task_id: str | None = None
    asked_by: tuple[Session, ...] = ()  # the sessions that asked for it, the latest first
    path: tuple[str, ...] = ()  # ids of the tasks above it by its delegation path, outermost first
    directory: str | None = None  # the directory of its files
    file: str = ""  # its first file
    first_seq: int | None = None  # orders it among its siblings, by its first document; None if it is only named


@dataclass(slots=True)
class Task:
    """One node of the tree, read-only for faces; times are epoch seconds, texts foreign and unsanitised."""

    task_id: str
    title: str
    agent: str | None = None
    parent_id: str | None = None
    parent_basis: Basis = Basis.NONE
    children: Sequence[str] = ()  # task ids, in the order first seen
    inferred: bool = False  # only named in a delegation path; it has no file
    deleted_at: float | None = None  # since when all its files are gone
    state: State = State.SUBMITTED
    own_state: State = State.SUBMITTED  # from the task's own files; `state` also depends on the tasks below
    shown: Shown = Shown.SUBMITTED  # the state that every face shows
    since: float | None = None  # the beginning of that state; None if unknown
    late: bool = False  # it was not begun for too long
    stale: bool = False  # it is working, but silent for too long or without a process
    claims: tuple[Claim, ...] = ()  # of the latest attempt's return, as far as checked
    is_checked: bool = False  # the claims of that return were checked against the evidence
    verdict: Verdict | None = None  # over all claims, for a task that reports to be done or partly done
    past: bool = False  # its last sign of life was long before the workspace was first watched
    question: str | None = None  # its open question, even if the task no longer asks
    ask: str | None = None  # the question, unless it is past or put aside
    tokens: int | None = None  # used by all attempts together; None if no store knows
    own_question: str | None = None  # the question, apart from one about a process that is gone
    gone: bool = False  # it is working, but its process is gone
    acknowledged: bool = False  # the operator has put its question aside, until that changes
    snoozed_until: float | None = None  # the latest time when it asks again: infinity if only a change ends it
    verdict_at: float | None = None  # since when its claims are false, or none of them is
    seen: bool = True  # whether the operator has looked at it since it ended, failed or changed its question
    why: str = ""  # the reason for its state, in words of our own
    attempts: Sequence[Attempt] = ()
    retry: Retry = Retry()  # noqa: RUF009  it is immutable, and one for all
    findings: Sequence[Finding] = ()
    requests: tuple[Request, ...] = ()  # first those that wait for the operator, in order of urgency
    todos: Todos | None = None
    todo_moved: Activity | None = None  # the last todo that was ticked or begun, by its files
    first_seq: int = 0
    updated_at: float = 0.0  # the last sign of life of the task itself
    ended_at: float | None = None
    ended_with: str | None = None  # the id of a task above it that the operator aborted
    below: Below | None = None  # None for a leaf
    scope: str = ""  # prefix of the id, if tasks of several workspaces are shown as one tree
    workspace: str = ""  # the path of the workspace, if this is its top row; "" for every task
    host: str = ""  # the operator's name for its machine; "" for this one
    lost_since: float | None = None  # since when its state is unknown; None also if it neither is open nor asks
    # For the tree only
    place: Place = Place()  # noqa: RUF009  it is immutable
    kind: Counted | None = None  # as counted in sums; None for a name that shares the row of the task below it
    own_findings: tuple[Finding, ...] = ()  # rules that its own documents and attempts break
    problem: Finding | None = None  # the fault of its link
    due: float = math.inf  # the time at which it may change without an event

    @property
    def asked_there(self) -> str:
        """The need of its program by its own records, foreign, if no request shows it; else ""."""
        run = self.run
        return run.waiting if run and self.own_state is State.BLOCKED and not self.request else ""

    @property
    def own_id(self) -> str:
        """The id that the documents of its workspace use."""
        return self.task_id[len(self.scope) :]

    @property
    def shared_id(self) -> str:
        """Its id without the suffix that separates it from another program's task of the same id."""
        return self.own_id.removesuffix(f"#{self.run.source}" if self.run else "")

    @property
    def called(self) -> str:
        """Its name in a row, without our mark between a workspace and its task."""
        return self.title.replace("›", ">")

    @property
    def alive_at(self) -> float | None:
        """The last sign of life of the task or of one below it; None if unknown."""
        return max(self.updated_at, self.below.active_at if self.below else 0.0) or None

    @property
    def open_below(self) -> int:
        """The number of unfinished tasks below, which wait for this one's answer."""
        return self.below.open if self.below else 0

    @property
    def shares_row(self) -> bool:
        """Whether it is only named and has one task below it: both share one row and count as one."""
        return self.inferred and not self.workspace and len(self.children) == 1

    @property
    def needs_operator(self) -> bool:
        return self.ask is not None

    @property
    def request(self) -> Request | None:
        """The first open request, whether it waits for the operator or was decided."""
        return self.requests[0] if self.requests and self.requests[0].is_open else None

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def snoozed(self) -> bool:
        return self.snoozed_until is not None

    @property
    def known_state(self) -> State:
        """Its state when it was last heard of."""
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
        """The execution of the latest attempt as a session store shows it."""
        return self.latest.run

    @property
    def doing(self) -> Activity | None:
        """Its activity while it is working, from its session, else its checklist; None if neither has any."""
        return self.did if self.state is State.WORKING else None

    @property
    def did(self) -> Activity | None:
        """Its activity as in `doing`; for a task of unknown state, the last known activity."""
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
        """The decision about the current return."""
        return self.latest.binding

    @property
    def is_session(self) -> bool:
        """Whether it is a session begun by a human, not handed over."""
        run = self.run
        return run is not None and run.parent_session is None

    @property
    def answers_in_prose(self) -> bool:
        """Whether it was handed a packet, which asks for a return, but ended with words that follow no contract."""
        latest, run = self.latest, self.run
        was_handed = latest.packet and not latest.returned and run and run.parent_session
        return bool(was_handed and run and run.state is RunState.ENDED and run.said)

    @property
    def handoff_fault(self) -> str | None:
        """The first error of a handoff on which nobody has begun work."""
        given = self.latest.handoff if self.own_state is State.SUBMITTED and not self.run else None
        errors = (one.message for one in (given.findings if given else ()) if one.severity is Severity.ERROR)
        return next((one.partition("; ")[0].rstrip(".") for one in errors), None)

    @property
    def waits_for_work(self) -> bool:
        """Whether it is an idle session while a task below it works in the background."""
        is_idle = self.own_state is State.COMPLETED and self.is_session and not self.inferred
        return is_idle and self.below is not None and any(one.state in _GOES_ON for one in self.below.counts)

    @property
    def attempt(self) -> int:
        return self.latest.number

    @property
    def packet(self) -> Handoff | None:
        """The handoff of the latest attempt that has one."""
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
        """(done, total) of the todos, else of the phases that the return counts; None if neither is known."""
        if self.todos:
            return sum(todo.status is TodoStatus.DONE for todo in self.todos), len(self.todos)
        return self.result.progress if self.result else None


def sums_of(tasks: Iterable[Task], *, deep: bool = False) -> Below:
    """Return the sums over some tasks, or `deep` also over those below them."""
    tasks = [*tasks]
    tokens, active_at = sum(task.tokens or 0 for task in tasks), max([task.updated_at for task in tasks], default=0.0)
    sums = Below(Counter(task.kind for task in tasks if task.kind), tokens, active_at)
    for below in [task.below for task in tasks if task.below] if deep else ():
        sums.counts.update(below.counts)
        sums.tokens += below.tokens
        sums.active_at = max(sums.active_at, below.active_at)
    return sums
