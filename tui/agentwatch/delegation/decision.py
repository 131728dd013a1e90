"""Decisions of the operator as the tree knows them: what was decided about an attempt, and how far it has got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple


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
    next: str = ""
    """The consequence for the task: `{after}` is the number of the next attempt, `{mode}` that to escalate to."""
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


SPECS: Mapping[Action, ActionSpec] = {
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

OF_REQUESTS = (Action.ALLOW, Action.DENY, Action.ANSWER)
"""Decisions about a request of a program: of no attempt, and no retry."""
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
        # What follows an abort is no attempt that it asked for.
        done = replace(self, expired=self.expired and self.action is Action.ABORT)
        if self.receipt.stage is Stage.ACTED:
            return done
        acted = Receipt(Stage.ACTED, self.receipt.at if at is None else at, "what came after", claimed=True)
        return replace(done, receipts=(*self.receipts, acted))

    def is_expired(self, now: float) -> bool:
        """Whether its time is over: an agent that asks for it is told to ask the operator again."""
        return self.expires_at is not None and now >= self.expires_at
