"""Events (the only input of the delegation tree), runs (executions of tasks that agent programs store), and claims."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from agentwatch.contracts.shapes import Document, Fields, Finding, Handoff, Todo, Todos, TodoStatus
from agentwatch.delegation.decision import Decision, Permit, Request, Session

# Runs


class RunState(StrEnum):
    """The state of a run by its store; a killed session stays `working` there, so only silence shows that it ended."""

    SUBMITTED = "submitted"  # asked for, without a sign of life of its own
    WORKING = "working"
    ENDED = "ended"  # it ended by itself; its return may still be wrong
    FAILED = "failed"  # it ended by a technical failure, was refused before it began, or was left behind unfinished
    CANCELED = "canceled"  # a human aborted it, so its words are no return


LONGEST_DOING = 200  # characters of an activity's text that are kept


class ActivityKind(StrEnum):
    """The kind of an agent's last activity: a call, words, or a step of its checklist."""

    TOOL = "tool"
    WORDS = "words"
    TODO = "todo"


class Activity(NamedTuple):
    """The last known activity of an agent. Texts are foreign and unsanitised."""

    at: float  # when it began or was said, in epoch seconds
    kind: ActivityKind
    what: str = ""  # the tool, as its program calls it
    about: str = ""  # the main argument, the words or the todo: first line, at most 200 characters
    over: bool = False  # the tool has given its result, or the todo is ticked
    repeats: int = 1  # how often the same call came in a row


MOST_PERMITS = 16  # the latest permits of a run that are kept


@dataclass(frozen=True, slots=True)
class Message:
    """A text handed over or handed back. `digest` is the sha256 of its UTF-8 bytes, in hex."""

    at: float
    digest: str
    opening: str  # the first line that is not empty, at most 200 characters
    reading: Document | None = None  # None if it follows no contract
    packet: Document | None = None  # the handoff packet in it, beside a return
    decision_id: str | None = None  # the decision that it names, if no packet names one


class StartedBy(StrEnum):
    """The party that began a round of a session."""

    PARENT = "parent"  # the parent that asked for the session
    HOOK = "hook"  # a hook that did not let the child end
    PROGRAM = "program"  # nobody: the program told the session something, or went on by itself


@dataclass(frozen=True, slots=True)
class Turn:
    """The work of a session on one prompt; `prompt` is None if unknown."""

    began_at: float
    prompt: Message | None = None
    asker: StartedBy = StartedBy.PROGRAM
    state: RunState = RunState.WORKING
    said: Message | None = None
    ended_at: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a task in a session of its own, emitted whole after each change; texts are foreign."""

    source: str
    session_id: str  # the program's id of the session, of the agent inside it, or of a refused call
    parent_session: str | None  # the session that asked; None: a human did
    state: RunState
    place: str
    started_at: float
    updated_at: float
    ended_at: float | None = None
    reason: str = ""
    title: str | None = None
    agent: str | None = None
    mode: str | None = None
    model: str | None = None
    prompt: Message | None = None
    prompt_missing: str = ""
    said: Message | None = None  # the last whole text of a child that has ended
    rounds: tuple[Turn, ...] = ()  # of a session that got further prompts, oldest first
    todos: Todos | None = None
    tokens: int | None = None  # used so far
    doing: Activity | None = None  # its current or last activity; None if its store has none
    background: bool = False
    process_gone: bool | None = None  # None: unknown
    one_shot: bool = False  # its program is known to end with its turn, so that nobody sits at it
    waiting: str = ""  # the human's action that a working run waits for: "an answer: Which one?"
    asked_at: float | None = None  # orders the runs of one parent
    permits: tuple[Permit, ...] = ()  # of calls that may have been asked about, oldest first: the latest `MOST_PERMITS`

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def packet(self) -> Handoff | None:
        """The handoff packet in its prompt; None if the prompt has none or came from a human."""
        return packet_in(self.prompt) if self.parent_session else None

    @property
    def task_id(self) -> str:
        """The task id in its packet, else the session id; `Runs.task_of` distinguishes equal ids of two programs."""
        packet = self.packet
        return (packet.task_id if packet else None) or self.session_id

    @property
    def began_at(self) -> float:
        """The time that orders it: its parent's asking if known, since a clock may have been set back."""
        return self.started_at if self.asked_at is None else self.asked_at

    def part(self, first: int, end: int) -> Run:
        """Return the rounds `first` to `end` (exclusive) as a run of their own."""
        if not self.rounds:
            return self
        begun, last, later = self.rounds[first], self.rounds[end - 1], self.rounds[end:]
        part: dict[str, Any] = {"rounds": self.rounds[first:end]}
        if first:
            part |= {"started_at": begun.began_at, "prompt": begun.prompt, "asked_at": None}
        if later:
            part |= {"state": last.state, "said": last.said, "ended_at": last.ended_at, "reason": last.reason}
            part["updated_at"] = later[0].began_at if last.ended_at is None else last.ended_at
            part |= dict.fromkeys(("todos", "tokens", "doing", "process_gone")) | {"waiting": ""}
        return replace(self, **part)


def todo_moved(before: Iterable[Todo] | None, after: Iterable[Todo] | None, at: float) -> Activity | None:
    """Return the last todo that was begun since `before`, else the last that was ticked, as an activity."""
    known = {todo.text: todo.status for todo in before or ()}
    moved = {todo.status: todo.text for todo in after or () if known.get(todo.text) is not todo.status}
    status = next((one for one in (TodoStatus.IN_PROGRESS, TodoStatus.DONE) if one in moved), None)
    is_over = status is TodoStatus.DONE
    return Activity(at, ActivityKind.TODO, about=moved[status][:LONGEST_DOING], over=is_over) if status else None


def packet_in(message: Message | None) -> Handoff | None:
    """Return the handoff packet in a prompt, or None."""
    reading = None if not message else message.packet or message.reading
    return reading.document if reading and isinstance(reading.document, Handoff) else None


# Claims


class Verdict(StrEnum):
    """The result of checking a claim; an unverifiable claim is never shown as verified."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Call(NamedTuple):
    """A use of a tool in the transcript of a run: its place, the place of its result, and its time (epoch seconds)."""

    source: str
    session_id: str
    place: tuple[int, int]
    answered: tuple[int, int] | None
    at: float


class Claim(NamedTuple):
    """A claim and its verdict; `path` (as claimed) and `detail` (the reason in words) are foreign."""

    kind: str
    path: str
    verdict: Verdict
    detail: str
    lines: tuple[int, int] | None = None  # 1-based, both included
    file: str | None = None  # the path in the workspace that it means
    is_missing: bool = False  # it is false because the file does not exist
    call: Call | None = None  # the command on which the verdict rests


def merged(claims: Iterable[Claim]) -> list[Claim]:
    """Join claims about the same thing; the joined claim lists all their kinds, such as "created, evidence"."""
    alike: dict[tuple[str, tuple[int, int] | None, Verdict], list[Claim]] = {}
    for claim in claims:
        lines = None if claim.is_missing else claim.lines
        alike.setdefault((claim.file or claim.path, lines, claim.verdict), []).append(claim)
    kinds = (", ".join(dict.fromkeys(one.kind for one in same)) for same in alike.values())
    return [same[0]._replace(kind=kind) for same, kind in zip(alike.values(), kinds, strict=True)]


def is_false(claims: tuple[Claim, ...]) -> bool:
    """Tell whether a claim is false."""
    return overall(claims) is Verdict.CONTRADICTED


def overall(claims: tuple[Claim, ...]) -> Verdict | None:
    """Return the verdict over all claims of a return: false if one is false, else verified if one is verified."""
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None


# Events


class Rules(NamedTuple):
    """The settings by which a tree judges."""

    strict: bool = True  # a return that breaks its contract counts as failed
    stale_after: float = 600.0  # seconds
    max_retries: int = 1  # by a parent
    low_confidence: float = 0.5  # a completed report with less confidence asks for a review
    demands: bool = False  # a child session that ends without a contract counts as failed
    history_before: float = float("-inf")  # a task without a sign of life since then (epoch seconds) is past


class Seen(NamedTuple):
    """A file holds this document now; `seq` orders events across files, even if they arrive in another order."""

    seq: int
    at: float  # the time of this version, in epoch seconds
    path: str  # in the workspace
    digest: str  # the sha256 of the bytes, in hex
    document: Fields
    findings: tuple[Finding, ...] = ()
    incomplete: bool = False  # it broke off in the middle, and may still be written
    stored: bool = False  # from a session: `path` is the key of its run, and text may surround the document


class Gone(NamedTuple):
    """A file is gone, or no longer holds a document."""

    seq: int
    at: float
    path: str


class Unreadable(NamedTuple):
    """A file with a contract's name could not be read, or has no content of that contract."""

    seq: int
    at: float
    path: str
    finding: Finding


class Checked(NamedTuple):
    """The claims of the return with this digest in this file were checked against the evidence."""

    seq: int
    at: float
    path: str
    digest: str
    claims: tuple[Claim, ...]


class Ran(NamedTuple):
    """A run, with the key `path`, as its session store shows it now; None: the store no longer has it."""

    seq: int
    at: float
    path: str
    run: Run | None


class Decided(NamedTuple):
    """The operator has decided, or a decision has reached a further stage; `path` is the decision's id."""

    seq: int
    at: float
    path: str
    decision: Decision


class Requested(NamedTuple):
    """A request of a program as it is now; None: it is forgotten. `path` is its id."""

    seq: int
    at: float
    path: str
    request: Request | None


class Put(NamedTuple):
    """A task was put aside in the state `mark`: acknowledged, or snoozed (until a time, or until it changes)."""

    mark: str
    at: float
    snoozed: bool = False
    until: float | None = None

    @property
    def ends_at(self) -> float:
        """The latest time at which the task asks again."""
        return math.inf if self.until is None else self.until


class Aside(NamedTuple):
    """The last putting aside of a task, and its mark when the operator last looked at it."""

    put: Put | None = None
    seen: str | None = None


class Noted(NamedTuple):
    """The operator has looked at a task or put it aside; `path` is the task's id."""

    seq: int
    at: float
    path: str
    aside: Aside


class Looked(NamedTuple):
    """The operator knows the state at the time `at`: nothing older is new."""

    seq: int
    at: float


class Lost(NamedTuple):
    """The workspace's host is unreachable since then, so its state is unknown."""

    seq: int
    at: float


class Reached(NamedTuple):
    """The host is reachable, and the known state of the workspace is current."""

    seq: int
    at: float


class Ruled(NamedTuple):
    """These rules judge the workspace on its host."""

    seq: int
    at: float
    rules: Rules


class Tick(NamedTuple):
    """Time has passed: a task that is silent for too long turns stale."""

    seq: int
    at: float


Event = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested | Noted | Looked | Lost | Reached | Ruled | Tick
