"""The subagent-return: one JSON object with status, summary, artifacts, metadata and errors."""

from __future__ import annotations

from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.contracts.checks import MAX_TOKENS, brief, briefs, is_blank, judge_paths, sentences, shared, tokens
from agentwatch.contracts.dialect import attempt_of, blockers, stated_at
from agentwatch.contracts.fields import Model, Table, Whole, row
from agentwatch.contracts.findings import Findings, shown
from agentwatch.contracts.shapes import Contract, Outcome, Return

if TYPE_CHECKING:
    from agentwatch.contracts.json_text import Location
    from agentwatch.contracts.return_meta import ReturnMeta

_ENDS_OF_PATH: Final = 2
"""Elements of a delegation path that are not a level of delegation: the orchestrator and its command."""
_FAR_TOO_LONG: Final = 500
"""Characters of a summary above which no count of tokens makes it short enough."""
_SIZE: Final = "The number says how large the work was."


class Artifact(Model):
    """A file the agent created."""

    type: Literal["plan", "report", "summary", "implementation", "documentation"] | None = row(
        "plan",
        "missing SUB014, type SUB015, value SUB016, case SUB017",
        "The type tells the orchestrator where the file belongs.",
        other="code",
    )
    path: str | None = row(
        "plans/api.md", "missing empty SUB018, type SUB019", "An artifact without a path cannot be found."
    )
    summary: str | None = row(
        "The plan.", "missing empty SUB021, type SUB022", "The summary says what the file holds without opening it."
    )


class ReturnMetadata(Model):
    """Who returns, and by which way it was reached."""

    session_id: str | None = row(
        "sess_1735460684_a1b2c3",
        "missing empty SUB032, type SUB033",
        "The session id must match the one of the delegation; it ties the return to the call.",
    )
    agent_type: str | None = row("planner", "missing empty SUB034, type SUB035")
    delegation_depth: Whole | None = row(1, "missing SUB036, type SUB037, range SUB038", ge=0, warns="range")
    delegation_path: list[str] | None = row(
        ["orchestrator", "plan", "planner"],
        "missing SUB039, type SUB040, entry blank SUB041",
        "The path from the orchestrator to this agent places the return in the tree.",
    )
    duration_seconds: float | None = row(245, "type range SUB043", _SIZE, ge=0, warns="type")
    phase_count: Whole | None = row(3, "type range SUB044", _SIZE, ge=0, warns="type")
    estimated_hours: float | None = row(8, "type range SUB045", _SIZE, ge=0, warns="type")
    findings_count: Whole | None = row(4, "type range SUB046", _SIZE, ge=0, warns="type")


class ReturnError(Model):
    """An error that the agent met."""

    type: str | None = row("timeout", "missing empty SUB053, type SUB054", "The type routes the error.")
    message: str | None = row(
        "The tool timed out.", "missing empty SUB055, type SUB056", "The message is what the operator reads."
    )
    recoverable: bool | None = row(True, "missing SUB057, type SUB058", "It says whether a retry can help.")
    recommendation: str | None = row(
        "Raise the time-out.", "missing empty SUB059, type SUB060", "It is the hint that a retry starts from."
    )


class SubagentReturn(Model):
    """The whole return. None: not there, or not of the type it must have."""

    status: Literal["completed", "partial", "failed", "blocked"] | None = row(
        "partial",
        "missing SUB001, type SUB002, value SUB003, case SUB004",
        "The status decides what the orchestrator does next.",
        other="finished",
    )
    summary: str | None = row(
        "Built the API. All tests pass.",
        "missing empty SUB005, type SUB006",
        "The summary is all that the orchestrator reads of the work.",
        needs="a string of 2 to 5 sentences",
    )
    artifacts: list[Artifact] | None = row(
        None,
        "missing SUB010, type SUB011, entry SUB013",
        "The orchestrator checks that what was promised exists; it must know what was promised.",
    )
    metadata: ReturnMetadata | None = row(
        None, "missing SUB030, type SUB031", "The orchestrator routes, correlates and resumes by the metadata."
    )
    errors: list[ReturnError] | None = row(None, "type SUB051, entry SUB052", "Errors are what a retry is decided by.")
    next_steps: str | None = row("Run /implement 244", "type SUB070", "The next steps are what the operator may start.")


TABLE: Final = Table(Contract.SUBAGENT_RETURN, SubagentReturn, ("{key} (required)", "{key} (optional)"))


def judge(top: dict[str, Any], findings: Findings, _name: str) -> tuple[SubagentReturn, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    returned = TABLE.read(SubagentReturn, top, findings)
    status, summary = returned.status, returned.summary or ""
    if not is_blank(summary):
        count = sentences(summary)
        if tokens(summary) > MAX_TOKENS:
            rule = "SUB007" if len(summary) > _FAR_TOO_LONG else "SUB009"
            findings.add(rule, ("summary",), tokens=tokens(summary), characters=len(summary))
        elif not 2 <= count <= 5:
            findings.add("SUB008", ("summary",), count=f"{count} sentence{'' if count == 1 else 's'}")
    if top.get("artifacts") == [] and status in ("completed", "partial"):
        findings.add("SUB012", ("artifacts",), status=status)
    judge_paths("SUB020", "artifacts", top, findings)
    # Anything else that is empty, such as an object, is of the wrong type: that is said already.
    if status not in (None, "completed") and top.get("errors") in (None, []):
        findings.add("SUB050", ("errors",), status=status)
    if status == "completed" and top.get("errors"):
        findings.add("SUB061", ("errors",))
    if returned.metadata is not None:
        path = top["metadata"].get("delegation_path")
        if path == []:
            findings.add("SUB047", ("metadata", "delegation_path"))
        elif returned.metadata.delegation_path:
            place = ("metadata", "delegation_depth")
            judge_depth("SUB042", place, returned.metadata.delegation_depth, path, findings)
    outcome = Outcome(status) if status else None
    attempt = attempt_of(top, "SUB062", findings)
    made = summary_of(Contract.SUBAGENT_RETURN, returned, top, outcome, attempt=attempt)
    if outcome is Outcome.BLOCKED:
        made = replace(made, blockers=made.errors or briefs(blockers(top, Findings())))
    return returned, made


def judge_depth(rule: str, place: Location, depth: int | None, path: object, findings: Findings) -> None:
    """Compare the depth with the path as it was written: an entry of another type is a level all the same."""
    if depth is None or not isinstance(path, list) or not path:
        return
    expected = max(len(path) - _ENDS_OF_PATH, 0)
    if depth != expected:
        findings.add(rule, place, depth=shown(depth), length=len(path), expected=expected)


def summary_of(
    contract: Contract, returned: SubagentReturn | ReturnMeta, top: dict[str, Any], outcome: Outcome | None, **more: Any
) -> Return:
    """The fields that the delegation tree needs; `more` are others."""
    metadata = returned.metadata or ReturnMetadata()
    errors = returned.errors or []
    first = errors[0] if errors else ReturnError()
    path = tuple(map(intern, metadata.delegation_path or ()))
    recoverable = [error.recoverable for error in errors if error.recoverable is not None]
    reported = top.get("status")
    return Return(
        contract=contract,
        reported_state=shared(brief(reported)) if isinstance(reported, str) else None,
        outcome=outcome,
        session_id=metadata.session_id or None,
        agent=shared(metadata.agent_type) or (path[-1] if path else None),
        delegation_path=path,
        summary=brief(returned.summary),
        error_code=brief(first.type),
        error_message=brief(first.message),
        errors=briefs(error.message for error in errors),
        # All that say so must be recoverable.
        retry_recommended=all(recoverable) if recoverable else None,
        retry_hint=brief(first.recommendation),
        next_steps=brief(returned.next_steps),
        artifacts=briefs(artifact.path for artifact in returned.artifacts or ()),
        stated_at=stated_at(top, outcome),
        **more,
    )
