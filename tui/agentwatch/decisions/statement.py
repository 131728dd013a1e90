"""Statements for others about a task: signed in-toto Statements about its handoff and its return.

Format: https://github.com/in-toto/attestation/tree/main/spec/v1. The envelope is that of the decisions, so the same key
signs it, and one spelling of it is accepted. A file with several of them is a bundle: one envelope per line.

The subject is the handoff and the return of the latest attempt alone: others find a statement by their digests, and
earlier failures are no part of it. The digests of earlier attempts stand in the predicate.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentwatch import __version__
from agentwatch.decisions.envelope import STATEMENT_TYPE, Trust, opened
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.ledger import ChainEntry
from agentwatch.decisions.record import LARGEST_SIGNED, Name, Positive, Sha256, Time, compact, in_words, written
from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Task

TYPE = "https://in-toto.io/Statement/v1"
# The type of this predicate. Keys are added without a new version, as in-toto prescribes.
PREDICATE_TYPE = "urn:agentwatch:task:v1"

_OF_TASK = (
    "task_id parent_id title agent objective state reported_state contract summary why needs_operator ask contradicted"
    " attempt error_code error_message blockers limitations runtime findings claims"
)
_OF_DECISION = "decision_id attempt action note operator created_at expires_at handoff_sha256 return_sha256"
_OF_ATTEMPT = "number state session_id handoff_path handoff_sha256 return_path return_sha256 started_at ended_at"


class _Strict(BaseModel):
    # Keys of in-toto or of a later agentwatch that are unknown here are ignored: the key has signed them, too.
    model_config = ConfigDict(strict=True)


class _Digest(_Strict):
    sha256: Sha256


class _Artifact(_Strict):
    name: Name
    digest: _Digest


class Statement(_Strict):
    """The part of a statement that can be checked against a workspace; texts are foreign."""

    task_id: Name
    attempt: Positive
    state: Name
    contradicted: bool
    made_at: Time
    workspace_id: Name
    subject: tuple[tuple[str, str], ...] = ()  # name and sha256 of each handoff and return that it is about


class _Whole(_Strict):
    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    predicate_type: Literal["urn:agentwatch:task:v1"] = Field(alias="predicateType")
    subject: Annotated[list[_Artifact], Field(min_length=1)]
    predicate: Statement


def subject_of(task: Task) -> tuple[dict[str, Any], ...]:
    """Return the handoff and the return of the latest attempt; () if there is neither."""
    parts = (("handoff", task.latest.handoff), ("return", task.latest.returned))
    return tuple({"name": _name(one, part), "digest": {"sha256": one.digest}} for part, one in parts if one)


def statement_of(
    task: Mapping[str, Any],
    subject: Sequence[Mapping[str, Any]],
    decided: Sequence[ChainEntry],
    *,
    complete: bool,
    workspace_id: str,
    now: datetime,
) -> bytes:
    """Return the payload that states a task's state `now`; raise RecordError if it is too large. `task` is the task's
    object in `tree --json`, `decided` are its ledger entries; `complete`: everything could be read. A lone surrogate,
    which no other reader would accept, becomes a `?`."""
    whole = {
        "_type": TYPE,
        "subject": list(subject),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "agentwatch": __version__,
            "made_at": written(now),
            "workspace_id": workspace_id,
            "complete": complete,
            **_some(task, _OF_TASK),
            # Without the session's place on this machine.
            "attempts": [_some(one, _OF_ATTEMPT) for one in task["attempts"]],
            "decisions": list(map(_decided, decided)),
        },
    }
    payload = compact(whole).encode("utf-8", "replace")
    if len(payload) > LARGEST_SIGNED:
        raise RecordError(f"a statement about it has {len(payload):,} bytes, and {LARGEST_SIGNED:,} are read")
    return payload


def verified(data: bytes, trust: Trust) -> tuple[Statement, str]:
    """Return the statement in an envelope and the id of the signing key; raise EnvelopeError or RecordError."""
    payload, keyid = opened(data, trust.signing, STATEMENT_TYPE)
    try:
        whole = _Whole.model_validate_json(payload)
    except ValidationError as error:
        message = f"it is signed, and no statement that is known here: {in_words(error)}; update agentwatch"
        raise RecordError(message) from error
    subject = tuple((one.name, one.digest.sha256) for one in whole.subject)
    statement = whole.predicate.model_copy(update={"subject": subject})
    trust.require(keyid, statement.made_at)
    return statement, keyid


def is_statement(data: bytes) -> bool:
    """Tell whether the data claims to hold a statement, without parsing or verifying it."""
    return f'","payloadType":"{STATEMENT_TYPE}",'.encode() in data


def _name(version: Seen, part: str) -> str:
    """Return a name for a file; in a session, handoff and return share the path, so the part is added."""
    return f"{version.path}#{part}" if version.stored else version.path


def _some(values: Mapping[str, Any], names: str) -> dict[str, Any]:
    return {name: values[name] for name in names.split()}


def _decided(entry: ChainEntry) -> dict[str, Any]:
    """Return the facts of a decision by which a reader can recognise its ledger file."""
    record = entry.record
    said = {name: getattr(record, name) for name in _OF_DECISION.split()}
    return {"sha256": entry.sha256, "keyid": entry.keyid, "of_request": record.request is not None, **said}
