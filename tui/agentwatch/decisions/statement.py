"""What can be shown of a task to somebody else: an in-toto Statement about its handoff and its return, signed.

Format: https://github.com/in-toto/attestation/tree/main/spec/v1. The envelope is that of the decisions, so the same key
signs it, and one spelling of it is accepted. A file of several is a bundle: an envelope a line.

The subject is the handoff and the return of the latest attempt alone: others match a statement by their digests, and
what is said of a task is not said of what failed before. The digests of earlier attempts stand in the predicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from agentwatch.decisions.chain import ChainEntry
from agentwatch.decisions.envelope import STATEMENT_TYPE, Trust, UntrustedError, opened
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.record import LARGEST_SIGNED, time_of, written
from agentwatch.decisions.strict import compact, hex_digits, named, parsed, positive
from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Task

TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:agentwatch:task:v1"
"""Of the predicate as it stands here. Keys are added without a new version, as in-toto has it."""


class Statement(NamedTuple):
    """What a statement says, as far as it can be held against a workspace. Texts are foreign."""

    task_id: str
    attempt: int
    state: str
    contradicted: bool
    made_at: str
    workspace_id: str
    subject: tuple[tuple[str, str], ...]
    """The name and the sha256 of each handoff and return that it is about."""


def subject_of(task: Task) -> tuple[dict[str, Any], ...]:
    """The handoff and the return of the latest attempt; empty where nobody wrote either."""
    latest = task.latest
    if latest is None:
        return ()
    parts = (("handoff", latest.handoff), ("return", latest.returned))
    return tuple({"name": _name(one, part), "digest": {"sha256": one.digest}} for part, one in parts if one is not None)


def statement_of(
    task: Mapping[str, Any],
    subject: Sequence[Mapping[str, Any]],
    decided: Sequence[ChainEntry],
    *,
    complete: bool,
    workspace_id: str,
    version: str,
    now: datetime,
) -> bytes:
    """The payload that says how a task stands `now`. `task` is that of `tree --json`, `decided` what the ledger
    holds about it; `complete`: all could be read. Half a character, which no other reader would take, becomes a `?`.
    Raises RecordError where it is too large.
    """
    whole = {
        "_type": TYPE,
        "subject": list(subject),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "agentwatch": version,
            "made_at": written(now),
            "workspace_id": workspace_id,
            "complete": complete,
            "task_id": task["task_id"],
            "parent_id": task["parent_id"],
            "title": task["title"],
            "agent": task["agent"],
            "objective": task["objective"],
            "state": task["state"],
            "reported_state": task["reported_state"],
            "contract": task["contract"],
            "summary": task["summary"],
            "why": task["why"],
            "needs_operator": task["needs_operator"],
            "ask": task["ask"],
            "contradicted": task["contradicted"],
            "attempt": task["attempt"],
            "error_code": task["error_code"],
            "error_message": task["error_message"],
            "blockers": task["blockers"],
            "limitations": task["limitations"],
            "runtime": task["runtime"],
            "findings": task["findings"],
            "claims": task["claims"],
            "unsaid": task["unsaid"],
            "attempts": [_attempt(one) for one in task["attempts"]],
            "decisions": [_decided(one) for one in decided],
        },
    }
    payload = compact(whole).encode("utf-8", "replace")
    if len(payload) > LARGEST_SIGNED:
        raise RecordError(f"a statement about it has {len(payload):,} bytes, and {LARGEST_SIGNED:,} are read")
    return payload


def verified(data: bytes, trust: Trust) -> tuple[Statement, str]:
    """What an envelope states, and the key that signed it (its id). Raises EnvelopeError and RecordError."""
    payload, keyid = opened(data, trust.public, STATEMENT_TYPE)
    statement = _parsed(payload)
    why = trust.why_not(keyid, statement.made_at)
    if why is not None:
        raise UntrustedError(why)
    return statement, keyid


def is_statement(data: bytes) -> bool:
    """Whether something in it says of itself that it is a statement. Nothing is believed, or parsed, for that."""
    return f'","payloadType":"{STATEMENT_TYPE}",'.encode() in data


def _parsed(payload: bytes) -> Statement:
    """What in-toto does not know, and a later agentwatch adds, is passed over: the key has signed it, too."""
    try:
        document: Any = parsed(payload)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is signed, and no JSON as a statement has it ({error})") from error
    for key, value in (("_type", TYPE), ("predicateType", PREDICATE_TYPE)):
        found = document.get(key) if isinstance(document, dict) else None
        if found != value:
            other = f"its {key} is {str(found)[:80]!r}, and not {value}"
            raise RecordError(f"it is signed, and no statement that is known here: {other}; update agentwatch")
    told, artifacts = document.get("predicate"), document.get("subject")
    if not isinstance(told, dict) or not isinstance(artifacts, list) or not artifacts:
        raise RecordError("it is signed, and states nothing: the predicate or the subject is missing")
    for name in ("task_id", "state", "workspace_id"):
        named(name, told.get(name))
    positive("attempt", told.get("attempt"))
    if not isinstance(told.get("contradicted"), bool):
        raise RecordError("it is signed, and does not say whether the task is contradicted")
    try:
        time_of(told["made_at"])
        subject = tuple((one["name"], one["digest"]["sha256"]) for one in artifacts)
    except (LookupError, TypeError, ValueError) as error:
        raise RecordError("it is signed, and made_at or the subject is not as a statement has it") from error
    for name, digest in subject:
        named("subject.name", name)
        hex_digits(64, "subject.digest.sha256", digest)
    return Statement(**{name: told[name] for name in Statement._fields if name != "subject"}, subject=subject)


def _name(version: Seen, part: str) -> str:
    """In a session, both have the key of the run for a path."""
    return f"{version.path}#{part}" if version.stored else version.path


def _attempt(one: Mapping[str, Any]) -> dict[str, Any]:
    """Without the session's place on this machine."""
    return {
        "number": one["number"],
        "state": one["state"],
        "session_id": one["session_id"],
        "handoff_path": one["handoff_path"],
        "handoff_sha256": one["handoff_sha256"],
        "return_path": one["return_path"],
        "return_sha256": one["return_sha256"],
        "started_at": one["started_at"],
        "ended_at": one["ended_at"],
    }


def _decided(entry: ChainEntry) -> dict[str, Any]:
    """A decision of the ledger, so that it can be recognised by whoever is shown its file."""
    record = entry.record
    return {
        "decision_id": record.decision_id,
        "sha256": entry.sha256,
        "keyid": entry.keyid,
        "attempt": record.attempt,
        "action": record.action,
        "of_request": record.request is not None,
        "note": record.note,
        "operator": record.operator,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "handoff_sha256": record.handoff_sha256,
        "return_sha256": record.return_sha256,
    }
