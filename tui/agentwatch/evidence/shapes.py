"""What a return claims, before anybody looks at the disk: small immutable values."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.commands.statements import Statement


class ClaimKind(StrEnum):
    """What is claimed of a path; a criterion, a constraint and what is said of a command have their text
    in the place of the path."""

    CREATED = "created"
    MODIFIED = "modified"
    DELIVERABLE = "deliverable"
    EVIDENCE = "evidence"
    ARTIFACT = "artifact"
    REFERENCE = "reference"
    MUST_CREATE = "must_create"
    REQUIRED_EVIDENCE = "required_evidence"
    CRITERION = "criterion"
    CONSTRAINT = "constraint"
    SUMMARY = "summary"

    @property
    def is_made(self) -> bool:
        """The child says that it made this file, so it lies in the workspace and holds something."""
        return self in (
            ClaimKind.CREATED,
            ClaimKind.MODIFIED,
            ClaimKind.DELIVERABLE,
            ClaimKind.ARTIFACT,
            ClaimKind.MUST_CREATE,
        )


class Limit(StrEnum):
    """A constraint of a handoff that can be held against the files of an attempt."""

    ONLY_MARKDOWN = "only_markdown"
    NO_CODE = "no_code"
    NO_FILES = "no_files"
    ONLY_BELOW = "only_below"


class Assertion(NamedTuple):
    """What is claimed, before it is checked.

    `lines` is a range of 1-based lines, both included. `settled` is the verdict where the text alone decides it.
    `doubtful`: it may be no path at all, so that its absence says nothing. `unfinished`: the return does not say that
    the work is done, so that an absence is no lie. `stated`: it says something about the file, which nobody checks, and
    no more than that is claimed. `removed`: the return itself says that it is gone. `limit`, and
    `below` for ONLY_BELOW, are what a constraint demands;
    `made` are the paths that the return claims to have made. `statement` is what it says of a command or of tests, to
    be held against the log.
    """

    kind: ClaimKind
    path: str
    lines: tuple[int, int] | None = None
    settled: tuple[Verdict, str] | None = None
    doubtful: bool = False
    unfinished: bool = False
    stated: bool = False
    removed: bool = False
    limit: Limit | None = None
    below: str | None = None
    made: tuple[str, ...] = ()
    statement: Statement | None = None

    @property
    def names_file(self) -> bool:
        """Its path is to be looked at."""
        is_open = self.settled is None and self.statement is None and self.kind is not ClaimKind.CONSTRAINT
        return is_open or self.kind is ClaimKind.REQUIRED_EVIDENCE
