"""The agents' side: the operator's decision about an attempt, verified, or why there is none yet.

An agent is told by a signature only. The ledger rules where it can be read; inside a sandbox that hides it together
with the key that signs, the mirror in the workspace does, with the public key that the orchestrator was started with.
Where the signing key is in sight and the ledger is not, nothing holds. A time-out is never an approval and never a
refusal: it is `Pending`, and asking again is right.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.decisions.delivery import NAME as MIRROR
from agentwatch.decisions.envelope import LARGEST, OWN_ID, VARIABLE, Trust, given
from agentwatch.decisions.errors import KeyProblemError, LedgerError, reason
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import Chain, ChainProblem, Ledger, ProblemKind, RefusedError, verified
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.retry import calls_fitter
from agentwatch.disk import DISK, DOT, Directory, Disk, change_stamp, open_dot_directory
from agentwatch.state import state_directory, workspace_id

POLL_SECONDS: Final = 0.2
_LOOK_ANYWAY_SECONDS: Final = 2.0
"""So often is looked without a sign: a file may be edited in place."""

_MOST: Final = 20_000
"""Files of the mirror that are looked at."""

_NAME: Final = re.compile(r"([0-9a-f]{32})\.json\Z")


class Place(StrEnum):
    """Where a decision was read: the ledger, with its chain, or the copy in the workspace."""

    LEDGER = "ledger"
    MIRROR = "mirror"


# These answers are no named tuples: nothing may take one for another, and tuples of equal contents are equal.


@dataclass(frozen=True, slots=True)
class Verified:
    """The operator decided, and the decision holds."""

    record: Record
    place: Place


@dataclass(frozen=True, slots=True)
class Expired:
    """The operator decided, and the decision does not hold any more: the operator has to decide again."""

    record: Record
    place: Place


@dataclass(frozen=True, slots=True)
class Forged:
    """No valid decision is there, and files that are none. Waiting goes on: the operator may still decide."""

    refused: tuple[ChainProblem, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """The operator has not decided. `detail` says what could be looked at. A time-out is no approval and no refusal."""

    detail: str


Found = Verified | Expired | Forged | Pending


class Question(NamedTuple):
    """The decision that is asked for; without attempt and digests, the latest attempt that was decided answers.

    `since` is the first attempt that counts. Decisions that are `over` or `carried_out` answer no more. `is_final`: the
    return is no result, so an abort that it may have come of answers as well. `is_exact`: a `return_sha256` of None
    means that there is no return. Where nothing answers, the `others` are asked in turn.
    """

    task_id: str | None
    attempt: int | None = None
    return_sha256: str | None = None
    handoff_sha256: str | None = None
    since: int = 1
    decision_id: str | None = None
    over: frozenset[str] = frozenset()
    carried_out: frozenset[str] = frozenset()
    is_final: bool = False
    is_exact: bool = False
    others: tuple[Question, ...] = ()

    def fits(self, record: Record) -> bool:
        reports = self.is_final and record.action is Action.ABORT
        return (
            # Else an agent could take what was said to a program for what was said to it.
            record.request is None
            and self.task_id in (None, record.task_id)
            and self.attempt in (None, record.attempt)
            and (self.return_sha256 in (None, record.return_sha256) or reports)
            and (record.handoff_sha256 in (None, self.handoff_sha256 or record.handoff_sha256) or reports)
            and self.since <= record.attempt
            and self.decision_id in (None, record.decision_id)
            and record.decision_id not in self.carried_out
            and not (record.decision_id in self.over and calls_fitter(record.action, record.params.mode))
        )

    def answer(self, records: Iterable[Record]) -> Record | None:
        """The decision that answers it: the newest that fits."""
        latest = max(filter(self.fits, records), key=lambda record: (record.attempt, record.seq), default=None)
        is_another = latest is not None and self.is_exact and latest.return_sha256 != self.return_sha256
        return None if is_another else latest


class Reader:
    """Reads the decisions of one workspace, for agents and those that start them. It writes nothing.

    The `environment` adds keys to those of the user's configuration directory (`AGENTWATCH_PUBLIC_KEY`), and names the
    workspace where it is mounted at another path than the operator's (`AGENTWATCH_WORKSPACE_ID`).
    Raises KeyProblemError where a public key is none.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        state: Path | None = None,
        configuration: Path | None = None,
        environment: Mapping[str, str] | None = None,
        disk: Disk = DISK,
    ) -> None:
        environment = os.environ if environment is None else environment
        self._workspace = workspace
        self._workspace_id = environment.get(OWN_ID) or workspace_id(workspace)
        self._ledger = Ledger(state or state_directory(workspace, environment), self._workspace_id, disk)
        self._keys = Keys(configuration, disk)
        self._more = given(environment.get(VARIABLE, ""))
        self._disk = disk

    def trust(self) -> Trust:
        """The keys that count here."""
        known = Trust()
        # A sandbox may hide them; the ones that were given count all the same.
        with suppress(KeyProblemError):
            known = self._keys.trust()
        return known.with_more(self._more)

    def find(self, question: Question, now: datetime | None = None) -> Found:
        """The answer as it is now. Never raises."""
        trust = self.trust()
        place, records, refused = self._records(trust)
        for asked in (question, *question.others):
            record = asked.answer(records)
            if record is not None:
                expired = record.is_expired(now or datetime.now(UTC))
                return Expired(record, place) if expired else Verified(record, place)
        if refused:
            return Forged(tuple(refused))
        if not trust.keys:
            return Pending(
                "the operator has not decided anything yet, or the key is out of sight from here: "
                f"in a sandbox, give its public half in {VARIABLE}"
            )
        return Pending(f"the operator has not decided yet (looked into the {place})")

    def about(self, task_id: str) -> list[Record]:
        """All decisions about a task that count, also those that do not hold any more."""
        return [one for one in self._records(self.trust())[1] if one.task_id == task_id and one.request is None]

    def wait(
        self,
        question: Question,
        timeout: float,
        *,
        ends: tuple[type[Found], ...] = (Verified, Expired),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Found:
        """Wait for an answer of the kinds that `ends` has, `timeout` seconds at most. Never raises."""
        end = clock() + timeout
        while True:
            sign, looked = self._sign(), clock()
            found = self.find(question)
            if isinstance(found, ends):
                return found
            while True:
                left = end - clock()
                if left <= 0:
                    return found
                sleep(min(POLL_SECONDS, left))
                if self._sign() != sign or clock() - looked >= _LOOK_ANYWAY_SECONDS:
                    break

    def _records(self, trust: Trust) -> tuple[Place, list[Record], list[ChainProblem]]:
        """The place that was read, the decisions that count, and the files that are none."""
        names, records, refused = list[str](), list[Record](), list[ChainProblem]()
        # The mirror is listed first: a decision that arrives meanwhile is in the ledger before it is in the mirror.
        try:
            with self._mirror() as directory:
                names = sorted(name for name in directory.names() if _NAME.match(name))[:_MOST]
        except FileNotFoundError:
            pass
        except OSError as error:
            message = f"the workspace cannot be read: {reason(error)}"
            refused.append(ChainProblem(MIRROR, ProblemKind.UNREADABLE, message))
        chain = self._chain(trust)
        held = [entry.record for entry in chain.of_attempts.values()] if chain is not None else []
        known = {f"{record.decision_id}.json" for record in held}
        for one in (self._file(name, trust) for name in names if name not in known):
            if isinstance(one, Record):
                records.append(one)
            else:
                refused.append(one)
        if chain is None and not self._keys.is_in_sight():
            return Place.MIRROR, records, refused
        # An old copy, or one of a decision that the operator had set aside. Where the key that signs lies in sight, no
        # sandbox hides the ledger: then it is lost, and the operator can decide otherwise by now.
        why = "does not have it" if chain is not None else "is gone or cannot be read: put it back, or decide again"
        for record in records:
            message = f"it is signed, and the ledger {self._ledger.directory} {why}"
            refused.append(_problem(f"{record.decision_id}.json", ProblemKind.STRAY, message))
        refused += [one for one in (chain.problems if chain else ()) if one.kind is not ProblemKind.STRAY]
        return Place.LEDGER, held, refused

    def _chain(self, trust: Trust) -> Chain | None:
        """The ledger, None where it is not to be seen from here."""
        with suppress(LedgerError, OSError):
            return self._ledger.read(trust) if os.path.exists(self._ledger.directory) else None
        return None

    def _mirror(self) -> Directory:
        return open_dot_directory(self._workspace, MIRROR, disk=self._disk)

    def _file(self, name: str, trust: Trust) -> Record | ChainProblem:
        """The signed decision in a file of the workspace, or why it is none."""
        try:
            with self._mirror() as directory:
                record, _ = verified(directory.read(name, LARGEST), trust, self._workspace_id)
        except RefusedError as error:
            return _problem(name, error.kind, str(error))
        except OSError as error:
            return _problem(name, ProblemKind.UNREADABLE, reason(error))
        if name != f"{record.decision_id}.json":
            return _problem(name, ProblemKind.MISPLACED, "a copy of another decision")
        if record.request is not None:
            return _problem(name, ProblemKind.MISPLACED, "an answer to a request, which is never put here")
        return record

    def _sign(self) -> list[tuple[int, int, int] | None]:
        """Changes when a file comes or goes in one of the two places."""
        return [change_stamp(self._ledger.directory), change_stamp(self._workspace / DOT / MIRROR)]


def _problem(name: str, kind: ProblemKind, message: str) -> ChainProblem:
    return ChainProblem(name, kind, f"{DOT}/{MIRROR}/{name}: {message}")
