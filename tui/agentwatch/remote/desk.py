"""Records decisions about workspaces on other machines (hosts). This module has the code for both machines.

`RemoteDesk` runs on the operator's machine. It signs a decision, and asks the host to record it. `record_signed` runs
on the host. It records or refuses the decision. Only the host has a ledger of these decisions.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agentwatch.decisions import policy
from agentwatch.decisions.delivery import NOT_DELIVERED
from agentwatch.decisions.envelope import (
    EnvelopeError,
    PublicKey,
    TrustedKey,
    UnsignedError,
    UntrustedError,
    open_envelope,
)
from agentwatch.decisions.errors import (
    DecisionError,
    KeyProblemError,
    NotAllowedError,
    NotRecordedError,
    RecordError,
    RequestGoneError,
    ReturnChangedError,
    UncertainError,
    UnreachableError,
    reason,
    remedy,
)
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import ChainEntry, DecisionMade, file_name
from agentwatch.decisions.record import (
    AHEAD,
    ANSWER_LIFETIME,
    AlreadyDecidedError,
    Record,
    SignedRequest,
    format_time,
    make_draft,
    parse,
    parse_time,
    read_request,
    sign_request,
    to_asked,
)
from agentwatch.decisions.service import DecisionService, operator_name, require_answerable
from agentwatch.disk import Directory
from agentwatch.monitor import Monitor
from agentwatch.remote.host import RemoteHost
from agentwatch.remote.protocol import Outcome, Result
from agentwatch.state import workspace_id
from agentwatch.text import quote_text

_IN_TIME = timedelta(minutes=5)  # a host refuses a decision that was signed longer ago


_ERRORS = {
    Outcome.RETURN_CHANGED: ReturnChangedError,
    Outcome.GONE: RequestGoneError,
    Outcome.NOT_ALLOWED: NotAllowedError,
}


class RemoteDesk(DecisionService):
    """Records decisions about a workspace of a host. `workspace_id` returns its id on the host, or "" if unknown."""

    # An answer for a host expires sooner than a local answer, because the clock of the host may be behind.
    answer_lifetime = ANSWER_LIFETIME - AHEAD

    def __init__(self, host: RemoteHost, workspace_id: Callable[[], str], place: Path, **more: Any):
        # The ledger is on the host, not at `place`.
        super().__init__(place, **more)
        self._host = host
        self._workspace_id = workspace_id
        self._uncertain: set[str] = set()  # the ids of decisions that were sent, but not answered yet

    @property
    def workspace_id(self) -> str:
        return self._workspace_id()

    @property
    def unreachable(self) -> str | None:
        if self._host.lost_since is None and self._host.key and self.workspace_id:
            return self._host.refusal or None
        return f"{self._label} {self._host.why_lost}; nothing can be decided there"

    def now(self) -> datetime:
        return datetime.fromtimestamp(int(self._host.now), UTC)

    def record(self, draft: Record, find_digest: Callable[[], str | None]) -> DecisionMade:
        """Sign a decision, and let the host record it. Return the recorded decision. Blocks.
        Raise UncertainError if nobody knows whether it is recorded. Any other error means that it is not recorded."""
        if draft.request:
            find_digest()
        host, decision_id = self._host.key, draft.decision_id
        if (why := self.unreachable) is not None or host is None:
            raise (
                self._uncertain_error(draft, f"{why}; ")
                if decision_id in self._uncertain
                else UnreachableError(f"not recorded: {why}")
            )
        ends = format_time(parse_time(draft.created_at) + _IN_TIME)
        request = SignedRequest(host.keyid, min(ends, draft.expires_at or ends), draft)
        text = sign_request(request, self.load_key())
        self._uncertain.add(decision_id)
        result = self._host.decide(self.workspace_id, text)
        made = self._judge_result(text, request.asked, result, host) if result else None
        if made is None:
            raise self._uncertain_error(draft, f"{result.words}; " if result else "")
        self._uncertain.discard(decision_id)
        if isinstance(made, DecisionError):
            raise made
        return made

    def _judge_result(
        self, text: str, asked: Record, result: Result, host: PublicKey
    ) -> DecisionMade | DecisionError | None:
        """Return the recorded decision, or an error if the host refused it. Return None if the outcome is uncertain."""
        outcome, entry = result.outcome, _verified_entry(result, host)
        if not outcome.is_final:
            return None
        if outcome is Outcome.NOT_TRUSTED:
            there = f"on {self._label}: agentwatch keys trust {self.keys.show().text} --name NAME"
            here = "or here, where ssh reaches it: agentwatch keys send HOST"
            return NotRecordedError(f"{result.words}; {there}; {here}")
        if outcome is Outcome.DECIDED_OTHERWISE and entry:
            return AlreadyDecidedError(entry.record)
        if outcome is not Outcome.RECORDED:
            return _ERRORS.get(outcome, NotRecordedError)(result.words)
        if entry is None or not is_same_decision(entry.record, asked):
            return None
        if entry.record.signed_request != text:
            return DecisionMade(entry, fresh=False)
        return DecisionMade(entry, fresh=True, doubt=result.words.partition("; ")[2] or None)

    def _uncertain_error(self, draft: Record, words: str) -> UncertainError:
        about = f"{draft.action} of {quote_text(draft.task_id, 100)}"
        return UncertainError(
            f"{words}nobody knows yet whether {about} is recorded: {self._label} has not said so; to decide the same"
            " again is safe, it counts once"
        )

    @property
    def _label(self) -> str:
        return quote_text(self._host.label, 60)


def is_same_decision(one: Record, other: Record) -> bool:
    """Tell whether two decisions have the same subject, action, parameters and note."""
    return all(getattr(one, name) == getattr(other, name) for name in ("subject", "action", "params", "note"))


def _verified_entry(result: Result, host: PublicKey) -> ChainEntry | None:
    """Return the decision in a result. Return None if there is no decision, or if the host has not signed it."""
    if result.record is None:
        return None
    data = result.record.encode(errors="replace")
    try:
        payload, keyid = open_envelope(data, {host.keyid: TrustedKey(host)})
        record = parse(payload)
    except (EnvelopeError, RecordError):
        return None
    return ChainEntry(record, file_name(record), hashlib.sha256(data).hexdigest(), keyid)


# On the host

# Clocks differ a bit, so a decision may seem to be signed shortly before the host trusted the key.
_ROUNDING = timedelta(seconds=5)
_REFUSED = "refused"
_LARGEST = 64 * 1024

# The errors that mean that a decision is refused for good, and their outcomes. Other errors are about keys and disks.
_OUTCOMES: dict[type[DecisionError], Outcome] = {
    AlreadyDecidedError: Outcome.DECIDED_OTHERWISE,
    ReturnChangedError: Outcome.RETURN_CHANGED,
    RequestGoneError: Outcome.GONE,
    NotAllowedError: Outcome.NOT_ALLOWED,
    RecordError: Outcome.REFUSED,
}


class RefusedError(DecisionError):
    """The host refuses a decision for good. If it has recorded a different one, `record` is the text of that file."""

    record: str | None = None

    def __init__(self, outcome: Outcome, words: str, decision_id: str = ""):
        super().__init__(f"not recorded: {words.removeprefix('not recorded: ')}")
        self.outcome, self.decision_id = outcome, decision_id


class _OpenedRequest(NamedTuple):
    """A message with a signed decision. `draft` is the decision that the host records if it accepts the message."""

    text: str
    request: SignedRequest
    draft: Record


async def record_signed(monitor: Monitor, text: str, now: datetime) -> Result:
    """Record an operator's signed decision in the ledger of the monitor's workspace. An error becomes an outcome.
    Call this on the event loop of the monitor."""
    decision_id, record = "", None
    try:
        made, record = await _record_request(monitor, text, now)
        decision_id = made.record.decision_id
        undelivered = made.undelivered and f"{NOT_DELIVERED}{made.undelivered}"
        outcome, words = Outcome.RECORDED, "; ".join(filter(None, ("recorded", made.doubt, undelivered)))
    except RefusedError as error:
        outcome, words, decision_id, record = error.outcome, str(error), error.decision_id, error.record
    except DecisionError as error:
        outcome, words = Outcome.FAILED, str(error)
    except OSError as error:
        outcome, words = Outcome.FAILED, f"not recorded so far: {reason(error)}; {remedy(error)} on the host"
    return Result(
        workspace=workspace_id(monitor.workspace),
        decision_id=decision_id,
        request_sha256=_digest(text),
        outcome=outcome,
        words=words,
        record=record,
    )


async def _record_request(monitor: Monitor, text: str, now: datetime) -> tuple[DecisionMade, str]:
    """Record an operator's signed decision if it is not recorded yet. Return it and the text of its file."""
    watcher = monitor.decision_watcher
    if watcher is None or isinstance(desk := watcher.desk, RemoteDesk):
        raise DecisionError("not recorded: there is no ledger of this workspace here")
    signed = await asyncio.to_thread(_open_request, desk, text, now)
    made = await asyncio.to_thread(_find_recorded, desk, signed)
    if made is None:
        try:
            made = await asyncio.to_thread(_prepare_recording(monitor, desk, signed))
        except tuple(_OUTCOMES) as error:
            refused = RefusedError(_OUTCOMES[type(error)], str(error), signed.draft.decision_id)
            made = await asyncio.to_thread(_refuse, desk, signed, refused)
        finally:
            watcher.poll_soon()
    return made, (await asyncio.to_thread(desk.ledger.read_bytes, made.entry)).decode()


def _prepare_recording(monitor: Monitor, desk: DecisionService, signed: _OpenedRequest) -> Callable[[], DecisionMade]:
    """Check that the current tree allows the decision, or raise an error. Return a function that records the decision.

    The function locks the ledger. Then it checks once more that nothing has changed, and that no other relay of this
    host has refused the decision."""
    draft, subject, inbox = signed.draft, signed.draft.subject, monitor.inbox
    if subject.request is None:
        task = monitor.tree.tasks.get(subject.task_id)
        if task is None:
            raise ReturnChangedError("not recorded: the task is gone")
        if desk.subject(task) != subject:
            raise ReturnChangedError("not recorded: the task has changed since you looked at it; look at it again")
        if (why_not := policy.why_refused(task, draft.action, draft.params, draft.note)) is not None:
            raise NotAllowedError(f"not recorded: {draft.action} is not possible: {why_not}")
        returned = monitor.digest_reader(subject.task_id)

        def read_return() -> str | None:
            _check_refusals(desk, signed)
            return returned()

        return lambda: desk.record(draft, read_return)

    def record_answer() -> DecisionMade:
        # The file of the program's request tells exactly what the program asked.
        request = None if inbox is None else inbox.store.find(signed.draft.decision_id)
        if inbox is None or request is None or to_asked(request) != subject.request:
            raise RequestGoneError("not recorded: nobody waits for this answer")

        def why_gone() -> str | None:
            _check_refusals(desk, signed)
            is_late = request.until is not None and parse_time(draft.created_at).timestamp() >= request.until
            return "its time is over" if is_late else inbox.why_gone(request)

        return desk.record(draft, partial(require_answerable, request, draft, why_gone))

    return record_answer


# The following functions block, so they run in a thread


def _open_request(desk: DecisionService, text: str, now: datetime) -> _OpenedRequest:
    """Verify a signed decision. Raise RefusedError if it is invalid, not trusted, or meant for another workspace."""
    trust, why, outcome = desk.keys.trust(), "", Outcome.NOT_TRUSTED
    try:
        request, keyid = read_request(text, trust)
    except UntrustedError as error:
        raise RefusedError(outcome, "this host does not trust the key that signed it") from error
    except (EnvelopeError, RecordError) as error:
        outcome = outcome if isinstance(error, UnsignedError) else Outcome.REFUSED
        raise RefusedError(outcome, str(error)) from error
    asked, ended = request.asked, trust.requesters[keyid].retired_at
    known = next((one for one in desk.keys.known_keys(Role.OPERATOR) if one.public.keyid == keyid), None)
    if ended is not None:
        why = f"this host does not trust the key that signed it any more, since {ended}"
    elif known is not None and asked.created_at < format_time(parse_time(known.trusted_at) - _ROUNDING):
        why = "it was signed before this host trusted its key; decide again"
    elif request.host != desk.keys.show().keyid:
        outcome = Outcome.REFUSED
        why = "it was signed for another host, or this one has a new key since: trust that, and decide again"
    elif asked.workspace_id != desk.workspace_id:
        outcome, why = Outcome.REFUSED, "it was signed for another workspace"
    if why:
        raise RefusedError(outcome, why)
    if (locked := desk.why_locked()) is not None:
        raise KeyProblemError(f"not recorded so far: {locked}, and nobody can type its passphrase on the host")
    try:
        draft = make_draft(
            *(asked.subject, asked.action, asked.params, asked.note),
            operator=operator_name() if known is None else known.name,
            created_at=now,
            expires_at=None if asked.expires_at is None else parse_time(asked.expires_at),
            signed_request=text,
        )
    except RecordError as error:
        raise RefusedError(Outcome.REFUSED, str(error)) from error
    return _OpenedRequest(text, request, draft)


def _find_recorded(desk: DecisionService, signed: _OpenedRequest) -> DecisionMade | None:
    """Return the decision if it is recorded already, or None. Raise RefusedError if the host refuses to record it."""
    draft, asked, record_by = signed.draft, signed.request.asked, signed.request.record_by
    chain = desk.read()
    if (entry := chain.find_by_request(signed.text)) is not None:
        return DecisionMade(entry, fresh=False)
    _check_refusals(desk, signed)
    entry, now = chain.latest.get(signed.draft.decision_id), draft.created_at
    held = entry.record if entry and not entry.record.is_expired(parse_time(asked.created_at)) else None
    if entry and held and held.created_at <= record_by and is_same_decision(held, asked):
        # The same decision was recorded in time, so this one succeeds, too, even if it comes too late.
        return DecisionMade(entry, fresh=False)
    if now > record_by or asked.created_at > format_time(parse_time(now) + AHEAD):
        times = f"it was signed at {asked.created_at}, and its time is over at {record_by}"
        outcome, why = Outcome.EXPIRED, f"{times}; it is {now} on the host: decide again, or set the clocks"
    elif held and not held.is_expired(parse_time(now)):
        outcome, why = Outcome.DECIDED_OTHERWISE, str(AlreadyDecidedError(held))
    else:
        return None
    return _refuse(desk, signed, RefusedError(outcome, why, signed.draft.decision_id))


# A refusal is final: the operator was told of it, but the network may deliver the same message again. A refusal is
# stored in the file `refused/<sha256 of the message>.json`. The ledger is locked while this file is written.


def _check_refusals(desk: DecisionService, signed: _OpenedRequest) -> None:
    try:
        with Directory.open(desk.state / _REFUSED, desk.disk) as directory:
            data = directory.read(f"{_digest(signed.text)}.json", _LARGEST)
    except FileNotFoundError:
        return
    # If this file is damaged, the decision is still refused.
    outcome, words = Outcome.REFUSED, "it was refused before"
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        fields = json.loads(data)
        outcome, words = Outcome(fields["outcome"]), str(fields["words"])
    raise RefusedError(outcome, words, signed.draft.decision_id)


def _refuse(desk: DecisionService, signed: _OpenedRequest, refused: RefusedError) -> DecisionMade:
    """Store a refusal and raise it. But if another relay has recorded the decision before, return the decision."""
    fields = {"version": 1, "until": signed.request.record_by, "outcome": refused.outcome, "words": str(refused)}

    def write() -> None:
        with Directory.open_or_make(desk.state / _REFUSED, desk.disk) as directory:
            directory.replace(f"{_digest(signed.text)}.json", json.dumps(fields).encode())

    trust = desk.keys.trust()
    if (entry := desk.ledger.note_refusal(signed.text, trust, write)) is not None:
        return DecisionMade(entry, fresh=False)
    if refused.outcome is Outcome.DECIDED_OTHERWISE:
        held = desk.ledger.read(trust).latest.get(signed.draft.decision_id)
        refused.record = desk.ledger.read_bytes(held).decode() if held else None
    raise refused


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
