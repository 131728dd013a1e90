"""The desk of a host: records decisions that operators on other machines have signed, or says why not. The ledger alone
decides. Each is answered once: delivered again, it gets the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.decisions import policy
from agentwatch.decisions.delivery import NOT_DELIVERED
from agentwatch.decisions.envelope import EnvelopeError, UnsignedError, UntrustedError
from agentwatch.decisions.errors import (
    DecisionError,
    KeyProblemError,
    NotAllowedError,
    RecordError,
    RequestGoneError,
    ReturnChangedError,
    reason,
    remedy,
)
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import (
    AHEAD,
    AlreadyDecidedError,
    Record,
    SignedRequest,
    asked_of,
    draft_of,
    read_request,
    time_of,
    written,
)
from agentwatch.decisions.service import LocalService, operator_name
from agentwatch.disk import DISK, Disk, PrivateDirectory
from agentwatch.remote.desk import says_the_same
from agentwatch.remote.protocol import Outcome, Result
from agentwatch.state import workspace_id

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionWatcher
    from agentwatch.monitor import Monitor

_START_SECONDS: Final = 20.0
"""So long is waited for a monitor that still reads its workspace."""
_PAUSE_SECONDS: Final = 0.05
_ROUNDING: Final = timedelta(seconds=5)
"""What is signed right after its key was trusted may seem to be from before: the host's clock is estimated there."""

_OUTCOMES: Final[dict[type[DecisionError], Outcome]] = {
    AlreadyDecidedError: Outcome.DECIDED_OTHERWISE,
    ReturnChangedError: Outcome.RETURN_CHANGED,
    RequestGoneError: Outcome.GONE,
    NotAllowedError: Outcome.NOT_ALLOWED,
    RecordError: Outcome.REFUSED,
}
"""All other errors are about keys and disks."""

_OTHER_HOST: Final = "it was signed for another host, or this one has a new key since: trust that, and decide again"


_NAME: Final = "refused"
_LARGEST: Final = 64 * 1024
_MOST: Final = 1_000
"""Refusals from which on those are removed that are not needed any more."""
_KEPT: Final = timedelta(days=1)
"""So long after its time is over: a clock may be set back."""


class RefusedError(DecisionError):
    """It is not recorded; `record` is the file of the decision that holds instead, where there is one."""

    def __init__(self, outcome: Outcome, words: str, decision_id: str = "", record: str | None = None) -> None:
        super().__init__(words)
        self.outcome, self.decision_id, self.record = outcome, decision_id, record


class Refusals:
    """The refusals of one workspace that stay so, a file each, `refused/<sha256 of what was signed>.json` in its state
    directory. They are written while its ledger is locked.

    A network may deliver the same twice, or later, when it would be recorded. Its operator was told that it was not.
    """

    def __init__(self, state: Path, disk: Disk = DISK) -> None:
        self._place = PrivateDirectory(state / _NAME, disk)

    def check(self, sha256: str, decision_id: str = "") -> None:
        """Raises RefusedError where what was signed was refused, by its sha256 in hex; and OSError."""
        try:
            with self._place.open() as directory:
                data = directory.read(f"{sha256}.json", _LARGEST)
        except FileNotFoundError:
            return
        # It was refused, whatever happened to the words since.
        outcome, words = Outcome.REFUSED, "not recorded: it was refused before"
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            fields = json.loads(data)
            outcome, words = Outcome(fields["outcome"]), str(fields["words"])
        raise RefusedError(outcome, words, decision_id)

    def keep(self, sha256: str, refused: RefusedError, until: str, now: datetime) -> None:
        """Write one down, for as long as what was signed can be delivered again. Raises OSError."""
        fields = {"version": 1, "until": until, "outcome": refused.outcome, "words": str(refused)}
        with self._place.make() as directory:
            names = [name for name in directory.names() if not name.startswith(".")]
            for name in names if len(names) >= _MOST else ():
                with suppress(OSError, ValueError, TypeError, KeyError):
                    until_then = time_of(json.loads(directory.read(name, _LARGEST))["until"])
                    if until_then + _KEPT < now:
                        directory.remove(name)
            directory.replace(f"{sha256}.json", json.dumps(fields).encode())


class _Signed(NamedTuple):
    """What was signed, and the decision that the host makes of it."""

    text: str
    sha256: str
    request: SignedRequest
    draft: Record


class RelayDesk:
    """Records in the ledger of the workspace that a monitor watches. To be used on the event loop of that monitor.

    `clock` gives the time of this host, aware.
    """

    def __init__(self, monitor: Monitor, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._monitor = monitor
        self._workspace_id = workspace_id(monitor.workspace)
        self._clock = clock
        self._has_settled = False

    async def record(self, text: str) -> Result:
        """Record what an operator signed, or say why it is not. Never raises. With an outcome that is not final, see
        `Outcome`, it is right to deliver the same again."""
        sha256 = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        decision_id, record = "", None
        try:
            made, record = await self._record(text, sha256)
            decision_id, before = made.record.decision_id, made.record
            said = "recorded"
            if before.signed_request != text:
                said = f"recorded before: {before.operator} said the very same at {before.created_at}"
            undelivered = made.undelivered and f"{NOT_DELIVERED}{made.undelivered}"
            outcome, words = Outcome.RECORDED, "; ".join(filter(None, (said, made.doubt, undelivered)))
        except RefusedError as error:
            outcome, words, decision_id, record = error.outcome, str(error), error.decision_id, error.record
        except DecisionError as error:
            outcome, words = Outcome.FAILED, str(error)
        except OSError as error:
            outcome, words = Outcome.FAILED, f"not recorded so far: {reason(error)}; {remedy(error)} on the host"
        return Result(
            workspace=self._workspace_id,
            decision_id=decision_id,
            request_sha256=sha256,
            outcome=outcome,
            words=words,
            record=record,
        )

    async def _record(self, text: str, sha256: str) -> tuple[DecisionMade, str]:
        clerk = await self._clerk()
        desk = clerk.desk
        if not isinstance(desk, LocalService):
            raise DecisionError("not recorded: this workspace is on another host; ask that one")
        # Before the keys are looked at: a key that is distrusted from now on is trusted at this time.
        signed = await asyncio.to_thread(_opened, desk, text, sha256, self._clock())
        made = await asyncio.to_thread(_known, desk, signed)
        if made is None:
            made = await self._decide(clerk, desk, signed)
        return made, (await asyncio.to_thread(desk.ledger.bytes_of, made.entry)).decode()

    async def _decide(self, clerk: DecisionWatcher, desk: LocalService, signed: _Signed) -> DecisionMade:
        try:
            self._check(desk, signed.draft)
            return await asyncio.to_thread(self._doing(desk, signed))
        except tuple(_OUTCOMES) as error:
            return await asyncio.to_thread(_refuse, desk, signed, RefusedError(_OUTCOMES[type(error)], str(error)))
        finally:
            clerk.look_soon()

    async def _clerk(self) -> DecisionWatcher:
        """What keeps the decisions, once the monitor knows all that was there at first."""
        end = time.monotonic() + _START_SECONDS
        while self._monitor.clerk is None or not (self._has_settled or self._monitor.is_settled):
            if time.monotonic() >= end:
                raise DecisionError("not recorded so far: the relay has just begun, and still reads the workspace")
            await asyncio.sleep(_PAUSE_SECONDS)
        self._has_settled = True
        return self._monitor.clerk

    def _check(self, desk: LocalService, draft: Record) -> None:
        """Raises ReturnChangedError and NotAllowedError where the tree, as it is now, does not allow it."""
        subject = draft.subject
        if subject.request is not None:
            # Who asks, and what, stands in its own file.
            return
        task = self._monitor.tree.tasks.get(subject.task_id)
        if task is None:
            raise ReturnChangedError("not recorded: the task is gone")
        now = desk.subject(task)
        if now != subject:
            names = {"attempt": f"attempt {now.attempt} has begun", "return_sha256": "the return has changed"}
            names |= {"handoff_sha256": "the handoff has changed", "after": "a fitter was called or has ended"}
            why = next(words for name, words in names.items() if getattr(now, name) != getattr(subject, name))
            raise ReturnChangedError(f"not recorded: {why} since you looked at it; look at it again")
        if (why_not := policy.refusal(task, draft.action, draft.params, draft.note)) is not None:
            raise NotAllowedError(f"not recorded: {draft.action} is not possible: {why_not}")

    def _doing(self, desk: LocalService, signed: _Signed) -> Callable[[], DecisionMade]:
        """How it is recorded, if nothing has changed until then. Once the ledger is locked, no other relay refuses it
        meanwhile."""
        draft = signed.draft
        check = partial(Refusals(desk.state, desk.disk).check, signed.sha256, draft.decision_id)
        inbox = self._monitor.inbox
        returned = None if draft.subject.request else self._monitor.returned_now(draft.subject.task_id)

        def now() -> str | None:
            check()
            return returned() if returned is not None else None

        def do() -> DecisionMade:
            if (why := desk.why_locked()) is not None:
                cure = "take the passphrase away with `agentwatch keys passphrase`"
                raise KeyProblemError(
                    f"not recorded so far: {why}, and nobody can type its passphrase on the host: {cure}"
                )
            if returned is not None:
                return desk.record(draft, now)
            request = None if inbox is None else inbox.store.find(draft.decision_id)
            if inbox is None or request is None or asked_of(request) != draft.subject.request:
                raise RequestGoneError("not recorded: nobody waits for this answer")

            def gone() -> str | None:
                check()
                is_late = request.until is not None and time_of(draft.created_at).timestamp() >= request.until
                return "its time is over" if is_late else inbox.gone(request)

            return desk.record_answer(request, draft, gone)

        return do


# What follows waits for the disk, in a thread


def _opened(desk: LocalService, text: str, sha256: str, now: datetime) -> _Signed:
    """The signed request, if its key counts and it is for this ledger. Raises RefusedError; that is not written
    down, for it stays so, or anybody could have sent it."""
    trust = desk.keys.trust()
    try:
        request, keyid = read_request(text, trust)
    except UntrustedError as error:
        raise _not_trusted("this host does not trust the key that signed it") from error
    except UnsignedError as error:
        raise _not_trusted(str(error)) from error
    except (EnvelopeError, RecordError) as error:
        raise RefusedError(Outcome.REFUSED, f"not recorded: {error}") from error
    asked, ended = request.asked, trust.asking[keyid].retired_at
    known = next((one for one in desk.keys.others(Role.OPERATOR) if one.public.keyid == keyid), None)
    if ended is not None:
        raise _not_trusted(f"this host does not trust the key that signed it any more, since {ended}")
    if known is not None and asked.created_at < written(time_of(known.trusted_at) - _ROUNDING):
        if written(now) < known.trusted_at:
            words = f"it is {written(now)} on the host, which trusts your key since {known.trusted_at}: set its clock"
            raise RefusedError(Outcome.EXPIRED, f"not recorded: {words}")
        raise _not_trusted("it was signed before this host trusted its key; decide again")
    own = desk.keys.show().keyid
    if request.host != own or asked.workspace_id != desk.workspace_id:
        words = "it was signed for another host or workspace" if request.host == own else _OTHER_HOST
        raise RefusedError(Outcome.REFUSED, f"not recorded: {words}")
    try:
        draft = draft_of(
            *(asked.subject, asked.action, asked.params, asked.note),
            operator=operator_name() if known is None else known.name,
            created_at=now,
            expires_at=None if asked.expires_at is None else time_of(asked.expires_at),
            signed_request=text,
        )
    except RecordError as error:
        raise RefusedError(Outcome.REFUSED, f"not recorded: {error}") from error
    return _Signed(text, sha256, request, draft)


def _not_trusted(why: str) -> RefusedError:
    return RefusedError(Outcome.NOT_TRUSTED, f"not recorded: {why}")


def _known(desk: LocalService, signed: _Signed) -> DecisionMade | None:
    """The decision that was recorded for it before, None where there is none. Raises RefusedError where it was refused
    before, its time is over, or something else is decided."""
    draft, asked = signed.draft, signed.request.asked
    chain = desk.read()
    if (entry := chain.asked_for(signed.text)) is not None:
        return DecisionMade(entry, fresh=False)
    Refusals(desk.state, desk.disk).check(signed.sha256, asked.decision_id)
    entry, now = chain.latest.get(asked.decision_id), draft.created_at
    held = entry.record if entry is not None and not entry.record.is_expired(time_of(asked.created_at)) else None
    in_time = held is not None and held.created_at <= signed.request.record_by
    if entry is not None and in_time and says_the_same(entry.record, asked):
        # Somebody else has decided the same in time: that is so, also for who asks again much later.
        return DecisionMade(entry, fresh=False)
    if now > signed.request.record_by:
        words = f"its time was over at {signed.request.record_by}, and it is {now} on the host"
        refused = RefusedError(Outcome.EXPIRED, f"not recorded: {words}")
    elif asked.created_at > written(time_of(now) + AHEAD):
        words = f"it is dated {asked.created_at}, and it is {now} on the host: set the clocks"
        refused = RefusedError(Outcome.EXPIRED, f"not recorded: {words}")
    elif held is not None and not held.is_expired(time_of(now)):
        refused = RefusedError(Outcome.DECIDED_OTHERWISE, str(AlreadyDecidedError(held)))
    else:
        return None
    return _refuse(desk, signed, refused)


def _refuse(desk: LocalService, signed: _Signed, refused: RefusedError) -> DecisionMade:
    """Write down that it is refused, for good. Raises RefusedError; gives the decision where it was recorded by
    another relay meanwhile."""
    trust, decision_id = desk.keys.trust(), signed.draft.decision_id
    keep = partial(
        Refusals(desk.state, desk.disk).keep,
        *(signed.sha256, refused, signed.request.record_by, time_of(signed.draft.created_at)),
    )
    entry = desk.ledger.refuse(signed.text, trust, keep)
    if entry is not None:
        return DecisionMade(entry, fresh=False)
    held = desk.ledger.read(trust).latest.get(decision_id) if refused.outcome is Outcome.DECIDED_OTHERWISE else None
    record = desk.ledger.bytes_of(held).decode() if held is not None else None
    raise RefusedError(refused.outcome, str(refused), decision_id, record)
