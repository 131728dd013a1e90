"""Records the operator's decisions, delivers them into the workspace, and reports how far each decision has got.

`DecisionService` writes into the ledger of this machine. A subclass for other machines asks a host to record the
decision. `DecisionWatcher` reports changes to the screen.
"""

import getpass
import math
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from agentwatch.background import Pollable
from agentwatch.decisions.delivery import (
    MIRROR,
    NOT_DELIVERED,
    RECEIPTS,
    UNWRITTEN,
    Mirror,
    ReceiptBook,
    ReceiptError,
    deliver_missing,
    find_differences,
    forgery_finding,
)
from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import (
    DecisionError,
    KeyMissingError,
    NotAllowedError,
    RequestGoneError,
    ReturnChangedError,
)
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import NAME, Chain, ChainProblem, DecisionMade, Ledger, ProblemKind
from agentwatch.decisions.record import (
    ANSWER_LIFETIME,
    Params,
    Record,
    Subject,
    decision_of,
    format_time,
    make_draft,
    parse_time,
    to_asked,
    why_unanswerable,
)
from agentwatch.delegation.decision import ENDING, Action, Decision, Receipt, Request, RequestStage, Stage
from agentwatch.delegation.events import Decided, Event, Gone, Unreadable
from agentwatch.delegation.task import Task
from agentwatch.disk import DISK, DOT, Disk, change_stamp, open_dot_directory
from agentwatch.sources.files.read import MAX_BYTES, FileRefusedError, read_file, system_name
from agentwatch.state import state_directory, workspace_id

# A decision that asks for work, such as a retry, expires after this time, because the workspace may have changed. An
# agent that asks later reads that the decision has expired. The operator can then decide again.
LIFETIME = timedelta(days=7)

_OURSELVES = "agentwatch"
_MOST_FORGED = 1_000  # maximal number of forged files of the mirror that are reported
_LOOK_SECONDS = 30.0  # the mirror is checked after this time even if no directory has changed


class DecisionService:
    """Records the operator's decisions about one workspace. Any thread may call the methods.

    The key in the `configuration` directory signs the decisions. If the key is encrypted, `passphrase` is called once.
    A decision that asks for work is valid for `lifetime`. If `read_only`, nothing is written into the workspace.
    """

    answer_lifetime = ANSWER_LIFETIME

    def __init__(
        self,
        workspace: Path,
        *,
        passphrase: Callable[[], str] | None = None,
        read_only: bool = False,
        lifetime: timedelta = LIFETIME,
        state: Path | None = None,
        configuration: Path | None = None,
        disk: Disk = DISK,
    ):
        self.state = state or state_directory(workspace)
        self.lifetime = lifetime
        self.keys = Keys(configuration, disk)
        self.disk = disk
        self.ledger = Ledger(self.state, workspace_id(workspace), disk)
        self._book = ReceiptBook(workspace, self.state, disk, read_only=read_only)
        self._passphrase = passphrase
        self._signing: SigningKey | None = None
        self._workspace = workspace
        self._read_only = read_only

    @property
    def workspace_id(self) -> str:
        return self.ledger.workspace_id

    @property
    def unreachable(self) -> str | None:
        """The reason (a sentence) why nothing can be decided now, or None."""
        return None

    def now(self) -> datetime:
        """Return the current time, with time zone, on the machine that has the ledger."""
        return datetime.now(UTC)

    # The key

    def why_locked(self) -> str | None:
        """Return a sentence if the key is encrypted and still locked, else None. May raise KeyProblemError."""
        with suppress(KeyMissingError):
            if not self._signing or self._signing.public != self.keys.show():
                return self.keys.why_encrypted()
        return None

    def unlock(self, passphrase: str) -> None:
        """Decrypt the signing key, and keep it for later decisions. Raise KeyProblemError if this fails."""
        self._signing = self.keys.load(lambda: passphrase)

    def load_key(self) -> SigningKey:
        """Return the signing key. Create it before the first decision. Raise KeyProblemError if the key is lost."""
        try:
            if not self._signing or self._signing.public != self.keys.show():
                self._signing = self.keys.load(self._passphrase)
        except KeyMissingError:
            if not self.keys.trust().keys and self.read().problems:
                raise KeyMissingError(
                    f"the ledger holds decisions, and the keys that signed them are gone from {self.keys.directory}:"
                    f" put them back from a backup, or move {self.state / NAME} away and decide again"
                ) from None
            self._signing = self.keys.create()
        return self._signing

    # Deciding

    def subject(self, task: Task) -> Subject:
        """Return the subject of a decision about a task's latest attempt: its ids, and the digests of its files."""
        latest = task.latest
        over = [one.decision_id for one in latest.decisions if one.over]
        return Subject(
            workspace_id=self.workspace_id,
            task_id=task.task_id,
            attempt=task.attempt,
            handoff_sha256=latest.handoff.digest if latest.handoff else None,
            return_sha256=latest.returned.digest if latest.returned else None,
            after=over[-1] if over else None,
        )

    def decide(
        self,
        subject: Subject,
        action: Action,
        params: Params | None = None,
        *,
        find_digest: Callable[[], str | None],
        note: str = "",
    ) -> DecisionMade:
        """Record and deliver a decision. `find_digest` reads the return's current sha256. May raise DecisionError."""
        now = self.now()
        # A decision that ends its task asks for no work, so it never expires.
        ends = None if action in ENDING else now + self.lifetime
        draft = make_draft(
            subject, action, params or Params(), note, operator=operator_name(), created_at=now, expires_at=ends
        )
        return self.record(draft, find_digest)

    def answer(
        self,
        request: Request,
        action: Action,
        params: Params | None = None,
        *,
        task_id: str,
        attempt: int,
        why_gone: Callable[[], str | None],
        note: str = "",
    ) -> DecisionMade:
        """Record the answer to a program's request, which was shown at this task and attempt. `why_gone` returns a
        sentence if the program does not wait any more. Raise DecisionError if the answer cannot be recorded."""
        now = self.now()
        subject = Subject(self.workspace_id, task_id, attempt, None, None, request=to_asked(request))
        # A record's time has whole seconds, so the request's time limit is rounded up.
        until = math.inf if request.until is None else math.ceil(request.until)
        ends = datetime.fromtimestamp(min(until, (now + self.answer_lifetime).timestamp()), UTC)
        draft = make_draft(
            *(subject, action, params or Params(), note), operator=operator_name(), created_at=now, expires_at=ends
        )
        return self.record(draft, partial(require_answerable, request, draft, why_gone))

    def record(self, draft: Record, find_digest: Callable[[], str | None]) -> DecisionMade:
        """Sign a draft and add it to the ledger. Deliver it, unless it answers a program's request. `find_digest` reads
        the current sha256 of the return, or raises a DecisionError to refuse the draft."""
        made, why = self.ledger.append(draft, self.load_key(), self.keys.trust(), find_digest), None
        if not draft.request:
            try:
                mirror = self.update_mirror()
                why = mirror.reason if draft.decision_id in mirror.pending else None
            except DecisionError as error:
                why = str(error)
        return made._replace(undelivered=why)

    # Reading

    def read(self) -> Chain:
        """Return the valid decisions and the faulty files of the ledger. Raise DecisionError if it cannot be read."""
        return self.ledger.read(self.keys.trust())

    def update_mirror(self, *, writes: bool = True) -> Mirror:
        """Return the state of the mirror, with its forged files. If `writes`, first write the decisions that the mirror
        lacks, and restore edited copies. Raise DecisionError if this fails."""
        trust = self.keys.trust()
        chain = self.ledger.read(trust)
        told = self.receipts(entry.record for entry in chain.about_attempts.values())
        waiting = tuple(name for name, receipts in told.items() if receipts[-1].stage is Stage.RECORDED)
        if self._read_only or not writes:
            found: list[ChainProblem] = []
            with suppress(OSError), open_dot_directory(self._workspace, NAME, disk=self.disk) as directory:
                found += find_differences(directory, chain, trust, self.workspace_id)
            if not os.path.exists(self.ledger.directory) and not self.keys.can_read_private():
                # This process is in a sandbox that hides the ledger and the key. So it cannot tell who signed a file.
                found = [one for one in found if one.kind not in (ProblemKind.STRAY, ProblemKind.UNTRUSTED)]
            return Mirror(waiting, UNWRITTEN if waiting else None, tuple(found))
        mirror = deliver_missing(self._workspace, self.ledger, chain, trust)
        for name in {*waiting}.difference(mirror.pending):
            # The decision is delivered even if this receipt cannot be written. The next call tries again.
            with suppress(ReceiptError):
                self._book.write_receipt(name, Stage.DELIVERED, _OURSELVES, since=chain.latest[name].record.created_at)
        return mirror

    def receipts(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        """Return the receipts of decisions by decision id."""
        return self._book.read(records)

    def change_stamps(self) -> list[tuple[int, ...] | None]:
        """Return a value that changes when a decision or a receipt is added. This is fast."""
        return [
            change_stamp(place / name) for place in (self.state, self._workspace / DOT) for name in (NAME, RECEIPTS)
        ]

    def record_acted(self, decision: Decision, by: str) -> None:
        """Write the receipt that the agent or program acted on the decision. Raise ReceiptError if this fails."""
        since = format_time(datetime.fromtimestamp(decision.at, UTC))
        is_private = bool(decision.request_id)
        self._book.write_receipt(decision.decision_id, Stage.ACTED, by, since=since, private=is_private)


class DecisionWatcher(Pollable):
    """Reports new decisions of a workspace, how far each has got, and forged files. It may run in a worker."""

    def __init__(self, desk: DecisionService, clock: Callable[[], float] = time.time):
        self.desk = desk
        self.notice: str | None = None
        self._clock = clock
        self._known: dict[str, Decision] = {}
        self._forged: dict[str, str] = {}
        self._acted: set[str] = set()  # ids of decisions that were carried out, but whose receipt is unwritten
        self._look_at = -math.inf
        self._looked: list[tuple[int, ...] | None] = []
        self._looks_again = False

    def read_changes(self, *, writes: bool = True) -> list[Event]:
        """Return the changes since the last call. If `writes`, deliver undelivered decisions first. Blocks."""
        self._look_at = time.monotonic() + _LOOK_SECONDS
        try:
            mirror, chain = self.desk.update_mirror(writes=writes), self.desk.read()
            records = [entry.record for entry in chain.latest.values()]
            receipts, own = self.desk.receipts(records), self.desk.keys.trust().signers
        except DecisionError as error:
            self.notice = str(error)
            return []
        self.notice = chain.problems[0].message if chain.problems else None
        events: list[Event] = []
        for record in records:
            waits = f"{NOT_DELIVERED}{mirror.reason}" if writes and record.decision_id in mirror.pending else ""
            decision = decision_of(record, receipts[record.decision_id], waits)
            if decision.asked_by and decision.asked_by not in own:
                decision = replace(decision, by_other=True)
            if self._known.get(record.decision_id) != decision:
                self._known[record.decision_id] = decision
                events.append(Decided(0, decision.at, decision.decision_id, decision))
        foreign = {f"{MIRROR}/{name}": why for name, _, why in mirror.foreign[:_MOST_FORGED]}
        events += [Gone(0, self._clock(), path) for path in self._forged.keys() - foreign]
        new = (path for path, why in foreign.items() if self._forged.get(path) != why)
        events += [Unreadable(0, self._clock(), path, forgery_finding(foreign[path])) for path in new]
        self._forged = foreign
        return events

    def queue_acted(self, tasks: Iterable[Task]) -> None:
        """Remember the decisions about these tasks that were carried out. The next poll writes their receipts."""
        for task in tasks:
            decisions = (one for attempt in task.attempts for one in attempt.decisions)
            self._acted.update(one.decision_id for one in decisions if one.receipt.stage is Stage.ACTED)
            self._acted.update(one.request_id for one in task.requests if one.stage is RequestStage.ACTED)

    def poll_soon(self) -> None:
        """Make the worker poll now and read the changes. Any thread may call this."""
        self._look_at = -math.inf
        self.wake()

    def poll(self) -> list[Event]:
        """Write the queued receipts. Return the changes if a directory changed or some time has passed. Blocks."""
        while self._acted:
            known = self._known.get(self._acted.pop())
            if known and known.receipt.stage is not Stage.ACTED:
                saw = "its program's record" if known.request_id else "the next attempt"
                try:
                    self.desk.record_acted(known, f"agentwatch saw {saw}")
                except DecisionError as error:
                    self.notice = str(error)
        places = self.desk.change_stamps()
        has_changed = places != self._looked
        if not (has_changed or self._looks_again or time.monotonic() >= self._look_at):
            return []
        # File systems have coarse clocks: a second new file may not change the stamps. So the next poll reads again.
        self._looked, self._looks_again = places, has_changed
        return self.read_changes()


def require_answerable(request: Request, draft: Record, why_gone: Callable[[], str | None]) -> None:
    """Raise NotAllowedError if a request does not take this answer, or RequestGoneError if nobody waits for it."""
    if why := why_unanswerable(request, draft.action, draft.params, draft.note):
        raise NotAllowedError(f"not recorded: {why}")
    if why := why_gone() or ("its time is over" if draft.is_expired(parse_time(draft.created_at)) else None):
        raise RequestGoneError(f"not recorded: {why}")


def return_digest(workspace: Path, relative: str | None, max_bytes: int = MAX_BYTES) -> str | None:
    """Return the current sha256 of a return's file. Return None if there is no file. Raise ReturnChangedError if the
    file cannot be read."""
    if not relative:
        return None
    try:
        return read_file(os.path.realpath(workspace), system_name(relative), max_bytes).digest
    except FileNotFoundError:
        return None
    except FileRefusedError as error:
        raise ReturnChangedError(f"not recorded: the return cannot be read again: {error.message}") from error


def operator_name() -> str:
    """Return the operator's name for decisions: the user name in the operating system."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # In some containers a user id has no name.
        return f"uid {os.getuid()}"
