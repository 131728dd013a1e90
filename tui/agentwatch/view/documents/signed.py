"""What is signed and what becomes of it: envelopes, statements, receipts, and the answers of `wait` and `claim`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State
from agentwatch.view.documents.tasks import StatedAttempt, StatedTask


class Expired(TypedDict):
    decision_id: str
    task_id: str
    attempt: int
    expires_at: str | None


class Refused(TypedDict):
    """A file among the decisions that is none of the operator's."""

    name: str
    kind: str
    message: str


class Undecided(TypedDict):
    """`agentwatch wait` where nothing is decided (yet)."""

    pending: Literal[True]
    do_now: str
    detail: NotRequired[str]
    expired: NotRequired[Expired]
    refused: NotRequired[list[Refused]]
    task_id: NotRequired[str]
    state: NotRequired[State | None]
    unasked: NotRequired[bool]


class Claimed(TypedDict):
    """`agentwatch claim`: who carries a decision out; `won`: it is you."""

    decision_id: str
    won: bool
    by: str
    at: str
    proof: bool
    again: bool


class ReceiptFile(TypedDict):
    """`.agentwatch/receipts/<decision id>.….json`: how far a decision has got, as its writer says."""

    version: Literal[1]
    decision_id: str
    receipt: Literal["delivered", "read", "acted", "claim"]
    by: str
    at: str


class Signature(TypedDict):
    keyid: str
    sig: str


class Envelope(TypedDict):
    """A signed file: DSSE. Of a decision (`.agentwatch/decisions/`), of statements a line each."""

    payload: str
    payloadType: Literal["application/vnd.agentwatch.decision.v1+json", "application/vnd.in-toto+json"]
    signatures: list[Signature]


class Digest(TypedDict):
    sha256: str


class Artifact(TypedDict):
    """A handoff or a return: its path in the workspace; of a session, the key of the run and what of it is meant."""

    name: str
    digest: Digest


class StatedDecision(TypedDict):
    """A decision of the ledger: `sha256` is that of its file, by which whoever is shown that knows it again."""

    decision_id: str
    sha256: str
    keyid: str
    attempt: int
    action: Action
    of_request: bool
    note: str
    operator: str
    created_at: str
    expires_at: str | None
    handoff_sha256: str | None
    return_sha256: str | None


class Predicate(StatedTask):
    """How a task stood at `made_at`; `complete`: all could be read then."""

    agentwatch: str
    made_at: str
    workspace_id: str
    complete: bool
    attempts: list[StatedAttempt]
    decisions: list[StatedDecision]


class Statement(TypedDict):
    _type: Literal["https://in-toto.io/Statement/v1"]
    subject: list[Artifact]
    predicateType: Literal["urn:agentwatch:task:v1"]
    predicate: Predicate


"""What `agentwatch attest` signs: an in-toto Statement."""
