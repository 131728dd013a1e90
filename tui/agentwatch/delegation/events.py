"""Observations, of which alone the delegation tree is made, and claims with their verdicts."""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from agentwatch.contracts.shapes import Fields, Finding
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.request import Request
from agentwatch.delegation.run import Run


class Verdict(StrEnum):
    """The result of checking a claim. Unverifiable is never shown as if it were verified."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Call(NamedTuple):
    """A use of a tool in the transcript of a run: where it stands there, and its result, and when (epoch seconds)."""

    source: str
    session_id: str
    place: tuple[int, int]
    answered: tuple[int, int] | None
    at: float


class Claim(NamedTuple):
    """A claim and its verdict. `path`, as it was claimed, and `detail`, the reason in words, are foreign."""

    kind: str
    path: str
    verdict: Verdict
    detail: str
    lines: tuple[int, int] | None = None  # 1-based, both included
    file: str | None = None  # the path in the workspace that is meant
    is_missing: bool = False  # it is false because nothing is there
    call: Call | None = None  # the command that the verdict rests on


def merged(claims: Iterable[Claim]) -> list[Claim]:
    """The claims, those about one thing as one, whose kind names all of theirs: a file may be created and evidence."""
    alike: dict[tuple[str, tuple[int, int] | None, Verdict], list[Claim]] = {}
    for claim in claims:
        lines = None if claim.is_missing else claim.lines
        alike.setdefault((claim.file or claim.path, lines, claim.verdict), []).append(claim)
    kinds = (", ".join(dict.fromkeys(one.kind for one in same)) for same in alike.values())
    return [same[0]._replace(kind=kind) for same, kind in zip(alike.values(), kinds, strict=True)]


def is_false(claims: tuple[Claim, ...]) -> bool:
    """Whether one of them is."""
    return overall(claims) is Verdict.CONTRADICTED


def overall(claims: tuple[Claim, ...]) -> Verdict | None:
    """The verdict over all claims of a return: one lie is a lie, and without one a claim that is so is enough."""
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None


class Rules(NamedTuple):
    """How a tree judges."""

    strict: bool = True  # a return that breaks its contract counts as failed
    stale_after: float = 600.0  # seconds
    max_retries: int = 1  # of a parent
    low_confidence: float = 0.5  # a completed report below it asks for a review
    demands: bool = False  # a child of a session that ends without a contract counts as failed
    history_before: float = float("-inf")  # without a sign of life since then (epoch seconds), a task is past


class Seen(NamedTuple):
    """A file holds this document now; `seq` orders observations across files, however they are interleaved later."""

    seq: int
    at: float  # since when, in epoch seconds
    path: str  # in the workspace
    digest: str  # the sha256 of the bytes, in hex
    document: Fields
    findings: tuple[Finding, ...] = ()
    incomplete: bool = False  # it broke off in the middle, and may still be written
    stored: bool = False  # Of a session: `path` is the key of its run, and there may be prose around the document


class Gone(NamedTuple):
    """The file is gone, or holds no document any more."""

    seq: int
    at: float
    path: str


class Unreadable(NamedTuple):
    """A file that looks like one of ours by its name could not be read, or nothing of ours is in it."""

    seq: int
    at: float
    path: str
    finding: Finding


class Checked(NamedTuple):
    """The claims of the return with this digest, in this file, were held against the evidence."""

    seq: int
    at: float
    path: str
    digest: str
    claims: tuple[Claim, ...]


class Ran(NamedTuple):
    """A run, whose key is `path`, is like this now, as a session store shows it; None: the store no longer has it."""

    seq: int
    at: float
    path: str
    run: Run | None


class Decided(NamedTuple):
    """The operator has decided, or a decision has got further. `path` is the decision's id."""

    seq: int
    at: float
    path: str
    decision: Decision


class Requested(NamedTuple):
    """A request of a program is like this now; None: it is forgotten. `path` is its id."""

    seq: int
    at: float
    path: str
    request: Request | None


class Put(NamedTuple):
    """A task was put aside as it looked then: acknowledged, or snoozed, `until` a time or else until it changes."""

    mark: str
    at: float
    snoozed: bool = False
    until: float | None = None

    @property
    def ends_at(self) -> float:
        """When it asks again at the latest."""
        return math.inf if self.until is None else self.until


class Aside(NamedTuple):
    """How a task was put aside last, and the mark that it had when it was looked at last."""

    put: Put | None = None
    seen: str | None = None


class Noted(NamedTuple):
    """What the operator has looked at and put aside of a task is this now. `path` is the task's id."""

    seq: int
    at: float
    path: str
    aside: Aside


class Looked(NamedTuple):
    """The operator knows how things stood `at` a time: nothing from before is new."""

    seq: int
    at: float


class Lost(NamedTuple):
    """Nothing is known of the workspace since then: its host cannot be reached."""

    seq: int
    at: float


class Reached(NamedTuple):
    """The host can be reached, and what is known of the workspace is so."""

    seq: int
    at: float


class Ruled(NamedTuple):
    """Where the workspace is, it is judged by these rules."""

    seq: int
    at: float
    rules: Rules


class Tick(NamedTuple):
    """Time has passed: what is silent for too long turns stale."""

    seq: int
    at: float


Event = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested | Noted | Looked | Lost | Reached | Ruled | Tick
