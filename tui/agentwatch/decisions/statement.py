"""Signed statements about a task's state, which other people can verify. They have the format of in-toto Statements.

Format: https://github.com/in-toto/attestation/tree/main/spec/v1. The same key signs statements and decisions, in the
same form of envelope. A file with several statements has one envelope per line.

The subject of a statement is the latest attempt's handoff and return, with their digests. With the digests, other
people find the statements about a file. Digests of earlier attempts are in the predicate (the statement's content).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentwatch import __version__
from agentwatch.decisions.envelope import STATEMENT_TYPE, Trust, open_envelope
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.ledger import ChainEntry
from agentwatch.decisions.record import LARGEST_SIGNED, Name, Positive, Sha256, Time, error_words, format_time, to_json
from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Task

TYPE = "https://in-toto.io/Statement/v1"
# The type of the predicate (the statement's content). By the rules of in-toto, added keys need no new version.
PREDICATE_TYPE = "urn:agentwatch:task:v1"

_OF_TASK = (
    "task_id parent_id title agent objective state reported_state contract summary why needs_operator ask contradicted"
    " attempt error_code error_message blockers limitations runtime findings claims"
)
_OF_DECISION = "decision_id attempt action note operator created_at expires_at handoff_sha256 return_sha256"
_OF_ATTEMPT = "number state session_id handoff_path handoff_sha256 return_path return_sha256 started_at ended_at"


class _Strict(BaseModel):
    # Unknown keys are ignored. They may come from in-toto or a later agentwatch, and are signed as well.
    model_config = ConfigDict(strict=True)


class _Digest(_Strict):
    sha256: Sha256


class _Artifact(_Strict):
    name: Name
    digest: _Digest


class Statement(_Strict):
    """The part of a statement that can be compared with a workspace. Its texts are untrusted."""

    task_id: Name
    attempt: Positive
    state: Name
    contradicted: bool
    made_at: Time
    workspace_id: Name
    subject: tuple[tuple[str, str], ...] = ()  # name and sha256 of each file that the statement is about


class _Whole(_Strict):
    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    predicate_type: Literal["urn:agentwatch:task:v1"] = Field(alias="predicateType")
    subject: Annotated[list[_Artifact], Field(min_length=1)]
    predicate: Statement


def subject_of(task: Task) -> tuple[dict[str, Any], ...]:
    """Return the names and digests of the latest attempt's handoff and return. Leave out a file that does not exist."""
    parts = (("handoff", task.latest.handoff), ("return", task.latest.returned))
    return tuple({"name": _artifact_name(one, part), "digest": {"sha256": one.digest}} for part, one in parts if one)


def statement_of(
    task: Mapping[str, Any],
    subject: Sequence[Mapping[str, Any]],
    decided: Sequence[ChainEntry],
    *,
    complete: bool,
    workspace_id: str,
    now: datetime,
) -> bytes:
    """Return the bytes to sign for a statement about a task at the time `now`. `task` is the task's object in `tree
    --json`. `decided` are the decisions about the task. `complete` tells whether all files could be read. Raise
    RecordError if there are too many bytes."""
    whole = {
        "_type": TYPE,
        "subject": list(subject),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "agentwatch": __version__,
            "made_at": format_time(now),
            "workspace_id": workspace_id,
            "complete": complete,
            **_select_values(task, _OF_TASK),
            # The path of the session on this machine is left out.
            "attempts": [_select_values(one, _OF_ATTEMPT) for one in task["attempts"]],
            "decisions": list(map(_decision_facts, decided)),
        },
    }
    # A lone surrogate (half a character) becomes a `?`, because other JSON readers would refuse it.
    payload = to_json(whole).encode("utf-8", "replace")
    if len(payload) > LARGEST_SIGNED:
        raise RecordError(f"a statement about it has {len(payload):,} bytes, and {LARGEST_SIGNED:,} are read")
    return payload


def verify_statement(data: bytes, trust: Trust) -> tuple[Statement, str]:
    """Verify an envelope. Return its statement and the signing key's id, or raise EnvelopeError or RecordError."""
    payload, keyid = open_envelope(data, trust.signers, STATEMENT_TYPE)
    try:
        whole = _Whole.model_validate_json(payload)
    except ValidationError as error:
        message = f"it is signed, and no statement that is known here: {error_words(error)}; update agentwatch"
        raise RecordError(message) from error
    subject = tuple((one.name, one.digest.sha256) for one in whole.subject)
    statement = whole.predicate.model_copy(update={"subject": subject})
    trust.require_trusted(keyid, statement.made_at)
    return statement, keyid


def is_statement(data: bytes) -> bool:
    """Tell whether a file claims to hold a statement. Nothing is verified."""
    return f'","payloadType":"{STATEMENT_TYPE}",'.encode() in data


def _artifact_name(version: Seen, part: str) -> str:
    """Return a name for a handoff or return. Both may have the path of one session, so `part` is added."""
    return f"{version.path}#{part}" if version.stored else version.path


def _select_values(values: Mapping[str, Any], names: str) -> dict[str, Any]:
    return {name: values[name] for name in names.split()}


def _decision_facts(entry: ChainEntry) -> dict[str, Any]:
    record = entry.record
    said = {name: getattr(record, name) for name in _OF_DECISION.split()}
    return {"sha256": entry.sha256, "keyid": entry.keyid, "of_request": record.request is not None, **said}
