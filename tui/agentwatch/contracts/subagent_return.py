"""The subagent-return: one JSON object with status, summary, artifacts, metadata and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.contracts import wording
from agentwatch.contracts.catalogue.subagent_return import RULES
from agentwatch.contracts.drift import blocked_by
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.stated import stated_at
from agentwatch.contracts.validation import Contracted, Whole, validated

if TYPE_CHECKING:
    from agentwatch.contracts.catalogue.subagent_return import RULES
from agentwatch.contracts.findings import Judgement

ARTIFACT_TYPES: Final = ("plan", "report", "summary", "implementation", "documentation")
ENDS_OF_PATH: Final = 2
"""Elements of a delegation path that are not a level of delegation: the orchestrator and its command."""

_FEW_SENTENCES: Final = range(2, 6)


_WHO: Final = "The orchestrator routes, correlates and resumes by the metadata."
_SHOWN: Final = "The number says how large the work was."


# A table: a field is a row.
# fmt: off
class Artifact(Contracted):
    """A file the agent created."""

    type: Literal["plan", "report", "summary", "implementation", "documentation"] | None = row(
        "The type tells the orchestrator where the file belongs.", right="plan", other="code",
        missing="SUB014", type="SUB015", value="SUB016", case="SUB017")
    path: str | None = row(
        "An artifact without a path cannot be found.", right="plans/api.md",
        missing="SUB018", type="SUB019", empty="SUB018")
    summary: str | None = row(
        "The summary says what the file holds without opening it.", right="The plan.",
        missing="SUB021", type="SUB022", empty="SUB021")


class ReturnMetadata(Contracted):
    """Who returns, and by which way it was reached."""

    session_id: str | None = row(
        "The session id must match the one of the delegation; it ties the return to the call.",
        right="sess_1735460684_a1b2c3", missing="SUB032", type="SUB033", empty="SUB032")
    agent_type: str | None = row(_WHO, right="planner", missing="SUB034", type="SUB035", empty="SUB034")
    delegation_depth: Whole | None = row(_WHO, right=1, ge=0, missing="SUB036", type="SUB037", range="SUB038")
    delegation_path: list[str] | None = row(
        "The path from the orchestrator to this agent is what places the return in the delegation tree.",
        right=["orchestrator", "plan", "planner"], missing="SUB039", type="SUB040", entry="SUB041", blank="SUB041")
    duration_seconds: float | None = row(_SHOWN, right=245, ge=0, warns="type", type="SUB043", range="SUB043")
    phase_count: Whole | None = row(_SHOWN, right=3, ge=0, warns="type", type="SUB044", range="SUB044")
    estimated_hours: float | None = row(_SHOWN, right=8, ge=0, warns="type", type="SUB045", range="SUB045")
    findings_count: Whole | None = row(_SHOWN, right=4, ge=0, warns="type", type="SUB046", range="SUB046")


class ReturnError(Contracted):
    """An error that the agent met."""

    type: str | None = row(
        "The type routes the error.", right="timeout", missing="SUB053", type="SUB054", empty="SUB053")
    message: str | None = row(
        "The message is what the operator reads.", right="The tool timed out.",
        missing="SUB055", type="SUB056", empty="SUB055")
    recoverable: bool | None = row("It says whether a retry can help.", right=True, missing="SUB057", type="SUB058")
    recommendation: str | None = row(
        "It is the hint that a retry starts from.", right="Raise the time-out.",
        missing="SUB059", type="SUB060", empty="SUB059")


class SubagentReturn(Contracted):
    """The whole return. None: not there, or not of the type it must have."""

    status: Literal["completed", "partial", "failed", "blocked"] | None = row(
        "The status decides what the orchestrator does next.", section="status (required)",
        right="partial", other="finished", missing="SUB001", type="SUB002", value="SUB003", case="SUB004")
    summary: str | None = row(
        "The summary is all that the orchestrator reads of the work.", section="summary (required)",
        right="Built the API. All tests pass.", needs="a string of 2 to 5 sentences",
        missing="SUB005", type="SUB006", empty="SUB005")
    artifacts: list[Artifact] | None = row(
        "The orchestrator checks that what was promised exists; it must know what was promised.",
        section="artifacts (required)", missing="SUB010", type="SUB011", entry="SUB013")
    metadata: ReturnMetadata | None = row(_WHO, section="metadata (required)", missing="SUB030", type="SUB031")
    errors: list[ReturnError] | None = row(
        "Errors are what a retry is decided by.", section="errors (optional)", type="SUB051", entry="SUB052")
    next_steps: str | None = row(
        "The next steps are what the operator may start.", section="next_steps (optional)",
        right="Run /implement 244", type="SUB070")
# fmt: on


TABLE: Final = Table(Contract.SUBAGENT_RETURN, SubagentReturn, RULES)


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[SubagentReturn, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    returned = validated(SubagentReturn, top, TABLE.judging, judgement)
    if returned.summary is not None and returned.summary.strip():
        _judge_summary(returned.summary, judgement)
    _judge_artifacts(top, returned, judgement)
    # Anything else that is empty, such as an object, is of the wrong type: that is said already.
    if returned.status not in (None, "completed") and top.get("errors") in (None, []):
        judgement.add("SUB050", ("errors",), status=returned.status)
    if returned.status == "completed" and top.get("errors"):
        judgement.add("SUB061", ("errors",))
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
