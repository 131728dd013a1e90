"""Decisions of the operator as the tree knows them, and how far they have got; and requests: what a program asks a
human before it goes on, and that can be answered where it is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

Session = tuple[str, str]  # (source, session id)


class Action(StrEnum):
    """Decisions of an operator about an attempt, or about a request of a program. The values are the ledger's."""

    RETRY = "retry"
    ESCALATE = "escalate"
    ABORT = "abort"
    RESPOND = "respond"
    ACCEPT = "accept"
    ALLOW = "allow"
    DENY = "deny"
    ANSWER = "answer"


class ActionSpec(NamedTuple):
    """All that depends on an action alone, in words of ours. `policy` says when it applies."""

    glyph: str
    word: str  # in forms
    short: str  # in a row: the decision as it was made
    decided: str = ""  # why a task stands as it does
    state: str = ""  # of the attempt until the next one is seen; blank where the decision changes none
    # The consequence for the task: `{after}` is the number of the next attempt, `{mode}` that to escalate to.
    next: str = ""
    do_now: str = ""  # the sentence for the agent that reads it; `reader.do_now` fills it in
    page: str = ""  # the heading of its page in the workspace, where that is not the word: pages are compared as bytes
    option: tuple[str, str] = ("", "")  # the value that its option of `agentwatch decide` takes, and the help
    takes: frozenset[str] = frozenset()  # the parameters of a record that mean something
    needs: tuple[str, ...] = ()  # of `mode`, `answers` and `note`: without them it cannot be decided
    document: str = ""  # the document that it hands on: `handoff`, `report`, or none
    note: str = "note"
    placeholder: str = "in your words, for the agent that does it"
    ends: bool = False  # it asks nobody for another attempt
    sends_on: bool = False  # A child can carry it out in its own session


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
        option=("MODE", "hand it to another mode; `fitter` restores a line"),
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
        option=("", "end it, with a final error report"),
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
        option=("TEXT", "answer its blocker; again for the next one"),
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

# Decisions about a request of a program: of no attempt, and no retry.
OF_REQUESTS = (Action.ALLOW, Action.DENY, Action.ANSWER)
OF_ATTEMPTS = tuple(action for action in SPECS if action not in OF_REQUESTS)
ENDING = frozenset(action for action, spec in SPECS.items() if spec.ends)
SENDS_ON = frozenset(action for action, spec in SPECS.items() if spec.sends_on)


class Stage(StrEnum):
    """How far a decision has got, in this order."""

    RECORDED = "recorded"
    DELIVERED = "delivered"
    READ = "read"
    ACTED = "acted"


SAYS_SO = " (an agent says so)"


class Receipt(NamedTuple):
    """A stage that was reached, when (epoch seconds), by whom; `claimed`: an agent says so, and nothing proves it."""

    stage: Stage
    at: float
    by: str = ""
    claimed: bool = False
    taken_by: str = ""  # who of those that read it has asked to carry it out; foreign

    @property
    def words(self) -> str:
        """The stage, and that it is a claim where it is one: every face says it in these words."""
        return f"{self.stage}{SAYS_SO if self.claimed else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One verified decision about one attempt, or about a request that came up in it; the operator's texts are raw."""

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
    rule: str | None = None  # with which a request was allowed for the rest of its session
    waits: str = ""  # why it is not delivered yet
    asked_by: str = ""  # the id of the key of the operator who decided on another machine than the ledger's
    by_other: bool = False  # it was not decided by the operator of this machine
    over: bool = False  # it called a fitter who has ended, so the attempt can be decided anew
    restored: bool = False  # and who has restored the line
    expired: bool = False  # before another attempt came: nobody is told it any more, and it binds nobody

    @property
    def words(self) -> str:
        """The decision, and who made it where somebody else did; the name is foreign."""
        spec = SPECS[self.action]
        return f"{spec.word.lower()} by “{self.operator}”" if self.by_other else spec.short

    @property
    def request_id(self) -> str | None:
        """The id of the request that it answers, which is its own; None where it is about an attempt."""
        return self.decision_id if self.action in OF_REQUESTS else None

    @property
    def receipt(self) -> Receipt:
        """The furthest stage reached."""
        return self.receipts[-1]

    @property
    def read_at(self) -> float | None:
        """When an agent first knew of it (epoch seconds, whole ones); None where none does."""
        return next((one.at for one in self.receipts if one.stage in (Stage.READ, Stage.ACTED)), None)

    @property
    def is_read(self) -> bool:
        """Whether some agent knows it."""
        return self.read_at is not None

    def acted(self, at: float | None) -> Decision:
        """The same, carried out at this time (None: not known), as what came after it shows."""
        # An attempt after an abort was not asked for by it.
        done = replace(self, expired=self.expired and self.action is Action.ABORT)
        if self.receipt.stage is Stage.ACTED:
            return done
        acted = Receipt(Stage.ACTED, self.receipt.at if at is None else at, "what came after", claimed=True)
        return replace(done, receipts=(*self.receipts, acted))

    def is_expired(self, now: float) -> bool:
        """Whether its time is over: an agent that asks for it is told to ask the operator again."""
        return self.expires_at is not None and now >= self.expires_at


# Requests


_PROMPT = 600.0  # seconds: what waits no longer than this, as hooks do, is answered before all others


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


# A request in one of these waits for nobody.
ENDED = frozenset(RequestStage) - {RequestStage.OFFERED, RequestStage.DECIDED}


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
