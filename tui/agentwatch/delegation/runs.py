"""Which runs are executions of which task, and whose session asked for whose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agentwatch.contracts.shapes import Handoff, Reading, Return
from agentwatch.delegation.events import Ran
from agentwatch.delegation.indexes import Groups
from agentwatch.delegation.run import Message, Round, Run, RunState
from agentwatch.delegation.task import Version

Session = tuple[str, str]
"""(source, session id)."""


class Runs:
    """The latest state of every run, by its key and by task."""

    def __init__(self) -> None:
        self._by_key: dict[str, Ran] = {}
        self._by_task: dict[str, dict[str, Ran]] = defaultdict(dict)
        self._sessions: dict[Session, str] = {}
        self._of_session: Groups[Session] = Groups()
        """By session, the keys of its runs."""
        self._asked_for: dict[Session, set[str]] = defaultdict(set)
        """By the session that asked, the keys of the runs it asked for."""
        self._above: dict[Session, str] = {}
        """By session, the id of the one that asked for it."""

    def all(self) -> list[Ran]:
        """Every run, those observed first first."""
        return list(self._by_key.values())

    def of(self, task_id: str) -> list[Ran]:
        """The runs of a task, in the order in which they began."""
        runs = self._by_task.get(task_id)
        return sorted(runs.values(), key=lambda ran: (ran.run.began_at if ran.run else 0.0, ran.path)) if runs else []

    def known(self, key: str) -> Run | None:
        """A run as it was last seen."""
        ran = self._by_key.get(key)
        return ran.run if ran is not None else None

    def go_on(self, ran: Ran) -> None:
        """A known run is like this now, and is of the same task and session."""
        for runs in (self._by_key, *(self._by_task[task_of(run)] for run in (ran.run,) if run is not None)):
            runs[ran.path] = ran

    def tasks_of(self, key: str) -> set[str]:
        """The task that a run executes."""
        ran = self._by_key.get(key)
        return {task_of(ran.run)} if ran is not None and ran.run is not None else set()

    def parent_of(self, task_id: str) -> str | None:
        """The task whose session asked for the latest run of this one, None where it is not known."""
        for ran in reversed(self.of(task_id)):
            run = ran.run
            if run is not None and run.parent_session is not None:
                parent = self._sessions.get((run.source, run.parent_session))
                if parent is not None:
                    return parent
        return None

    def began_in(self, run: Run) -> str:
        """The id of the session in which all began that led to a run, as far as it is known."""
        session_id, seen = run.session_id, set[str]()
        while (above := self._above.get((run.source, session_id))) is not None and above not in seen:
            seen.add(above)
            session_id = above
        return session_id

    def of_session(self, session: Session) -> list[Run]:
        """The runs of a session, in the order in which they began: there is one, as a rule."""
        known = ((key, self.known(key)) for key in self._of_session.of(session))
        runs = [(key, run) for key, run in known if run is not None]
        return [run for _, run in sorted(runs, key=lambda one: (one[1].began_at, one[0]))]

    def below(self, run: Run) -> Iterator[Run]:
        """The runs that its session asked for, and those that these did, each behind the one that asked."""
        pending, seen = [_session(run)], {_session(run)}
        while pending:
            for key in sorted(self._asked_for.get(pending.pop(), ())):
                if (other := self.known(key)) is not None and _session(other) not in seen:
                    seen.add(_session(other))
                    pending.append(_session(other))
                    yield other

    def task_of_session(self, session: Session) -> str | None:
        """The task that a session executes, None where nothing is known of it."""
        runs = self.of_session(session)
        return task_of(runs[-1]) if runs else None

    def see(self, ran: Ran) -> set[str]:
        """A run is like this now. Returns the tasks that this concerns."""
        before, run = self.known(ran.path), ran.run
        concerned = self._forget(ran.path)
        if before is not None and (run is None or _session(before) != _session(run)):
            concerned |= self._hang(_session(before), None)
        if run is None:
            return concerned
        concerned |= self._hang(_session(run), run.parent_session)
        task_id = task_of(run)
        self._by_key[ran.path] = ran
        self._by_task[task_id][ran.path] = ran
        if run.parent_session is not None:
            self._asked_for[run.source, run.parent_session].add(ran.path)
        session = _session(run)
        self._of_session.add(session, ran.path)
        if self._sessions.get(session) != task_id:
            self._sessions[session] = task_id
            asked_for = (self._by_key[key].run for key in self._asked_for.get(session, ()))
            concerned |= {task_of(one) for one in asked_for if one is not None}
        return concerned | {task_id}

    def _hang(self, session: Session, above: str | None) -> set[str]:
        """A session was asked for by this one, or by none. Returns the tasks that several sessions have executed, of
        which one began elsewhere because of that."""
        if self._above.get(session) == above:
            return set()
        if above is None:
            del self._above[session]
        else:
            self._above[session] = above
        concerned, pending, seen = set[str](), [session], {session}
        while pending:
            for key in self._asked_for.get(pending.pop(), ()):
                if (run := self.known(key)) is not None and (below := _session(run)) not in seen:
                    seen.add(below)
                    pending.append(below)
                    concerned |= {task_of(run)} if len(self._by_task[task_of(run)]) > 1 else set()
        return concerned

    def _forget(self, key: str) -> set[str]:
        before = self._by_key.pop(key, None)
        if before is None or before.run is None:
            return set()
        run = before.run
        task_id = task_of(run)
        self._of_session.discard(_session(run), key)
        del self._by_task[task_id][key]
        if not self._by_task[task_id]:
            del self._by_task[task_id]
        if run.parent_session is not None:
            asked_for = self._asked_for[run.source, run.parent_session]
            asked_for.discard(key)
            if not asked_for:
                del self._asked_for[run.source, run.parent_session]
        return {task_id}


def _session(run: Run) -> Session:
    return run.source, run.session_id


def task_of(run: Run) -> str:
    """The task id: that of the packet handed over, else the id of the session. A human's session is its own task."""
    packet = packet_of(run)
    return (packet.task_id if packet is not None else None) or run.session_id


def packet_of(run: Run) -> Handoff | None:
    """The handoff packet that a run was handed; None where it was asked in words alone, or by a human."""
    return packet_in(run.prompt) if run.parent_session is not None else None


def packet_in(message: Message | None) -> Handoff | None:
    """The handoff packet in a text that was handed over."""
    reading = _given(message)
    return reading.document if reading is not None and isinstance(reading.document, Handoff) else None


def handed_over(ran: Ran) -> Version | None:
    """The handoff packet in what a run was asked for; None where it was asked in words alone, or by a human."""
    run = ran.run
    return _version(ran, run.prompt, _given(run.prompt)) if run is not None and packet_of(run) is not None else None


def handed_back(ran: Ran) -> Version | None:
    """The return that a run ended with; None where it has not ended by itself, or follows no contract."""
    run = ran.run
    return _version(ran, run.said, _return_in(run)) if run is not None and run.parent_session is not None else None


def return_digest(one: Round) -> str | None:
    """The digest of the return that a round ended with; None where it follows no contract."""
    return one.said.digest if one.said is not None and _return_in(one) is not None else None


def _return_in(one: Run | Round) -> Reading | None:
    """The return that a run or a round ended with by itself."""
    reading = one.said.reading if one.said is not None and one.state is RunState.ENDED else None
    return reading if reading is not None and isinstance(reading.document, Return) else None


def _given(message: Message | None) -> Reading | None:
    """What the contracts find in a message as what it hands over."""
    return None if message is None else message.packet or message.reading


def _version(ran: Ran, message: Message | None, reading: Reading | None) -> Version | None:
    if message is None or reading is None:
        return None
    return Version(
        seq=ran.seq,
        at=message.at,
        path=ran.path,
        digest=message.digest,
        document=reading.document,
        findings=reading.findings,
        stored=True,
    )
