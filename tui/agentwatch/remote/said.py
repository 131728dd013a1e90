"""What a host has said of a decision that it was asked for, verified, and as a desk says it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from agentwatch.decisions.envelope import EnvelopeError, PublicKey, opened
from agentwatch.decisions.errors import (
    DecisionError,
    NotAllowedError,
    NotRecordedError,
    RecordError,
    RequestGoneError,
    ReturnChangedError,
    UncertainError,
)
from agentwatch.decisions.ledger import ChainEntry, DecisionMade, Draft, name_of
from agentwatch.decisions.record import AlreadyDecidedError, Record, parse
from agentwatch.remote.frames import Result
from agentwatch.remote.outbox import Letter
from agentwatch.remote.outcomes import Outcome


class Host(Protocol):
    """What has to be known of the host, and be sent there."""

    on_result: list[Callable[[Result], None]]
    """What is called with all that it says of decisions, in any thread."""

    @property
    def key(self) -> PublicKey | None:
        """What it signs with, as far as that is known."""

    @property
    def label(self) -> str:
        """What the operator calls it."""

    @property
    def now(self) -> float:
        """Its time, as far as it is known; epoch seconds."""

    @property
    def lost_since(self) -> float | None:
        """Since when it cannot be reached, by the time of here; None while it can."""

    @property
    def why(self) -> str:
        """Why it cannot."""

    def decide(self, workspace: str, request: str) -> None:
        """Send what was signed; it may be lost."""


class NotTrustedError(NotRecordedError):
    """The host does not trust the key of this operator."""


_ERRORS: Final[Mapping[Outcome, type[DecisionError]]] = {
    Outcome.RETURN_CHANGED: ReturnChangedError,
    Outcome.GONE: RequestGoneError,
    Outcome.NOT_ALLOWED: NotAllowedError,
    Outcome.NOT_TRUSTED: NotTrustedError,
}


def outcome_of(letter: Letter, result: Result, host: PublicKey, label: str) -> DecisionMade:
    """The decision that the host with this key has recorded. Raises UncertainError where nobody knows yet, and another
    DecisionError where the host has refused it for good."""
    try:
        outcome = Outcome(result.outcome)
    except ValueError:
        # A later version says more than is known here; what holds shows in the tree.
        outcome = Outcome.FAILED
    if not outcome.is_final:
        raise UncertainError(result.words)
    entry = _entry(result, host)
    if outcome is not Outcome.RECORDED:
        if outcome is Outcome.DECIDED_OTHERWISE and entry is not None:
            raise AlreadyDecidedError(entry.record)
        raise _ERRORS.get(outcome, NotRecordedError)(result.words)
    if entry is None or not says_the_same(entry.record, letter.request.asked):
        raise UncertainError(f"{label} says that it is recorded, and does not show it")
    if entry.record.signed_request != letter.text:
        return DecisionMade(entry, fresh=False)
    return DecisionMade(entry, fresh=True, doubt=result.words.partition("; ")[2] or None)


def says_the_same(one: Record | Draft, other: Record | Draft) -> bool:
    """Whether the same is decided about the same."""
    return all(getattr(one, name) == getattr(other, name) for name in ("subject", "action", "params", "note"))


def _entry(result: Result, host: PublicKey) -> ChainEntry | None:
    """The decision that came with it, if the host's key has signed it."""
    if result.record is None:
        return None
    data = result.record.encode(errors="replace")
    try:
        payload, keyid = opened(data, {host.keyid: host})
        record = parse(payload)
    except (EnvelopeError, RecordError):
        return None
    return ChainEntry(record, name_of(record), hashlib.sha256(data).hexdigest(), keyid)
