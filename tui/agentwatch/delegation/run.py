"""Runs: executions of tasks as the session stores of agent programs show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.contracts.shapes import Handoff, Reading, Todo, TodoStatus

if TYPE_CHECKING:
    from agentwatch.delegation.events import Ran

Session = tuple[str, str]
"""(source, session id)."""


class RunState(StrEnum):
    """What the store says of a run. Killed sessions leave `working` behind: silence tells, not the store."""

    SUBMITTED = "submitted"
    """Asked for; no sign of life of its own."""
    WORKING = "working"
    ENDED = "ended"
    """It came to its end by itself; whether its return is any good is another question."""
    FAILED = "failed"
    """It ended by a technical failure, was refused before it began, or was left behind unfinished."""
    CANCELED = "canceled"
    """A human aborted it. What it had said by then is no return."""


LONGEST_DOING: Final = 200
"""Characters of what an agent does that are kept."""


class DoingKind(StrEnum):
    """What the last thing is that an agent did: it called a tool, said something, or went on in its checklist."""

    TOOL = "tool"
    WORDS = "words"
    TODO = "todo"


class Doing(NamedTuple):
    """What an agent does, as the last record says that says so. Texts are foreign and unsanitised.

    `at` is when it began or was said, in seconds since the epoch. `what` is the tool, by the name that the program has
    for it, "" otherwise. `about` is its main argument (a path in the workspace stands from there on), or the words, or
    the todo: the first line, of at most 200 characters. `over`: the tool has given its result, or the todo is ticked,
    and not only begun. `repeats` says how often the same tool was called with the same arguments, without another call
    between.
    """

    at: float
    kind: DoingKind
    what: str = ""
    about: str = ""
    over: bool = False
    repeats: int = 1


MOST_PERMITS: Final = 16
"""So many of a run are kept, the latest."""


class Permitter(StrEnum):
    """Who allowed or refused a call, as the program's own record says."""

    HOOK = "hook"
    """A hook, whose it was is not said."""
    PERSON = "person"
    RULE = "rule"
    """A rule or a mode of the program: nobody was asked."""
    UNKNOWN = "unknown"


class Permit(NamedTuple):
    """What the program's own records say of a call that may have been asked about.

    `input_sha256` is as `request.input_text` has it. `allowed` is None where that is not said. `at` is when it was
    recorded (epoch seconds), `words` what the model was told of a refusal, or was answered; foreign.
    """

    call_id: str
    tool: str
    input_sha256: str
    allowed: bool | None
    by: Permitter
    at: float
    words: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A text handed over or handed back. `digest` is the sha256 of its UTF-8 bytes, in hex.

    `at` is in seconds since the epoch. `reading` is what the contracts find in it, None where it follows none.
    `packet` is the handoff packet that stands in it beside a return, as an example or an echo of the other may.
    `opening` is its first line that is not empty, of at most 200 characters, for where the whole text has no room.
    """

    at: float
    digest: str
    opening: str
    reading: Reading | None = None
    packet: Reading | None = None


class Asker(StrEnum):
    """Who began a round of a session."""

    PARENT = "parent"
    """Who asked for the session in the first place."""
    HOOK = "hook"
    """A hook that did not let the child end."""
    PROGRAM = "program"
    """Nobody: the program told the session of something, or went on by itself."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a session did with one prompt; a session that is sent on has several rounds.

    `prompt` is what it was begun with, None where that is not known. The rest is as in a run. Times are seconds since
    the epoch.
    """

    began_at: float
    prompt: Message | None = None
    asker: Asker = Asker.PROGRAM
    state: RunState = RunState.WORKING
    said: Message | None = None
    ended_at: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a task in a session of its own. A source emits the whole run again whenever it has changed.

    `source` is the name of the source, `session_id` the program's own id: of the session, of the agent inside it, or
    of the call that was refused before a session existed. `parent_session` is the id of the run that asked for this
    one, None for a session that a human began. `link` says in a few words by what the parent is known.
    `place` is the absolute path of the file or database that shows it.

    `prompt` is what the parent gave; None where it is not to be had, `prompt_missing` says why ("encrypted by Codex").
    `said` is the last whole text of the child once it has ended. `reason` is why the run failed or was cancelled, in
    the program's words. `rounds` are those of a session that was sent on, oldest first: the last of them stands as the
    run does, and tells only how it began; a session with one round may leave them out.

    `asked_at` is when the parent asked for it, by a clock that never goes back in the parent's transcript, so that it
    orders the runs of one parent; None where that is not known.

    Times are seconds since the epoch; `updated_at` is the last sign of life, `process_gone` whether the program that
    ran it is known to be gone (None: not known). Texts are foreign and unsanitised.
    """

    source: str
    session_id: str
    parent_session: str | None
    state: RunState
    place: str
    started_at: float
    updated_at: float
    ended_at: float | None = None
    link: str = ""
    reason: str = ""
    title: str | None = None
    agent: str | None = None
    mode: str | None = None
    model: str | None = None
    prompt: Message | None = None
    prompt_missing: str = ""
    said: Message | None = None
    rounds: tuple[Round, ...] = ()
    todos: tuple[Todo, ...] | None = None
    tokens: int | None = None
    """Those used so far."""
    doing: Doing | None = None
    """What it does, or did last; None where its store does not say."""
    background: bool = False
    process_gone: bool | None = None
    waiting: str = ""
    """What a working run waits for from a human, in a few words: "an answer: Which one?". "" where it does not."""
    asked_at: float | None = None
    permits: tuple[Permit, ...] = ()
    """What became of the calls that were asked about, oldest first: the latest `MOST_PERMITS`."""

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def packet(self) -> Handoff | None:
        """The handoff packet that it was handed; None where it was asked in words alone, or by a human."""
        return packet_in(self.prompt) if self.parent_session is not None else None

    @property
    def task_id(self) -> str:
        """That of the packet handed over, else the id of the session. A human's session is its own task."""
        packet = self.packet
        return (packet.task_id if packet is not None else None) or self.session_id

    @property
    def began_at(self) -> float:
        """What orders it among others: a clock may have been set back, what a parent wrote stays in its order."""
        return self.started_at if self.asked_at is None else self.asked_at

    @property
    def earlier(self) -> tuple[Message, ...]:
        """What was said at the end of the rounds before the last one, oldest first."""
        return tuple(one.said for one in self.rounds[:-1] if one.said is not None)

    def part(self, first: int, end: int) -> Run:
        """The rounds from `first` up to, and without, `end`, as a run of their own.

        What the store has only of the whole session (tokens, checklist, process, doing) goes with the last round.
        """
        if not self.rounds:
            return self
        begun, last = self.rounds[first], self.rounds[end - 1]
        part = replace(self, rounds=self.rounds[first:end])
        if self.permits:
            since = begun.began_at if first else float("-inf")
            until = self.rounds[end].began_at if end < len(self.rounds) else float("inf")
            part = replace(part, permits=tuple(one for one in self.permits if since <= one.at < until))
        if first:
            part = replace(part, started_at=begun.began_at, prompt=begun.prompt, asked_at=None)
        if end == len(self.rounds):
            return part
        return replace(
            part,
            state=last.state,
            said=last.said,
            ended_at=last.ended_at,
            reason=last.reason,
            updated_at=self.rounds[end].began_at if last.ended_at is None else last.ended_at,
            todos=None,
            tokens=None,
            doing=None,
            process_gone=None,
            waiting="",
        )


def todo_moved(before: Iterable[Todo] | None, after: Iterable[Todo] | None, at: float) -> Doing | None:
    """The todo that was ticked last, of those that are not as `before`, else the one that was begun last.

    None where none of them has moved. Of a checklist that was not known before, what is in progress says more.
    """
    known = {todo.text: todo.status for todo in before or ()}
    moved = {todo.status: todo.text for todo in after or () if known.get(todo.text) is not todo.status}
    ticked, begun = moved.get(TodoStatus.DONE), moved.get(TodoStatus.IN_PROGRESS)
    if ticked is not None and (before is not None or begun is None):
        return Doing(at, DoingKind.TODO, about=ticked[:LONGEST_DOING], over=True)
    return Doing(at, DoingKind.TODO, about=begun[:LONGEST_DOING]) if begun is not None else None


def packet_in(message: Message | None) -> Handoff | None:
    """The handoff packet in a text that was handed over."""
    reading = None if message is None else message.packet or message.reading
    return reading.document if reading is not None and isinstance(reading.document, Handoff) else None


class Runs:
    """The latest state of every run, by its key, its task and its session."""

    def __init__(self) -> None:
        self.all: dict[str, Ran] = {}
        """Those observed first first."""
        self._by_task: defaultdict[str, dict[str, Ran]] = defaultdict(dict)
        self._by_session: defaultdict[Session, dict[str, Ran]] = defaultdict(dict)
        self._asked_for: defaultdict[Session, dict[str, Ran]] = defaultdict(dict)
        """By the session that asked."""

    def known(self, key: str) -> Run | None:
        """A run as it was last seen."""
        ran = self.all.get(key)
        return ran.run if ran is not None else None

    def of_task(self, task_id: str) -> list[Ran]:
        """The runs of a task, in the order in which they began."""
        return _in_order(self._by_task.get(task_id, {}))

    def of_session(self, session: Session) -> list[Run]:
        """The runs of a session, in the order in which they began: there is one, as a rule."""
        return [ran.run for ran in _in_order(self._by_session.get(session, {})) if ran.run is not None]

    def task_of(self, session: Session) -> str | None:
        """The task that a session executes, None where nothing is known of it."""
        runs = self.of_session(session)
        return runs[-1].task_id if runs else None

    def below(self, session: Session) -> Iterator[Run]:
        """The runs that a session asked for, and those that these did, each behind the one that asked."""
        pending, seen = [session], {session}
        while pending:
            for _, ran in sorted(self._asked_for.get(pending.pop(), {}).items()):
                if (run := ran.run) is not None and run.session not in seen:
                    seen.add(run.session)
                    pending.append(run.session)
                    yield run

    def began_in(self, run: Run) -> str:
        """The id of the session in which all began that led to a run, as far as it is known."""
        session, seen = run.session, set[Session]()
        while session not in seen and (runs := self.of_session(session)) and (above := runs[-1].parent_session):
            seen.add(session)
            session = run.source, above
        return session[1]

    def see(self, ran: Ran) -> set[str]:
        """A run is like this now. Returns the tasks that this concerns."""
        before, run = self.known(ran.path), ran.run
        if before is not None:
            del self._by_task[before.task_id][ran.path], self._by_session[before.session][ran.path]
            self._asked_for[before.source, before.parent_session or ""].pop(ran.path, None)
        if run is None:
            self.all.pop(ran.path, None)
        else:
            self.all[ran.path] = self._by_task[run.task_id][ran.path] = self._by_session[run.session][ran.path] = ran
            if run.parent_session is not None:
                self._asked_for[run.source, run.parent_session][ran.path] = ran
        concerned = {one.task_id for one in (before, run) if one is not None}
        place = before and (before.session, before.task_id, before.parent_session)
        if place != (run and (run.session, run.task_id, run.parent_session)):
            # Where those below it began, and who asked for them, may be different.
            for session in {one.session for one in (before, run) if one is not None}:
                concerned |= {one.task_id for one in self.below(session)}
        return concerned


def _in_order(runs: dict[str, Ran]) -> list[Ran]:
    return sorted(runs.values(), key=lambda ran: (ran.run.began_at if ran.run else 0.0, ran.path))
