"""The decisions of the operator with their stages, and the requests of programs that the operator can answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

Session = tuple[str, str]  # (source, session id)


class Action(StrEnum):
    """The decisions of an operator about an attempt, or about a request of a program. The ledger stores the values."""

    RETRY = "retry"
    ESCALATE = "escalate"
    ABORT = "abort"
    RESPOND = "respond"
    ACCEPT = "accept"
    ALLOW = "allow"
    DENY = "deny"
    ANSWER = "answer"


class ActionSpec(NamedTuple):
    """The words and properties of one action. The module `policy` says when an action is possible."""

    glyph: str
    word: str  # the name in forms
    short: str  # the name in a row, after the decision was made
    decided: str = ""  # the reason that is shown for the state of the task
    state: str = ""  # the state of the attempt until the next attempt begins; "": unchanged
    # The consequence for the task. `{after}` is the number of the next attempt, and `{mode}` its mode.
    next: str = ""
    do_now: str = ""  # the instruction for the agent that reads the decision; `reader.instruction` fills it in
    page: str = ""  # the heading of the decision's page in the workspace; "": the same as `word`
    option: tuple[str, str] = ("", "")  # its option of `agentwatch decide`: (name of the value, help text)
    takes: frozenset[str] = frozenset()  # the parameters that a decision of this kind may have
    needs: tuple[str, ...] = ()  # the inputs that the operator must give: some of `mode`, `answers`, `note`
    document: str = ""  # the document that it hands to the agent: `handoff`, `report`, or none
    note: str = "note"
    placeholder: str = "in your words, for the agent that does it"
    ends: bool = False  # the task ends: it gets no further attempt
    continues_session: bool = False  # the child can carry it out in its own session


SPECS = {
    Action.RETRY: ActionSpec(
        "↻",
        "Retry",
        "retry",
        decided="you decided: retry",
        state="retrying",
        next="attempt {after}",
        do_now="run {task} once more, as attempt {after}, {given}",
        option=("", "one more attempt, with an amended handoff"),
        takes=frozenset({"mitigation", "handoff"}),
        document="handoff",
        continues_session=True,
    ),
    Action.ESCALATE: ActionSpec(
        "↑",
        "Escalate",
        "escalate",
        decided="you decided: escalate",
        state="escalated",
        next="attempt {after}, in {mode}",
        do_now="hand {task} to the mode {mode}, {given}",
        option=("MODE", "give it to another mode; `fitter` repairs the line"),
        takes=frozenset({"handoff", "mode"}),
        needs=("mode",),
        document="handoff",
    ),
    Action.ABORT: ActionSpec(
        "–",
        "Abort",
        "abort",
        decided="you decided: abort",
        state="canceled",
        next="ended",
        do_now="stop {task} and what is below it, start no other attempt of it, and hand params.report up as its"
        " return: it is the final error report",
        option=("", "end the task, with a final error report"),
        takes=frozenset({"report"}),
        document="report",
        note="why",
        placeholder="stands in the report",
        ends=True,
    ),
    Action.RESPOND: ActionSpec(
        "»",
        "Answer",
        "your answer",
        decided="you have answered",
        state="retrying",
        next="attempt {after}, with your answer",
        do_now="give {answers} to the child of {task}: in its session, or with a new handoff, with `attempt` {after}"
        " and `decision_id` {decision_id}",
        option=("TEXT", "answer its blocker; once for each blocker"),
        takes=frozenset({"answers"}),
        needs=("answers",),
        placeholder="anything else that you want to say",
        continues_session=True,
    ),
    Action.ACCEPT: ActionSpec(
        "✓",
        "Accept",
        "accept it as it is",
        decided="you accepted it as it is",
        next="accepted as it is",
        do_now="go on as if {task} had succeeded: the operator accepts its return as it is; the handoff that goes on"
        " from it carries `decision_id` {decision_id}",
        page="Accept the return",
        option=("", "take its return as it is; needs --note"),
        needs=("note",),
        note="because",
        placeholder="why it is good enough",
        ends=True,
    ),
    Action.ALLOW: ActionSpec("", "Allow", "allow", takes=frozenset({"rule"})),
    Action.DENY: ActionSpec("", "Deny", "deny"),
    Action.ANSWER: ActionSpec("", "Answer", "your answer", takes=frozenset({"answers"}), needs=("answers",)),
}

# Decisions about a request of a program. These decisions belong to no attempt and use up no retry.
OF_REQUESTS = (Action.ALLOW, Action.DENY, Action.ANSWER)
OF_ATTEMPTS = tuple(action for action in SPECS if action not in OF_REQUESTS)
ENDING = frozenset(action for action, spec in SPECS.items() if spec.ends)
RESUMING = frozenset(action for action, spec in SPECS.items() if spec.continues_session)


class Stage(StrEnum):
    """The stages of a decision, from the first to the last."""

    RECORDED = "recorded"
    DELIVERED = "delivered"
    READ = "read"
    ACTED = "acted"


SAYS_SO = " (an agent says so)"


class Receipt(NamedTuple):
    """A stage that a decision reached: when (epoch seconds), and through whom. `claimed`: only an agent reports it."""

    stage: Stage
    at: float
    by: str = ""
    claimed: bool = False
    taken_by: str = ""  # the agent that has reserved the decision to carry it out (untrusted)

    @property
    def words(self) -> str:
        """The name of the stage, with a note if only an agent reports that it was reached."""
        return f"{self.stage}{SAYS_SO if self.claimed else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One verified decision about an attempt or a request. The operator's texts may have any characters."""

    decision_id: str
    task_id: str
    attempt: int
    handoff_sha256: str | None
    return_sha256: str | None
    action: Action
    at: float
    receipts: tuple[Receipt, ...]  # one for each stage that was reached, in order
    expires_at: float | None = None
    operator: str = ""
    note: str = ""
    mode: str | None = None
    mitigation: str | None = None
    answers: tuple[str, ...] = ()
    rule: str | None = None  # the rule that allows similar requests in the rest of the session
    waits: str = ""  # the reason why the decision is not delivered yet
    asked_by: str = ""  # the id of the operator's key, if the ledger is on another machine
    by_other: bool = False  # made by another operator than the operator of this machine
    over: bool = False  # the fitter that it called has ended, so the operator can decide again
    restored: bool = False  # the fitter that it called has repaired the production line
    expired: bool = False  # it expired before another attempt began; agents do not get it

    @property
    def words(self) -> str:
        """The name of the decision. If another operator made it, that operator's name (untrusted) is added."""
        spec = SPECS[self.action]
        return f"{spec.word.lower()} by “{self.operator}”" if self.by_other else spec.short

    @property
    def request_id(self) -> str | None:
        """The id of the request that the decision answers, or None. The decision has the same id."""
        return self.decision_id if self.action in OF_REQUESTS else None

    @property
    def receipt(self) -> Receipt:
        """The receipt of the last stage that was reached."""
        return self.receipts[-1]

    @property
    def read_at(self) -> float | None:
        """The time when an agent first read the decision (epoch seconds), or None if no agent has."""
        return next((one.at for one in self.receipts if one.stage in (Stage.READ, Stage.ACTED)), None)

    @property
    def is_read(self) -> bool:
        """Whether an agent has read the decision."""
        return self.read_at is not None

    def as_carried_out(self, at: float | None) -> Decision:
        """Return a copy that is marked as carried out, as a later event shows. `at` is the time, or None if unknown."""
        # A decision that was carried out did not expire. But later events cannot show that an abort was carried out.
        done = replace(self, expired=self.expired and self.action is Action.ABORT)
        if self.receipt.stage is Stage.ACTED:
            return done
        acted = Receipt(Stage.ACTED, self.receipt.at if at is None else at, "what came after", claimed=True)
        return replace(done, receipts=(*self.receipts, acted))

    def is_expired(self, now: float) -> bool:
        """Tell whether the decision is too old. An agent that reads an expired decision must ask the operator again."""
        return self.expires_at is not None and now >= self.expires_at


# Requests


_PROMPT = 600.0  # seconds; requests with at most this time limit come first


class RequestKind(StrEnum):
    """The kind of a request: a permission to make a call, questions to answer, or a form to fill in."""

    PERMISSION = "permission"
    QUESTION = "question"
    FORM = "form"


class RequestStage(StrEnum):
    """The stages of a request. Only `acted` means that the program is known to have followed our answer."""

    OFFERED = "offered"  # open: the program waits, and our hook or connection (the holder) can answer it
    DECIDED = "decided"  # the operator has signed an answer, which the program does not have yet
    DELIVERED = "delivered"  # the program was given the answer, and its effect is not seen yet
    ACTED = "acted"  # the program's own records say that it followed the answer
    ELSEWHERE = "answered elsewhere"  # somebody answered it in the program, or in another way
    UNKNOWN = "unknown"  # it was answered, but the connection broke before the program confirmed the answer
    GONE = "gone"  # the program does not wait any more, or the holder has ended


# A request in one of these stages does not wait any more.
ENDED_STAGES = frozenset(RequestStage) - {RequestStage.OFFERED, RequestStage.DECIDED}


class Option(NamedTuple):
    """One answer that a program offers for a question. The texts are untrusted."""

    label: str
    description: str = ""


class Query(NamedTuple):
    """One question of a request. `several`: more than one option may be chosen. `key`: the id of the question."""

    question: str
    header: str = ""
    options: tuple[Option, ...] = ()
    several: bool = False
    key: str = ""


class CallArgument(NamedTuple):
    """A further argument of a call, which is shown on demand. `name` and `value` (JSON) are untrusted."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question of a program that our hook or connection (its holder) can answer. The texts are untrusted."""

    request_id: str
    source: str
    session_id: str
    nonce: str  # the id that the program gave the request, or a random id
    kind: RequestKind
    tool: str
    input: str  # as `canonical_input` spells it
    input_sha256: str
    shown: str  # the command, patch or path in the input, uncut
    asked_at: float
    said: str = ""
    beside: tuple[CallArgument, ...] = ()  # other arguments of the call, such as its directory
    queries: tuple[Query, ...] = ()  # its questions, if it is a question or a form
    until: float | None = None  # the time at which the holder gives up
    prompt_hidden: bool = False  # the program shows no prompt of its own while we hold the request
    actions: tuple[Action, ...] = ()  # the decisions that the operator can make here, in this order
    why_not: str = ""  # the reason why it cannot be answered here, and where it can be answered
    words: bool = False  # a denial can send words to the model
    rules: tuple[str, ...] = ()  # rules that allow similar calls for the rest of the session
    ends_others: int = 0  # how many other open requests end if this request is denied
    ends_turn: bool = False  # a denial without words ends the turn of the agent that asks
    call_id: str | None = None  # the id that the program gave the call, if known
    covered_by: str = ""  # the rule of the program that would have allowed it
    stage: RequestStage = RequestStage.OFFERED
    ended_at: float | None = None
    by: str = ""  # the party that allowed or denied it: the operator, or one of `Permitter` if answered elsewhere
    allowed: bool | None = None  # whether it was allowed, or answered; None if unknown or undecided

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def urgency(self) -> tuple[int, float]:
        """The sort key: requests with a short time limit, then the newest requests, then decided and ended requests."""
        if not self.waits_for_operator:
            return 2 if self.is_open else 3, -self.asked_at
        if self.until is not None and self.until - self.asked_at <= _PROMPT:
            return 0, self.until
        return 1, -self.asked_at

    @property
    def is_open(self) -> bool:
        """Whether the program still waits and has no answer yet."""
        return self.stage not in ENDED_STAGES

    @property
    def waits_for_operator(self) -> bool:
        """Whether the request is open and the operator has not decided it."""
        return self.stage is RequestStage.OFFERED

    @property
    def is_answerable(self) -> bool:
        """Whether the operator can answer the request here and now."""
        return self.waits_for_operator and bool(self.actions)

    @property
    def as_first_asked(self) -> Request:
        """The request as it was when the program asked, without an answer."""
        return replace(self, stage=RequestStage.OFFERED, ended_at=None, by="", allowed=None)


class Permitter(StrEnum):
    """The party that allowed or refused a call, as the program recorded it."""

    HOOK = "hook"  # a hook; its owner is unknown
    PERSON = "person"
    RULE = "rule"  # a rule or a mode of the program: nobody was asked
    UNKNOWN = "unknown"


class Permit(NamedTuple):
    """A program's record that a call was allowed or refused. `words` is the text that the model got."""

    call_id: str
    tool: str
    input_sha256: str
    allowed: bool | None
    by: Permitter
    at: float
    words: str = ""


def canonical_input(value: object) -> tuple[str, str]:
    """Return the canonical JSON of an input and its sha256 (hex). Raise ValueError if JSON cannot express the input."""
    # Imported here, so that the screen starts faster.
    import hashlib
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text, hashlib.sha256(text.encode()).hexdigest()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the input cannot be written as JSON ({error})") from error


def make_request_id(workspace_id: str, source: str, session_id: str, nonce: str, input_sha256: str) -> str:
    """Return the id (32 hex digits) that a request and its decision share. Raise ValueError if Unicode is invalid."""
    return canonical_input([workspace_id, source, session_id, nonce, input_sha256])[1][:32]
