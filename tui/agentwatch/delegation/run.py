"""Runs: executions of tasks as the session stores of agent programs show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from agentwatch.contracts.shapes import Document, Handoff, Texts, Todo, Todos, TodoStatus
from agentwatch.delegation.request import Permit

if TYPE_CHECKING:
    from agentwatch.delegation.events import Ran

Session = tuple[str, str]  # (source, session id)


class RunState(StrEnum):
    """The state of a run by its store. Killed sessions leave `working` behind: silence tells, not the store."""

    SUBMITTED = "submitted"  # asked for; no sign of life of its own
    WORKING = "working"
    ENDED = "ended"  # it came to its end by itself; whether its return is any good is another question
    FAILED = "failed"  # it ended by a technical failure, was refused before it began, or was left behind unfinished
    CANCELED = "canceled"  # A human aborted it. What it had said by then is no return.


LONGEST_DOING = 200  # characters of what an agent does that are kept


class ActivityKind(StrEnum):
    """What the last thing is that an agent did: it called a tool, said something, or went on in its checklist."""

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
    """Who began a round of a session."""

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
        """What orders it among others: a clock may have been set back, what a parent wrote stays in its order."""
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


class Runs:
    """All runs that were observed, by the task and the session that they execute, and by the session that asked."""

    def __init__(self) -> None:
        self.all: dict[str, Ran] = {}  # those observed first first
        self.executing: dict[Session, str] = {}  # by session, the task that it executes
        self._paths: dict[Texts, Texts] = {}
        self._decided: dict[str, str] = {}  # by decision, the task that it is about

    def _named_by(self, run: Run) -> str:
        """The task that a run was asked for. One that was asked in words goes on with the task of the decision that
        they name: a program that cannot send on a child begins another."""
        named = run.prompt.decision_id if run.prompt and run.parent_session and not run.packet else None
        return self._decided.get(named or "", run.task_id)

    def decide(self, decision_id: str, task_id: str) -> set[str]:
        """A decision about a task is known. Returns the tasks that this concerns beside it."""
        if self._decided.get(decision_id) == task_id:
            return set()
        runs = [ran for ran in self.all.values() if ran.run and ran.run.prompt]
        again = [ran for ran in runs if ran.run and ran.run.prompt and ran.run.prompt.decision_id == decision_id]
        concerned = [self.see(ran._replace(run=None)) for ran in again]
        self._decided[decision_id] = task_id
        return set[str]().union(*concerned, *map(self.see, again))

    def known(self, key: str) -> Run | None:
        """A run as it was last seen."""
        ran = self.all.get(key)
        return ran.run if ran else None

    def _first(self, task_id: str) -> str:
        """The program that used an id first: its task has it bare."""
        return next((ran.run.source for ran in self._of("task", task_id) if ran.run), "")

    def task_of(self, run: Run) -> str:
        """The task that a run executes: programs share none, so all but the first stand behind an id that they use."""
        named = self._named_by(run)
        return named if self._first(named) in ("", run.source) else f"{named}#{run.source}"

    def of_task(self, task_id: str) -> list[Ran]:
        """The runs of a task, in the order in which they began."""
        bare, _, program = task_id.rpartition("#")
        ways = {task_id: self._first(task_id), **({bare: program} if program != self._first(bare) else {})}
        known = ((ran, ways[one]) for one in ways for ran in self._of("task", one))
        return [ran for ran, source in known if ran.run and ran.run.source == source]

    def _of(self, *key: str) -> list[Ran]:
        runs = (self.all[one] for one in self._paths.get(key, ()))
        return sorted(runs, key=lambda ran: (ran.run.began_at if ran.run else 0.0, ran.path))

    def of_session(self, session: Session) -> list[Run]:
        """The runs of a session, in the order in which they began: there is one, as a rule."""
        return [ran.run for ran in self._of("session", *session) if ran.run]

    def below(self, session: Session) -> Iterator[Run]:
        """The runs that a session asked for, and those that these did, each behind the one that asked."""
        pending, seen = [session], {session}
        while pending:
            for ran in self._of("asked by", *pending.pop()):
                if ran.run and ran.run.session not in seen:
                    seen.add(ran.run.session)
                    pending.append(ran.run.session)
                    yield ran.run

    def see(self, ran: Ran) -> set[str]:
        """A run is like this now. Returns the tasks that this concerns."""
        path, before, run = ran.path, self.known(ran.path), ran.run
        if not run:
            self.all.pop(path, None)
        else:
            self.all[path] = ran
        if self._keys(before) != self._keys(run):
            for key in self._keys(before):
                self._paths[key] = tuple(one for one in self._paths[key] if one != path)
            for key in self._keys(run):
                self._paths[key] = (*self._paths.get(key, ()), path)
        concerned = set[str]()
        for one in filter(None, (before, run)):
            same = [other.run for other in self._of("task", self._named_by(one)) if other.run]
            # Where programs use one id, which of them has it bare may be different now.
            for each in (one, *(same if {other.source for other in same} - {one.source} else ())):
                # Its requests belong to the task that it executes, if that is known.
                concerned |= {self._named_by(each), each.session_id, self.executing.pop(each.session, each.session_id)}
                if runs := self.of_session(each.session):
                    self.executing[each.session] = self.task_of(runs[-1])
                    concerned.add(self.executing[each.session])
        return concerned

    def _keys(self, run: Run | None) -> list[Texts]:
        if not run:
            return []
        asked_by = "asked by", run.source, run.parent_session or ""
        return [("task", self._named_by(run)), ("session", *run.session), asked_by]
