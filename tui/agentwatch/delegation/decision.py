"""Decisions of the operator as the tree knows them: what was decided about an attempt, and how far it has got."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple


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


OF_ATTEMPTS: Final = (Action.RETRY, Action.ESCALATE, Action.ABORT, Action.RESPOND, Action.ACCEPT)

OF_REQUESTS: Final = (Action.ALLOW, Action.DENY, Action.ANSWER)
"""Decisions about a request of a program: of no attempt, and no retry."""

ENDING: Final = frozenset({Action.ABORT, Action.ACCEPT})  # what asks nobody for another attempt

SENDS_ON: Final = frozenset({Action.RETRY, Action.RESPOND})  # what a child can carry out in its own session


class Stage(StrEnum):
    """How far a decision has got, in this order."""

    RECORDED = "recorded"
    DELIVERED = "delivered"
    READ = "read"
    ACTED = "acted"


SAYS_SO: Final = " (an agent says so)"


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
    over: bool = False  # it called a fitter who has ended, so the attempt can be decided anew
    restored: bool = False  # and who has restored the line
    expired: bool = False  # before another attempt came: nobody is told it any more, and it binds nobody

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
