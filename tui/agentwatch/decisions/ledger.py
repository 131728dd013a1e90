"""The ledger: all decisions of a workspace in order, signed. A decision is "recorded" once its file is on the disk.

<state directory>/decisions/                   0700, outside the workspace
    000001-<decision id>.json                  0600, one signed decision each
    aside/                                     faulty files that the operator moved away

Each file is verified by itself, and then against the previous file. If a file is faulty, the decisions before it stay
valid. The files after it are invalid until the operator has moved the faulty part away.
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
    open_envelope,
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
from agentwatch.decisions.record import AlreadyDecidedError, Record, parse, parse_time, verify_request
from agentwatch.disk import DISK, Directory, Disk, is_open_to_others
from agentwatch.text import quote_text

NAME = "decisions"
ASIDE = "aside"

_NAME = re.compile(r"(\d{6,15})-[0-9a-f]{32}\.json\Z", re.ASCII)


class ProblemKind(StrEnum):
    """The faults that a file in the ledger or in the mirror can have."""

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
    """A file of the ledger or the mirror that is invalid or missing. `why` is the reason. `name` is untrusted text."""

    name: str
    kind: ProblemKind
    why: str

    @property
    def message(self) -> str:
        """The problem as one sentence."""
        return f"{quote_text(self.name)}: {self.why}"


class ChainEntry(NamedTuple):
    """A verified decision, with the name and the sha256 of its file, and the id of the key that signed it."""

    record: Record
    name: str
    sha256: str
    keyid: str


@dataclass(frozen=True)
class Chain:
    """The valid decisions of the ledger, oldest first, and the faults of all other files."""

    entries: tuple[ChainEntry, ...] = ()
    problems: tuple[ChainProblem, ...] = ()

    @property
    def why_broken(self) -> str | None:
        """The reason why no decision can be added (a faulty file after the valid decisions), or None."""
        behind = len(self.entries) + 1
        return next((one.message for one in self.problems if (file_number(one.name) or 0) >= behind), None)

    @cached_property
    def latest(self) -> Mapping[str, ChainEntry]:
        """The latest decision with each id. Earlier decisions with the same id have expired."""
        return {entry.record.decision_id: entry for entry in self.entries}

    @property
    def about_attempts(self) -> Mapping[str, ChainEntry]:
        """The latest decisions about attempts, by id. Answers to programs' requests are left out."""
        return {name: entry for name, entry in self.latest.items() if not entry.record.request}

    def find_by_request(self, signed_request: str) -> ChainEntry | None:
        """Return the decision that was recorded for this signed request, or None. The decision may have expired."""
        return next((one for one in self.entries if one.record.signed_request == signed_request), None)


def file_name(record: Record) -> str:
    """Return the name of a record's file in the ledger."""
    return f"{record.seq:06d}-{record.decision_id}.json"


def file_number(name: str) -> int | None:
    """Return the number at the beginning of a ledger file's name, or None for any other name."""
    match = _NAME.match(name)
    return int(match[1]) if match else None


def verify_record(data: bytes, trust: Trust, workspace_id: str | None) -> tuple[Record, str]:
    """Verify the bytes of a signed decision. Return the decision and the id of the key that signed it. If
    `workspace_id` is None, accept all workspaces. Raise EnvelopeError or RecordError if the bytes are invalid."""
    payload, keyid = open_envelope(data, trust.signers)
    record = parse(payload)
    if workspace_id not in (None, record.workspace_id):
        raise OtherWorkspaceError(f"it is a decision about another workspace, {quote_text(record.workspace_id)}")
    trust.require_trusted(keyid, record.created_at)
    verify_request(record, keyid, trust)
    return record, keyid


def read_entry(directory: Directory, name: str, trust: Trust, workspace_id: str) -> ChainEntry | ChainProblem:
    """Read and verify one file of the ledger or the mirror. Raise FileNotFoundError if it is missing."""
    try:
        return _verify_entry(name, directory.read(name, LARGEST), trust, workspace_id)
    except FileNotFoundError:
        raise
    except OSError as error:
        return ChainProblem(name, ProblemKind.UNREADABLE, f"it cannot be read: {reason(error)}")


# With the cache, the same bytes are verified only once.
@lru_cache(4_096)
def _verify_entry(name: str, data: bytes, trust: Trust, workspace_id: str) -> ChainEntry | ChainProblem:
    try:
        record, keyid = verify_record(data, trust, workspace_id)
    except (EnvelopeError, RecordError) as error:
        return ChainProblem(name, _KINDS[type(error)], str(error))
    # A decision has the first name in the ledger, and the second name in the mirror.
    if name not in (file_name(record), f"{record.decision_id}.json"):
        return ChainProblem(name, ProblemKind.MISPLACED, f"it is a copy of {file_name(record)} under another name")
    return ChainEntry(record, name, hashlib.sha256(data).hexdigest(), keyid)


def build_chain(files: Iterable[ChainEntry | ChainProblem], trust: Trust) -> Chain:
    """Put verified files in order. The valid decisions end at the first file that does not follow its predecessor."""
    files, rank = list(files), list(trust.signers)
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
        elif held and not held.is_expired(parse_time(record.created_at)):
            kind, why = ProblemKind.DUPLICATE, f"decides again what {file_name(held)} decided"
        else:
            entries.append(entry)
            latest[record.decision_id] = record
            continue
        problems.append(ChainProblem(name, kind, why))
        problems += [ChainProblem(one.name, ProblemKind.BEHIND, "follows a break of the chain") for one in behind]
        break
    return Chain(tuple(entries), tuple(problems))


class DecisionMade(NamedTuple):
    """A decision in the ledger. `fresh` tells whether it was recorded just now. `doubt` describes a disk error after
    the recording. `undelivered` is the reason why the decision is not in the workspace yet."""

    entry: ChainEntry
    fresh: bool
    doubt: str | None = None
    undelivered: str | None = None

    @property
    def record(self) -> Record:
        return self.entry.record


class Ledger:
    """The ledger of one workspace. Several threads and processes may use it at once."""

    def __init__(self, state: Path, workspace_id: str, disk: Disk = DISK):
        self.directory = state / NAME
        self.workspace_id = workspace_id
        self.disk = disk

    def read(self, trust: Trust) -> Chain:
        """Return the valid decisions and the faulty files. Raise LedgerError if the ledger cannot be read."""
        with self._ledger_errors():
            try:
                directory = Directory.open(self.directory, self.disk)
            except FileNotFoundError:
                return Chain()
            with directory:
                return self._read(directory, trust)

    def append(
        self, draft: Record, key: SigningKey, trust: Trust, find_digest: Callable[[], str | None]
    ) -> DecisionMade:
        """Sign and write a decision, and return it with its number. `find_digest` reads the return's current sha256.
        After UncertainError the decision may be recorded. After any other DecisionError it is not recorded."""
        try:
            with Directory.open_or_make(self.directory, self.disk) as directory:
                status = self.disk.fstat(directory.descriptor)
                if is_open_to_others(status):
                    raise LedgerError(
                        f"not recorded: {self.directory} is open to others (mode {status.st_mode & 0o777:o}), or not"
                        f" yours: chmod 700 {self.directory}, then decide again"
                    )
                with directory.locked():
                    directory.remove_abandoned(0)
                    return self._append(directory, draft, key, trust, find_digest)
        except OSError as error:
            raise self._not_recorded_error(error) from error

    def note_refusal(self, signed_request: str, trust: Trust, write: Callable[[], None]) -> ChainEntry | None:
        """Lock the ledger and call `write`, which notes that a signed request was refused. But if a decision is already
        recorded for this request, return the decision and do not call `write`. Raise LedgerError if this fails."""
        with self._ledger_errors(), Directory.open_or_make(self.directory, self.disk) as directory, directory.locked():
            entry = self._read(directory, trust).find_by_request(signed_request)
            if not entry:
                write()
            return entry

    def read_bytes(self, entry: ChainEntry) -> bytes:
        """Return the bytes of a decision's file. Raise LedgerError if the file cannot be read."""
        with self._ledger_errors(), Directory.open(self.directory, self.disk) as directory:
            return directory.read(entry.name, LARGEST)

    def set_aside(self, trust: Trust) -> list[str]:
        """Move the faulty files and all files after them to `aside/`. Return their names. May raise LedgerError."""
        with self._ledger_errors(), Directory.open_or_make(self.directory, self.disk) as directory, directory.locked():
            why_broken = {one.name for one in self._read(directory, trust).problems if file_number(one.name)}
            names = sorted(why_broken.intersection(directory.names()))
            with directory.open_child(ASIDE, make=0o700) as aside:
                for name in names:
                    taken = aside.names()
                    directory.move(name, aside, next(new for n in count(1) if (new := f"{name}.{n}") not in taken))
            return names

    @contextmanager
    def _ledger_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = f"{reason(error)}; {remedy(error)}"
            raise LedgerError(f"the ledger {self.directory} cannot be used: {why}") from error

    def _append(
        self, directory: Directory, draft: Record, key: SigningKey, trust: Trust, find_digest: Callable[[], str | None]
    ) -> DecisionMade:
        chain = self._read(directory, trust)
        existing = chain.latest.get(draft.decision_id)
        if existing and not existing.record.is_expired(parse_time(draft.created_at)):
            if existing.record.says_the_same(draft):
                return DecisionMade(existing, fresh=False)
            raise AlreadyDecidedError(existing.record)
        if chain.why_broken:
            what = "look at it with `agentwatch verify`, put the file back from a backup or set the broken part aside"
            raise LedgerError(f"not recorded: the ledger is broken: {chain.why_broken}; {what}, then decide again")
        if find_digest() != draft.return_sha256:
            why = "the return has changed since you looked at it; look at it again, then decide"
            raise ReturnChangedError(f"not recorded: {why}")
        before = chain.entries[-1].sha256 if chain.entries else None
        record = replace(draft, seq=len(chain.entries) + 1, prev_sha256=before)
        name, data = file_name(record), seal(record.to_bytes(), key)
        # Verify the new file before it is written, so that no reader refuses it later.
        entry = _verify_entry(name, data, trust, self.workspace_id)
        if isinstance(entry, ChainProblem):
            raise LedgerError(f"not recorded: {entry.message}; look at the keys with `agentwatch keys`")
        try:
            directory.publish(name, data)
        except OSError as error:
            return DecisionMade(entry, fresh=True, doubt=self._check_recorded(directory, name, data, error))
        return DecisionMade(entry, fresh=True)

    def _check_recorded(self, directory: Directory, name: str, data: bytes, error: OSError) -> str:
        """Find out whether a decision is recorded although writing it failed. If it is, return a warning. If it is not,
        raise NotRecordedError. If the file cannot be read, raise UncertainError."""
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
            raise self._not_recorded_error(error) from error
        # Do not sync again: the system may have dropped the data, and would then report success.
        so_far = f"recorded, but the disk reported an error behind it ({reason(error)})"
        return f"{so_far}: a power failure could lose it; {remedy(error)}"

    def _not_recorded_error(self, error: OSError) -> NotRecordedError:
        why = f"{self.directory}: {reason(error)}; {remedy(error)}, then decide again"
        return NotRecordedError(f"not recorded: {why}")

    def _read(self, directory: Directory, trust: Trust) -> Chain:
        found = list[ChainEntry | ChainProblem]()
        for name in sorted(directory.names()):
            # Skip names that begin with a dot: the lock, and files that are being written.
            if name.startswith(".") or name == ASIDE:
                continue
            if not file_number(name):
                found.append(ChainProblem(name, ProblemKind.STRAY, "agentwatch did not put it there; move it away"))
                continue
            with suppress(FileNotFoundError):  # The file may be gone since the names were listed.
                found.append(read_entry(directory, name, trust, self.workspace_id))
        return build_chain(found, trust)
