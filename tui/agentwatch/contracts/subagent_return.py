"""The subagent-return: one JSON object with status, summary, artifacts, metadata and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from agentwatch.contracts import wording
from agentwatch.contracts.drift import blocked_by
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.signatures import RETURN_STATUSES
from agentwatch.contracts.stated import stated_at
from agentwatch.contracts.validation import Contracted, Faults, Schema, Whole, validated

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

ARTIFACT_TYPES: Final = ("plan", "report", "summary", "implementation", "documentation")
ENDS_OF_PATH: Final = 2
"""Elements of a delegation path that are not a level of delegation: the orchestrator and its command."""

_FEW_SENTENCES: Final = range(2, 6)


class Artifact(Contracted):
    """A file the agent created."""

    type: Literal["plan", "report", "summary", "implementation", "documentation"] | None = None
    path: str | None = None
    summary: str | None = None


class ReturnMetadata(Contracted):
    """Who returns, and by which way it was reached."""

    session_id: str | None = None
    agent_type: str | None = None
    delegation_depth: Annotated[Whole, Field(ge=0)] | None = None
    delegation_path: list[str] | None = None
    duration_seconds: Annotated[float, Field(ge=0)] | None = None
    phase_count: Annotated[Whole, Field(ge=0)] | None = None
    estimated_hours: Annotated[float, Field(ge=0)] | None = None
    findings_count: Annotated[Whole, Field(ge=0)] | None = None


class ReturnError(Contracted):
    """An error that the agent met."""

    type: str | None = None
    message: str | None = None
    recoverable: bool | None = None
    recommendation: str | None = None


class SubagentReturn(Contracted):
    """The whole return. None: not there, or not of the type it must have."""

    status: Literal["completed", "partial", "failed", "blocked"] | None = None
    summary: str | None = None
    artifacts: list[Artifact] | None = None
    metadata: ReturnMetadata | None = None
    errors: list[ReturnError] | None = None
    next_steps: str | None = None


_FAULTS: Final[Faults] = {
    (("status",), "missing"): "SUB001",
    (("status",), "type"): "SUB002",
    (("status",), "value"): "SUB003",
    (("status",), "case"): "SUB004",
    (("summary",), "missing"): "SUB005",
    (("summary",), "type"): "SUB006",
    (("summary",), "empty"): "SUB005",
    (("artifacts",), "missing"): "SUB010",
    (("artifacts",), "type"): "SUB011",
    (("artifacts", "*"), "type"): "SUB013",
    (("artifacts", "*", "type"), "missing"): "SUB014",
    (("artifacts", "*", "type"), "type"): "SUB015",
    (("artifacts", "*", "type"), "value"): "SUB016",
    (("artifacts", "*", "type"), "case"): "SUB017",
    (("artifacts", "*", "path"), "missing"): "SUB018",
    (("artifacts", "*", "path"), "type"): "SUB019",
    (("artifacts", "*", "path"), "empty"): "SUB018",
    (("artifacts", "*", "summary"), "missing"): "SUB021",
    (("artifacts", "*", "summary"), "type"): "SUB022",
    (("artifacts", "*", "summary"), "empty"): "SUB021",
    (("metadata",), "missing"): "SUB030",
    (("metadata",), "type"): "SUB031",
    (("metadata", "session_id"), "missing"): "SUB032",
    (("metadata", "session_id"), "type"): "SUB033",
    (("metadata", "session_id"), "empty"): "SUB032",
    (("metadata", "agent_type"), "missing"): "SUB034",
    (("metadata", "agent_type"), "type"): "SUB035",
    (("metadata", "agent_type"), "empty"): "SUB034",
    (("metadata", "delegation_depth"), "missing"): "SUB036",
    (("metadata", "delegation_depth"), "type"): "SUB037",
    (("metadata", "delegation_depth"), "range"): "SUB038",
    (("metadata", "delegation_path"), "missing"): "SUB039",
    (("metadata", "delegation_path"), "type"): "SUB040",
    (("metadata", "delegation_path", "*"), "type"): "SUB041",
    (("metadata", "delegation_path", "*"), "empty"): "SUB041",
    (("metadata", "duration_seconds"), "type"): "SUB043",
    (("metadata", "duration_seconds"), "range"): "SUB043",
    (("metadata", "phase_count"), "type"): "SUB044",
    (("metadata", "phase_count"), "range"): "SUB044",
    (("metadata", "estimated_hours"), "type"): "SUB045",
    (("metadata", "estimated_hours"), "range"): "SUB045",
    (("metadata", "findings_count"), "type"): "SUB046",
    (("metadata", "findings_count"), "range"): "SUB046",
    (("errors",), "type"): "SUB051",
    (("errors", "*"), "type"): "SUB052",
    (("errors", "*", "type"), "missing"): "SUB053",
    (("errors", "*", "type"), "type"): "SUB054",
    (("errors", "*", "type"), "empty"): "SUB053",
    (("errors", "*", "message"), "missing"): "SUB055",
    (("errors", "*", "message"), "type"): "SUB056",
    (("errors", "*", "message"), "empty"): "SUB055",
    (("errors", "*", "recoverable"), "missing"): "SUB057",
    (("errors", "*", "recoverable"), "type"): "SUB058",
    (("errors", "*", "recommendation"), "missing"): "SUB059",
    (("errors", "*", "recommendation"), "type"): "SUB060",
    (("errors", "*", "recommendation"), "empty"): "SUB059",
    (("next_steps",), "type"): "SUB070",
}
_SCHEMA: Final = Schema(_FAULTS, {("status",): RETURN_STATUSES, ("artifacts", "*", "type"): ARTIFACT_TYPES})


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[SubagentReturn, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    returned = validated(SubagentReturn, top, _SCHEMA, judgement)
    if returned.summary is not None and returned.summary.strip():
        _judge_summary(returned.summary, judgement)
    _judge_artifacts(top, returned, judgement)
    # Anything else that is empty, such as an object, is of the wrong type: that is said already.
    if returned.status not in (None, "completed") and top.get("errors") in (None, []):
        judgement.add("SUB050", ("errors",), status=returned.status)
    metadata = returned.metadata
    raw_metadata = top.get("metadata")
    if metadata is not None and isinstance(raw_metadata, dict):
        path = raw_metadata.get("delegation_path")
        if path == []:
            judgement.add("SUB047", ("metadata", "delegation_path"))
        elif metadata.delegation_path and metadata.delegation_depth is not None and isinstance(path, list):
            expected = max(len(path) - ENDS_OF_PATH, 0)
            if metadata.delegation_depth != expected:
                judgement.add(
                    "SUB042",
                    ("metadata", "delegation_depth"),
                    depth=shown(metadata.delegation_depth),
                    length=len(path),
                    expected=expected,
                )
    return returned, _summary_of(returned, top)


def _judge_summary(summary: str, judgement: Judgement) -> None:
    count = wording.tokens(summary)
    if count > wording.MAX_TOKENS:
        rule = "SUB007" if len(summary) > wording.FAR_TOO_LONG else "SUB009"
        judgement.add(rule, ("summary",), tokens=count, characters=len(summary))
    elif (sentences := wording.sentences(summary)) not in _FEW_SENTENCES:
        judgement.add("SUB008", ("summary",), count=sentences)


def _judge_artifacts(top: dict[str, Any], returned: SubagentReturn, judgement: Judgement) -> None:
    artifacts = top.get("artifacts")
    if not isinstance(artifacts, list):
        return
    if not artifacts and returned.status in ("completed", "partial"):
        judgement.add("SUB012", ("artifacts",), status=returned.status)
    for index, artifact in enumerate(artifacts[:MAX_ENTRIES]):
        path = artifact.get("path") if isinstance(artifact, dict) else None
        if isinstance(path, str) and path.strip() and (reason := why_not_relative(path)):
            judgement.add("SUB020", ("artifacts", index, "path"), value=shown(path), reason=reason)


def _summary_of(returned: SubagentReturn, top: dict[str, Any]) -> Return:
    metadata = returned.metadata or ReturnMetadata()
    errors = returned.errors or []
    first = errors[0] if errors else ReturnError()
    outcome = Outcome(returned.status) if returned.status else None
    messages = wording.briefs(error.message for error in errors if error.message)
    status = top.get("status")
    path = tuple(metadata.delegation_path or ())
    return Return(
        contract=Contract.SUBAGENT_RETURN,
        reported_state=wording.brief(status) if isinstance(status, str) else None,
        outcome=outcome,
        session_id=metadata.session_id or None,
        agent=metadata.agent_type or (path[-1] if path else None),
        delegation_path=path,
        summary=wording.brief(returned.summary),
        error_code=wording.brief(first.type),
        error_message=wording.brief(first.message),
        errors=messages,
        retry_recommended=recommends_retry(errors),
        retry_hint=wording.brief(first.recommendation),
        blockers=(messages or wording.briefs(blocked_by(top))) if outcome is Outcome.BLOCKED else (),
        next_steps=wording.brief(returned.next_steps),
        artifacts=wording.briefs(artifact.path for artifact in returned.artifacts or () if artifact.path),
        stated_at=stated_at(top, outcome),
    )


def recommends_retry(errors: list[ReturnError]) -> bool | None:
    """Whether the errors can be recovered from: all that say so must; None where none says anything."""
    said = [error.recoverable for error in errors if error.recoverable is not None]
    return all(said) if said else None
