"""Observations: the immutable facts that sources see, and the only thing the delegation tree is made of."""

from __future__ import annotations

from dataclasses import dataclass

from agentwatch.contracts.shapes import Document, Finding
from agentwatch.delegation.claims import Claim


@dataclass(frozen=True, slots=True)
class Seen:
    """A file holds this document now.

    `seq` orders observations across files: the source gives it out, and it stays with the observation however a
    list of them is interleaved later. `at` is when the content became true, in seconds since the epoch (a file's
    mtime, never later than the moment it was observed). `path` is relative to the workspace, with `/`. `digest` is
    the sha256 of the very bytes that were parsed, in hex. `incomplete` marks a document that broke off in the middle
    and may still be being written.
    """

    seq: int
    at: float
    path: str
    digest: str
    document: Document
    findings: tuple[Finding, ...] = ()
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The file is no longer there, or no longer holds a document."""

    seq: int
    at: float
    path: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that looks like one of ours by its name could not be read safely; `finding` says why."""

    seq: int
    at: float
    path: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Checked:
    """The claims of the return with this digest, in this file, were held against the evidence."""

    seq: int
    at: float
    path: str
    digest: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: what is silent for too long turns stale."""

    seq: int
    at: float


Observation = Seen | Gone | Unreadable | Checked | Tick
