"""Claims of a return, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


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


class DeedKind(StrEnum):
    """The reach of a deed worth telling: it goes further than the work."""

    PUSH = "push"
    NETWORK = "network"
    DELETION = "deletion"
    PERMISSION = "permission"
    OUTSIDE = "outside"
    HOOK = "hook"


class Deed(NamedTuple):
    """Something that an attempt did and its return does not speak of: no verdict. `what` is foreign."""

    kind: DeedKind
    what: str
    call: Call


class Claim(NamedTuple):
    """A claim and its verdict. `path`, as it was claimed, and `detail`, the reason in words, are foreign.

    `lines` is the claimed range of 1-based lines, both included; `file` the path in the workspace that is meant.
    `is_missing`: it is false because nothing is there. `call` is what the verdict rests on, where that is a command.
    """

    kind: str
    path: str
    verdict: Verdict
    detail: str
    lines: tuple[int, int] | None = None
    file: str | None = None
    is_missing: bool = False
    call: Call | None = None


def merged(claims: Iterable[Claim]) -> list[Claim]:
    """The claims, those about one thing as one, whose kind names all of theirs: a file may be created and evidence."""
    alike: dict[tuple[str, tuple[int, int] | None, Verdict], list[Claim]] = {}
    for claim in claims:
        lines = None if claim.is_missing else claim.lines
        alike.setdefault((claim.file or claim.path, lines, claim.verdict), []).append(claim)
    kinds = (", ".join(dict.fromkeys(one.kind for one in same)) for same in alike.values())
    return [same[0]._replace(kind=kind) for same, kind in zip(alike.values(), kinds, strict=True)]


def overall(claims: tuple[Claim, ...]) -> Verdict | None:
    """The verdict over all claims of a return: one lie is a lie, and only what was all looked at is verified."""
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None
