"""The decisions of a workspace as a chain: each file verified by itself, then against the one before it.

The good records before a break stay valid; nothing behind it counts until the operator has set the broken part aside.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from agentwatch.decisions.envelope import EnvelopeError, Trust, UnsignedError, UntrustedError, opened
from agentwatch.decisions.errors import DecisionError, RecordError
from agentwatch.decisions.record import Record, parse, time_of
from agentwatch.decisions.signed import verify_inside
from agentwatch.text import quoted

_NAME: Final = re.compile(r"(\d{6,15})-[0-9a-f]{32}\.json\Z", re.ASCII)


class ProblemKind(StrEnum):
    """What is wrong with a file of the ledger or of the mirror."""

    DAMAGED = "damaged"
    FORGED = "forged"
    UNTRUSTED = "untrusted"
    MALFORMED = "malformed"
    ANOTHER_WORKSPACE = "another workspace"
    MISPLACED = "misplaced"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    REWRITTEN = "rewritten"
    BEHIND = "behind a break"
    UNREADABLE = "unreadable"
    STRAY = "stray"


class ChainProblem(NamedTuple):
    """A file that is no valid decision, or one that is not there. `name` is foreign; the message is for people."""

    name: str
    kind: ProblemKind
    message: str


class ChainEntry(NamedTuple):
    """A verified decision, the name of its file, the sha256 of that file's bytes, and who signed it."""

    record: Record
    name: str
    sha256: str
    keyid: str


_KINDS: Final[Mapping[type[DecisionError], ProblemKind]] = {
    UntrustedError: ProblemKind.UNTRUSTED,
    UnsignedError: ProblemKind.FORGED,
    EnvelopeError: ProblemKind.DAMAGED,
}


class RefusedError(DecisionError):
    """A file is no valid decision. `kind` says in which way."""

    def __init__(self, kind: ProblemKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Chain:
    """The valid decisions, oldest first, and what is wrong with the rest."""

    entries: tuple[ChainEntry, ...] = ()
    problems: tuple[ChainProblem, ...] = ()

    @cached_property
    def broken(self) -> str | None:
        """Why nothing can be added: a file that is in the way of the next one. None where all is well."""
        behind = len(self.entries) + 1
        return next((one.message for one in self.problems if (number_in(one.name) or 0) >= behind), None)

    @cached_property
    def latest(self) -> Mapping[str, ChainEntry]:
        """The decision that holds, by its id: the newest, where one had expired."""
        return {entry.record.decision_id: entry for entry in self.entries}

    def asked_for(self, signed_request: str) -> ChainEntry | None:
        """The decision that was recorded for what an operator signed, whatever became of it; None if it was not."""
        return next((one for one in self.entries if one.record.signed_request == signed_request), None)

    @cached_property
    def of_attempts(self) -> Mapping[str, ChainEntry]:
        """Those of them that agents are told: answers to requests of programs go to these programs only."""
        return {name: entry for name, entry in self.latest.items() if entry.record.request is None}


def name_of(record: Record) -> str:
    """The name of its file in the ledger."""
    return f"{record.seq:06d}-{record.decision_id}.json"


def number_in(name: str) -> int | None:
    """The number that a name of the ledger begins with, None for any other name."""
    match = _NAME.match(name)
    return int(match[1]) if match else None


def verified(data: bytes, trust: Trust, workspace_id: str | None) -> tuple[Record, str]:
    """The record in the bytes of a file and the key id of its signature. Raises RefusedError.

    `workspace_id` None accepts a decision of any workspace.
    """
    try:
        payload, keyid = opened(data, trust.public)
    except EnvelopeError as error:
        raise RefusedError(_KINDS[type(error)], str(error)) from error
    try:
        record = parse(payload)
    except RecordError as error:
        raise RefusedError(ProblemKind.MALFORMED, f"it is signed, and no decision: {error}") from error
    if workspace_id is not None and record.workspace_id != workspace_id:
        message = f"it is a decision about another workspace, {quoted(record.workspace_id)}"
        raise RefusedError(ProblemKind.ANOTHER_WORKSPACE, message)
    why = trust.why_not(keyid, record.created_at)
    if why is not None:
        raise RefusedError(ProblemKind.UNTRUSTED, why)
    try:
        verify_inside(record, keyid, trust)
    except (EnvelopeError, RecordError) as error:
        kind = _KINDS.get(type(error), ProblemKind.MALFORMED)
        raise RefusedError(
            kind, f"the host has signed it, and what an operator signed for it does not hold: {error}"
        ) from error
    return record, keyid


def entry_of(name: str, data: bytes, trust: Trust, workspace_id: str) -> ChainEntry | ChainProblem:
    """One file of the ledger, verified by itself."""
    try:
        record, keyid = verified(data, trust, workspace_id)
    except RefusedError as error:
        return ChainProblem(name, error.kind, f"{quoted(name)}: {error}")
    if name != name_of(record):
        why = f"{quoted(name)}: a copy of {name_of(record)} under another name"
        return ChainProblem(name, ProblemKind.MISPLACED, why)
    return ChainEntry(record, name, hashlib.sha256(data).hexdigest(), keyid)


def chained(files: Iterable[ChainEntry | ChainProblem], trust: Trust, start: Chain | None = None) -> Chain:
    """The chain that verified files make, from the first decision to the first break.

    `start` is a sound chain that others of the files made already.
    """
    problems: list[ChainProblem] = []
    numbered: defaultdict[int, list[ChainEntry]] = defaultdict(list)
    for one in files:
        if isinstance(one, ChainEntry):
            numbered[one.record.seq].append(one)
        else:
            problems.append(one)
    entries = list(start.entries) if start else []
    latest = dict(start.latest) if start else {}
    while candidates := numbered.get(len(entries) + 1):
        fault = fault_of(candidates, entries[-1] if entries else None, latest, trust)
        if fault is not None:
            problems.append(fault)
            break
        del numbered[len(entries) + 1]
        entries.append(candidates[0])
        latest[candidates[0].record.decision_id] = candidates[0]
    if numbered:
        here = len(entries) + 1
        if here not in numbered:
            first = min(numbered)
            message = f"decision {here} is missing, {first} is there: it was removed, or never copied here"
            problems.append(ChainProblem(f"{here:06d}-{'0' * 32}.json", ProblemKind.MISSING, message))
        told = {problem.name for problem in problems}
        for entry in (entry for number in sorted(numbered) for entry in numbered[number] if entry.name not in told):
            message = f"{quoted(entry.name)}: follows a break of the chain"
            problems.append(ChainProblem(entry.name, ProblemKind.BEHIND, message))
    return Chain(tuple(entries), tuple(problems))


def fault_of(
    candidates: list[ChainEntry], before: ChainEntry | None, latest: Mapping[str, ChainEntry], trust: Trust
) -> ChainProblem | None:
    """Why what has the next number cannot follow what is there: the one `before` it, and the `latest` by their ids."""
    entry = candidates[0]
    record = entry.record
    existing = latest.get(record.decision_id)
    if len(candidates) > 1:
        message = f"{len(candidates)} signed decisions have the number {record.seq}: two machines wrote at once"
        return ChainProblem(entry.name, ProblemKind.DUPLICATE, message)
    if record.prev_sha256 != (before.sha256 if before else None):
        kind, why = ProblemKind.REWRITTEN, "does not follow the file before it; an earlier file was replaced"
    elif before and trust.order[entry.keyid] < trust.order[before.keyid]:
        kind, why = ProblemKind.UNTRUSTED, "is signed with a key that had been replaced before"
    elif existing is not None and not existing.record.is_expired(time_of(record.created_at)):
        kind, why = ProblemKind.DUPLICATE, f"decides again what {existing.name} decided"
    else:
        return None
    return ChainProblem(entry.name, kind, f"{quoted(entry.name)}: {why}")
