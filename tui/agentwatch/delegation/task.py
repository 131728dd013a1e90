"""Tasks: the nodes of the delegation tree, as the faces read them."""

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
    """How a task stands on every face, least urgent first. `is_open`: somebody works on it, or waits for it."""

    glyph: str
    word: str
    is_open: bool
    urgency: int

    CANCELED = "canceled", "–"
    COMPLETED = "completed", "✓"
    IDLE = "idle", "◉", False, "your turn"  # a session that a human began and that has ended its turn
    PARTIAL = "partial", "◑"
    FALSE = "false", "⚑"  # it says that it is done, and a claim is false
    UNKNOWN = "unknown", "?", True
    SUBMITTED = "submitted", "○", True
    WAITING = "waiting", "◇", True  # for those below it, of whom nobody works
    WORKING = "working", "◐", True
    RETRYING = "retrying", "↻", True
    ESCALATED = "escalated", "↑", True
    SILENT = "silent", "◌", True  # it works, and nothing was heard of it for too long
    GONE = "gone", "⊘", True  # it worked, and its process is known to be gone
    BLOCKED = "blocked", "■", True
    FAILED = "failed", "✗"
    INVALID = "invalid", "‼"

    def __new__(cls, value: str, glyph: str = "", is_open: bool = False, word: str = "") -> Shown:
        shown = str.__new__(cls, value)
        shown._value_, shown.glyph, shown.word = value, glyph, word or value
        shown.is_open, shown.urgency = is_open, len(cls.__members__)
        return shown


class State(StrEnum):
    """Where a task stands by its files, runs and decisions, least urgent first."""

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


# States that say what goes on: while the host cannot be reached, nobody knows that.
AT_WORK = frozenset({State.SUBMITTED, State.WORKING, State.RETRYING, State.ESCALATED})

_GOES_ON = frozenset({State.WORKING, State.UNKNOWN})

T = TypeVar("T")

BETWEEN = " › "  # stands between the name of a workspace and that of its task, where one row says both


class Basis(StrEnum):
    """Why a task hangs below its parent."""

    PACKET = "packet"
    SESSION = "session"
    DELEGATION_PATH = "delegation_path"
    DOTTED_PREFIX = "dotted_prefix"
    DIRECTORY = "directory"
    NONE = "none"


class Retry(NamedTuple):
    """The retries that error-propagation allows; `restored`: one of them is owed to a fitter."""

    max_retries: int = 1
    remaining: int = 1
    recommended: bool | None = None
    hint: str | None = None
    restored: bool = False


class Counted(NamedTuple):
    """As what the sums above count a task."""

    state: State
    shown: Shown
    asks: bool = False
    verdict: Verdict | None = None  # of a completed task, and of a contradicted one
    stale: bool = False
    past: bool = False


@dataclass(slots=True)
class Below:
    """Sums over some tasks: those below one, as a rule."""

    counts: Counter[Counted] = field(default_factory=Counter)
    tokens: int = 0  # used by all attempts
    active_at: float = 0.0  # the last sign of life

    def count(self, key: Callable[[Counted], T]) -> Counter[T]:
        """How many tasks have each of what they are asked for."""
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
        """How many completed tasks are verified, and how many tasks are contradicted; None stands for all others."""
        return self.count(lambda one: one.verdict)

    @property
    def open(self) -> int:
        """Tasks that have not ended."""
        return self.count(lambda one: one.state.is_open)[True]

    @property
    def stale(self) -> int:
        """Tasks that work and are silent, without those that are past."""
        return self.count(lambda one: one.stale and not one.past)[True]

    @property
    def needs_operator(self) -> int:
        return self.count(lambda one: one.asks)[True]

    @property
    def worst(self) -> Counted | None:
        """The most urgent of those that wait for the operator."""
        return max((one for one in self.counts if one.asks), key=lambda one: one.shown.urgency, default=None)


@dataclass(slots=True)
class Attempt:
    """One execution of a task: the handoff that asked for it and the return that ended it, as far as seen."""

    number: int
    state: State = State.SUBMITTED
    session_id: str | None = None
    handoff: Seen | None = None
    returned: Seen | None = None
    rival: Seen | None = None  # A return in another file that says otherwise, so that nobody can tell which is true
    started_at: float | None = None
    first_at: float | None = None  # the first sign of work in files
    run: Run | None = None  # the execution as a session store shows it, None where only files speak of it
    again: bool = False  # it goes on in the session of the attempt before, with the same handoff
    superseded: tuple[Decision, ...] = ()  # about a return of this attempt that is gone and that nobody saw
    unasked: bool = False  # its return alone numbers it, after a failure about which nobody decided
    decisions: tuple[Decision, ...] = ()  # also about an answer that it gave before in the same session

    @property
    def decision(self) -> Decision | None:
        """The last decision that has not expired."""
        return next((one for one in reversed(self.decisions) if not one.expired), None)

    @property
    def binding(self) -> Decision | None:
        """The decision, as long as it is about the very return and handoff that are there now."""
        decision = self.decision
        if not decision or decision.over:
            return None
        is_now = decision.return_sha256 == (self.returned.digest if self.returned else None)
        is_now = is_now and decision.handoff_sha256 in (None, self.packet_digest or decision.handoff_sha256)
        return decision if is_now or (decision.action is Action.ABORT and self.has_no_result) else None

    @property
    def packet_digest(self) -> str | None:
        """The digest of the handoff; None without one, or where a checklist in it was ticked, which amends nothing."""
        packet = self.packet
        if not self.handoff or not packet or has_moved(packet.todos):
            return None
        return self.handoff.digest

    @property
    def has_no_result(self) -> bool:
        """The result of an aborted child: its final report, or that it failed late."""
        return self.state in (State.BLOCKED, State.FAILED, State.INVALID)

    @property
    def handed_off_at(self) -> float | None:
        """Since when the files that it made count as its own: what a session made in the attempt before does, too."""
        if not self.handoff:
            return None
        return self.handoff.at if self.again else self.started_at

    @property
    def began_at(self) -> float | None:
        """When its work began; where nothing tells that, when it was handed off."""
        signs = [self.first_at, self.run.started_at if self.run else None]
        return min((one for one in signs if one is not None), default=self.started_at)

    @property
    def ended_without_result(self) -> bool:
        """Its session has ended, and the last word of its return is an early marker."""
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
    """Whether a checklist was begun, which is a sign of life."""
    return any(todo.status is not TodoStatus.PENDING for todo in todos or ())


NO_ATTEMPT = Attempt(1)  # of a task that nobody handed out or returned


class Place(NamedTuple):
    """Where a task says that it stands, by its documents, runs and requests."""

    parent_task_id: str | None = None
    asked_by: tuple[Session, ...] = ()  # the sessions, the latest first
    path: tuple[str, ...] = ()  # the ids of the tasks above it by its delegation path, outermost first
    directory: str | None = None  # of its files
    file: str = ""  # its first one
    first_seq: int | None = None  # orders it among its siblings: of its first document; None where it is only named


@dataclass(slots=True)
class Task:
    """One node of the tree, which faces only read. Times are epoch seconds, texts foreign and unsanitised."""

    task_id: str
    title: str
    agent: str | None = None
    parent_id: str | None = None
    parent_basis: Basis = Basis.NONE
    children: Sequence[str] = ()  # task ids, in the order first seen
    inferred: bool = False  # only named in somebody's delegation path; no file speaks of it
    deleted_at: float | None = None  # since when none of its files is there
    state: State = State.SUBMITTED
    own_state: State = State.SUBMITTED  # what the task's own files say; `state` also heeds the tasks below
    shown: Shown = Shown.SUBMITTED  # how every face shows it
    since: float | None = None  # when it came to stand so; None where no sign is known
    late: bool = False  # nobody has begun it for too long
    stale: bool = False  # it works, and is silent: for too long, or because its process is gone
    claims: tuple[Claim, ...] = ()  # what the return of the latest attempt claims, as far as it was checked
    is_checked: bool = False  # what that return claims was held against the evidence
    verdict: Verdict | None = None  # what the claims come to, for a task that says it is done or partly done
    past: bool = False  # its last sign of life was long before the workspace was first watched
    question: str | None = None  # what is open about it, whether it still asks or not
    ask: str | None = None  # the question, where it is not past or put aside
    tokens: int | None = None  # used by all attempts together; None where no store tells
    own_question: str | None = None  # the same, but for its process that is gone
    gone: bool = False  # it works, and its process is gone
    acknowledged: bool = False  # the operator has put aside what is open about it, for as long as that stays as it is
    snoozed_until: float | None = None  # when it asks again at the latest: infinity where only a change ends it
    verdict_at: float | None = None  # since when its claims are false, or none of them is
    seen: bool = True  # whether the operator has looked at it since it ended, failed or changed what it asks
    why: str = ""  # why the task has this state, in words of our own
    attempts: Sequence[Attempt] = ()
    retry: Retry = Retry()  # noqa: RUF009  it is immutable, and one for all
    findings: Sequence[Finding] = ()
    requests: tuple[Request, ...] = ()  # those that wait for the operator first, what presses most before the rest
    todos: Todos | None = None
    todo_moved: Activity | None = None  # the todo that was ticked or begun last, as files tell it
    first_seq: int = 0
    updated_at: float = 0.0  # the last sign of life of the task itself
    ended_at: float | None = None
    ended_with: str | None = None  # the id of a task above that the operator aborted, and this one with it
    below: Below | None = None  # none for a leaf
    scope: str = ""  # what stands before the id, where tasks of several workspaces are shown as one tree
    workspace: str = ""  # the path of the workspace whose top row this is; "" for every task
    host: str = ""  # what the operator calls the machine that it is on; "" for this one
    lost_since: float | None = None  # since when nothing is known of it, though it has not ended, or asks
    # For the tree alone
    place: Place = Place()  # noqa: RUF009  it is immutable
    kind: Counted | None = None  # as what the sums count it; None for a name in the row of the one below it
    own_findings: tuple[Finding, ...] = ()  # what its own documents and attempts break
    problem: Finding | None = None  # what is wrong with its link
    due: float = math.inf  # when time alone may change it

    @property
    def asked_there(self) -> str:
        """The need of its program by its own records, where no request tells of it, foreign; "" for none."""
        run = self.run
        return run.waiting if run and self.own_state is State.BLOCKED and not self.request else ""

    @property
    def own_id(self) -> str:
        """The id that the documents of its workspace call it by."""
        return self.task_id[len(self.scope) :]

    @property
    def shared_id(self) -> str:
        """The same as its own program calls it: a task of another one may have that id, too."""
        return self.own_id.removesuffix(f"#{self.run.source}" if self.run else "")

    @property
    def called(self) -> str:
        """Its name in a row, in which nothing looks like our mark between a workspace and its task."""
        return self.title.replace("›", ">")

    @property
    def alive_at(self) -> float | None:
        """The last sign of life of the task, or of one below it; None where nothing tells."""
        return max(self.updated_at, self.below.active_at if self.below else 0.0) or None

    @property
    def open_below(self) -> int:
        """How many tasks below have not ended and wait for this one's answer."""
        return self.below.open if self.below else 0

    @property
    def shares_row(self) -> bool:
        """It is only named, with one task below it: the row of that one stands for both, and counts as one."""
        return self.inferred and not self.workspace and len(self.children) == 1

    @property
    def needs_operator(self) -> bool:
        return self.ask is not None

    @property
    def request(self) -> Request | None:
        """The open request that comes first, whether it waits for the operator or was decided."""
        return self.requests[0] if self.requests and self.requests[0].is_open else None

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def snoozed(self) -> bool:
        return self.snoozed_until is not None

    @property
    def known_state(self) -> State:
        """How it stood when it was last heard of."""
        if self.state is not State.UNKNOWN:
            return self.state
        has_handed_on = self.below is not None and self.own_state not in (State.RETRYING, State.ESCALATED)
        return State.WORKING if has_handed_on else self.own_state

    @property
    def contradicted(self) -> bool:
        """A claim of the return is false."""
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
        """Its activity while it works: by its session, else by its checklist; None where neither says."""
        return self.did if self.state is State.WORKING else None

    @property
    def did(self) -> Activity | None:
        """The same; of a task of which nothing is known now, what it did when it was last heard of."""
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
        """Whether the operator takes the return that is there as it is."""
        return self.binding is not None and self.binding.action is Action.ACCEPT

    @property
    def binding(self) -> Decision | None:
        """The decision about the very return that is there now."""
        return self.latest.binding

    @property
    def is_session(self) -> bool:
        """A session that a human began: nobody handed it over."""
        run = self.run
        return run is not None and run.parent_session is None

    @property
    def answers_in_prose(self) -> bool:
        """It was handed a packet, which asks for a return, and came to its end with words that follow no contract."""
        latest, run = self.latest, self.run
        was_handed = latest.packet and not latest.returned and run and run.parent_session
        return bool(was_handed and run and run.state is RunState.ENDED and run.said)

    @property
    def handoff_fault(self) -> str | None:
        """The first error of a handoff that nobody has begun with."""
        given = self.latest.handoff if self.own_state is State.SUBMITTED and not self.run else None
        errors = (one.message for one in (given.findings if given else ()) if one.severity is Severity.ERROR)
        return next((one.partition("; ")[0].rstrip(".") for one in errors), None)

    @property
    def waits_for_work(self) -> bool:
        """It is a session that is idle while something works below it, in the background."""
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
        """(done, total) of the todos, else of the phases the return counts; None where neither is known."""
        if self.todos:
            return sum(todo.status is TodoStatus.DONE for todo in self.todos), len(self.todos)
        return self.result.progress if self.result else None


def sums_of(tasks: Iterable[Task], *, deep: bool = False) -> Below:
    """The sums over some tasks, each counted for itself, or `deep`, with those below it."""
    tasks = [*tasks]
    tokens, active_at = sum(task.tokens or 0 for task in tasks), max([task.updated_at for task in tasks], default=0.0)
    sums = Below(Counter(task.kind for task in tasks if task.kind), tokens, active_at)
    for below in [task.below for task in tasks if task.below] if deep else ():
        sums.counts.update(below.counts)
        sums.tokens += below.tokens
        sums.active_at = max(sums.active_at, below.active_at)
    return sums
