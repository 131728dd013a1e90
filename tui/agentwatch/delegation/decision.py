"""The operator's decisions with their stages, and requests: questions of a program that can be answered here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

Session = tuple[str, str]  # (source, session id)


class Action(StrEnum):
    """Decisions of an operator about an attempt, or about a request of a program; the values are the ledger's."""

    RETRY = "retry"
    ESCALATE = "escalate"
    ABORT = "abort"
    RESPOND = "respond"
    ACCEPT = "accept"
    ALLOW = "allow"
    DENY = "deny"
    ANSWER = "answer"


class ActionSpec(NamedTuple):
    """Everything that depends on an action alone, in words of ours; `policy` says when it applies."""

    glyph: str
    word: str  # in forms
    short: str  # in a row, for the decision after it was made
    decided: str = ""  # the reason shown for the state of a task
    state: str = ""  # the attempt's state until the next one is seen; blank: the decision does not change it
    # The consequence for the task: `{after}` is the number of the next attempt, `{mode}` the mode to escalate to.
    next: str = ""
    do_now: str = ""  # the instruction for the agent that reads it; `reader.do_now` fills it in
    page: str = ""  # the heading of its page in the workspace, if not `word`: pages are compared as bytes
    option: tuple[str, str] = ("", "")  # the value of its option of `agentwatch decide`, and the help
    takes: frozenset[str] = frozenset()  # the parameters of a record that it uses
    needs: tuple[str, ...] = ()  # the inputs required: some of `mode`, `answers`, `note`
    document: str = ""  # the document that it hands on: `handoff`, `report`, or none
    note: str = "note"
    placeholder: str = "in your words, for the agent that does it"
    ends: bool = False  # it asks for no further attempt
    sends_on: bool = False  # a child can carry it out in its own session


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
        sends_on=True,
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
        sends_on=True,
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

# Decisions about a program's request: they belong to no attempt and use no retry.
OF_REQUESTS = (Action.ALLOW, Action.DENY, Action.ANSWER)
OF_ATTEMPTS = tuple(action for action in SPECS if action not in OF_REQUESTS)
ENDING = frozenset(action for action, spec in SPECS.items() if spec.ends)
SENDS_ON = frozenset(action for action, spec in SPECS.items() if spec.sends_on)


class Stage(StrEnum):
    """The stages of a decision, in their order."""

    RECORDED = "recorded"
    DELIVERED = "delivered"
    READ = "read"
    ACTED = "acted"


SAYS_SO = " (an agent says so)"


class Receipt(NamedTuple):
    """A stage that was reached, when (epoch seconds), by whom; `claimed`: only an agent says so."""

    stage: Stage
    at: float
    by: str = ""
    claimed: bool = False
    taken_by: str = ""  # the reader that has asked to carry it out; foreign

    @property
    def words(self) -> str:
        """The stage, marked if it is only a claim: every face uses these words."""
        return f"{self.stage}{SAYS_SO if self.claimed else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One verified decision about an attempt, or about a request that came up in it; the operator's texts are raw."""

    decision_id: str
    task_id: str
    attempt: int
    handoff_sha256: str | None
    return_sha256: str | None
    action: Action
    at: float
    receipts: tuple[Receipt, ...]  # of the stages reached, in their order
    expires_at: float | None = None
    operator: str = ""
    note: str = ""
    mode: str | None = None
    mitigation: str | None = None
    answers: tuple[str, ...] = ()
    rule: str | None = None  # the rule that allows such requests for the rest of the session
    waits: str = ""  # the reason why it is not delivered yet
    asked_by: str = ""  # the key id of an operator who decided on another machine than the ledger's
    by_other: bool = False  # the operator of this machine did not make it
    over: bool = False  # it called a fitter that has ended, so the attempt can be decided anew
    restored: bool = False  # that fitter has restored the line
    expired: bool = False  # it expired before another attempt came: it is told to nobody and binds nobody

    @property
    def words(self) -> str:
        """The decision, with its operator's name (foreign) if that is somebody else."""
        spec = SPECS[self.action]
        return f"{spec.word.lower()} by “{self.operator}”" if self.by_other else spec.short

    @property
    def request_id(self) -> str | None:
        """The id of the request that it answers (the same as its own); None for a decision about an attempt."""
        return self.decision_id if self.action in OF_REQUESTS else None

    @property
    def receipt(self) -> Receipt:
        """The furthest stage reached."""
        return self.receipts[-1]

    @property
    def read_at(self) -> float | None:
        """The time when an agent first knew of it (whole epoch seconds); None if no agent does."""
        return next((one.at for one in self.receipts if one.stage in (Stage.READ, Stage.ACTED)), None)

    @property
    def is_read(self) -> bool:
        """Whether some agent knows it."""
        return self.read_at is not None

    def acted(self, at: float | None) -> Decision:
        """Return it as carried out at this time (None: unknown), because a later event shows that."""
        # An abort did not ask for the attempt after it, so it may have expired.
        done = replace(self, expired=self.expired and self.action is Action.ABORT)
        if self.receipt.stage is Stage.ACTED:
            return done
        acted = Receipt(Stage.ACTED, self.receipt.at if at is None else at, "what came after", claimed=True)
        return replace(done, receipts=(*self.receipts, acted))

    def is_expired(self, now: float) -> bool:
        """Tell whether its time is over: an agent that asks for it must ask the operator again."""
        return self.expires_at is not None and now >= self.expires_at


# Requests


_PROMPT = 600.0  # seconds: a request with a shorter time limit (as of hooks) comes first


class RequestKind(StrEnum):
    """Leave to make a call, answers to questions, or a server's form."""

    PERMISSION = "permission"
    QUESTION = "question"
    FORM = "form"


class RequestStage(StrEnum):
    """The stages of a request; in the last three, the program is not known to have accepted an answer of ours."""

    OFFERED = "offered"  # open: the program waits, and one of our holders (a hook or connection) can answer it
    DECIDED = "decided"  # the operator has signed an answer, which the program does not have yet
    DELIVERED = "delivered"  # the program was given the answer; its effect is not seen yet
    ACTED = "acted"  # the program's own record says that it followed the answer
    ELSEWHERE = "answered elsewhere"  # it was answered first in the program or by somebody else
    UNKNOWN = "unknown"  # it was answered, and its holder broke before the program confirmed the answer
    GONE = "gone"  # nobody can answer it any more: the program stopped waiting, or its holder has ended


# A request in one of these stages waits for nobody.
ENDED = frozenset(RequestStage) - {RequestStage.OFFERED, RequestStage.DECIDED}


class Option(NamedTuple):
    """One answer that the asker offers; all text of a query is foreign and unsanitised."""

    label: str
    description: str = ""


class Query(NamedTuple):
    """One question of a request; `several`: more than one option may be chosen; `key` is the program's id of it."""

    question: str
    header: str = ""
    options: tuple[Option, ...] = ()
    several: bool = False
    key: str = ""


class Given(NamedTuple):
    """A further argument of a call, shown on demand: a name and its JSON value, both on one line and foreign."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A program's exact question, offered by our hook or connection (its holder); foreign. The decision has its id."""

    request_id: str
    source: str
    session_id: str
    nonce: str  # the program's own id of it, or a random one
    kind: RequestKind
    tool: str
    input: str  # as `input_text` spells it
    input_sha256: str
    shown: str  # the command, patch or path in the input, uncut
    asked_at: float
    said: str = ""
    beside: tuple[Given, ...] = ()  # other arguments of the call, such as its directory
    queries: tuple[Query, ...] = ()  # of a question or a form
    until: float | None = None  # the time at which the holder gives up
    prompt_hidden: bool = False  # the program shows no prompt of its own while we hold the request
    actions: tuple[Action, ...] = ()  # decisions possible here, in this order
    why_not: str = ""  # the reason why it cannot be answered here, and where it can
    words: bool = False  # a denial takes words to the model
    rules: tuple[str, ...] = ()  # for the rest of the session; the operator reads them in full
    ends_others: int = 0  # the number of other open requests that a denial of this one ends
    ends_turn: bool = False  # a denial without words ends the turn of the agent that asks
    call_id: str | None = None  # the program's id of the call, if known
    covered_by: str = ""  # the program's own rule that would have covered it
    stage: RequestStage = RequestStage.OFFERED
    ended_at: float | None = None
    by: str = ""  # the party that allowed or denied it: the operator, or one of `Permitter` if answered elsewhere
    allowed: bool | None = None  # whether it was allowed, or answered; None if unknown or undecided

    @property
    def session(self) -> Session:
        return self.source, self.session_id

    @property
    def rank(self) -> tuple[int, float]:
        """Its sort key: first those that soon cannot be answered, then the newest, the decided, and the ended ones."""
        if not self.waits_for_operator:
            return 2 if self.is_open else 3, -self.asked_at
        if self.until is not None and self.until - self.asked_at <= _PROMPT:
            return 0, self.until
        return 1, -self.asked_at

    @property
    def is_open(self) -> bool:
        """Whether the program still waits and has got no answer."""
        return self.stage not in ENDED

    @property
    def waits_for_operator(self) -> bool:
        """Whether it is open and undecided."""
        return self.stage is RequestStage.OFFERED

    @property
    def can_answer(self) -> bool:
        """Whether it can be decided here, now."""
        return self.waits_for_operator and bool(self.actions)

    @property
    def begun(self) -> Request:
        """The request as it was when it was asked."""
        return replace(self, stage=RequestStage.OFFERED, ended_at=None, by="", allowed=None)


class Permitter(StrEnum):
    """The party that allowed or refused a call, by the program's own record."""

    HOOK = "hook"  # a hook of unknown owner
    PERSON = "person"
    RULE = "rule"  # a rule or a mode of the program: nobody was asked
    UNKNOWN = "unknown"


class Permit(NamedTuple):
    """The program's record of a call that may have been asked about; `words`: the text that the model was told."""

    call_id: str
    tool: str
    input_sha256: str
    allowed: bool | None
    by: Permitter
    at: float
    words: str = ""


def input_text(value: object) -> tuple[str, str]:
    """Return the canonical JSON of an input and its sha256 (hex); raise ValueError if it cannot be written."""
    # Imported late: the first frame does not need them.
    import hashlib
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text, hashlib.sha256(text.encode()).hexdigest()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the input cannot be written as JSON ({error})") from error


def request_id_of(workspace_id: str, source: str, session_id: str, nonce: str, input_sha256: str) -> str:
    """Return the id (32 hex digits) of a request and its decision; raise ValueError for a lone surrogate."""
    return input_text([workspace_id, source, session_id, nonce, input_sha256])[1][:32]
