"""The record of one decision: its fields, its one spelling in bytes, and the strict way back.

Equal records have equal bytes, and only those bytes are read: a record is signed and chained by them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from agentwatch.decisions.errors import DecisionError, RecordError
from agentwatch.delegation.decision import Action

VERSION: Final = 1
LARGEST: Final = 2 * 1024 * 1024
"""Bytes of a record. A handoff of the largest file that is read fits, with everything escaped that can be."""

_LARGEST_INTEGER: Final = 2**53 - 1
"""What every reader of JSON can hold."""

_HEX: Final = re.compile(r"[0-9a-f]+\Z")
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"

Word = TypeVar("Word", bound=StrEnum)


class Mitigation(StrEnum):
    """What error-propagation calls a material mitigation: it earns a second retry."""

    CHANGED_INPUTS = "changed_inputs"
    REDUCED_SCOPE = "reduced_scope"
    CORRECTED_CONSTRAINTS = "corrected_constraints"


class Answer(NamedTuple):
    """The operator's answer; `question` is the blocker it answers, None where there is only one thing to say."""

    question: str | None
    answer: str


class Params(NamedTuple):
    """What a decision brings along.

    `handoff` is the amended handoff, the text of a file. `mode` is that to escalate to. `report` is the final error
    report of an abort.
    """

    mitigation: Mitigation | None = None
    handoff: str | None = None
    mode: str | None = None
    answers: tuple[Answer, ...] = ()
    report: str | None = None


class Subject(NamedTuple):
    """What is decided about: one attempt, with the sha256 in hex of the handoff and the return that were looked at.

    `after` is the id of the decision that called a fitter for this very attempt, once that fitter has ended.
    """

    workspace_id: str
    task_id: str
    attempt: int
    handoff_sha256: str | None
    return_sha256: str | None
    after: str | None = None

    @property
    def decision_id(self) -> str:
        """One attempt has one decision: its id follows from what is decided about (DESIGN.md, "Decisions").

        A station whose fitter has ended is decided about once more: `after` keeps the two apart. Raises RecordError.
        """
        spelled = _compact([*self[:-1]] if self.after is None else [*self])
        try:
            return hashlib.sha256(spelled.encode()).hexdigest()[:32]
        except UnicodeEncodeError as error:
            raise RecordError("the task id holds half a character, which cannot be written") from error


@dataclass(frozen=True, slots=True)
class Record:
    """One decision as it is signed. Raises RecordError where a field is not what it must be.

    Times are UTC, `2030-01-01T00:00:00Z`; `expires_at` is None where it holds for ever. `seq` counts the decisions of
    a workspace from 1; `prev_sha256` is the sha256 of the file before, None for the first. `after`, as in `Subject`, is
    written only where there is one.
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
        params = self.params._asdict() | {"mitigation": mitigation, "answers": answers}
        values = {name: getattr(self, name) for name in _keys(has_after=self.after is not None)}
        return values | {"action": self.action.value, "params": params}

    def to_bytes(self) -> bytes:
        """The one spelling of the record. Raises RecordError where it is too large."""
        data = _compact(self.document()).encode()
        if len(data) > LARGEST:
            raise RecordError(f"the decision has {len(data):,} bytes, {LARGEST:,} are allowed; shorten the handoff")
        return data


def parse(data: bytes) -> Record:
    """The record that has exactly these bytes. Raises RecordError for any others."""
    if len(data) > LARGEST:
        raise RecordError(f"it is larger than {LARGEST:,} bytes")
    try:
        document = json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON as a decision has it ({error})") from error
    if isinstance(document, dict):
        # First of all: a record of a later version may have any other keys.
        _version("version", document.get("version"))
    has_after = isinstance(document, dict) and "after" in document
    values = _exactly(document, _keys(has_after=has_after), "the record")
    record = Record(**(values | {"action": _one_of(Action, values["action"]), "params": _params(values["params"])}))
    # JSON has many spellings of one value; signing only one of them leaves nothing to argue about.
    if record.to_bytes() != data:
        raise RecordError("it is not spelled as agentwatch spells it")
    return record


def _keys(*, has_after: bool) -> tuple[str, ...]:
    return tuple(field.name for field in fields(Record) if has_after or field.name != "after")


def written(time: datetime) -> str:
    """A time (aware) as records have it: UTC, whole seconds."""
    return time.astimezone(UTC).strftime(_TIME)


def time_of(text: str) -> datetime:
    """The time that `written` wrote. Raises ValueError for anything else."""
    time = datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    if written(time) != text:
        raise ValueError("not in the form of 2030-01-01T00:00:00Z")
    return time


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise RecordError("a key stands in it twice")
    return made


def _refuse_constant(name: str) -> None:
    raise RecordError(f"{name} is not JSON")


def _exactly(value: object, keys: tuple[str, ...], what: str) -> dict[str, Any]:
    """A copy of an object that has exactly these keys."""
    if not isinstance(value, dict) or set(value) != set(keys):
        raise RecordError(f"{what} must be an object with exactly {', '.join(keys)}")
    return dict(value)


def _params(value: object) -> Params:
    raw = _exactly(value, Params._fields, "params")
    if not isinstance(raw["answers"], list):
        raise RecordError("params.answers must be a list")
    answers = [_exactly(one, ("question", "answer"), "an answer") for one in raw["answers"]]
    mitigation = None if raw["mitigation"] is None else _one_of(Mitigation, raw["mitigation"])
    return Params(**(raw | {"mitigation": mitigation, "answers": tuple(Answer(**one) for one in answers)}))


def _one_of(words: type[Word], value: object) -> Word:
    if not isinstance(value, str) or value not in list(words):
        raise RecordError(f"{str(value)[:40]!r} is none of {', '.join(words)}")
    return words(value)


_MEANT: Final[Mapping[str, tuple[Action, ...]]] = {
    "mitigation": (Action.RETRY,),
    "handoff": (Action.RETRY, Action.ESCALATE),
    "mode": (Action.ESCALATE,),
    "answers": (Action.RESPOND,),
    "report": (Action.ABORT,),
}


def _check_params(action: Action, params: Params) -> None:
    """A parameter that means nothing for the action is refused: nobody must wonder whether it counts."""
    texts = [("params.handoff", params.handoff), ("params.mode", params.mode), ("params.report", params.report)]
    texts += [("a question", one.question) for one in params.answers]
    for name, value in texts:
        if value is not None:
            _text(name, value)
    for one in params.answers:
        _text("an answer", one.answer)
    for name, actions in _MEANT.items():
        if getattr(params, name) not in (None, ()) and action not in actions:
            raise RecordError(f"{name} belongs to {' and '.join(actions)}, not to {action}")
    if action is Action.ESCALATE and not params.mode:
        raise RecordError("escalating needs the mode to escalate to")
    if action is Action.RESPOND and not params.answers:
        raise RecordError("a response needs an answer")


def _version(name: str, value: object) -> None:
    if type(value) is not int or value != VERSION:
        raise RecordError(f"{name} {str(value)[:20]} of a decision is not known here; update agentwatch")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise RecordError(f"{name} must be a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{name} holds half a character, which cannot be written; remove it") from error


def _named(name: str, value: object) -> None:
    _text(name, value)
    if not value:
        raise RecordError(f"{name} must not be empty")


def _positive(name: str, value: object) -> None:
    # `True` is an int, and JSON's `true` would be one, too.
    if type(value) is not int or not 1 <= value <= _LARGEST_INTEGER:
        raise RecordError(f"{name} must be a whole number, 1 or more")


def _hex(digits: int, name: str, value: object) -> None:
    if not (isinstance(value, str) and len(value) == digits and _HEX.match(value)):
        raise RecordError(f"{name} must be {digits} hex digits")


def _moment(name: str, value: Any) -> None:
    try:
        time_of(value)
    except (TypeError, ValueError) as error:
        raise RecordError(f"{name} must be a time in UTC such as 2030-01-01T00:00:00Z") from error


_CHECKS: Final[Mapping[str, Callable[[str, object], None]]] = {
    "version": _version,
    "workspace_id": _named,
    "seq": _positive,
    "decision_id": partial(_hex, 32),
    "task_id": _named,
    "attempt": _positive,
    "note": _text,
    "operator": _named,
    "created_at": _moment,
}
_CHECKS_UNLESS_NULL: Final[Mapping[str, Callable[[str, object], None]]] = {
    "prev_sha256": partial(_hex, 64),
    "handoff_sha256": partial(_hex, 64),
    "return_sha256": partial(_hex, 64),
    "expires_at": _moment,
    "after": partial(_hex, 32),
}


class AlreadyDecidedError(DecisionError):
    """Somebody decided this attempt before. `existing` is what holds."""

    exit_code = 6

    def __init__(self, existing: Record) -> None:
        super().__init__(
            f"already decided: {existing.operator} said {existing.action} at {existing.created_at}; that holds,"
            " and you can decide about a new attempt"
        )
        self.existing = existing
