"""The record of one decision: its fields, its one spelling in bytes, and the strict way back.

Equal records have equal bytes, and only those bytes are read: a record is signed and chained by them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

from agentwatch.decisions.errors import DecisionError, RecordError
from agentwatch.decisions.strict import compact, exactly, hex_digits, named, one_of, parsed, positive, text
from agentwatch.delegation.decision import OF_REQUESTS, Action
from agentwatch.delegation.request import RequestKind, request_id_of

VERSION: Final = 1
OF_REQUEST: Final = 2
"""The version of a record that answers a request of a program: it has two more keys, `request` and `params.rule`."""
OF_SIGNED: Final = 3
"""The version of a record that an operator signed for elsewhere: one of the two before, and what was signed."""

ANSWER_LIFETIME: Final = timedelta(minutes=10)
"""An answer holds no longer: whoever waited for it does not any more, and nobody remembers what it was about."""

LARGEST: Final = 2 * 1024 * 1024
"""Bytes of a record. A handoff of the largest file that is read fits, with everything escaped that can be."""

LARGEST_SIGNED: Final = LARGEST + LARGEST * 4 // 3 + 4096
"""Bytes of a record of version 3, which holds all of it once more, in the envelope that the operator's key signed."""

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


class Mitigation(StrEnum):
    """What error-propagation calls a material mitigation: it earns a second retry."""

    CHANGED_INPUTS = "changed_inputs"
    REDUCED_SCOPE = "reduced_scope"
    CORRECTED_CONSTRAINTS = "corrected_constraints"


class Answer(NamedTuple):
    """The operator's answer; `question` is what it answers, None where there is only one thing to say."""

    question: str | None
    answer: str


class Params(NamedTuple):
    """What a decision brings along.

    `handoff` is the amended handoff, the text of a file. `mode` is that to escalate to. `report` is the final error
    report of an abort. `rule` is what else is allowed for the rest of the session that asked.
    """

    mitigation: Mitigation | None = None
    handoff: str | None = None
    mode: str | None = None
    answers: tuple[Answer, ...] = ()
    report: str | None = None
    rule: str | None = None


class Asked(NamedTuple):
    """The request that is answered: who asked it, where, and the sha256 in hex of the exact input that was shown."""

    program: str
    session: str
    nonce: str
    kind: RequestKind
    input_sha256: str


class Subject(NamedTuple):
    """What is decided about: one attempt, with the sha256 in hex of the handoff and the return that were looked at.

    `after` is the id of the decision that called a fitter for this very attempt, once that fitter has ended. Where it
    is about a `request`, task and attempt only say where that came up, and there are no digests of theirs.
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
        """One attempt has one decision: its id follows from what is decided about (DESIGN.md, "Decisions").

        A station whose fitter has ended is decided about once more: `after` keeps the two apart. A request has one,
        too, and gives it its own id. Raises RecordError.
        """
        if self.request is not None:
            asked = self.request
            given = self.workspace_id, asked.program, asked.session, asked.nonce, asked.input_sha256
            try:
                return request_id_of(*given)
            except ValueError as error:
                raise RecordError("the request holds half a character, which cannot be written") from error
        spelled = compact([*self[:5]] if self.after is None else [*self[:6]])
        try:
            return hashlib.sha256(spelled.encode()).hexdigest()[:32]
        except UnicodeEncodeError as error:
            raise RecordError("the task id holds half a character, which cannot be written") from error


@dataclass(frozen=True, slots=True)
class Record:
    """One decision as it is signed. Raises RecordError where a field is not what it must be.

    Times are UTC, `2030-01-01T00:00:00Z`; `expires_at` is None where it holds for ever. `seq` counts the decisions of
    a workspace from 1; `prev_sha256` is the sha256 of the file before, None for the first. `after`, as in `Subject`, is
    written only where there is one, and so is `request`, in versions 2 and 3. `signed_request`, in version 3 only, is
    the text of the envelope in which an operator asked a host for this record: see `signed`.
    """

    version: int
    workspace_id: str
    seq: int
    prev_sha256: str | None
    decision_id: str
    task_id: str
    attempt: int
    handoff_sha256: str | None
    return_sha256: str | None
    action: Action
    params: Params
    note: str
    operator: str
    created_at: str
    expires_at: str | None
    after: str | None = None
    request: Asked | None = None
    signed_request: str | None = None

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))
        for name, check in _CHECKS_UNLESS_NULL.items():
            if getattr(self, name) is not None:
                check(name, getattr(self, name))
        if (self.seq == 1) != (self.prev_sha256 is None):
            raise RecordError("only the first decision of a workspace has none before it")
        if self.decision_id != self.subject.decision_id:
            raise RecordError("the decision id is not that of the attempt it speaks of")
        _check_params(self.action, self.params)
        _check_request(self)

    @property
    def subject(self) -> Subject:
        return Subject(**{name: getattr(self, name) for name in Subject._fields})

    def is_expired(self, now: datetime) -> bool:
        """Whether it does not hold any more at a time (aware)."""
        return self.expires_at is not None and now >= time_of(self.expires_at)

    def document(self) -> dict[str, Any]:
        """The record as JSON values, keys in their order."""
        mitigation = self.params.mitigation.value if self.params.mitigation else None
        answers = [one._asdict() for one in self.params.answers]
        names = _params_keys(has_request=self.request is not None)
        params = {name: getattr(self.params, name) for name in names} | {"mitigation": mitigation, "answers": answers}
        keys = _keys([name for name in _AT_TIMES if getattr(self, name) is not None])
        values = {name: getattr(self, name) for name in keys}
        if self.request is not None:
            values["request"] = self.request._asdict() | {"kind": self.request.kind.value}
        return values | {"action": self.action.value, "params": params}

    def to_bytes(self) -> bytes:
        """The one spelling of the record. Raises RecordError where it is too large."""
        data = compact(self.document()).encode()
        largest = LARGEST if self.signed_request is None else LARGEST_SIGNED
        if len(data) > largest:
            raise RecordError(f"the decision has {len(data):,} bytes, {largest:,} are allowed; shorten the handoff")
        return data


def parse(data: bytes) -> Record:
    """The record that has exactly these bytes. Raises RecordError for any others."""
    if len(data) > LARGEST_SIGNED:
        raise RecordError(f"it is larger than {LARGEST_SIGNED:,} bytes")
    try:
        document = parsed(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON as a decision has it ({error})") from error
    record = record_of(document)
    # JSON has many spellings of one value; signing only one of them leaves nothing to argue about.
    if record.to_bytes() != data:
        raise RecordError("it is not spelled as agentwatch spells it")
    return record


def record_of(document: Any) -> Record:
    """The record that JSON values say. Raises RecordError where they say none."""
    has: set[str] = set()
    if isinstance(document, dict):
        # First of all: a record of a later version may have any other keys.
        _version("version", document.get("version"))
        has = {name for name in _AT_TIMES if name in document}
    values = exactly(document, _keys(has), "the record")
    has_request = "request" in has
    made = {"action": one_of(Action, values["action"]), "params": _params(values["params"], has_request=has_request)}
    if has_request:
        made["request"] = _asked(values["request"])
    return Record(**(values | made))


_AT_TIMES: Final = frozenset({"after", "request", "signed_request"})
"""The keys that only some records have."""


def _keys(has: Collection[str]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(Record) if field.name not in _AT_TIMES or field.name in has)


def _params_keys(*, has_request: bool) -> tuple[str, ...]:
    return tuple(name for name in Params._fields if name != "rule" or has_request)


def written(time: datetime) -> str:
    """A time (aware) as records have it: UTC, whole seconds."""
    return time.astimezone(UTC).strftime(_TIME)


def time_of(text: str) -> datetime:
    """The time that `written` wrote. Raises ValueError for anything else."""
    time = datetime.fromisoformat(text).replace(tzinfo=UTC)
    if written(time) != text:
        raise ValueError("not in the form of 2030-01-01T00:00:00Z")
    return time


def _params(value: object, *, has_request: bool) -> Params:
    raw = exactly(value, _params_keys(has_request=has_request), "params")
    if not isinstance(raw["answers"], list):
        raise RecordError("params.answers must be a list")
    answers = [exactly(one, ("question", "answer"), "an answer") for one in raw["answers"]]
    mitigation = None if raw["mitigation"] is None else one_of(Mitigation, raw["mitigation"])
    return Params(**(raw | {"mitigation": mitigation, "answers": tuple(Answer(**one) for one in answers)}))


def _asked(value: object) -> Asked:
    raw = exactly(value, Asked._fields, "request")
    return Asked(**(raw | {"kind": one_of(RequestKind, raw["kind"])}))


_MEANT: Final[Mapping[str, tuple[Action, ...]]] = {
    "mitigation": (Action.RETRY,),
    "handoff": (Action.RETRY, Action.ESCALATE),
    "mode": (Action.ESCALATE,),
    "answers": (Action.RESPOND, Action.ANSWER),
    "report": (Action.ABORT,),
    "rule": (Action.ALLOW,),
}


def _check_params(action: Action, params: Params) -> None:
    """A parameter that means nothing for the action is refused: nobody must wonder whether it counts."""
    texts = [("params.handoff", params.handoff), ("params.mode", params.mode), ("params.report", params.report)]
    texts += [("params.rule", params.rule)]
    texts += [("a question", one.question) for one in params.answers]
    for name, value in texts:
        if value is not None:
            text(name, value)
    for one in params.answers:
        text("an answer", one.answer)
    for name, actions in _MEANT.items():
        if getattr(params, name) not in (None, ()) and action not in actions:
            raise RecordError(f"{name} belongs to {' and '.join(actions)}, not to {action}")
    if action is Action.ESCALATE and not params.mode:
        raise RecordError("escalating needs the mode to escalate to")
    if action in (Action.RESPOND, Action.ANSWER) and not params.answers:
        raise RecordError("a response needs an answer")


def _check_request(record: Record) -> None:
    """What answers a request is of its own kind throughout: nothing of it can pass for a decision about an attempt."""
    asked = record.request
    plain = VERSION if asked is None else OF_REQUEST
    version = plain if record.signed_request is None else OF_SIGNED
    if record.version != version or (asked is not None) != (record.action in OF_REQUESTS):
        raise RecordError("the version, the action, a request and what an operator signed do not belong together")
    if asked is None:
        return
    for name in ("program", "session", "nonce"):
        named(f"request.{name}", getattr(asked, name))
    hex_digits(64, "request.input_sha256", asked.input_sha256)
    if not {record.handoff_sha256, record.return_sha256, record.after} <= {None}:
        raise RecordError("an answer to a request is about no handoff and no return")
    if record.action in (Action.ALLOW, Action.ANSWER) and (record.action is Action.ALLOW) != (
        asked.kind is RequestKind.PERMISSION
    ):
        raise RecordError(f"a {asked.kind} cannot be decided with {record.action}")
    if record.note and record.action is not Action.DENY:
        raise RecordError(f"the words of a note belong to {Action.DENY}, not to {record.action}")
    if record.expires_at is None or time_of(record.expires_at) - time_of(record.created_at) > ANSWER_LIFETIME:
        raise RecordError("an answer to a request expires within ten minutes")


def _version(name: str, value: object) -> None:
    if type(value) is not int or value not in (VERSION, OF_REQUEST, OF_SIGNED):
        raise RecordError(f"{name} {str(value)[:20]} of a decision is not known here; update agentwatch")


def _moment(name: str, value: Any) -> None:
    try:
        time_of(value)
    except (TypeError, ValueError) as error:
        raise RecordError(f"{name} must be a time in UTC such as 2030-01-01T00:00:00Z") from error


_CHECKS: Final[Mapping[str, Callable[[str, object], None]]] = {
    "version": _version,
    "workspace_id": named,
    "seq": positive,
    "decision_id": partial(hex_digits, 32),
    "task_id": named,
    "attempt": positive,
    "note": text,
    "operator": named,
    "created_at": _moment,
}
_CHECKS_UNLESS_NULL: Final[Mapping[str, Callable[[str, object], None]]] = {
    "prev_sha256": partial(hex_digits, 64),
    "handoff_sha256": partial(hex_digits, 64),
    "return_sha256": partial(hex_digits, 64),
    "expires_at": _moment,
    "after": partial(hex_digits, 32),
    "signed_request": text,
}


class AlreadyDecidedError(DecisionError):
    """Somebody decided this attempt before. `existing` is what holds."""

    exit_code = 6

    def __init__(self, existing: Record) -> None:
        next_one = "" if existing.request is not None else ", and you can decide about a new attempt"
        said = f"{existing.operator} said {existing.action} at {existing.created_at}"
        super().__init__(f"already decided: {said}; that holds{next_one}")
        self.existing = existing
