"""Requests, by the sessions that ask: which task each belongs to, and how far it has got. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from agentwatch.delegation.decision import Action, Decision, Stage
from agentwatch.delegation.events import Decided, Requested
from agentwatch.delegation.indexes import Deadlines, Groups
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.delegation.run import MOST_PERMITS, Permit, Permitter
from agentwatch.delegation.runs import Runs, Session

_MOST_ENDED: Final = 50
"""Of those of one task that have ended, so many are shown, the latest."""

_PROMPT: Final = 120.0
"""Seconds: what waits no longer than this at most is answered before all others."""


class Asked(NamedTuple):
    """A request as it stands, and the task that asks it."""

    task_id: str
    request: Request


def after(before: Requested | None, requested: Requested) -> Requested:
    """What is known of a request once it was told again. Whoever told its end first may have known more of it than what
    its holder wrote down."""
    known, request = before.request if before is not None else None, requested.request
    if known is None or request is None or known.is_open or request.is_open:
        return requested
    ended = {"stage": known.stage, "ended_at": known.ended_at, "by": known.by, "allowed": known.allowed}
    return requested._replace(request=replace(request, **ended))  # type: ignore[arg-type]


class Requests:
    """All requests that were observed, and the decisions about them."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._offered: dict[str, Requested] = {}
        self._decided: dict[str, Decision] = {}
        self._places: dict[str, str] = {}
        """By request, the task that asks it."""
        self._by_task: Groups[str] = Groups()
        self._by_session: Groups[Session] = Groups()
        self._matched: dict[Session, dict[str, Permit]] = {}
        """By session, the records that were of a request: a run keeps only the latest."""
        self.expiries = Deadlines()
        """When a task has to be made anew because an answer expires that was not delivered."""

    @property
    def all(self) -> list[Requested]:
        """Every request as its holder told it last."""
        return list(self._offered.values())

    @property
    def decisions(self) -> list[Decided]:
        """Every decision about one, as it is now."""
        return [Decided(0, one.at, one.decision_id, one) for one in self._decided.values()]

    def decision(self, request_id: str) -> Decision | None:
        """What was decided about a request, whether it is known or not."""
        return self._decided.get(request_id)

    def place(self, request_id: str) -> str | None:
        """The task that asks it."""
        return self._places.get(request_id)

    def take(self, requested: Requested) -> set[str]:
        """A request is like this now. Returns the tasks that this concerns."""
        request_id, request = requested.path, requested.request
        concerned = set[str]()
        if (before := self._offered.pop(request_id, None)) is not None and before.request is not None:
            self._by_session.discard(_session(before.request), request_id)
            concerned |= self._move(request_id, None)
            if not self._by_session.of(_session(before.request)):
                self._matched.pop(_session(before.request), None)
        if request is not None:
            self._offered[request_id] = requested = after(before, requested)
            self._by_session.add(_session(request), request_id)
            concerned |= self._move(request_id, self._asker(_session(request)))
        return concerned

    def decide(self, decision: Decision) -> set[str]:
        """A request was decided, or its decision has got further. Returns the tasks that this concerns."""
        self._decided[decision.decision_id] = decision
        task_id = self._places.get(decision.decision_id)
        return set() if task_id is None else {task_id}

    def follow(self, session: Session) -> set[str]:
        """The runs of a session have changed. Returns the tasks that asked, or ask, its requests."""
        concerned = set[str]()
        if ids := self._by_session.of(session):
            asker = self._asker(session)
            for request_id in list(ids):
                concerned |= self._move(request_id, asker)
        return concerned

    def of(self, task_id: str, now: float) -> tuple[Request, ...]:
        """The requests of a task as they stand: those that wait for the operator first, the most pressing first; those
        that have ended last, the latest first."""
        ids = self._by_task.of(task_id)
        if not ids:
            return ()
        by_session: defaultdict[Session, list[Request]] = defaultdict(list)
        for request_id in ids:
            if (request := self._offered[request_id].request) is not None:
                by_session[_session(request)].append(request)
        stand: list[Request] = []
        for session, asked in by_session.items():
            permits = self._permits(session, asked)
            stand += (_standing(one, self._decision(one, task_id, now), permits.get(one.request_id)) for one in asked)
        is_open = sorted((one for one in stand if one.is_open), key=lambda one: (*rank(one), one.request_id))
        ended = sorted((one for one in stand if not one.is_open), key=lambda one: (-one.asked_at, one.request_id))
        return (*is_open, *ended[:_MOST_ENDED])

    def expired(self, now: float) -> set[str]:
        """The tasks with an answer whose time is over at this moment (epoch seconds)."""
        return {self._places[key] for key, one in self._decided.items() if one.is_expired(now) and key in self._places}

    def _asker(self, session: Session) -> str:
        """Where nothing is known of the session yet, its task will have its id."""
        return self._runs.task_of_session(session) or session[1]

    def _move(self, request_id: str, task_id: str | None) -> set[str]:
        before = self._places.pop(request_id, None)
        if before is not None:
            self._by_task.discard(before, request_id)
        if task_id is not None:
            self._places[request_id] = task_id
            self._by_task.add(task_id, request_id)
        return {one for one in (before, task_id) if one is not None}

    def _decision(self, request: Request, task_id: str, now: float) -> Decision | None:
        decision = self._decided.get(request.request_id)
        if decision is None or decision.expires_at is None or decision.receipt.stage is not Stage.RECORDED:
            return decision
        if decision.is_expired(now):
            return None
        self.expiries.put(task_id, decision.expires_at)
        return decision

    def _permits(self, session: Session, asked: list[Request]) -> dict[str, Permit]:
        """By request, what the program's records say of it: each of them is of one request, the earlier of the earlier.
        Requests whose call is known come first; of those of one call, the last: what became of it shows after that."""
        left = sorted((one for run in self._runs.of_session(session) for one in run.permits), key=lambda one: one.at)
        if len(left) >= MOST_PERMITS:
            first = left[0].at
            left = [*(one for one in self._matched.get(session, {}).values() if one.at < first), *left]
        found = dict[str, Permit]()
        in_turn = sorted(asked, key=lambda one: (one.asked_at, one.request_id))
        last_first = [one for one in reversed(in_turn) if one.call_id is not None]
        for request in (*last_first, *(one for one in in_turn if one.call_id is None)):
            permit = next((one for one in left if _is_of(one, request)), None)
            if permit is not None:
                left.remove(permit)
                found[request.request_id] = permit
        if found:
            self._matched[session] = found
        return found


def rank(request: Request) -> tuple[int, float]:
    """What presses most has the lowest: what was decided waits for nobody; what will soon not be answerable any more
    comes before the others, of which the newest comes first."""
    if not request.waits_for_operator:
        return 2, -request.asked_at
    if request.until is not None and request.until - request.asked_at <= _PROMPT:
        return 0, request.until
    return 1, -request.asked_at


def _session(request: Request) -> Session:
    return request.source, request.session_id


def _is_of(permit: Permit, request: Request) -> bool:
    if permit.at < request.asked_at:
        return False
    if request.call_id is not None and permit.call_id:
        return permit.call_id == request.call_id
    return (permit.tool, permit.input_sha256) == (request.tool, request.input_sha256)


def _standing(request: Request, decision: Decision | None, permit: Permit | None) -> Request:
    """A request with what the ledger and the program's records say of it beside its holder."""
    allowed = request.allowed if decision is None else decision.action is not Action.DENY
    by = request.by if decision is None else decision.operator
    told = decision is not None and decision.receipt.stage.rank >= Stage.DELIVERED.rank
    if request.stage is RequestStage.ACTED:
        return replace(request, allowed=allowed, by=request.by or by)
    if permit is not None and not (request.stage is RequestStage.DELIVERED and decision is None):
        done = replace(request, ended_at=permit.at if request.ended_at is None else request.ended_at)
        if decision is not None and _came_of(permit, decision):
            if told or request.stage is RequestStage.DELIVERED:
                return replace(done, stage=RequestStage.ACTED, allowed=allowed, by=by)
            if request.stage is RequestStage.UNKNOWN:
                # As it was decided here, by whichever answer.
                return replace(done, allowed=allowed, by=by)
        return replace(done, stage=RequestStage.ELSEWHERE, allowed=permit.allowed, by=permit.by.value)
    if request.stage is RequestStage.ELSEWHERE:
        return request
    if told or request.stage is RequestStage.DELIVERED:
        ended_at = request.ended_at
        if ended_at is None and decision is not None:
            ended_at = decision.receipt.at
        return replace(request, stage=RequestStage.DELIVERED, ended_at=ended_at, allowed=allowed, by=request.by or by)
    if request.stage is RequestStage.OFFERED and decision is not None:
        return replace(request, stage=RequestStage.DECIDED, allowed=allowed, by=by)
    # Nobody answers it any more; what was decided came too late.
    return replace(request, allowed=allowed, by=by)


def _came_of(permit: Permit, decision: Decision) -> bool:
    """Whether what the program recorded is what was decided, as far as it says so."""
    if permit.by in (Permitter.PERSON, Permitter.RULE):
        return False
    if permit.allowed is not None and permit.allowed is (decision.action is Action.DENY):
        return False
    said: Iterable[str] = (decision.note,) if decision.action is Action.DENY else decision.answers
    return not permit.words or all(words in permit.words for words in said)
