"""What a return claims, and what the evidence says of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the evidence says of a claim. Unverifiable is never shown as if it were verified."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and its verdict. `path` is foreign text as it was claimed; `detail` is the reason in words.

    `detail` may quote a file name that was found: it is foreign text too.
    """

    kind: str
    path: str
    verdict: Verdict
    detail: str


def overall(claims: tuple[Claim, ...]) -> Verdict | None:
    """What the claims of a return come to: one lie is a lie, and only what was all looked at is verified.

    None where nothing was claimed that could be looked at.
    """
    verdicts = {claim.verdict for claim in claims}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.VERIFIED if Verdict.VERIFIED in verdicts else None
