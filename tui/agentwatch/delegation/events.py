"""Observations, of which alone the delegation tree is made; runs, which are executions of tasks as the session stores
of agent programs show them; and claims with their verdicts."""

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
    """The state of a run by its store. Killed sessions leave `working` behind: silence tells, not the store."""

    SUBMITTED = "submitted"  # asked for; no sign of life of its own
    WORKING = "working"
    ENDED = "ended"  # it came to its end by itself; whether its return is any good is another question
    FAILED = "failed"  # it ended by a technical failure, was refused before it began, or was left behind unfinished
    CANCELED = "canceled"  # A human aborted it. Its words until then are no return.


LONGEST_DOING = 200  # characters of what an agent does that are kept


class ActivityKind(StrEnum):
    """The kind of the last thing that an agent did: a call, words, or a step of its checklist."""

    TOOL = "tool"
    WORDS = "words"
    TODO = "todo"


class Activity(NamedTuple):
    """The last known activity of an agent. Texts are foreign and unsanitised."""

    at: float  # when it began or was said, in epoch seconds
    kind: ActivityKind
    what: str = ""  # the tool, by the program's name for it
    about: str = ""  # its main argument, the words or the todo: the first line, of at most 200 characters
    over: bool = False  # the tool has given its result, or the todo is ticked
    repeats: int = 1  # the same call so often in a row


MOST_PERMITS = 16  # so many of a run are kept, the latest


@dataclass(frozen=True, slots=True)
class Message:
    """A text handed over or handed back. `digest` is the sha256 of its UTF-8 bytes, in hex."""

    at: float
    digest: str
    opening: str  # its first line that is not empty, of at most 200 characters
    reading: Document | None = None  # None where it follows no contract
    packet: Document | None = None  # the handoff packet that stands in it beside a return
    decision_id: str | None = None  # the decision that it names, where no packet does


class StartedBy(StrEnum):
    """The one that began a round of a session."""

    PARENT = "parent"  # who asked for the session in the first place
    HOOK = "hook"  # A hook that did not let the child end
    PROGRAM = "program"  # nobody: the program told the session of something, or went on by itself


@dataclass(frozen=True, slots=True)
class Turn:
    """The work of a session on one prompt, None where that is not known."""

    began_at: float
    prompt: Message | None = None
    asker: StartedBy = StartedBy.PROGRAM
    state: RunState = RunState.WORKING
    said: Message | None = None
    ended_at: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a task in a session of its own, emitted whole whenever it has changed. Texts are foreign."""

    source: str
    session_id: str  # the program's own id: of the session, the agent inside it, or a call that was refused
    parent_session: str | None  # of the run that asked; None where a human did
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
    rounds: tuple[Turn, ...] = ()  # of a session that was sent on, oldest first
    todos: Todos | None = None
    tokens: int | None = None  # those used so far
    doing: Activity | None = None  # what it does, or did last; None where its store does not say
    background: bool = False
    process_gone: bool | None = None  # None where nobody knows
    one_shot: bool = False  # its program ends with its turn, as far as is known: nobody sits at it
    waiting: str = ""  # what a working run waits for from a human, in a few words: "an answer: Which one?"
    asked_at: float | None = None  # orders the runs of one parent
    permits: tuple[Permit, ...] = ()  # of the calls that were asked about, oldest first: the latest `MOST_PERMITS`

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def packet(self) -> Handoff | None:
        """The handoff packet that it was handed; None where it was asked in words alone, or by a human."""
        return packet_in(self.prompt) if self.parent_session else None

    @property
    def task_id(self) -> str:
        """That of the packet handed over, else the id of the session, which is a human's own task. `Runs.task_of` tells
        it from that of another program."""
        packet = self.packet
        return (packet.task_id if packet else None) or self.session_id

    @property
    def began_at(self) -> float:
        """Its place among others: a clock may have been set back, the words of a parent stay in their order."""
        return self.started_at if self.asked_at is None else self.asked_at

    def part(self, first: int, end: int) -> Run:
        """The rounds from `first` up to, and without, `end`, as a run of their own."""
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
    """The todo that was begun last, of those that are not as `before`, else the one that was ticked last."""
    known = {todo.text: todo.status for todo in before or ()}
    moved = {todo.status: todo.text for todo in after or () if known.get(todo.text) is not todo.status}
    status = next((one for one in (TodoStatus.IN_PROGRESS, TodoStatus.DONE) if one in moved), None)
    is_over = status is TodoStatus.DONE
    return Activity(at, ActivityKind.TODO, about=moved[status][:LONGEST_DOING], over=is_over) if status else None


def packet_in(message: Message | None) -> Handoff | None:
    """The handoff packet in a text that was handed over."""
    reading = None if not message else message.packet or message.reading
    return reading.document if reading and isinstance(reading.document, Handoff) else None


# Claims


class Verdict(StrEnum):
    """The result of checking a claim. Unverifiable is never shown as if it were verified."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Call(NamedTuple):
    """A use of a tool in the transcript of a run: where it stands there, and its result, and when (epoch seconds)."""

    source: str
    session_id: str
    place: tuple[int, int]
    answered: tuple[int, int] | None
    at: float


class Claim(NamedTuple):
    """A claim and its verdict. `path`, as it was claimed, and `detail`, the reason in words, are foreign."""

    kind: str
    path: str
    verdict: Verdict
    detail: str
    lines: tuple[int, int] | None = None  # 1-based, both included
    file: str | None = None  # the path in the workspace that is meant
    is_missing: bool = False  # it is false because nothing is there
    call: Call | None = None  # the command that the verdict rests on


def merged(claims: Iterable[Claim]) -> list[Claim]:
    """The claims, those about one thing as one, whose kind names all of theirs: a file may be created and evidence."""
    alike: dict[tuple[str, tuple[int, int] | None, Verdict], list[Claim]] = {}
    for claim in claims:
        lines = None if claim.is_missing else claim.lines
        alike.setdefault((claim.file or claim.path, lines, claim.verdict), []).append(claim)
    kinds = (", ".join(dict.fromkeys(one.kind for one in same)) for same in alike.values())
    return [same[0]._replace(kind=kind) for same, kind in zip(alike.values(), kinds, strict=True)]


def is_false(claims: tuple[Claim, ...]) -> bool:
    """Whether one of them is."""
    return overall(claims) is Verdict.CONTRADICTED


def overall(claims: tuple[Claim, ...]) -> Verdict | None:
    """The verdict over all claims of a return: one lie is a lie, and without one a claim that is so is enough."""
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None


# Events


class Rules(NamedTuple):
    """How a tree judges."""

    strict: bool = True  # a return that breaks its contract counts as failed
    stale_after: float = 600.0  # seconds
    max_retries: int = 1  # of a parent
    low_confidence: float = 0.5  # a completed report below it asks for a review
    demands: bool = False  # a child of a session that ends without a contract counts as failed
    history_before: float = float("-inf")  # without a sign of life since then (epoch seconds), a task is past


class Seen(NamedTuple):
    """A file holds this document now; `seq` orders observations across files, however they are interleaved later."""

    seq: int
    at: float  # since when, in epoch seconds
    path: str  # in the workspace
    digest: str  # the sha256 of the bytes, in hex
    document: Fields
    findings: tuple[Finding, ...] = ()
    incomplete: bool = False  # it broke off in the middle, and may still be written
    stored: bool = False  # Of a session: `path` is the key of its run, and there may be prose around the document


class Gone(NamedTuple):
    """The file is gone, or holds no document any more."""

    seq: int
    at: float
    path: str


class Unreadable(NamedTuple):
    """A file that looks like one of ours by its name could not be read, or nothing of ours is in it."""

    seq: int
    at: float
    path: str
    finding: Finding


class Checked(NamedTuple):
    """The claims of the return with this digest, in this file, were held against the evidence."""

    seq: int
    at: float
    path: str
    digest: str
    claims: tuple[Claim, ...]


class Ran(NamedTuple):
    """A run, whose key is `path`, is like this now, as a session store shows it; None: the store no longer has it."""

    seq: int
    at: float
    path: str
    run: Run | None


class Decided(NamedTuple):
    """The operator has decided, or a decision has got further. `path` is the decision's id."""

    seq: int
    at: float
    path: str
    decision: Decision


class Requested(NamedTuple):
    """A request of a program is like this now; None: it is forgotten. `path` is its id."""

    seq: int
    at: float
    path: str
    request: Request | None


class Put(NamedTuple):
    """A task was put aside as it looked then: acknowledged, or snoozed, `until` a time or else until it changes."""

    mark: str
    at: float
    snoozed: bool = False
    until: float | None = None

    @property
    def ends_at(self) -> float:
        """When it asks again at the latest."""
        return math.inf if self.until is None else self.until


class Aside(NamedTuple):
    """How a task was put aside last, and the mark that it had when it was looked at last."""

    put: Put | None = None
    seen: str | None = None


class Noted(NamedTuple):
    """The operator has looked at a task and put it aside as this says. `path` is the task's id."""

    seq: int
    at: float
    path: str
    aside: Aside


class Looked(NamedTuple):
    """The operator knows how things stood `at` a time: nothing from before is new."""

    seq: int
    at: float


class Lost(NamedTuple):
    """Nothing is known of the workspace since then: its host cannot be reached."""

    seq: int
    at: float


class Reached(NamedTuple):
    """The host can be reached, and what is known of the workspace is so."""

    seq: int
    at: float


class Ruled(NamedTuple):
    """Where the workspace is, it is judged by these rules."""

    seq: int
    at: float
    rules: Rules


class Tick(NamedTuple):
    """Time has passed: what is silent for too long turns stale."""

    seq: int
    at: float


Event = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested | Noted | Looked | Lost | Reached | Ruled | Tick
