"""How far a decision has got: recorded, delivered, read, acted. Each is told once; the first to tell it is believed.

    <state directory>/receipts/<decision id>.<stage>[.<reader>].json          told by agentwatch
    <workspace>/.agentwatch/receipts/<the same>                               claimed by an agent, no proof

An agent in a sandbox can only write into the workspace, and so can one that lies: such a claim counts for no more than
that somebody has read the decision, for only the next attempt shows that it is carried out. That, too, agents make, so
it stays a claim wherever it is written down.

What answers a request of a program has its receipts in the state directory alone: nothing of it is in the workspace,
and nothing that is there counts for it.

An attempt whose decision has expired is decided anew under the same id. What was told of the decision before is older
than the new one and says nothing of it, so the new one's receipts have its time in their names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
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
"""Who and when of a receipt that cannot be read."""


class Claim(NamedTuple):
    """Who carries a decision out. `won`: it is the caller. `proof` is False where only the workspace could be written.

    `by` and `at` are those of the winner, and foreign.
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
        self._workspace = workspace
        self._read_only = read_only
        self._directory = PrivateDirectory(state / NAME, disk)
        self._disk = disk
        self._known: dict[str, tuple[str, str]] = {}

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
        """Tell a stage, unless it was told before (by this `reader`, such as `wait` or `mcp`).

        `since` is when the decision was made, as in records, where that is known. Where the state directory cannot be
        written, it is claimed in the workspace; so it is for who is `inside` of a sandbox, whose state directory, if
        it may be written, is not the operator's. What is `private` never goes into the workspace. Raises ReceiptError
        where the workspace cannot be written either.
        """
        names = _names(decision_id, stage.value, reader, since)
        content = _content(decision_id, stage.value, by, now, since)
        if not inside:
            with suppress(OSError), self._directory.make() as directory:
                _first(directory, names, content, since)
                return
        if self._read_only or private:
            why = "it is nothing for" if private else "agentwatch was told to write nothing into"
            raise ReceiptError(f"no receipt is written in {self._directory.path}, and {why} the workspace")
        try:
            with self._claims() as directory:
                _first(directory, names, content, since)
        except OSError as error:
            raise ReceiptError(
                f"no receipt can be written, neither in {self._directory.path} nor in the workspace: {reason(error)};"
                f" {remedy(error)}, the decision itself is not touched by this"
            ) from error

    def claim(
        self, decision_id: str, by: str, now: datetime | None = None, *, since: str = "", private: bool = False
    ) -> Claim:
        """Ask to be the one who carries a decision out, before an effect that must not happen twice. `since` as above.

        Exactly one asker wins among all who can write the same places. One that can write both must win both, so that
        one inside a sandbox and one outside never both do. What is `private` is claimed in the state directory alone.
        Raises ReceiptError where no place can be written.
        """
        names, content = _names(decision_id, _CLAIM, "", since), _content(decision_id, _CLAIM, by, now, since)
        trouble, won = OSError(), None
        if self._read_only and not private and (held := self._held_inside(names, since)) is not None:
            return held
        for place, proof in ((self._claims, False), (self._directory.make, True))[self._read_only or private :]:
            try:
                with place() as directory:
                    won = Claim(*_first(directory, names, content, since), proof)
            except OSError as error:
                trouble = error
            else:
                if not won.won:
                    break
        if won is None:
            why = f"neither {self._directory.path} nor the workspace can be written: {reason(trouble)}"
            raise ReceiptError(f"nobody can claim the decision: {why}; {remedy(trouble)}")
        return won

    def _held_inside(self, names: tuple[str, str], since: str) -> Claim | None:
        """The claim in the workspace, where nothing may be put: those who were told before that was so can have one."""
        with suppress(OSError), open_dot_directory(self._workspace, NAME, disk=self._disk) as directory:
            for name in sorted({*names}.intersection(directory.names())):
                by, at = _told(directory, name)
                if not at or at >= since:
                    return Claim(False, by, at, proof=False)
        return None

    def read(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        """How far decisions have got, by their ids: one receipt for each stage reached, in their order.

        What agentwatch saw itself comes before a claim, then the first to tell is believed. What cannot be read, or is
        older than its decision, is not told.
        """
        records = list(records)
        receipts = {
            one.decision_id: {Stage.RECORDED: Receipt(Stage.RECORDED, _seconds(one.created_at), one.operator)}
            for one in records
        }
        with suppress(OSError), self._directory.open() as directory:
            # Nobody changes a receipt of ours.
            _add_receipts(receipts, directory, self._known, claimed=False)
        with suppress(OSError), open_dot_directory(self._workspace, NAME, disk=self._disk) as directory:
            public = {one.decision_id: receipts[one.decision_id] for one in records if one.request is None}
            _add_receipts(public, directory, {}, claimed=True)
        for one in records:
            if one.request is not None:
                # Who holds it claims it before the program has it: no agent has read anything.
                receipts[one.decision_id].pop(Stage.READ, None)
        return {key: tuple(told[stage] for stage in Stage if stage in told) for key, told in receipts.items()}

    def tidy(self) -> None:
        """Remove what killed writers left, as far as that can be done."""
        with suppress(OSError), self._directory.open() as directory:
            directory.sweep()

    def _claims(self) -> Directory:
        return open_dot_directory(self._workspace, NAME, make=True, disk=self._disk)


def _names(decision_id: str, kind: str, reader: str, since: str) -> tuple[str, str]:
    """The name of a receipt, and the one it has where the first is taken by that of an earlier decision."""
    who = _NOT_IN_NAMES.sub("-", reader.lower())[:32].strip("-")
    anew = f"{who[:_READER]}-{_NOT_IN_NAMES.sub('', since.lower().replace('-', ''))}".strip("-")
    about = f"{decision_id}.{kind}"
    return f"{about}.{who}.json" if who else f"{about}.json", f"{about}.{anew}.json"


def _content(decision_id: str, kind: str, by: str, now: datetime | None, since: str) -> bytes:
    # Nothing is told of a decision before it is made: the clock was set back. In this form letters sort as times do.
    at = max(written(now or datetime.now(UTC)), since)
    fields = {"version": 1, "decision_id": decision_id, "receipt": kind, "by": by[:_LONGEST], "at": at}
    return (json.dumps(fields) + "\n").encode("ascii")


def _first(directory: Directory, names: tuple[str, str], content: bytes, since: str) -> tuple[bool, str, str]:
    """Publish a receipt, unless there is one of this decision. Returns whether it was, who and when of what holds."""
    plain, anew = names
    holds = _published(directory, plain, content)
    return _published(directory, anew, content) if "" < holds[2] < since else holds


def _published(directory: Directory, name: str, content: bytes) -> tuple[bool, str, str]:
    try:
        directory.status(name)
    except FileNotFoundError:
        with suppress(FileExistsError):
            directory.publish(name, content, 0o644)
            return True, *_parsed(content)
    return False, *_told(directory, name)


def _told(directory: Directory, name: str) -> tuple[str, str]:
    """Who and when of a receipt that is there, whatever it holds."""
    with suppress(OSError):
        return _parsed(directory.read(name, _LARGEST))
    return _NOBODY


def _parsed(data: bytes) -> tuple[str, str]:
    """Who and when, _NOBODY where it is no receipt."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        fields: Any = json.loads(data)
        by, at = fields["by"], fields["at"]
        if isinstance(by, str) and isinstance(at, str):
            time_of(at)
            return by[:_LONGEST], at
    return _NOBODY


def _seconds(at: str) -> float:
    return time_of(at).timestamp()


def _add_receipts(
    receipts: dict[str, dict[Stage, Receipt]], directory: Directory, known: dict[str, tuple[str, str]], *, claimed: bool
) -> None:
    seen: Counter[str] = Counter()
    for name in sorted(directory.names()):
        match = _FILE.match(name)
        if match is None or match[1] not in receipts or seen[match[1]] == _MOST:
            continue
        decision_id, kind = match[1], match[2]
        seen[decision_id] += 1
        # An agent that claims in the workspace that it acted has read it; that it is done shows in what comes after.
        is_read = kind == _CLAIM or (claimed and kind == Stage.ACTED)
        stage = Stage.READ if is_read else Stage(kind)
        by, at = known.get(name) or _told(directory, name)
        if not at:
            continue
        known[name] = by, at
        taken_by = by if kind == _CLAIM else ""
        told, receipt = (
            receipts[decision_id],
            Receipt(stage, _seconds(at), by, claimed or stage is Stage.ACTED, taken_by),
        )
        if receipt.at < told[Stage.RECORDED].at:
            continue
        held = told.get(stage, receipt)
        first = min(held, receipt, key=lambda one: (one.claimed, one.at))
        told[stage] = first._replace(taken_by=held.taken_by or taken_by)
