"""Requests: what a program asks a human before it goes on, and that can be answered where it is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from agentwatch.delegation.decision import Action


class RequestKind(StrEnum):
    """What is asked for: leave to make a call, answers to questions, or a form of a server to be filled in."""

    PERMISSION = "permission"
    QUESTION = "question"
    FORM = "form"


class RequestStage(StrEnum):
    """How far a request has got. The last two are ends that came of nothing decided here."""

    OFFERED = "offered"
    """It is open: the program waits, and a holder of ours can answer it."""
    DECIDED = "decided"
    """The operator has signed an answer; the program does not have it yet."""
    DELIVERED = "delivered"
    """The program was given the answer. Nothing shows yet what it did with it."""
    ACTED = "acted"
    """The program's own record says that it did as was answered."""
    ELSEWHERE = "answered elsewhere"
    """It was answered in the program, or by somebody else, first."""
    UNKNOWN = "unknown"
    """It was answered, and what it was answered by broke before the program said whether it took that."""
    GONE = "gone"
    """Nobody can answer it any more: the program stopped waiting, or its holder has ended."""


_REMEMBERED: Final = 8_192
"""Characters of each text."""
_NAMES: Final = 40
"""So many arguments, and characters of each."""

ENDED: Final = frozenset(RequestStage) - {RequestStage.OFFERED, RequestStage.DECIDED}
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
    """What a call is given besides what is shown of it. The value is JSON; both are in one line, and foreign."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a program asks, exactly, as its holder offers it. The id is that of the decision that answers it.

    `source` and `session_id` are as in `Run`, those of the agent inside the session where a child asks. `nonce` is the
    program's own id of the request, or a random one of the holder. `tool` is the program's name for it, `input` the
    exact input as `input_text` spells it, `shown` the command, patch or path in it, whole; `said` is what the model
    says about it. Times are seconds since the epoch; the holder gives up at `until`. All texts are foreign and
    unsanitised.
    """

    request_id: str
    source: str
    session_id: str
    nonce: str
    kind: RequestKind
    tool: str
    input: str
    input_sha256: str
    shown: str
    asked_at: float
    said: str = ""
    beside: tuple[Given, ...] = ()
    """What the call is given besides what is shown: where it runs, and such."""
    queries: tuple[Query, ...] = ()
    """Those of a question or a form."""
    until: float | None = None
    prompt_hidden: bool = False
    """The program shows no prompt of its own as long as we hold the request."""
    actions: tuple[Action, ...] = ()
    """What can be decided here, in this order; () where it cannot be answered from here."""
    why_not: str = ""
    """Why it cannot be answered from here, and where it can."""
    words: bool = False
    """A denial takes words to the model."""
    rules: tuple[str, ...] = ()
    """What may be allowed for the rest of the session, as rules that the operator reads in full."""
    ends_others: int = 0
    """So many other open requests end with a denial of this one."""
    ends_turn: bool = False
    """A denial without words ends the turn of the agent that asks."""
    call_id: str | None = None
    """The program's id of the call, where it is known."""
    covered_by: str = ""
    """Which of the program's own rules would have covered it."""
    stage: RequestStage = RequestStage.OFFERED
    ended_at: float | None = None
    by: str = ""
    """Who allowed or denied it, where that is known: the operator; one of `Permitter`, where it was answered elsewhere.
    """
    allowed: bool | None = None
    """Whether it was allowed, or answered; None where that is not known, or not decided."""

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
    def remembered(self) -> Request:
        """What is remembered of it: what was asked, and how it ended. Nobody can answer that: it has no input."""
        shown, said = self.shown[:_REMEMBERED], self.said[:_REMEMBERED]
        queries = tuple(Query(query.question[:_REMEMBERED]) for query in self.queries)
        beside = tuple(Given(*(text[:_NAMES] for text in one)) for one in self.beside[:_NAMES])
        return replace(self, input="", shown=shown, said=said, beside=beside, queries=queries, rules=())

    @property
    def begun(self) -> Request:
        """It as it was when it was asked."""
        return replace(self, stage=RequestStage.OFFERED, ended_at=None, by="", allowed=None)


def input_text(value: object) -> tuple[str, str]:
    """The one spelling of an input as JSON, and the sha256 in hex of its bytes. Raises ValueError where there is none:
    NaN, half a character, or nested too deep."""
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
