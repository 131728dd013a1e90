"""The two records that are signed: a decision, and an operator's message that asks another machine to record one.

A signature covers bytes. So each record has only one valid spelling in bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import pydantic.dataclasses
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from agentwatch.decisions.envelope import REQUEST_TYPE, SigningKey, Trust, open_envelope, seal, signer_of
from agentwatch.decisions.errors import DecisionError, RecordError
from agentwatch.delegation.decision import (
    OF_REQUESTS,
    SPECS,
    Action,
    Decision,
    Receipt,
    Request,
    RequestKind,
    make_request_id,
)
from agentwatch.text import quote_text

VERSION = 1
# The version of a record that answers a program's request. Such a record also has the keys `request` and `params.rule`.
_OF_REQUEST = 2
# The version of a record that an operator on another machine asked for. It also has the key `signed_request`.
_OF_SIGNED = 3

# The longest validity of an answer to a program's request. Programs do not wait longer.
ANSWER_LIFETIME = timedelta(minutes=10)
AHEAD = timedelta(minutes=2)  # an operator's clock may be ahead of the host's clock by at most this

# The most bytes of a record. The largest handoff fits in, even if every character is escaped.
LARGEST = 2 * 1024 * 1024
# The most bytes of a record of version 3. It contains a signed request of about its own size, in base64.
LARGEST_SIGNED = LARGEST + LARGEST * 4 // 3 + 4096

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_STRICT = ConfigDict(strict=True, extra="forbid", revalidate_instances="always")
# The keys that only the host can fill in, with their placeholders in a signed request.
_OF_HOST = {"version": VERSION, "seq": 1, "prev_sha256": None, "operator": "nobody yet"}
_OPTIONAL = ("after", "request", "signed_request")  # keys that only some records have
# The keys that a record shares with the decision in the tree of tasks.
_OF_DECISION = "decision_id task_id attempt handoff_sha256 return_sha256 action operator note"


def format_time(time: datetime) -> str:
    """Return a time (with time zone) as text, in whole seconds of UTC: 2030-01-01T00:00:00Z."""
    return time.astimezone(UTC).strftime(_TIME)


def parse_time(text: str) -> datetime:
    """Return the time in a text that `format_time` made. Raise ValueError for any other text."""
    with suppress(ValueError):
        time = datetime.fromisoformat(text).replace(tzinfo=UTC)
        if format_time(time) == text:
            return time
    raise ValueError("not a time in UTC such as 2030-01-01T00:00:00Z")


Name = Annotated[str, Field(min_length=1)]
# Many JSON readers cannot hold numbers larger than 2^53 - 1.
Positive = Annotated[int, Field(ge=1, le=2**53 - 1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
DecisionId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Time = Annotated[str, AfterValidator(lambda text: format_time(parse_time(text)))]


class Mitigation(StrEnum):
    """A change that makes a retry more likely to succeed. It earns a task one extra retry."""

    CHANGED_INPUTS = "changed_inputs"
    REDUCED_SCOPE = "reduced_scope"
    CORRECTED_CONSTRAINTS = "corrected_constraints"


@dataclass(frozen=True, slots=True)
class Answer:
    """The operator's answer to a question. `question` is None if this answer is for all questions of the task."""

    question: str | None
    answer: str


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of a decision. `handoff` is the text of the amended handoff. `report` is the text of the final
    error report. `rule` is a rule of the program: it allows similar calls for the rest of the session."""

    mitigation: Mitigation | None = None
    handoff: str | None = None
    mode: Name | None = None
    answers: tuple[Answer, ...] = ()
    report: str | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The program's request that a record answers, with the sha256 (hex) of the exact input that the operator saw."""

    program: Name
    session: Name
    nonce: Name
    kind: RequestKind
    input_sha256: Sha256


class Subject(NamedTuple):
    """The subject of a decision: one attempt of a task. The digests are of the handoff and the return that the operator
    saw.

    If an earlier decision about this attempt called a fitter that has ended, `after` is the id of that decision. If the
    subject is a program's `request`, task and attempt say where it was shown, and the digests are None.
    """

    workspace_id: str
    task_id: str
    attempt: int
    handoff_sha256: str | None
    return_sha256: str | None
    after: str | None = None
    request: Asked | None = None

    @property
    def decision_id(self) -> str:
        """The id of the decision, computed from the subject. Raises RecordError if an id cannot be encoded."""
        try:
            if asked := self.request:
                return make_request_id(self.workspace_id, asked.program, asked.session, asked.nonce, asked.input_sha256)
            spelled = to_json([*self[: 6 if self.after else 5]])
            return hashlib.sha256(spelled.encode()).hexdigest()[:32]
        except ValueError as error:
            raise RecordError("an id holds half a character, which cannot be written") from error


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=_STRICT)
class Record:
    """One decision as it is signed. Times are UTC, like `2030-01-01T00:00:00Z`. `expires_at` is None if the decision
    never expires. `seq` counts the decisions of a workspace from 1. `prev_sha256` is the sha256 of the previous
    decision's file, None for the first decision. `after` is the id of an earlier decision about this attempt, if that
    decision called a fitter who has ended. `request` is the program's request that the decision answers.
    `signed_request` is the envelope in which an operator asked this host for the decision. These last three keys are
    left out if they are None."""

    version: Annotated[int, Field(ge=VERSION, le=_OF_SIGNED)]
    workspace_id: Name
    seq: Positive
    prev_sha256: Sha256 | None
    decision_id: DecisionId
    task_id: Name
    attempt: Positive
    handoff_sha256: Sha256 | None
    return_sha256: Sha256 | None
    action: Action
    params: Params
    note: str
    operator: Name
    created_at: Time
    expires_at: Time | None
    after: DecisionId | None = None
    request: Asked | None = None
    signed_request: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Record:
        if (self.seq == 1) != (self.prev_sha256 is None):
            raise ValueError("only the first decision of a workspace has none before it")
        if self.decision_id != self.subject.decision_id:
            raise ValueError("the decision id is not that of the attempt it speaks of")
        # Refuse a parameter that the action does not use. Otherwise somebody may think that it has an effect.
        spec = SPECS[self.action]
        given = {one.name for one in fields(Params) if getattr(self.params, one.name) not in (None, ())}
        if given - spec.takes:
            raise ValueError(f"{min(given - spec.takes)} means nothing for {self.action}")
        if missing := {*spec.needs} & spec.takes - given:
            raise ValueError(f"{self.action} needs {min(missing)}")
        version = _version_of(self.request, self.signed_request)
        if self.version != version or (self.request is not None) != (self.action in OF_REQUESTS):
            raise ValueError("the version, the action, a request and a signed request do not belong together")
        if self.request:
            self._check_answer(self.request)
        return self

    def _check_answer(self, asked: Asked) -> None:
        """Raise ValueError if the record is no valid answer to this request."""
        if not {self.handoff_sha256, self.return_sha256, self.after} <= {None}:
            raise ValueError("an answer to a request is about no handoff and no return")
        is_permission = asked.kind is RequestKind.PERMISSION
        if self.action is not Action.DENY and (self.action is Action.ALLOW) != is_permission:
            raise ValueError(f"a {asked.kind} cannot be decided with {self.action}")
        if self.note and self.action is not Action.DENY:
            raise ValueError(f"the words of a note belong to {Action.DENY}, not to {self.action}")
        if self.expires_at is None or parse_time(self.expires_at) - parse_time(self.created_at) > ANSWER_LIFETIME:
            raise ValueError("an answer to a request expires within ten minutes")

    @property
    def subject(self) -> Subject:
        return Subject(**{name: getattr(self, name) for name in Subject._fields})

    def is_expired(self, now: datetime) -> bool:
        """Tell whether the decision has expired at the time `now` (with time zone)."""
        return self.expires_at is not None and now >= parse_time(self.expires_at)

    def says_the_same(self, other: Record) -> bool:
        """Tell whether both records have the same action, parameters and note."""
        return (self.action, self.params, self.note) == (other.action, other.params, other.note)

    def document(self) -> dict[str, Any]:
        """Return the record as a JSON object. The order of its keys is fixed."""
        absent: dict[str, Any] = {name: True for name in _OPTIONAL if getattr(self, name) is None}
        if not self.request:
            absent["params"] = {"rule"}
        document: dict[str, Any] = _ADAPTER.dump_python(self, mode="json", exclude=absent)
        return document

    def to_bytes(self) -> bytes:
        """Return the bytes to sign. Raise RecordError if there are too many bytes, or if a text cannot be encoded."""
        try:
            data = to_json(self.document()).encode()
        except ValueError as error:
            raise RecordError("it holds half a character, which cannot be written; remove it") from error
        largest = LARGEST if self.signed_request is None else LARGEST_SIGNED
        if len(data) > largest:
            raise RecordError(f"the decision has {len(data):,} bytes, {largest:,} are allowed; shorten the handoff")
        return data


_ADAPTER = TypeAdapter(Record)


def _version_of(request: Asked | None, signed_request: str | None) -> int:
    return _OF_SIGNED if signed_request is not None else VERSION if request is None else _OF_REQUEST


def make_draft(
    subject: Subject,
    action: Action,
    params: Params,
    note: str,
    *,
    operator: str,
    created_at: datetime,
    expires_at: datetime | None = None,
    signed_request: str | None = None,
) -> Record:
    """Return a new record with the number 1, which the ledger later replaces. Raise RecordError if it is invalid."""
    try:
        return Record(
            version=_version_of(subject.request, signed_request),
            **subject._asdict(),
            seq=1,
            prev_sha256=None,
            decision_id=subject.decision_id,
            action=action,
            params=params,
            note=note,
            operator=operator,
            created_at=format_time(created_at),
            expires_at=format_time(expires_at) if expires_at else None,
            signed_request=signed_request,
        )
    except ValidationError as error:
        raise RecordError(error_words(error)) from error


def parse(data: bytes) -> Record:
    """Return the record in these bytes. Raise RecordError if `to_bytes` would not return exactly these bytes."""
    if len(data) > LARGEST_SIGNED:
        raise RecordError(f"it is larger than {LARGEST_SIGNED:,} bytes")
    try:
        record = _ADAPTER.validate_json(data)
    except ValidationError as error:
        raise RecordError(error_words(error)) from error
    # JSON can spell one value in many ways. Only the spelling of `to_bytes` is accepted.
    if record.to_bytes() != data:
        raise RecordError("it is not spelled as agentwatch spells it")
    return record


def to_json(value: object) -> str:
    """Return JSON without white space or unneeded escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def error_words(error: ValidationError) -> str:
    """Describe the first validation error. Leave out the faulty value, because it may be untrusted text."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    if place == "version":
        return "its version is not known here; update agentwatch"
    return f"{place}{': ' if place else ''}{first['msg'].removeprefix('Value error, ')}"


class SignedRequest(NamedTuple):
    """A request in which an operator asks another machine (the host) to record a decision. `host` is the id of the
    host's key. The host may record the decision until `record_by`. `asked` is the wanted record. Its number,
    predecessor and operator are placeholders, because only the host knows them. Its time is the host's time when the
    request was signed."""

    host: str
    record_by: str
    asked: Record

    def to_bytes(self) -> bytes:
        """Return the bytes that are signed. Raise RecordError if a text cannot be encoded."""
        said = {name: value for name, value in self.asked.document().items() if name not in _OF_HOST}
        return to_json({"version": VERSION, "host": self.host, "record_by": self.record_by, **said}).encode()


def sign_request(request: SignedRequest, key: SigningKey) -> str:
    """Sign a request and return the text of its envelope. Raise RecordError if no host would accept it."""
    data = request.to_bytes()
    _parse_request(data)
    return seal(data, key, REQUEST_TYPE).decode("ascii")


def read_request(text: str, trust: Trust) -> tuple[SignedRequest, str]:
    """Verify a request's envelope. Return the request and the id of its key. The caller checks whether the key is still
    trusted. Raise EnvelopeError or RecordError if the envelope is invalid."""
    data, keyid = open_envelope(text.encode(errors="replace"), trust.requesters, REQUEST_TYPE)
    return _parse_request(data), keyid


def verify_request(record: Record, keyid: str, trust: Trust) -> None:
    """If a record has a signed request, check that the record is what the request asks for. Raise EnvelopeError or
    RecordError if it is not."""
    if record.signed_request is None:
        return
    signed, operator = read_request(record.signed_request, trust)
    trust.require_trusted(operator, record.created_at)
    if signed.host != keyid:
        raise RecordError("it was signed for another host")
    said = signed.asked.document()
    said |= {name: getattr(record, name) for name in (*_OF_HOST, "created_at", "signed_request")}
    if record.document() != said:
        raise RecordError("the host has recorded something else than was signed for it")
    if not parse_time(signed.asked.created_at) - AHEAD <= parse_time(record.created_at) <= parse_time(signed.record_by):
        raise RecordError("it was recorded before it was signed, or when its time was over")


def _parse_request(data: bytes) -> SignedRequest:
    try:
        document = json.loads(data)
        version, host, record_by = (document.pop(name) for name in ("version", "host", "record_by"))
        parse_time(record_by)
        own = _OF_HOST | {"version": _OF_REQUEST if "request" in document else version}
        request = SignedRequest(host, record_by, _ADAPTER.validate_json(to_json(document | own)))
    except ValidationError as error:
        raise RecordError(error_words(error)) from error
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise RecordError("it asks for no decision") from error
    if request.to_bytes() != data:
        raise RecordError("it is not spelled as agentwatch spells it")
    if not request.asked.created_at <= record_by <= (request.asked.expires_at or record_by):
        raise RecordError("it would be recorded before it was signed, or when it holds no more")
    return request


class AlreadyDecidedError(DecisionError):
    """The attempt or request was decided before. `existing` is the earlier decision, which stays valid."""

    exit_code = 6

    def __init__(self, existing: Record):
        next_one = "" if existing.request else ", and you can decide about a new attempt"
        said = f"{existing.operator} said {existing.action} at {existing.created_at}"
        super().__init__(f"already decided: {said}; that holds{next_one}")
        self.existing = existing


# Answers to requests


def to_asked(request: Request) -> Asked:
    """Return the part of a request that is written into the record of its answer."""
    return Asked(request.source, request.session_id, request.nonce, request.kind, request.input_sha256)


def is_answer_to(record: Record, request: Request) -> bool:
    """Tell whether a verified record answers exactly this request, and the request takes the answer."""
    is_its_own = record.request == to_asked(request) and record.decision_id == request.request_id
    return is_its_own and not why_unanswerable(request, record.action, record.params, record.note)


def why_unanswerable(request: Request, action: Action, params: Params, note: str = "") -> str | None:
    """Return the reason (one sentence) why a request does not take this answer, or None if it does."""
    if action not in request.actions:
        taken = " and ".join(request.actions)
        why = f": {request.why_not}" if request.why_not else ""
        return f"it does not take {action} here{why}{f'; it takes {taken}' if taken else ''}"
    if note and not (action is Action.DENY and request.words):
        return "no words get to the program with this: leave them out"
    if params.rule is not None and params.rule not in request.rules:
        return f"{quote_text(params.rule)} is none of the rules that it offers"
    return _why_incomplete(request, params) if action is Action.ANSWER else None


def _why_incomplete(request: Request, params: Params) -> str | None:
    asked = {query.question: query for query in request.queries}
    if len(asked) != len(request.queries):
        return "it asks the same question twice, so no answer would be clear: answer it in its program"
    given = Counter(one.question for one in params.answers)
    for question, query in asked.items():
        if not given[question]:
            return f"all of its questions have to be answered; this one is not: {quote_text(question)}"
        if given[question] > 1 and not query.several:
            return f"one answer can be given to {quote_text(question)}"
    is_blank = not all(one.answer.strip() for one in params.answers)
    if is_blank or given.keys() - asked or len(set(params.answers)) != len(params.answers):
        return "an answer is empty, given twice, or to what it does not ask"
    return None


def decision_of(record: Record, receipts: tuple[Receipt, ...], waits: str = "") -> Decision:
    """Return the decision that the tree shows for a record. `waits` is the reason why it is not delivered yet."""
    params, same = record.params, {name: getattr(record, name) for name in _OF_DECISION.split()}
    return Decision(
        **same,
        at=parse_time(record.created_at).timestamp(),
        receipts=receipts,
        expires_at=parse_time(record.expires_at).timestamp() if record.expires_at else None,
        mode=params.mode,
        mitigation=params.mitigation and params.mitigation.value,
        answers=tuple(one.answer for one in params.answers),
        rule=params.rule,
        waits=waits,
        asked_by=signer_of(record.signed_request or ""),
    )
