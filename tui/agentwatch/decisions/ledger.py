"""The ledger: every decision of a workspace once, in order, signed, and on disk before anybody says "recorded".

<state directory>/decisions/                   0700, outside the workspace
    000001-<decision id>.json                  0600, one signed decision each
    aside/                                     what the operator had set aside
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.decisions.chain import (
    Chain,
    ChainEntry,
    ChainProblem,
    ProblemKind,
    chained,
    entry_of,
    fault_of,
    name_of,
    number_in,
)
from agentwatch.decisions.envelope import LARGEST, SigningKey, Trust, seal
from agentwatch.decisions.errors import (
    LedgerError,
    NotRecordedError,
    ReturnChangedError,
    UncertainError,
    reason,
    remedy,
)
from agentwatch.decisions.record import (
    OF_REQUEST,
    OF_SIGNED,
    VERSION,
    AlreadyDecidedError,
    Params,
    Record,
    Subject,
    written,
)
from agentwatch.delegation.decision import Action
from agentwatch.disk import DISK, Directory, Disk, LockedError, NotRegularError, PrivateDirectory
from agentwatch.text import quoted

NAME: Final = "decisions"
ASIDE: Final = "aside"

_OPEN_TO_OTHERS: Final = 0o077
_SWEEP_SECONDS: Final = 2.0
"""What was verified once is known, whatever happens to its file: to tell the operator of that has time."""

Identity = tuple[int, ...]


class Draft(NamedTuple):
    """A decision as the operator makes it. Times are aware; `expires_at` is None where it holds for ever.

    `signed_request` is what the operator signed for it on another machine, None where it is made here.
    """

    subject: Subject
    action: Action
    params: Params
    note: str
    operator: str
    created_at: datetime
    expires_at: datetime | None = None
    signed_request: str | None = None

    def record(self, seq: int, prev_sha256: str | None) -> Record:
        """It as number `seq` of a ledger. Raises RecordError."""
        plain = VERSION if self.subject.request is None else OF_REQUEST
        return Record(
            version=plain if self.signed_request is None else OF_SIGNED,
            **self.subject._asdict(),
            seq=seq,
            prev_sha256=prev_sha256,
            decision_id=self.subject.decision_id,
            action=self.action,
            params=self.params,
            note=self.note,
            operator=self.operator,
            created_at=written(self.created_at),
            expires_at=None if self.expires_at is None else written(self.expires_at),
            signed_request=self.signed_request,
        )


class DecisionMade(NamedTuple):
    """A decision that is in the ledger.

    `fresh` is False where the very same was decided before. `doubt` says, in a sentence, that the disk reported an
    error behind it. `undelivered` is the reason why it is not delivered yet. Both are None where all is well.
    """

    entry: ChainEntry
    fresh: bool
    doubt: str | None = None
    undelivered: str | None = None

    @property
    def record(self) -> Record:
        return self.entry.record


class Ledger:
    """The decisions of one workspace. Any thread and any process may use it at once."""

    def __init__(self, state: Path, workspace_id: str, disk: Disk = DISK) -> None:
        self.directory: Final = state / NAME
        self._workspace_id = workspace_id
        self._disk = disk
        self._guard = threading.Lock()
        self._directory = PrivateDirectory(self.directory, disk)
        self._trust: Trust | None = None
        self._known: dict[str, tuple[Identity, ChainEntry | ChainProblem]] = {}
        self._chain = Chain()
        self._sweep_at = 0.0

    def read(self, trust: Trust) -> Chain:
        """All decisions. Only files that changed since the last time are read. Raises LedgerError."""
        try:
            with self._directory.open() as directory:
                return self._read(directory, trust, sweeps=time.monotonic() >= self._sweep_at)
        except FileNotFoundError:
            return Chain()
        except OSError as error:
            raise LedgerError(f"the ledger {self.directory} cannot be read: {reason(error)}; check it") from error

    def find(self, trust: Trust, decision_id: str) -> ChainEntry | ChainProblem | None:
        """One decision, or why there is none that holds; None where there is none by name.

        It is verified with the one that it follows, and that none is missing before them or has a number twice. What
        the earlier ones hold is not looked at, as `read` does: whoever added this one has verified them. Raises
        LedgerError.
        """
        try:
            with self._directory.open() as directory:
                names = directory.names()
                own = [name for name in names if name.endswith(f"-{decision_id}.json")]
                if not own:
                    return None
                numbered = sorted((number, name) for name in names if (number := number_in(name)) is not None)
                place = number_in(own[0]) or 0
                numbers = [number for number, _ in numbered[: place + 1]]
                is_plain = numbers[:place] == [*range(1, place + 1)] and numbers[place:] != [place]
                if len(own) > 1 or not place or not is_plain:
                    chain = self._read(directory, trust)
                    return chain.latest.get(decision_id) or next(iter(chain.problems), None)
                entries: list[ChainEntry] = []
                for _, name in numbered[max(place - 2, 0) : place]:
                    file = entry_of(name, directory.read(name, LARGEST), trust, self._workspace_id)
                    if isinstance(file, ChainProblem):
                        return file
                    entries.append(file)
                *before, entry = entries
                return fault_of([entry], before[0] if before else None, {}, trust) or entry
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(f"the ledger {self.directory} cannot be read: {reason(error)}; check it") from error

    def append(self, draft: Draft, key: SigningKey, trust: Trust, returned: Callable[[], str | None]) -> DecisionMade:
        """Record a decision; when this comes back, it is on disk. The same one again is the same.

        `returned` gives the sha256, in hex, of the return as it is now, None where there is none. Raises
        AlreadyDecidedError, ReturnChangedError, LedgerError, RecordError and NotRecordedError, after which nothing was
        recorded, or UncertainError.
        """
        try:
            with self._directory.make() as directory:
                self._refuse_open(directory)
                with directory.locked():
                    directory.sweep(0)
                    return self._append(directory, draft, key, trust, returned)
        except LockedError as error:
            why = f"another process keeps {self.directory} locked; end it, then decide again"
            raise NotRecordedError(f"not recorded: {why}") from error
        except OSError as error:
            raise self._not_recorded(error) from error

    def refuse(self, signed_request: str, trust: Trust, write: Callable[[], None]) -> ChainEntry | None:
        """Have it written down that this is not recorded, while nobody can record it. Returns the decision that holds
        it, where it is recorded: then nothing is written. Raises LedgerError, and what `write` raises but OSError."""
        try:
            with self._directory.make() as directory, directory.locked():
                entry = self._read(directory, trust).asked_for(signed_request)
                if entry is None:
                    write()
                return entry
        except OSError as error:
            raise LedgerError(f"{self.directory}: {reason(error)}; {remedy(error)}, then try again") from error

    def bytes_of(self, entry: ChainEntry) -> bytes:
        """The bytes of the file of a decision. Raises LedgerError."""
        try:
            with self._directory.open() as directory:
                return directory.read(entry.name, LARGEST)
        except OSError as error:
            raise LedgerError(f"{self.directory / entry.name} cannot be read: {reason(error)}; check it") from error

    def set_aside(self, trust: Trust) -> list[str]:
        """Move what is no valid decision, and all behind the first break, to `aside/`. Returns the names.

        For the operator who has looked at the problems: what was decided there must be decided again. Raises
        LedgerError.
        """
        try:
            with self._directory.make() as directory, directory.locked():
                present = set(directory.names())
                broken = [one.name for one in self._read(directory, trust).problems if number_in(one.name) is not None]
                names = [name for name in dict.fromkeys(broken) if name in present]
                with directory.child(ASIDE, make=0o700) as aside:
                    for name in names:
                        directory.move(name, aside, _free(name, aside.names()))
                return names
        except OSError as error:
            raise LedgerError(f"{self.directory}: {reason(error)}; {remedy(error)}, then try again") from error

    def _append(
        self, directory: Directory, draft: Draft, key: SigningKey, trust: Trust, returned: Callable[[], str | None]
    ) -> DecisionMade:
        subject = draft.subject
        chain = self._read(directory, trust)
        existing = chain.latest.get(subject.decision_id)
        if existing is not None and not existing.record.is_expired(draft.created_at):
            decided = existing.record
            if (decided.action, decided.params, decided.note) == (draft.action, draft.params, draft.note):
                return DecisionMade(existing, fresh=False)
            raise AlreadyDecidedError(decided)
        if chain.broken is not None:
            what = "look at it with `agentwatch verify`, put the file back from a backup or set the broken part aside"
            raise LedgerError(f"not recorded: the ledger is broken: {chain.broken}; {what}, then decide again")
        if returned() != subject.return_sha256:
            why = "the return has changed since you looked at it; look at it again, then decide"
            raise ReturnChangedError(f"not recorded: {why}")
        before = chain.entries[-1] if chain.entries else None
        record = draft.record(len(chain.entries) + 1, before.sha256 if before else None)
        name, data = name_of(record), seal(record.to_bytes(), key)
        # As it will be read: a key that is not trusted must not write what nobody accepts.
        entry = entry_of(name, data, trust, self._workspace_id)
        if isinstance(entry, ChainProblem):
            raise LedgerError(f"not recorded: {entry.message}; look at the keys with `agentwatch keys`")
        try:
            directory.publish(name, data)
        except OSError as error:
            return DecisionMade(entry, fresh=True, doubt=self._settled(directory, name, data, error))
        return DecisionMade(entry, fresh=True)

    def _settled(self, directory: Directory, name: str, data: bytes, error: OSError) -> str:
        """What is true after an error while writing, by reading again. Raises where it is not recorded, or unknown."""
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

    def _read(self, directory: Directory, trust: Trust, *, sweeps: bool = True) -> Chain:
        """All decisions. `sweeps`: look at every file, for what was changed in place; else at those not known good."""
        with self._guard:
            if sweeps:
                self._sweep_at = time.monotonic() + _SWEEP_SECONDS
            if trust != self._trust:
                self._trust, self._known, self._chain = trust, {}, Chain()
            # Names with a dot are the lock, and files that are being written.
            names = {name for name in directory.names() if not name.startswith(".") and name != ASIDE}
            looked: dict[str, tuple[Identity, ChainEntry | ChainProblem]] = {}
            gone = self._known.keys() - names
            good = {name for name, (_, one) in self._known.items() if isinstance(one, ChainEntry)}
            for name in sorted(names if sweeps else names - good):
                try:
                    file = self._file(directory, name, trust)
                except FileNotFoundError:
                    # Set aside since the names were listed.
                    gone.update(self._known.keys() & {name})
                    continue
                if file is not self._known.get(name):
                    looked[name] = file
            if looked or gone:
                grows = not gone and not self._chain.problems and looked.keys().isdisjoint(self._known)
                for name in gone:
                    del self._known[name]
                self._known.update(looked)
                chain = chained((one for _, one in looked.values()), trust, self._chain) if grows else None
                if chain is None or chain.problems:
                    chain = chained((self._known[name][1] for name in sorted(self._known)), trust)
                self._chain = chain
            return self._chain

    def _file(self, directory: Directory, name: str, trust: Trust) -> tuple[Identity, ChainEntry | ChainProblem]:
        identity = directory.identity(name)
        before = self._known.get(name)
        if before is not None and before[0] == identity:
            return before
        if number_in(name) is None:
            message = f"{quoted(name)}: agentwatch did not put it there; move it away"
            return identity, ChainProblem(name, ProblemKind.STRAY, message)
        try:
            data = directory.read(name, LARGEST)
        except FileNotFoundError:
            raise
        except NotRegularError as error:
            return identity, ChainProblem(name, ProblemKind.DAMAGED, f"{quoted(name)}: {reason(error)}")
        except OSError as error:
            # Not kept: the next look may succeed, and nothing about the file will have changed.
            return (), ChainProblem(name, ProblemKind.UNREADABLE, f"{quoted(name)}: cannot be read: {reason(error)}")
        return identity, entry_of(name, data, trust, self._workspace_id)

    def _refuse_open(self, directory: Directory) -> None:
        status = self._disk.fstat(directory.descriptor)
        if status.st_mode & _OPEN_TO_OTHERS or status.st_uid != os.geteuid():
            raise LedgerError(
                f"not recorded: {self.directory} is open to others (mode {status.st_mode & 0o777:o}), or not yours:"
                f" chmod 700 {self.directory}, then decide again"
            )


def _free(name: str, taken: list[str]) -> str:
    """A name that nothing has yet."""
    return next(new for number in count(1) if (new := f"{name}.{number}") not in taken)
