"""What a return claims, and what the evidence says of it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What the evidence says of a claim. Unverifiable is never shown as if it were verified."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Claim(NamedTuple):
    """A claim and its verdict. `path` is foreign text as it was claimed; `detail` is the reason in words.

    `detail` may quote a file name that was found: it is foreign text too. `lines` is the range of 1-based lines, both
    included, where one was claimed. `file` is the path in the workspace that is meant, None where none is.
    `is_missing`: it is false because nothing is there.
    """

    kind: str
    path: str
    verdict: Verdict
    detail: str
    lines: tuple[int, int] | None = None
    file: str | None = None
    is_missing: bool = False


class Change(NamedTuple):
    """A file that git sees changed: its path in the workspace, and when it was last written (epoch seconds)."""

    path: str
    at: float


def overall(claims: tuple[Claim, ...]) -> Verdict | None:
    """What the claims of a return come to: one lie is a lie, and only what was all looked at is verified.

    None where nothing was claimed that could be looked at.
    """
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None
