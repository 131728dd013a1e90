"""Requests: what a program asks a human before it goes on, and that can be answered where it is seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.delegation.decision import Action, Decision, Stage

if TYPE_CHECKING:
    from agentwatch.delegation.events import Requested
    from agentwatch.delegation.run import Runs, Session

_PROMPT = 120.0  # seconds: what waits no longer than this at most is answered before all others


class RequestKind(StrEnum):
    """Leave to make a call, answers to questions, or a form of a server to be filled in."""

    PERMISSION = "permission"
    QUESTION = "question"
    FORM = "form"


class RequestStage(StrEnum):
    """How far a request has got. The last two are ends that came of nothing decided here."""

    OFFERED = "offered"  # it is open: the program waits, and a holder of ours can answer it
    DECIDED = "decided"  # the operator has signed an answer; the program does not have it yet
    DELIVERED = "delivered"  # the program was given the answer. Nothing shows yet what it did with it.
    ACTED = "acted"  # the program's own record says that it did as was answered
    ELSEWHERE = "answered elsewhere"  # it was answered in the program, or by somebody else, first
    UNKNOWN = "unknown"  # it was answered, and its holder broke before the program said whether it took that
    GONE = "gone"  # nobody can answer it any more: the program stopped waiting, or its holder has ended


ENDED = frozenset(RequestStage) - {RequestStage.OFFERED, RequestStage.DECIDED}
"""A request in one of these waits for nobody."""


class Option(NamedTuple):
    """One answer that the asker offers. Foreign and unsanitised, as is all of a query."""

    label: str
    description: str = ""


class Query(NamedTuple):
    """One question of a request. `several`: more than one option may be chosen. `key` is the program's own id of it."""

    question: str
    header: str = ""
    options: tuple[Option, ...] = ()
    several: bool = False
    key: str = ""


class Given(NamedTuple):
    """A further argument of a call, not shown at once. The value is JSON; both are in one line, and foreign."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A program's exact question, as its holder offers it: the decision about it has its id. Texts are foreign."""

    request_id: str
    source: str
    session_id: str
    nonce: str  # the program's own id of it, or a random one
    kind: RequestKind
    tool: str
    input: str  # as `input_text` spells it
    input_sha256: str
    shown: str  # the command, patch or path in it, whole
    asked_at: float
    said: str = ""
    beside: tuple[Given, ...] = ()  # what the call is given besides what is shown: where it runs, and such
    queries: tuple[Query, ...] = ()  # those of a question or a form
    until: float | None = None  # then the holder gives up
    prompt_hidden: bool = False  # the program shows no prompt of its own as long as we hold the request
    actions: tuple[Action, ...] = ()  # decisions possible here, in this order
    why_not: str = ""  # why it cannot be answered from here, and where it can
    words: bool = False  # A denial takes words to the model
    rules: tuple[str, ...] = ()  # for the rest of the session; the operator reads them in full
    ends_others: int = 0  # so many other open requests end with a denial of this one
    ends_turn: bool = False  # A denial without words ends the turn of the agent that asks
    call_id: str | None = None  # the program's id of the call, where it is known
    covered_by: str = ""  # which of the program's own rules would have covered it
    stage: RequestStage = RequestStage.OFFERED
    ended_at: float | None = None
    by: str = ""  # who allowed or denied it: the operator; one of `Permitter`, where it was answered elsewhere
    allowed: bool | None = None  # whether it was allowed, or answered; None where that is not known, or not decided

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def rank(self) -> tuple[int, float]:
        """Lowest for what will soon not be answerable; then the newest; then what was decided, and what has ended."""
        if not self.waits_for_operator:
            return 2 if self.is_open else 3, -self.asked_at
        if self.until is not None and self.until - self.asked_at <= _PROMPT:
            return 0, self.until
        return 1, -self.asked_at

    @property
    def is_open(self) -> bool:
        """The program still waits, and no answer has got to it."""
        return self.stage not in ENDED

    @property
    def waits_for_operator(self) -> bool:
        """It is open, and nobody has decided about it."""
        return self.stage is RequestStage.OFFERED

    @property
    def can_answer(self) -> bool:
        """Whether it can be decided here, now."""
        return self.waits_for_operator and bool(self.actions)

    @property
    def begun(self) -> Request:
        """It as it was when it was asked."""
        return replace(self, stage=RequestStage.OFFERED, ended_at=None, by="", allowed=None)


class Permitter(StrEnum):
    """The one who allowed or refused a call, as the program's own record says."""

    HOOK = "hook"  # A hook, whose it was is not said
    PERSON = "person"
    RULE = "rule"  # A rule or a mode of the program: nobody was asked
    UNKNOWN = "unknown"


class Permit(NamedTuple):
    """The program's record of a call that may have been asked about; `words`: what the model was told."""

    call_id: str
    tool: str
    input_sha256: str
    allowed: bool | None
    by: Permitter
    at: float
    words: str = ""


def input_text(value: object) -> tuple[str, str]:
    """The one spelling of an input as JSON, and the sha256 in hex of its bytes."""
    # Not for the first frame, which spells nothing.
    import hashlib
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text, hashlib.sha256(text.encode()).hexdigest()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the input cannot be written as JSON ({error})") from error


def request_id_of(workspace_id: str, source: str, session_id: str, nonce: str, input_sha256: str) -> str:
    """The id of a request, and of the decision about it: 32 hex digits. Raises ValueError for half a character."""
    return input_text([workspace_id, source, session_id, nonce, input_sha256])[1][:32]


def after(before: Requested | None, requested: Requested) -> Requested:
    """Merge a request with a later report of it: it ends once."""
    known, request = before.request if before else None, requested.request
    if not known or not request or known.is_open or request.is_open:
        return requested
    ended = replace(request, stage=known.stage, ended_at=known.ended_at, by=known.by, allowed=known.allowed)
    return requested._replace(request=ended)


class Requests:
    """All requests that were observed, by the sessions that ask, and the decisions about them."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.offered: dict[str, Requested] = {}  # every request as its holder told it last
        self.decided: dict[str, Decision] = {}
        self._asked = defaultdict[tuple[str, str], dict[str, Request]](dict)

    def asker(self, session: Session) -> str:
        """The task that asks what a session asks. Where nothing is known of that yet, its task will have its id."""
        return self._runs.executing.get(session, session[1])

    def see(self, requested: Requested) -> list[str]:
        """A request is like this now. Returns the tasks that this concerns."""
        path, before = requested.path, self.offered.pop(requested.path, None)
        known, request = before.request if before else None, after(before, requested).request
        if known:
            del self._asked[known.session][path]
        if request:
            self.offered[path] = requested._replace(request=request)
            self._asked[request.session][path] = request
        return [self.asker(one.session) for one in (known, request) if one]

    def decide(self, decision: Decision) -> list[str]:
        """A request was decided, or its decision has got further. Returns the tasks that this concerns."""
        self.decided[decision.decision_id] = decision
        offered = self.offered.get(decision.decision_id)
        return [self.asker(offered.request.session)] if offered and offered.request else []

    def of_task(self, task_id: str, now: float) -> tuple[Request, ...]:
        """The requests of a task as they stand: the most pressing first, those that have ended last."""
        stand: list[Request] = []
        for session in [one for one in self._asked if self.asker(one) == task_id]:
            asked = self._asked[session].values()
            permits = self._permits(session, asked)
            for one in asked:
                decision = self.decided.get(one.request_id)
                if decision and decision.receipt.stage is Stage.RECORDED and decision.is_expired(now):
                    decision = None
                stand.append(_stands(one, decision, permits.get(one.request_id)))
        return tuple(sorted(stand, key=lambda one: (*one.rank, one.request_id)))

    def _permits(self, session: Session, asked: Iterable[Request]) -> dict[str, Permit]:
        """By request, what the program's records say of it: each is of one request, the earlier of the earlier."""
        # Those whose call is known come first; of one call, the last: what became of it shows after that.
        left = sorted((one for run in self._runs.of_session(session) for one in run.permits), key=lambda one: one.at)
        found = dict[str, Permit]()
        for request in sorted(
            asked,
            key=lambda one: (
                not one.call_id,
                -one.asked_at if one.call_id else one.asked_at,
                one.request_id,
            ),
        ):
            permit = next((one for one in left if _is_of(one, request)), None)
            if permit:
                left.remove(permit)
                found[request.request_id] = permit
        return found


def _is_of(permit: Permit, request: Request) -> bool:
    if permit.at < request.asked_at:
        return False
    if request.call_id and permit.call_id:
        return permit.call_id == request.call_id
    return (permit.tool, permit.input_sha256) == (request.tool, request.input_sha256)


def _stands(request: Request, decision: Decision | None, permit: Permit | None) -> Request:
    """A request with what the ledger and the program's records say of it beside its holder."""
    stage, ended_at, allowed, by = request.stage, request.ended_at, request.allowed, request.by
    is_told = stage is RequestStage.DELIVERED
    if decision:
        allowed, by = decision.action is not Action.DENY, decision.operator
        is_told |= decision.receipt.stage is not Stage.RECORDED
    if stage is RequestStage.ACTED:
        by = request.by or by
    elif permit and (decision or not is_told):
        ended_at = permit.at if ended_at is None else ended_at
        is_ours = decision and _came_of(permit, decision)
        if is_ours and is_told:
            stage = RequestStage.ACTED
        elif not is_ours or stage is not RequestStage.UNKNOWN:
            stage, allowed, by = RequestStage.ELSEWHERE, permit.allowed, permit.by.value
    elif stage is RequestStage.ELSEWHERE:
        return request
    elif is_told:
        ended_at = decision.receipt.at if ended_at is None and decision else ended_at
        stage, by = RequestStage.DELIVERED, request.by or by
    elif stage is RequestStage.OFFERED and decision:
        stage = RequestStage.DECIDED
    # Else nobody answers it any more; what was decided came too late.
    return replace(request, stage=stage, ended_at=ended_at, allowed=allowed, by=by)


def _came_of(permit: Permit, decision: Decision) -> bool:
    """Whether what the program recorded is what was decided, as far as it says so."""
    is_denied = decision.action is Action.DENY
    if permit.by in (Permitter.PERSON, Permitter.RULE) or permit.allowed is is_denied:
        return False
    texts: Iterable[str] = (decision.note,) if is_denied else decision.answers
    return not permit.words or all(text in permit.words for text in texts)
