"""The events, the only input of the delegation tree. Their parts are runs (executions of tasks) and claims."""

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
    """The state of a run in its session store. A killed session stays `working` in the store."""

    SUBMITTED = "submitted"  # asked for, but without a sign of life
    WORKING = "working"
    ENDED = "ended"  # it ended by itself, perhaps with a wrong return
    FAILED = "failed"  # a technical failure ended it, it was refused, or it was left unfinished
    CANCELED = "canceled"  # a human aborted it, so its last words are no return


LONGEST_DOING = 200  # the most characters of an activity that are kept


class ActivityKind(StrEnum):
    """The kind of an agent's last activity: a call of a tool, words, or a step of its checklist."""

    TOOL = "tool"
    WORDS = "words"
    TODO = "todo"


class Activity(NamedTuple):
    """The last known activity of an agent. The texts are untrusted."""

    at: float  # when it began, in epoch seconds
    kind: ActivityKind
    what: str = ""  # the name of the tool
    about: str = ""  # the first line of the main argument, of the words or of the todo
    over: bool = False  # the tool has given its result, or the todo is ticked
    repeats: int = 1  # how often the same call came in a row


MOST_PERMITS = 16  # so many permits of a run are kept: the latest


@dataclass(frozen=True, slots=True)
class Message:
    """A text that an agent handed over or handed back. `digest` is the sha256 of its UTF-8 bytes, in hex."""

    at: float
    digest: str
    opening: str  # the first line that is not empty, at most 200 characters
    reading: Document | None = None  # the text as a document; None if it follows no contract
    packet: Document | None = None  # the handoff packet in the text, if the text is a return
    decision_id: str | None = None  # the id of a decision that the text names


class StartedBy(StrEnum):
    """The party that began a turn of a session."""

    PARENT = "parent"  # the parent that asked for the session
    HOOK = "hook"  # a hook that kept the child from ending
    PROGRAM = "program"  # nobody asked: the program told the session something, or went on by itself


@dataclass(frozen=True, slots=True)
class Turn:
    """The work of a session on one prompt. The prompt is None if it is unknown."""

    began_at: float
    prompt: Message | None = None
    asker: StartedBy = StartedBy.PROGRAM
    state: RunState = RunState.WORKING
    said: Message | None = None
    ended_at: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a task in its own session. Each change emits the whole run again. The texts are untrusted."""

    source: str
    session_id: str  # the program's id of the session, of the agent, or of the refused call
    parent_session: str | None  # the session that asked for it; None if a human did
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
    said: Message | None = None  # the last text of a child that has ended
    rounds: tuple[Turn, ...] = ()  # the turns of a session that got further prompts, oldest first
    todos: Todos | None = None
    tokens: int | None = None  # the tokens that it has used so far
    doing: Activity | None = None  # its current or last activity; None if unknown
    background: bool = False
    process_gone: bool | None = None  # whether its process is gone; None if unknown
    one_shot: bool = False  # its program ends after one turn, so no human waits in front of it
    waiting: str = ""  # its need for a human, such as "an answer: Which one?"
    asked_at: float | None = None  # when its parent asked for it; the runs of a parent are sorted by this time
    permits: tuple[Permit, ...] = ()  # the latest records of allowed or refused calls, oldest first

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def packet(self) -> Handoff | None:
        """The handoff packet in the prompt, or None. A prompt of a human has no packet."""
        return find_packet(self.prompt) if self.parent_session else None

    @property
    def task_id(self) -> str:
        """The task id in the packet, or else the session id."""
        packet = self.packet
        return (packet.task_id if packet else None) or self.session_id

    @property
    def began_at(self) -> float:
        """The time by which runs are sorted: when the parent asked, or else when the run started."""
        return self.started_at if self.asked_at is None else self.asked_at

    def cut_rounds(self, first: int, end: int) -> Run:
        """Return a copy of the run that has only the turns `rounds[first:end]`."""
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


def find_moved_todo(before: Iterable[Todo] | None, after: Iterable[Todo] | None, at: float) -> Activity | None:
    """Return the todo that was begun after `before`, or else the last todo that was ticked after `before`, or None."""
    known = {todo.text: todo.status for todo in before or ()}
    moved = {todo.status: todo.text for todo in after or () if known.get(todo.text) is not todo.status}
    status = next((one for one in (TodoStatus.IN_PROGRESS, TodoStatus.DONE) if one in moved), None)
    is_over = status is TodoStatus.DONE
    return Activity(at, ActivityKind.TODO, about=moved[status][:LONGEST_DOING], over=is_over) if status else None


def find_packet(message: Message | None) -> Handoff | None:
    """Return the handoff packet in a prompt, or None."""
    reading = None if not message else message.packet or message.reading
    return reading.document if reading and isinstance(reading.document, Handoff) else None


# Claims


class Verdict(StrEnum):
    """The result of checking a claim. An unverifiable claim is never shown as verified."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Call(NamedTuple):
    """A tool call in a transcript: the places of the call and of its result, and its time (epoch seconds)."""

    source: str
    session_id: str
    place: tuple[int, int]
    answered: tuple[int, int] | None
    at: float


class Claim(NamedTuple):
    """A claim of a return, with its verdict. The path and the reason in `detail` are untrusted."""

    kind: str
    path: str
    verdict: Verdict
    detail: str
    lines: tuple[int, int] | None = None  # the first and the last line, from 1
    file: str | None = None  # the path, in the workspace, of the file that the claim means
    is_missing: bool = False  # the claim is false because the file does not exist
    call: Call | None = None  # the command on which the verdict rests


def merge_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Join claims about the same file and lines. The joined claim lists all kinds, such as "created, evidence"."""
    alike: dict[tuple[str, tuple[int, int] | None, Verdict], list[Claim]] = {}
    for claim in claims:
        lines = None if claim.is_missing else claim.lines
        alike.setdefault((claim.file or claim.path, lines, claim.verdict), []).append(claim)
    kinds = (", ".join(dict.fromkeys(one.kind for one in same)) for same in alike.values())
    return [same[0]._replace(kind=kind) for same, kind in zip(alike.values(), kinds, strict=True)]


def has_false_claim(claims: tuple[Claim, ...]) -> bool:
    """Tell whether a claim is false."""
    return overall_verdict(claims) is Verdict.CONTRADICTED


def overall_verdict(claims: tuple[Claim, ...]) -> Verdict | None:
    """Return the verdict over all claims: contradicted if any claim is false, else verified if any claim is verified.
    Return None if all claims are unverifiable, or if there are none."""
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None


# Events


class Rules(NamedTuple):
    """The settings by which a tree judges tasks."""

    strict: bool = True  # whether an attempt has failed if its return breaks its contract
    stale_after: float = 600.0  # after so many seconds of silence, a working task is stale
    max_retries: int = 1  # the retries that a parent may start
    low_confidence: float = 0.5  # a completed report with a lower confidence needs a review
    demands: bool = False  # whether a child has failed if its last words follow no contract
    history_before: float = float("-inf")  # a task whose last sign of life was before this time (epoch seconds) is past


class Seen(NamedTuple):
    """A file now has this document. The `seq` of events is their order, even if they arrive in another order."""

    seq: int
    at: float  # the time of this version, in epoch seconds
    path: str  # in the workspace
    digest: str  # the sha256 of the bytes, in hex
    document: Fields
    findings: tuple[Finding, ...] = ()
    incomplete: bool = False  # the text ends in the middle, and may still be written
    stored: bool = False  # the document is from a session, and `path` is the key of the run


class Gone(NamedTuple):
    """A file is gone, or no longer has a document."""

    seq: int
    at: float
    path: str


class Unreadable(NamedTuple):
    """A file with the name of a contract could not be read, or its content follows no contract."""

    seq: int
    at: float
    path: str
    finding: Finding


class Checked(NamedTuple):
    """The claims of a return were checked against the evidence. `digest` is the digest of the return."""

    seq: int
    at: float
    path: str
    digest: str
    claims: tuple[Claim, ...]


class Ran(NamedTuple):
    """The present state of a run. `run` is None if the session store no longer has it. `path` is the key of the run."""

    seq: int
    at: float
    path: str
    run: Run | None


class Decided(NamedTuple):
    """The operator has decided, or a decision has reached a further stage. `path` is the id of the decision."""

    seq: int
    at: float
    path: str
    decision: Decision


class Requested(NamedTuple):
    """The present state of a request. `request` is None if it is forgotten. `path` is the id of the request."""

    seq: int
    at: float
    path: str
    request: Request | None


class Put(NamedTuple):
    """The operator put a task aside: acknowledged or snoozed it. `mark` is the result of `mark_of` at that time."""

    mark: str
    at: float
    snoozed: bool = False
    until: float | None = None

    @property
    def ends_at(self) -> float:
        """The latest time at which the task needs the operator again."""
        return math.inf if self.until is None else self.until


class Aside(NamedTuple):
    """`put`: how the operator last put a task aside. `seen`: the task's mark when the operator last looked at it."""

    put: Put | None = None
    seen: str | None = None


class Noted(NamedTuple):
    """The operator has looked at a task or put it aside. `path` is the id of the task."""

    seq: int
    at: float
    path: str
    aside: Aside


class Looked(NamedTuple):
    """The operator has seen all changes until the time `at`."""

    seq: int
    at: float


class Lost(NamedTuple):
    """The workspace's host has been unreachable since the time `at`."""

    seq: int
    at: float


class Reached(NamedTuple):
    """The host is reachable again, so the known state of the workspace is current."""

    seq: int
    at: float


class Ruled(NamedTuple):
    """The rules by which the workspace's host judges tasks."""

    seq: int
    at: float
    rules: Rules


class Tick(NamedTuple):
    """Time has passed, so a task may have been silent for too long."""

    seq: int
    at: float


Event = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested | Noted | Looked | Lost | Reached | Ruled | Tick
