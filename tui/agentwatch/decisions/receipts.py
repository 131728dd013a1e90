"""How far a decision has got: recorded, delivered, read, acted. Each is told once; the first to tell it is believed.

    <state directory>/receipts/<decision id>.<stage>[.<reader>].json          told by agentwatch
    <workspace>/.agentwatch/receipts/<the same>                               claimed by an agent, no proof

A claim counts for no more than that somebody has read the decision: only the next attempt shows that it is carried out.
The answer to a request of a program has its receipts in the state directory alone. An attempt whose decision has
expired is decided anew under the same id: the new one's receipts have its time in their names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.decisions.errors import DecisionError, reason, remedy
from agentwatch.decisions.record import Record, time_of, written
from agentwatch.delegation.decision import Receipt, Stage
from agentwatch.disk import DISK, Directory, Disk, PrivateDirectory, open_dot_directory

NAME: Final = "receipts"

_LARGEST: Final = 4_096
_LONGEST: Final = 200
_MOST: Final = 200
"""Receipts of one decision that are looked at, of each kind."""

_FILE: Final = re.compile(r"([0-9a-f]{32})\.(delivered|read|acted|claim)(?:\.([a-z0-9_-]{1,32}))?\.json\Z")
_READER: Final = 15
"""Characters of a reader's name: with the time of a decision, which has 16, a name of the pattern above."""

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_-]+")
_CLAIM: Final = "claim"
_NOBODY: Final = ("somebody", "")
"""Name and time of a receipt that cannot be read."""


class Claim(NamedTuple):
    """The one who carries a decision out. `won`: it is the caller. `proof` is False where only the workspace could be
    written. `by` and `at` are those of the winner, and foreign.
    """

    won: bool
    by: str
    at: str
    proof: bool


class ReceiptError(DecisionError):
    """A receipt could not be written anywhere."""


class ReceiptBook:
    """The receipts of one workspace. `state` is its state directory. With `read_only`, none goes into the workspace."""

    def __init__(self, workspace: Path, state: Path, disk: Disk = DISK, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self._own = PrivateDirectory(state / NAME, disk)
        self._claimed = partial(open_dot_directory, workspace, NAME, disk=disk)

    def mark(
        self,
        decision_id: str,
        stage: Stage,
        by: str,
        *,
        since: str = "",
        reader: str = "",
        inside: bool = False,
        private: bool = False,
        now: datetime | None = None,
    ) -> None:
        """Tell a stage, unless it was told before (by this `reader`); `since` is when the decision was made.

        It is claimed in the workspace where the state directory cannot be written, or is that of a sandbox (`inside`);
        a `private` one never is. Raises ReceiptError where it cannot be written.
        """
        receipt = _Receipt(decision_id, stage.value, by, reader, since, now)
        if not inside:
            with suppress(OSError), self._own.make() as directory:
                receipt.publish(directory)
                return
        if self._read_only or private:
            why = "it is nothing for" if private else "agentwatch was told to write nothing into"
            raise ReceiptError(f"no receipt is written in {self._own.path}, and {why} the workspace")
        try:
            with self._claimed(make=True) as directory:
                receipt.publish(directory)
        except OSError as error:
            raise ReceiptError(
                f"no receipt can be written, neither in {self._own.path} nor in the workspace: {reason(error)};"
                f" {remedy(error)}, the decision itself is not touched by this"
            ) from error

    def claim(
        self, decision_id: str, by: str, now: datetime | None = None, *, since: str = "", private: bool = False
    ) -> Claim:
        """Ask to be the one who carries a decision out, before an effect that must not happen twice.

        Exactly one asker wins. One that can write both places must win both, so that one inside a sandbox and one
        outside never both do; a `private` one needs the state directory alone. Raises ReceiptError.
        """
        receipt = _Receipt(decision_id, _CLAIM, by, "", since, now)
        trouble, won = OSError(), None
        if self._read_only and not private:
            # Nothing may be put into the workspace: those who were told before that was so can have claimed there.
            with suppress(OSError), self._claimed() as directory:
                for name in sorted({*receipt.names}.intersection(directory.names())):
                    by, at = _told(directory, name)
                    if not at or at >= since:
                        return Claim(False, by, at, proof=False)
        for place, proof in (partial(self._claimed, make=True), False), (self._own.make, True):
            if not proof and (self._read_only or private):
                continue
            try:
                with place() as directory:
                    won = Claim(*receipt.publish(directory), proof)
            except OSError as error:
                trouble = error
            else:
                if not won.won:
                    break
        if won is None:
            why = f"neither {self._own.path} nor the workspace can be written: {reason(trouble)}"
            raise ReceiptError(f"nobody can claim the decision: {why}; {remedy(trouble)}")
        return won

    def read(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        """How far decisions have got, by their ids: one receipt for each stage reached, in their order."""
        records = list(records)
        receipts = {
            one.decision_id: {Stage.RECORDED: Receipt(Stage.RECORDED, _seconds(one.created_at), one.operator)}
            for one in records
        }
        with suppress(OSError), self._own.open() as directory:
            _add_receipts(receipts, directory, claimed=False)
        with suppress(OSError), self._claimed() as directory:
            public = {one.decision_id: receipts[one.decision_id] for one in records if one.request is None}
            _add_receipts(public, directory, claimed=True)
        for one in records:
            if one.request is not None:
                # Its holder claims it before the program has it: no agent has read anything.
                receipts[one.decision_id].pop(Stage.READ, None)
        return {key: tuple(told[stage] for stage in Stage if stage in told) for key, told in receipts.items()}

    def tidy(self) -> None:
        """Remove what killed writers left, as far as that can be done."""
        with suppress(OSError), self._own.open() as directory:
            directory.sweep()


class _Receipt(NamedTuple):
    """A receipt to be written; `kind` is a stage or a claim."""

    decision_id: str
    kind: str
    by: str
    reader: str
    since: str
    now: datetime | None

    @property
    def names(self) -> tuple[str, str]:
        """Its name, and the one it has where the first is that of an earlier decision."""
        who = _NOT_IN_NAMES.sub("-", self.reader.lower())[:32].strip("-")
        anew = f"{who[:_READER]}-{_NOT_IN_NAMES.sub('', self.since.lower().replace('-', ''))}".strip("-")
        about = f"{self.decision_id}.{self.kind}"
        return f"{about}.{who}.json" if who else f"{about}.json", f"{about}.{anew}.json"

    def publish(self, directory: Directory) -> tuple[bool, str, str]:
        """Publish it, unless there is one of this decision. Returns whether it was, name and time of what holds."""
        # Nothing is told of a decision before it is made: the clock was set back. Letters sort as times do.
        at = max(written(self.now or datetime.now(UTC)), self.since)
        fields = {
            "version": 1,
            "decision_id": self.decision_id,
            "receipt": self.kind,
            "by": self.by[:_LONGEST],
            "at": at,
        }
        content = (json.dumps(fields) + "\n").encode("ascii")
        plain, anew = self.names
        holds = _published(directory, plain, content)
        return _published(directory, anew, content) if "" < holds[2] < self.since else holds


def _published(directory: Directory, name: str, content: bytes) -> tuple[bool, str, str]:
    try:
        directory.status(name)
    except FileNotFoundError:
        with suppress(FileExistsError):
            directory.publish(name, content, 0o644)
            return True, *_parsed(content)
    return False, *_told(directory, name)


def _told(directory: Directory, name: str) -> tuple[str, str]:
    """Name and time of a receipt that is there, whatever it holds."""
    with suppress(OSError):
        return _parsed(directory.read(name, _LARGEST))
    return _NOBODY


def _parsed(data: bytes) -> tuple[str, str]:
    """Name and time, _NOBODY where it is no receipt."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        fields: Any = json.loads(data)
        by, at = fields["by"], fields["at"]
        if isinstance(by, str) and isinstance(at, str):
            time_of(at)
            return by[:_LONGEST], at
    return _NOBODY


def _seconds(at: str) -> float:
    return time_of(at).timestamp()


def _add_receipts(receipts: dict[str, dict[Stage, Receipt]], directory: Directory, *, claimed: bool) -> None:
    seen: Counter[str] = Counter()
    for name in sorted(directory.names()):
        match = _FILE.match(name)
        if match is None or match[1] not in receipts or seen[match[1]] == _MOST:
            continue
        told, kind = receipts[match[1]], match[2]
        seen[match[1]] += 1
        by, at = _told(directory, name)
        if not at or _seconds(at) < told[Stage.RECORDED].at:
            continue
        # An agent that claims in the workspace that it acted has read it; that it is done shows in what comes after.
        is_read = kind == _CLAIM or (claimed and kind == Stage.ACTED)
        stage = Stage.READ if is_read else Stage(kind)
        taken_by = by if kind == _CLAIM else ""
        receipt = Receipt(stage, _seconds(at), by, claimed or stage is Stage.ACTED, taken_by)
        held = told.get(stage, receipt)
        first = min(held, receipt, key=lambda one: (one.claimed, one.at))
        told[stage] = first._replace(taken_by=held.taken_by or taken_by)
