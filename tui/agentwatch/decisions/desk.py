"""The operator's side: decide, deliver, and see what became of it. The one object that a face of the operator holds."""

from __future__ import annotations

import getpass
import math
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agentwatch.decisions import delivery, receipts
from agentwatch.decisions.answering import refusal
from agentwatch.decisions.chain import Chain
from agentwatch.decisions.delivery import Forgery, Known, Mirror, deliver, forgeries, mirror_missing
from agentwatch.decisions.envelope import VARIABLE, Trust, given
from agentwatch.decisions.errors import (
    KeyMissingError,
    NotAllowedError,
    RequestGoneError,
    ReturnChangedError,
)
from agentwatch.decisions.face import OperatorDesk
from agentwatch.decisions.ledger import DecisionMade, Draft, Ledger
from agentwatch.decisions.receipts import ReceiptBook, ReceiptError
from agentwatch.decisions.record import ANSWER_LIFETIME, Record, time_of, written
from agentwatch.delegation.decision import Decision, Receipt, Stage
from agentwatch.delegation.request import Request
from agentwatch.disk import DISK, DOT, Disk
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.walk import MAX_BYTES, to_name
from agentwatch.state import state_directory, workspace_id

LIFETIME: Final = timedelta(days=7)
"""How long a decision holds that asks for work: one that lies around for longer may meet a workspace that is another by
then. An agent that asks for it afterwards is told so, and the operator can decide the same attempt again."""

_OURSELVES: Final = "agentwatch"
_READ_ONLY: Final = "agentwatch was told to write nothing into the workspace"


class Desk(OperatorDesk):
    """The decisions of one workspace. Blocks on the disk for milliseconds; any thread may call it.

    `passphrase` is asked as `Pen` says. With `read_only`, nothing is written into the workspace. `state` and
    `configuration` are directories, by default those of the user.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        passphrase: Callable[[], str] | None = None,
        read_only: bool = False,
        lifetime: timedelta | None = LIFETIME,
        state: Path | None = None,
        configuration: Path | None = None,
        disk: Disk = DISK,
    ) -> None:
        super().__init__(passphrase=passphrase, configuration=configuration, disk=disk)
        self.state = state or state_directory(workspace)
        self._workspace_id = workspace_id(workspace)
        self.ledger: Final = Ledger(self.state, self._workspace_id, disk)
        self._book = ReceiptBook(workspace, self.state, disk, read_only=read_only)
        self._workspace = workspace
        self._read_only = read_only
        self.lifetime = lifetime
        self.disk = disk
        own = workspace / DOT
        self.places = (
            self.ledger.directory,
            self.state / receipts.NAME,
            own / delivery.NAME,
            own / receipts.NAME,
        )
        self._mirrored: Known = {}
        self._marked: set[int] = set()

    @property
    def workspace_id(self) -> str:
        return self._workspace_id

    @property
    def operator(self) -> str:
        return operator_name()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def answer_ends(self, request: Request, now: datetime) -> datetime:
        expires_at = now + ANSWER_LIFETIME
        if request.until is None:
            return expires_at
        # Records have whole seconds; its holder knows the time to a fraction.
        return min(expires_at, datetime.fromtimestamp(math.ceil(request.until), UTC))

    def record(self, draft: Draft, returned: Callable[[], str | None]) -> DecisionMade:
        made = self.ledger.append(draft, self.key(), self.keys.trust(), returned)
        if self._read_only:
            return made._replace(undelivered=_READ_ONLY)
        undelivered = deliver(self._workspace, made.entry, self.ledger.bytes_of, self.disk)
        if undelivered is None:
            self._mark_delivered(made.record)
        return made._replace(undelivered=undelivered)

    def record_answer(self, request: Request, draft: Draft, gone: Callable[[], str | None]) -> DecisionMade:
        now, expires_at = draft.created_at, draft.expires_at
        why_not = refusal(request, draft.action, draft.params, draft.note)
        if why_not is not None:
            raise NotAllowedError(f"not recorded: {why_not}")
        before = self.read().latest.get(request.request_id)
        if before is not None and _is_older(before.record, request) and not before.record.is_expired(now):
            # Its holder waits for what was decided since, and the ledger would take this one for that.
            raise NotAllowedError(
                f"not recorded: an answer to an equal request of before holds until {before.record.expires_at}; answer"
                " it in its program, or decide again then"
            )

        def returned() -> None:
            why = gone() or ("its time is over" if expires_at is not None and expires_at <= now else None)
            if why is not None:
                raise RequestGoneError(f"not recorded: {why}")

        return self.ledger.append(draft, self.key(), self.keys.trust(), returned)

    def read(self) -> Chain:
        return self.ledger.read(self.keys.trust())

    def mirror(self) -> Mirror:
        trust = self.keys.trust()
        chain = self.ledger.read(trust)
        self._book.tidy()
        if self._read_only:
            told = self.receipts(entry.record for entry in chain.of_attempts.values())
            waiting = tuple(name for name, receipts in told.items() if receipts[-1].stage is Stage.RECORDED)
            return Mirror((), waiting, _READ_ONLY if waiting else None, tuple(self.forged()))
        given = self._workspace, chain, self.ledger.bytes_of, trust
        mirror = mirror_missing(*given, disk=self.disk, known=self._mirrored)
        for decision_id in mirror.delivered:
            self._mark_delivered(chain.latest[decision_id].record)
        return mirror

    def forged(self) -> list[Forgery]:
        trust, is_hidden = self.keys.trust(), False
        if not os.path.exists(self.ledger.directory) and not self.keys.is_in_sight():
            # In a sandbox, the keys are those that the orchestrator was started with.
            trust, is_hidden = trust.with_more(given(os.environ.get(VARIABLE, ""))), True
        return forgeries(self._workspace, None if is_hidden else self.ledger.read(trust), trust, self.disk)

    def receipts(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        return self._book.read(records)

    def changes(self) -> tuple[int | None, ...]:
        times: dict[Path, int] = {}
        for directory in self.places:
            with suppress(OSError):
                times[directory] = directory.lstat().st_mtime_ns
        return tuple(map(times.get, self.places))

    def acted(self, decision: Decision, by: str) -> None:
        since = written(datetime.fromtimestamp(decision.at, UTC))
        is_private = decision.request_id is not None
        self._book.mark(decision.decision_id, Stage.ACTED, by, since=since, private=is_private)

    def refuse_first(self) -> None:
        if self.ledger.read(Trust()).problems:
            raise KeyMissingError(
                f"the ledger holds decisions, and the keys that signed them are gone from {self.keys.directory}:"
                f" put them back from a backup, or move {self.ledger.directory} away and decide again"
            )

    def _mark_delivered(self, record: Record) -> None:
        # Delivered it is all the same; the receipt is told the next time.
        with suppress(ReceiptError):
            if record.seq not in self._marked:
                self._book.mark(record.decision_id, Stage.DELIVERED, _OURSELVES, since=record.created_at)
                self._marked.add(record.seq)


def _is_older(record: Record, request: Request) -> bool:
    """Whether it was decided before the request was made: its program gave an id twice."""
    return time_of(record.created_at).timestamp() < math.floor(request.asked_at)


def return_digest(workspace: Path, relative: str | None, max_bytes: int = MAX_BYTES) -> str | None:
    """The sha256, in hex, of a return as it is on disk now; None where there is none. `relative` as observed.

    Raises ReturnChangedError where it cannot be read any more.
    """
    if relative is None:
        return None
    try:
        return read_file(os.path.realpath(workspace), to_name(relative), max_bytes).digest
    except FileNotFoundError:
        return None
    except FileRefusedError as error:
        raise ReturnChangedError(f"not recorded: the return cannot be read again: {error.message}") from error


def operator_name() -> str:
    """The name of the user, for records."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A user id without a name, as in some containers.
        return f"uid {os.getuid()}"
