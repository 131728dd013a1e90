"""The desk of an operator whose workspace is on a host: signs here, asks there, and says what is true then."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.decisions.envelope import EnvelopeError, PublicKey, TrustedKey, opened
from agentwatch.decisions.errors import (
    DecisionError,
    NotAllowedError,
    NotRecordedError,
    RecordError,
    RequestGoneError,
    ReturnChangedError,
    UncertainError,
    UnreachableError,
)
from agentwatch.decisions.ledger import ChainEntry, DecisionMade, name_of
from agentwatch.decisions.record import (
    AHEAD,
    ANSWER_LIFETIME,
    AlreadyDecidedError,
    Record,
    SignedRequest,
    parse,
    sign,
    time_of,
    written,
)
from agentwatch.decisions.service import LIFETIME, DecisionService
from agentwatch.disk import DISK, Disk
from agentwatch.remote.log import weight
from agentwatch.remote.protocol import Outcome, Result
from agentwatch.remote.texts import say_until
from agentwatch.state import state_directory
from agentwatch.text import quoted
from agentwatch.view.times import ago, clock

if TYPE_CHECKING:
    from agentwatch.delegation.request import Request
    from agentwatch.remote.host import RemoteHost

ANSWER_SECONDS: Final = 10.0
"""So long somebody waits for the host; then nobody knows."""
_AGAIN_SECONDS: Final = 2.0
_IN_TIME: Final = timedelta(minutes=5)
"""So long the host may record what is sent."""
_LARGEST_RESULT: Final = 4 * 1024 * 1024
"""Bytes that the result of a decision takes: more than the largest envelope that is read."""


class _Signed(NamedTuple):
    """A decision that was signed for the host."""

    text: str
    request: SignedRequest

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


_ERRORS: Final[Mapping[Outcome, type[DecisionError]]] = {
    Outcome.RETURN_CHANGED: ReturnChangedError,
    Outcome.GONE: RequestGoneError,
    Outcome.NOT_ALLOWED: NotAllowedError,
}


class RemoteDesk(DecisionService):
    """The decisions about one workspace of a host, as `DecisionService` says.

    `workspace_id` gives the host's id of the workspace, "" before that is known; `place` is what stands for its path
    here. A decision that nobody has answered is decided again by the operator, and counts once.
    """

    # The host's clock may be behind: by it, too, the answer must not hold for longer than answers do.
    answer_lifetime = ANSWER_LIFETIME - AHEAD

    def __init__(
        self,
        host: RemoteHost,
        workspace_id: Callable[[], str],
        place: Path,
        *,
        lifetime: timedelta | None = LIFETIME,
        passphrase: Callable[[], str] | None = None,
        state: Path | None = None,
        configuration: Path | None = None,
        disk: Disk = DISK,
    ) -> None:
        state = state or state_directory(place)
        super().__init__(state, passphrase=passphrase, lifetime=lifetime, configuration=configuration, disk=disk)
        self._host = host
        self._workspace_id = workspace_id
        self._news = threading.Condition()
        self._awaited: dict[str, Result | None] = {}
        """By the sha256 of what was signed, what the host has said of it, as long as somebody waits for that."""
        self._uncertain: dict[str, _Signed] = {}
        """By decision, what was sent and not answered."""
        host.on_result.append(self.receive)

    @property
    def workspace_id(self) -> str:
        return self._workspace_id()

    @property
    def unreachable(self) -> str | None:
        since = self._host.lost_since
        if since is None and self._host.key is not None and self.workspace_id:
            return None
        when = f" (last heard {ago(since, time.time())})" if since is not None and self._host.key is not None else ""
        return f"{self._label} cannot be reached{when}: {self._host.why}; nothing can be decided there"

    def now(self) -> datetime:
        return datetime.fromtimestamp(int(self._host.now), UTC)

    def record(self, draft: Record, returned: Callable[[], str | None]) -> DecisionMade:  # noqa: ARG002  the host looks
        """Have the host record a decision. Raises DecisionError: UnreachableError where it was not sent, UncertainError
        where nobody knows whether it is recorded."""
        host, decision_id = self._host.key, draft.decision_id
        signed = before = self._uncertain.get(decision_id)
        # The very same, still in its time, goes on its way again.
        if signed is not None and not (
            host is not None
            and signed.request.host == host.keyid
            and says_the_same(signed.request.asked, draft)
            and draft.created_at <= signed.request.record_by
        ):
            signed = None
        if (why := self.unreachable) is not None or host is None:
            raise self._doubt(before, f"{why}; ") if before else UnreachableError(f"not recorded: {why}")
        if signed is None:
            ends = written(time_of(draft.created_at) + _IN_TIME)
            request = SignedRequest(host.keyid, min(ends, draft.expires_at or ends), draft)
            signed = _Signed(sign(request, self.key()), request)
        self._uncertain[decision_id] = signed
        result = self._exchange(signed)
        made = self._outcome(signed, result, host) if result is not None else None
        if made is None:
            raise self._doubt(signed, f"{result.words}; " if result is not None else "")
        self._uncertain.pop(decision_id, None)
        if isinstance(made, DecisionError):
            raise made
        return made

    def record_answer(self, request: Request, draft: Record, gone: Callable[[], str | None]) -> DecisionMade:  # noqa: ARG002
        """Have the host record the answer to a request of a program there. Raises as `record` does."""
        if (why := gone()) is not None:
            raise RequestGoneError(f"not recorded: {why}")
        return self.record(draft, lambda: None)

    # The host

    def receive(self, result: Result) -> None:
        """The host has said the outcome of something. Any thread may call it; it never blocks."""
        with self._news:
            is_awaited = result.request_sha256 in self._awaited and result.workspace == self.workspace_id
            if is_awaited and weight(result) <= _LARGEST_RESULT:
                self._awaited[result.request_sha256] = result
                self._news.notify_all()

    def _exchange(self, signed: _Signed) -> Result | None:
        """Send it, and wait for what the host says; None where it says nothing."""
        sha256 = signed.sha256
        self._awaited[sha256] = None
        try:
            say_until(
                self._news,
                lambda: self._host.decide(self.workspace_id, signed.text),
                lambda: self._awaited.get(sha256) is not None,
                ANSWER_SECONDS,
                _AGAIN_SECONDS,
            )
            return self._awaited.get(sha256)
        finally:
            self._awaited.pop(sha256, None)

    def _outcome(self, signed: _Signed, result: Result, host: PublicKey) -> DecisionMade | DecisionError | None:
        """The decision that the host has recorded, the error where it has refused it for good, None where that is not
        certain."""
        outcome = result.outcome
        if not outcome.is_final:
            return None
        entry = _entry(result, host)
        if outcome is Outcome.NOT_TRUSTED:
            there = f"on {self._label}: agentwatch keys trust {self.keys.show().text} --name NAME"
            here = "or here, where ssh reaches it: agentwatch keys send HOST"
            return NotRecordedError(f"{result.words}; {there}; {here}")
        if outcome is Outcome.DECIDED_OTHERWISE and entry is not None:
            return AlreadyDecidedError(entry.record)
        if outcome is not Outcome.RECORDED:
            return _ERRORS.get(outcome, NotRecordedError)(result.words)
        if entry is None or not says_the_same(entry.record, signed.request.asked):
            return None
        is_fresh = entry.record.signed_request == signed.text
        return DecisionMade(
            entry, fresh=is_fresh, doubt=(result.words.partition("; ")[2] or None) if is_fresh else None
        )

    def _doubt(self, signed: _Signed, words: str) -> UncertainError:
        """Says that nobody knows whether something that was sent is recorded."""
        asked, now = signed.request.asked, time.time()
        until = clock(time_of(signed.request.record_by).timestamp() - (self._host.now - now), now)
        return UncertainError(
            f"{words}nobody knows yet whether {asked.action} of {quoted(asked.task_id, 100)} is recorded: {self._label}"
            f" has not said so, and may record it until {until}; to decide the same again is safe, it counts once"
        )

    @property
    def _label(self) -> str:
        return quoted(self._host.label, 60)


def says_the_same(one: Record, other: Record) -> bool:
    """Whether the same is decided about the same."""
    return all(getattr(one, name) == getattr(other, name) for name in ("subject", "action", "params", "note"))


def _entry(result: Result, host: PublicKey) -> ChainEntry | None:
    """The decision that came with it, if the host's key has signed it."""
    if result.record is None:
        return None
    data = result.record.encode(errors="replace")
    try:
        payload, keyid = opened(data, {host.keyid: TrustedKey(host)})
        record = parse(payload)
    except (EnvelopeError, RecordError):
        return None
    return ChainEntry(record, name_of(record), hashlib.sha256(data).hexdigest(), keyid)
