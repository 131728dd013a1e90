"""The operator's side: decide, deliver, and see what became of it, wherever the ledger is.

A decision becomes a draft in `DecisionService`, once; the services differ in what becomes of a draft: `LocalService`
records it in the ledger of this machine, another one asks a host.
"""

from __future__ import annotations

import getpass
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agentwatch.decisions import delivery, receipts
from agentwatch.decisions.delivery import Forgery, Mirror
from agentwatch.decisions.envelope import VARIABLE, SigningKey, Trust, given
from agentwatch.decisions.errors import (
    KeyMissingError,
    KeyProblemError,
    NotAllowedError,
    RequestGoneError,
    ReturnChangedError,
)
from agentwatch.decisions.keys import Keys, unlocked
from agentwatch.decisions.ledger import Chain, DecisionMade, Draft, Ledger
from agentwatch.decisions.receipts import ReceiptBook, ReceiptError
from agentwatch.decisions.record import (
    ANSWER_LIFETIME,
    Params,
    Record,
    Subject,
    asked_of,
    refusal,
    time_of,
    written,
)
from agentwatch.delegation.decision import ENDING, Action, Decision, Receipt, Stage
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import Task
from agentwatch.disk import DISK, DOT, Disk
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.walk import MAX_BYTES, to_name
from agentwatch.state import state_directory, workspace_id

LIFETIME: Final = timedelta(days=7)
"""How long a decision holds that asks for work: one that lies around for longer may meet a workspace that is another by
then. An agent that asks for it afterwards is told so, and the operator can decide the same attempt again."""

_OURSELVES: Final = "agentwatch"
_READ_ONLY: Final = "agentwatch was told to write nothing into the workspace"


class DecisionService(ABC):
    """The decisions of one workspace, as an operator makes them. They hold for `lifetime`, None for ever.

    It signs with the key of one configuration directory, unlocked once; `passphrase` is asked where it is encrypted.
    """

    def __init__(
        self,
        state: Path,
        *,
        passphrase: Callable[[], str] | None = None,
        lifetime: timedelta | None = LIFETIME,
        configuration: Path | None = None,
        disk: Disk = DISK,
    ) -> None:
        self.state: Final = state
        self.lifetime: Final = lifetime
        self.keys: Final = Keys(configuration, disk)
        self.disk: Final = disk
        self.places: Sequence[Path] = ()
        """The directories in which every change of it shows; none where it has to be asked."""
        self._passphrase = passphrase
        self._signing: SigningKey | None = None

    # The key

    def why_locked(self) -> str | None:
        """Why the passphrase has to be typed before the next decision can be signed; None where it has not. A keyring
        that was chosen is asked first, for a minute at most. Raises KeyProblemError."""
        try:
            if not self.keys.is_encrypted() or (self._signing and self._signing.public == self.keys.show()):
                return None
        except KeyMissingError:
            return None
        why = "the key that signs decisions is encrypted"
        if not self.keys.in_keyring:
            return why
        try:
            self._signing = unlocked(self.keys)
        except KeyProblemError as error:
            return f"{why}, and {error}"
        return None

    def unlock(self, passphrase: str) -> None:
        """Load the encrypted key, for this and the next decisions. Raises KeyProblemError."""
        self._signing = self.keys.load(lambda: passphrase)

    def key(self) -> SigningKey:
        """The key that signs; the first decision makes it. Raises KeyProblemError."""
        try:
            if self._signing is None or self._signing.public != self.keys.show():
                self._signing = self.keys.load(self._passphrase)
        except KeyMissingError:
            if self.keys.trust().keys:
                # Only the private one is gone, and that was said.
                raise
            self.refuse_first()
            self._signing = self.keys.create()
        return self._signing

    # Deciding

    def subject(self, task: Task) -> Subject:
        """The subject of a decision about a task: its latest attempt as it was seen. Take it when the dialog opens."""
        latest = task.latest
        over = [one.decision_id for one in latest.decisions if one.over] if latest else []
        return Subject(
            workspace_id=self.workspace_id,
            task_id=task.task_id,
            attempt=task.attempt,
            handoff_sha256=latest.handoff.digest if latest and latest.handoff else None,
            return_sha256=latest.returned.digest if latest and latest.returned else None,
            after=over[-1] if over else None,
        )

    def decide(
        self,
        subject: Subject,
        action: Action,
        params: Params | None = None,
        *,
        returned: Callable[[], str | None],
        note: str = "",
        now: datetime | None = None,
    ) -> DecisionMade:
        """Record a decision that the policy allows, then deliver it; `returned` gives the sha256 of the return as it is
        now. Raises DecisionError."""
        now = now or self.now()
        # Nobody works on what was ended, so there is no other workspace that it could meet.
        expires_at = None if self.lifetime is None or action in ENDING else now + self.lifetime
        return self.record(Draft(subject, action, params or Params(), note, self.operator, now, expires_at), returned)

    def answer(
        self,
        request: Request,
        action: Action,
        params: Params | None = None,
        *,
        task_id: str,
        attempt: int,
        gone: Callable[[], str | None],
        note: str = "",
        now: datetime | None = None,
    ) -> DecisionMade:
        """Record the answer to a request as it was shown at a task and attempt; `gone` says, in a sentence, why nobody
        waits for it any more. Raises DecisionError."""
        now = now or self.now()
        subject = Subject(self.workspace_id, task_id, attempt, None, None, request=asked_of(request))
        expires_at = self.answer_ends(request, now)
        draft = Draft(subject, action, params or Params(), note, self.operator, now, expires_at)
        return self.record_answer(request, draft, gone)

    @property
    @abstractmethod
    def operator(self) -> str:
        """The name of who decides here, for records."""

    @property
    @abstractmethod
    def workspace_id(self) -> str:
        """ "" before it is known."""

    @property
    def unreachable(self) -> str | None:
        """Why nothing can be decided now, a sentence; None where something can."""
        return None

    @property
    def notice(self) -> str | None:
        """A sentence for the operator about decisions on their way. May quote foreign text."""
        return None

    @abstractmethod
    def now(self) -> datetime:
        """The time, aware, where the ledger is."""

    @abstractmethod
    def answer_ends(self, request: Request, now: datetime) -> datetime:
        """Until when an answer that is given now holds."""

    @abstractmethod
    def record(self, draft: Draft, returned: Callable[[], str | None]) -> DecisionMade:
        """Record a decision as somebody made it, as `decide` does."""

    @abstractmethod
    def record_answer(self, request: Request, draft: Draft, gone: Callable[[], str | None]) -> DecisionMade:
        """Record the answer to a request as somebody made it, as `answer` does."""

    @abstractmethod
    def refuse_first(self) -> None:
        """Raises DecisionError where a key was there before, so that a new one would not be the first."""

    # Looking

    @abstractmethod
    def read(self) -> Chain:
        """Every decision, and what is wrong in the ledger. Cheap where nothing changed. Raises DecisionError."""

    @abstractmethod
    def mirror(self) -> Mirror:
        """Deliver what waits, put right what was edited, and tell what is forged. Raises DecisionError."""

    @abstractmethod
    def forged(self) -> list[Forgery]:
        """The files among the decisions in the workspace that are none; nothing is put right. Raises DecisionError."""

    @abstractmethod
    def receipts(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        """How far decisions have got, by their ids, as `ReceiptBook.read` has it."""

    @abstractmethod
    def changes(self) -> tuple[int | None, ...]:
        """Different from the call before where a decision or a receipt was added since. Costs next to nothing."""

    @abstractmethod
    def acted(self, decision: Decision, by: str) -> None:
        """Tell that a decision was carried out. Raises ReceiptError."""


class LocalService(DecisionService):
    """The decisions of a workspace on this machine, for any thread; with `read_only`, nothing is written into it."""

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
        state = state or state_directory(workspace)
        super().__init__(state, passphrase=passphrase, lifetime=lifetime, configuration=configuration, disk=disk)
        self._workspace_id = workspace_id(workspace)
        self.ledger: Final = Ledger(self.state, self._workspace_id, disk)
        self._book = ReceiptBook(workspace, self.state, disk, read_only=read_only)
        self._workspace = workspace
        self._read_only = read_only
        own = workspace / DOT
        self.places = (
            self.ledger.directory,
            self.state / receipts.NAME,
            own / delivery.NAME,
            own / receipts.NAME,
        )
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
        undelivered = delivery.deliver(self._workspace, made.entry, self.ledger.bytes_of, self.disk)
        if undelivered is None:
            self._mark_delivered(made.record)
        return made._replace(undelivered=undelivered)

    def record_answer(self, request: Request, draft: Draft, gone: Callable[[], str | None]) -> DecisionMade:
        now, expires_at = draft.created_at, draft.expires_at
        why_not = refusal(request, draft.action, draft.params, draft.note)
        if why_not is not None:
            raise NotAllowedError(f"not recorded: {why_not}")
        entry = self.read().latest.get(request.request_id)
        before = entry.record if entry is not None and not entry.record.is_expired(now) else None
        if before is not None and time_of(before.created_at).timestamp() < math.floor(request.asked_at):
            # Its program gave an id twice: its holder waits for an answer since, and this one would pass for that.
            raise NotAllowedError(
                f"not recorded: an answer to an equal request of before holds until {before.expires_at}; answer"
                " it in its program, or decide again then"
            )

        def returned() -> None:
            why = gone() or ("its time is over" if expires_at is not None and expires_at <= now else None)
            if why is not None:
                raise RequestGoneError(f"not recorded: {why}")

        return self.ledger.append(draft, self.key(), self.keys.trust(), returned)

    def refuse_first(self) -> None:
        if self.ledger.read(Trust()).problems:
            raise KeyMissingError(
                f"the ledger holds decisions, and the keys that signed them are gone from {self.keys.directory}:"
                f" put them back from a backup, or move {self.ledger.directory} away and decide again"
            )

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
        mirror = delivery.mirror_missing(self._workspace, chain, self.ledger.bytes_of, trust, disk=self.disk)
        for decision_id in mirror.delivered:
            self._mark_delivered(chain.latest[decision_id].record)
        return mirror

    def forged(self) -> list[Forgery]:
        trust = self.keys.trust()
        if os.path.exists(self.ledger.directory) or self.keys.is_in_sight():
            return delivery.forgeries(self._workspace, self.ledger.read(trust), trust, self.disk)
        # In a sandbox, the keys are those that the orchestrator was started with.
        trust = trust.with_more(given(os.environ.get(VARIABLE, "")))
        return delivery.forgeries(self._workspace, None, trust, self.disk)

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

    def _mark_delivered(self, record: Record) -> None:
        # Delivered it is all the same; the receipt is told the next time.
        with suppress(ReceiptError):
            if record.seq not in self._marked:
                self._book.mark(record.decision_id, Stage.DELIVERED, _OURSELVES, since=record.created_at)
                self._marked.add(record.seq)


def return_digest(workspace: Path, relative: str | None, max_bytes: int = MAX_BYTES) -> str | None:
    """The sha256 of a return as it is on disk now; None where there is none. Raises ReturnChangedError where it cannot
    be read any more."""
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
