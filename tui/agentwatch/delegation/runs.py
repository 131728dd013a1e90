"""Which runs are executions of which task, and whose session asked for whose."""

from __future__ import annotations

from collections import defaultdict

from agentwatch.contracts.shapes import Handoff, Reading, Return
from agentwatch.delegation.observation import Ran
from agentwatch.delegation.run import Message, Round, Run, RunState
from agentwatch.delegation.task import Version

_Session = tuple[str, str]
"""(source, session id)."""


class Runs:
    """The latest state of every run, by its key and by task."""

    def __init__(self) -> None:
        self._by_key: dict[str, Ran] = {}
        self._by_task: dict[str, dict[str, Ran]] = defaultdict(dict)
        self._sessions: dict[_Session, str] = {}
        self._asked_for: dict[_Session, set[str]] = defaultdict(set)
        """By the session that asked, the keys of the runs it asked for."""

    def all(self) -> list[Ran]:
        """Every run, those observed first first."""
        return list(self._by_key.values())

    def of(self, task_id: str) -> list[Ran]:
        """The runs of a task, in the order in which they began."""
        runs = self._by_task.get(task_id)
        return sorted(runs.values(), key=_began) if runs else []

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

    def see(self, ran: Ran) -> set[str]:
        """A run is like this now. Returns the tasks that this concerns."""
        concerned = self._forget(ran.path)
        run = ran.run
        if run is None:
            return concerned
        task_id = task_of(run)
        self._by_key[ran.path] = ran
        self._by_task[task_id][ran.path] = ran
        if run.parent_session is not None:
            self._asked_for[run.source, run.parent_session].add(ran.path)
        return concerned | self._name(run, task_id) | {task_id}

    def _name(self, run: Run, task_id: str) -> set[str]:
        """A session belongs to this task. Returns the tasks whose parent may have changed."""
        session = (run.source, run.session_id)
        if self._sessions.get(session) == task_id:
            return set()
        self._sessions[session] = task_id
        return self._children(session)

    def _forget(self, key: str) -> set[str]:
        before = self._by_key.pop(key, None)
        if before is None or before.run is None:
            return set()
        run = before.run
        task_id = task_of(run)
        del self._by_task[task_id][key]
        if not self._by_task[task_id]:
            del self._by_task[task_id]
        if run.parent_session is not None:
            asked_for = self._asked_for[run.source, run.parent_session]
            asked_for.discard(key)
            if not asked_for:
                del self._asked_for[run.source, run.parent_session]
        return {task_id}

    def _children(self, session: _Session) -> set[str]:
        keys = self._asked_for.get(session, ())
        return {task_of(run) for key in keys if (run := self._by_key[key].run) is not None}


def task_of(run: Run) -> str:
    """The task id: that of the packet handed over, else the id of the session. A human's session is its own task."""
    packet = packet_in(run.prompt) if run.prompt is not None and run.parent_session is not None else None
    return (packet.task_id if packet is not None else None) or run.session_id


def _began(ran: Ran) -> tuple[float, str]:
    return (ran.run.began_at if ran.run is not None else 0.0, ran.path)


def handed_over(ran: Ran) -> Version | None:
    """The handoff packet in what a run was asked for; None where it was asked in words alone, or by a human."""
    run = ran.run
    if run is None or run.parent_session is None or run.prompt is None:
        return None
    return _version(ran, run.prompt, _given(run.prompt), Handoff)


def handed_back(ran: Ran) -> Version | None:
    """The return that a run ended with; None where it has not ended by itself, or follows no contract."""
    run = ran.run
    if run is None or run.parent_session is None or run.said is None or run.state is not RunState.ENDED:
        return None
    return _version(ran, run.said, run.said.reading, Return)


def packet_in(message: Message) -> Handoff | None:
    """The handoff packet in a text that was handed over."""
    reading = _given(message)
    return reading.document if reading is not None and isinstance(reading.document, Handoff) else None


def return_digest(one: Round) -> str | None:
    """The digest of the return that a round ended with; None where it follows no contract."""
    said = one.said if one.state is RunState.ENDED else None
    is_return = said is not None and said.reading is not None and isinstance(said.reading.document, Return)
    return said.digest if said is not None and is_return else None


def _given(message: Message) -> Reading | None:
    """What the contracts find in a message as what it hands over."""
    return message.packet or message.reading


def _version(ran: Ran, message: Message, reading: Reading | None, kind: type[Handoff | Return]) -> Version | None:
    if reading is None or not isinstance(reading.document, kind):
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
