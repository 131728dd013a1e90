"""The ledger: every decision of a workspace once, in order, signed, and on disk before anybody says "recorded".

<state directory>/decisions/                   0700, outside the workspace
    000001-<decision id>.json                  0600, one signed decision each
    aside/                                     files that the operator had set aside

Each file is verified by itself, then against the one before it. The good records before a break stay valid; nothing
behind it counts until the operator has set the broken part aside.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from agentwatch.decisions.envelope import (
    LARGEST,
    EnvelopeError,
    SigningKey,
    Trust,
    UnsignedError,
    UntrustedError,
    opened,
    seal,
)
from agentwatch.decisions.errors import (
    LedgerError,
    NotRecordedError,
    OtherWorkspaceError,
    RecordError,
    ReturnChangedError,
    UncertainError,
    reason,
    remedy,
)
from agentwatch.decisions.record import AlreadyDecidedError, Record, parse, time_of, verify_request
from agentwatch.disk import DISK, Directory, Disk, is_open_to_others
from agentwatch.text import quoted

NAME = "decisions"
ASIDE = "aside"

_NAME = re.compile(r"(\d{6,15})-[0-9a-f]{32}\.json\Z", re.ASCII)


class ProblemKind(StrEnum):
    """The kinds of fault of a file of the ledger or of the mirror."""

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


_KINDS = {
    UntrustedError: ProblemKind.UNTRUSTED,
    UnsignedError: ProblemKind.FORGED,
    EnvelopeError: ProblemKind.DAMAGED,
    RecordError: ProblemKind.MALFORMED,
    OtherWorkspaceError: ProblemKind.ANOTHER_WORKSPACE,
}


class ChainProblem(NamedTuple):
    """A file of the ledger or of the mirror that is no valid decision, or one that is not there, and why in a sentence.
    `name` is foreign."""

    name: str
    kind: ProblemKind
    why: str

    @property
    def message(self) -> str:
        """For people."""
        return f"{quoted(self.name)}: {self.why}"


class ChainEntry(NamedTuple):
    """A verified decision, the name of its file, the sha256 of that file's bytes, and the id of its key."""

    record: Record
    name: str
    sha256: str
    keyid: str


@dataclass(frozen=True)
class Chain:
    """The valid decisions, oldest first, and the problems of the rest."""

    entries: tuple[ChainEntry, ...] = ()
    problems: tuple[ChainProblem, ...] = ()

    @property
    def broken(self) -> str | None:
        """Why nothing can be added: a file that is in the way of the next one. None where all is well."""
        behind = len(self.entries) + 1
        return next((one.message for one in self.problems if (number_in(one.name) or 0) >= behind), None)

    @cached_property
    def latest(self) -> Mapping[str, ChainEntry]:
        """The decision that holds, by its id: the newest, where one had expired."""
        return {entry.record.decision_id: entry for entry in self.entries}

    @property
    def of_attempts(self) -> Mapping[str, ChainEntry]:
        """Those of them that agents are told: answers to requests of programs go to these programs only."""
        return {name: entry for name, entry in self.latest.items() if not entry.record.request}

    def asked_for(self, signed_request: str) -> ChainEntry | None:
        """The decision that was recorded for a signed request, whatever became of it; None if it was not."""
        return next((one for one in self.entries if one.record.signed_request == signed_request), None)


def name_of(record: Record) -> str:
    """The name of its file in the ledger."""
    return f"{record.seq:06d}-{record.decision_id}.json"


def number_in(name: str) -> int | None:
    """The number that a name of the ledger begins with, None for any other name."""
    match = _NAME.match(name)
    return int(match[1]) if match else None


def verified(data: bytes, trust: Trust, workspace_id: str | None) -> tuple[Record, str]:
    """The record in the bytes of a file, of this workspace or any, and the id of its key. Raises EnvelopeError and
    RecordError."""
    payload, keyid = opened(data, trust.signing)
    record = parse(payload)
    if workspace_id not in (None, record.workspace_id):
        raise OtherWorkspaceError(f"it is a decision about another workspace, {quoted(record.workspace_id)}")
    trust.require(keyid, record.created_at)
    verify_request(record, keyid, trust)
    return record, keyid


def read_signed(directory: Directory, name: str, trust: Trust, workspace_id: str) -> ChainEntry | ChainProblem:
    """One file of the ledger or of the mirror, verified by itself. Raises FileNotFoundError."""
    try:
        return _entry_of(name, directory.read(name, LARGEST), trust, workspace_id)
    except FileNotFoundError:
        raise
    except OSError as error:
        return ChainProblem(name, ProblemKind.UNREADABLE, f"it cannot be read: {reason(error)}")


# Signatures take their time: of a file that is read again, only its bytes are compared.
@lru_cache(4_096)
def _entry_of(name: str, data: bytes, trust: Trust, workspace_id: str) -> ChainEntry | ChainProblem:
    try:
        record, keyid = verified(data, trust, workspace_id)
    except (EnvelopeError, RecordError) as error:
        return ChainProblem(name, _KINDS[type(error)], str(error))
    # The ledger has a number in front of it.
    if name not in (name_of(record), f"{record.decision_id}.json"):
        return ChainProblem(name, ProblemKind.MISPLACED, f"it is a copy of {name_of(record)} under another name")
    return ChainEntry(record, name, hashlib.sha256(data).hexdigest(), keyid)


def chain_of(files: Iterable[ChainEntry | ChainProblem], trust: Trust) -> Chain:
    """The chain that verified files make, from the first decision to the first break."""
    files, rank = list(files), list(trust.signing)
    problems = [one for one in files if isinstance(one, ChainProblem)]
    found = sorted((one for one in files if isinstance(one, ChainEntry)), key=lambda entry: entry.record.seq)
    entries, latest = list[ChainEntry](), dict[str, Record]()
    for number, entry in enumerate(found, 1):
        record, before, name, behind = entry.record, entries[-1] if entries else None, entry.name, found[number:]
        held = latest.get(record.decision_id)
        if record.seq != number:
            kind, why = ProblemKind.MISSING, f"it is missing, {record.seq} is there: removed, or never copied here"
            name, behind = f"{number:06d}-{'0' * 32}.json", found[number - 1 :]
        elif behind and behind[0].record.seq == number:
            kind, why = ProblemKind.DUPLICATE, "another one is signed with its number: two machines wrote at once"
        elif record.prev_sha256 != (before.sha256 if before else None):
            kind, why = ProblemKind.REWRITTEN, "does not follow the file before it; an earlier file was replaced"
        elif before and rank.index(entry.keyid) < rank.index(before.keyid):
            kind, why = ProblemKind.UNTRUSTED, "is signed with a key that had been replaced before"
        elif held and not held.is_expired(time_of(record.created_at)):
            kind, why = ProblemKind.DUPLICATE, f"decides again what {name_of(held)} decided"
        else:
            entries.append(entry)
            latest[record.decision_id] = record
            continue
        problems.append(ChainProblem(name, kind, why))
        problems += [ChainProblem(one.name, ProblemKind.BEHIND, "follows a break of the chain") for one in behind]
        break
    return Chain(tuple(entries), tuple(problems))


class DecisionMade(NamedTuple):
    """A decision that is in the ledger, `fresh` or the very same of before; sentences say what the disk reported behind
    it, and why it is not delivered yet."""

    entry: ChainEntry
    fresh: bool
    doubt: str | None = None
    undelivered: str | None = None

    @property
    def record(self) -> Record:
        return self.entry.record


class Ledger:
    """The decisions of one workspace. Any thread and any process may use it at once."""

    def __init__(self, state: Path, workspace_id: str, disk: Disk = DISK):
        self.directory = state / NAME
        self.workspace_id = workspace_id
        self.disk = disk

    def read(self, trust: Trust) -> Chain:
        """All decisions. Raises LedgerError."""
        with self._told():
            try:
                directory = Directory.open(self.directory, self.disk)
            except FileNotFoundError:
                return Chain()
            with directory:
                return self._read(directory, trust)

    def append(self, draft: Record, key: SigningKey, trust: Trust, returned: Callable[[], str | None]) -> DecisionMade:
        """Record a decision; when this comes back, it is on disk. `returned` gives the sha256 of the return now. Raises
        DecisionError: nothing was recorded then, but where it is an UncertainError."""
        try:
            with Directory.make(self.directory, self.disk) as directory:
                status = self.disk.fstat(directory.descriptor)
                if is_open_to_others(status):
                    raise LedgerError(
                        f"not recorded: {self.directory} is open to others (mode {status.st_mode & 0o777:o}), or not"
                        f" yours: chmod 700 {self.directory}, then decide again"
                    )
                with directory.locked():
                    directory.sweep(0)
                    return self._append(directory, draft, key, trust, returned)
        except OSError as error:
            raise self._not_recorded(error) from error

    def refuse(self, signed_request: str, trust: Trust, write: Callable[[], None]) -> ChainEntry | None:
        """Have it written down that this is not recorded, while nobody can record it. Returns the decision that holds
        it, where it is recorded: then nothing is written. Raises LedgerError, and what `write` raises but OSError."""
        with self._told(), Directory.make(self.directory, self.disk) as directory, directory.locked():
            entry = self._read(directory, trust).asked_for(signed_request)
            if not entry:
                write()
            return entry

    def bytes_of(self, entry: ChainEntry) -> bytes:
        """The bytes of the file of a decision. Raises LedgerError."""
        with self._told(), Directory.open(self.directory, self.disk) as directory:
            return directory.read(entry.name, LARGEST)

    def set_aside(self, trust: Trust) -> list[str]:
        """Move what is no valid decision, and all behind the first break, to `aside/`. Returns the names. Raises
        LedgerError."""
        with self._told(), Directory.make(self.directory, self.disk) as directory, directory.locked():
            broken = {one.name for one in self._read(directory, trust).problems if number_in(one.name)}
            names = sorted(broken.intersection(directory.names()))
            with directory.child(ASIDE, make=0o700) as aside:
                for name in names:
                    taken = aside.names()
                    directory.move(name, aside, next(new for n in count(1) if (new := f"{name}.{n}") not in taken))
            return names

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Have what the disk reports raised as a LedgerError."""
        try:
            yield
        except OSError as error:
            why = f"{reason(error)}; {remedy(error)}"
            raise LedgerError(f"the ledger {self.directory} cannot be used: {why}") from error

    def _append(
        self, directory: Directory, draft: Record, key: SigningKey, trust: Trust, returned: Callable[[], str | None]
    ) -> DecisionMade:
        chain = self._read(directory, trust)
        existing = chain.latest.get(draft.decision_id)
        if existing and not existing.record.is_expired(time_of(draft.created_at)):
            if existing.record.says_the_same(draft):
                return DecisionMade(existing, fresh=False)
            raise AlreadyDecidedError(existing.record)
        if chain.broken:
            what = "look at it with `agentwatch verify`, put the file back from a backup or set the broken part aside"
            raise LedgerError(f"not recorded: the ledger is broken: {chain.broken}; {what}, then decide again")
        if returned() != draft.return_sha256:
            why = "the return has changed since you looked at it; look at it again, then decide"
            raise ReturnChangedError(f"not recorded: {why}")
        before = chain.entries[-1].sha256 if chain.entries else None
        record = replace(draft, seq=len(chain.entries) + 1, prev_sha256=before)
        name, data = name_of(record), seal(record.to_bytes(), key)
        # As it will be read: a key that is not trusted must not write what nobody accepts.
        entry = _entry_of(name, data, trust, self.workspace_id)
        if isinstance(entry, ChainProblem):
            raise LedgerError(f"not recorded: {entry.message}; look at the keys with `agentwatch keys`")
        try:
            directory.publish(name, data)
        except OSError as error:
            return DecisionMade(entry, fresh=True, doubt=self._settled(directory, name, data, error))
        return DecisionMade(entry, fresh=True)

    def _settled(self, directory: Directory, name: str, data: bytes, error: OSError) -> str:
        """The truth after an error while writing, by reading again. Raises where it is not recorded, or unknown."""
        there = b""
        try:
            with suppress(FileNotFoundError):
                there = directory.read(name, LARGEST)
        except OSError:
            raise UncertainError(
                f"{self.directory}: {reason(error)}, and it cannot be read either, so nobody can tell whether the"
                f" decision is recorded; {remedy(error)}, then decide the same again: it counts once"
            ) from error
        if there != data:
            raise self._not_recorded(error) from error
        # A sync that failed is not tried again: the system may have dropped what it could not write, and say no more.
        so_far = f"recorded, but the disk reported an error behind it ({reason(error)})"
        return f"{so_far}: a power failure could lose it; {remedy(error)}"

    def _not_recorded(self, error: OSError) -> NotRecordedError:
        why = f"{self.directory}: {reason(error)}; {remedy(error)}, then decide again"
        return NotRecordedError(f"not recorded: {why}")

    def _read(self, directory: Directory, trust: Trust) -> Chain:
        found = list[ChainEntry | ChainProblem]()
        for name in sorted(directory.names()):
            # Names with a dot are the lock, and files that are being written.
            if name.startswith(".") or name == ASIDE:
                continue
            if not number_in(name):
                found.append(ChainProblem(name, ProblemKind.STRAY, "agentwatch did not put it there; move it away"))
                continue
            with suppress(FileNotFoundError):  # set aside since the names were listed
                found.append(read_signed(directory, name, trust, self.workspace_id))
        return chain_of(found, trust)
