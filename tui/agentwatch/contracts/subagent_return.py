"""The subagent-return: one JSON object with status, summary, artifacts, metadata and errors."""

from __future__ import annotations

from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.contracts import wording
from agentwatch.contracts.drift import attempt_of, blocked_by, stated_at
from agentwatch.contracts.findings import shown
from agentwatch.contracts.paths import judge_paths
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.validation import Contracted, Whole, validated

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement
    from agentwatch.contracts.json_text import Location
    from agentwatch.contracts.return_meta import ReturnMeta

_error, _warning = makers(Contract.SUBAGENT_RETURN)
_SUMMARY = "summary (required)"
_ARTIFACTS = "artifacts (required)"
_METADATA = "metadata (required)"
_ERRORS = "errors (optional)"

ARTIFACT_TYPES: Final = ("plan", "report", "summary", "implementation", "documentation")
_ENDS_OF_PATH: Final = 2
"""Elements of a delegation path that are not a level of delegation: the orchestrator and its command."""

_DEPTH: Final = ("metadata", "delegation_depth")
_FEW_SENTENCES: Final = range(2, 6)
_SIZES: Final = ("duration_seconds", "phase_count", "estimated_hours", "findings_count")


class Artifact(Contracted):
    """A file the agent created."""

    type: Literal["plan", "report", "summary", "implementation", "documentation"] | None = row(
        "plan", other="code", missing="SUB014", type="SUB015", value="SUB016", case="SUB017"
    )
    path: str | None = row("plans/api.md", absent="SUB018", type="SUB019")
    summary: str | None = row("The plan.", absent="SUB021", type="SUB022")


class ReturnMetadata(Contracted):
    """Who returns, and by which way it was reached."""

    session_id: str | None = row("sess_1735460684_a1b2c3", absent="SUB032", type="SUB033")
    agent_type: str | None = row("planner", absent="SUB034", type="SUB035")
    delegation_depth: Whole | None = row(1, ge=0, missing="SUB036", type="SUB037", range="SUB038", warns="range")
    delegation_path: list[str] | None = row(
        ["orchestrator", "plan", "planner"], missing="SUB039", type="SUB040", entry="SUB041", blank="SUB041"
    )
    duration_seconds: float | None = row(245, ge=0, warns="type", type="SUB043", range="SUB043")
    phase_count: Whole | None = row(3, ge=0, warns="type", type="SUB044", range="SUB044")
    estimated_hours: float | None = row(8, ge=0, warns="type", type="SUB045", range="SUB045")
    findings_count: Whole | None = row(4, ge=0, warns="type", type="SUB046", range="SUB046")


class ReturnError(Contracted):
    """An error that the agent met."""

    type: str | None = row("timeout", absent="SUB053", type="SUB054")
    message: str | None = row("The tool timed out.", absent="SUB055", type="SUB056")
    recoverable: bool | None = row(True, missing="SUB057", type="SUB058")
    recommendation: str | None = row("Raise the time-out.", absent="SUB059", type="SUB060")


class SubagentReturn(Contracted):
    """The whole return. None: not there, or not of the type it must have."""

    status: Literal["completed", "partial", "failed", "blocked"] | None = row(
        "partial", other="finished", missing="SUB001", type="SUB002", value="SUB003", case="SUB004"
    )
    summary: str | None = row(
        "Built the API. All tests pass.", needs="a string of 2 to 5 sentences", absent="SUB005", type="SUB006"
    )
    artifacts: list[Artifact] | None = row(missing="SUB010", type="SUB011", entry="SUB013")
    metadata: ReturnMetadata | None = row(missing="SUB030", type="SUB031")
    errors: list[ReturnError] | None = row(type="SUB051", entry="SUB052")
    next_steps: str | None = row("Run /implement 244", type="SUB070")


_RULES: Final[tuple[Rule, ...]] = (
    _error("SUB007", _SUMMARY, "`summary` too long")
    .says("`summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it below 100.")
    .because("The summary protects the orchestrator's context window. The document counts a token as four characters.")
    .example("up to 400 characters", "more than 500 characters"),
    _warning("SUB008", _SUMMARY, "`summary` is not 2 to 5 sentences")
    .says("`summary` has {count}; write 2 to 5 sentences.")
    .because("One sentence leaves out what was done or how it went; more than five are no summary.")
    .example('"summary": "Built the API. All tests pass."', '"summary": "Done."'),
    _warning("SUB009", _SUMMARY, "`summary` rather long")
    .says("`summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it below 100.")
    .because("The document says fewer than 100 tokens, about 400 characters: up to 500 a tokenizer may still agree.")
    .example("up to 400 characters", "401 to 500 characters"),
    _error("SUB012", _ARTIFACTS, "no artifacts")
    .says("`artifacts` is empty though the status is `{status}`; list the files that were created.")
    .because("The list can be empty only if the status is failed or blocked: otherwise there is nothing to show.")
    .example('"status": "failed", "artifacts": []', '"status": "completed", "artifacts": []'),
    _error("SUB020", _ARTIFACTS, "artifact path not relative")
    .says("The artifact path {value} is not relative to the project: {reason}; write it from the project's root.")
    .because("The path is looked up from the project's root, possibly in another checkout.")
    .example('"path": "plans/api.md"', '"path": "/home/me/shop/plans/api.md"'),
    _warning("SUB042", _METADATA, "`delegation_depth` disagrees with `delegation_path`")
    .says("`delegation_depth` is {depth}, but a path of {length} elements means {expected}; the path is trusted.")
    .because("Orchestrator, command and agent are a path of three at depth 1: the depth is the length less two.")
    .example(
        '"delegation_depth": 1, "delegation_path": ["orchestrator", "plan", "planner"]',
        '(the same with `"delegation_depth": 2`)',
    ),
    _error("SUB047", _METADATA, "`metadata.delegation_path` empty")
    .says("`metadata.delegation_path` is empty; list the agents from the orchestrator to this one.")
    .because("The path from the orchestrator to this agent has at least this agent in it.")
    .example('"delegation_path": ["orchestrator", "plan", "planner"]', '"delegation_path": []'),
    _error("SUB050", _ERRORS, "`errors` missing")
    .says("`errors` is missing or empty though the status is `{status}`; add objects that say what went wrong.")
    .because("Errors are required if the status is not completed: they are what a retry is decided by.")
    .example('"status": "failed", "errors": [{…}]', '"status": "failed"'),
    _warning("SUB061", _ERRORS, "`errors` though completed")
    .says("`errors` is filled though the status is `completed`; leave it out, or report `partial` or `failed`.")
    .because("Errors beside a success leave open which of the two holds; tell what was overcome in the summary.")
    .example('"status": "completed", "errors": []', '"status": "completed", "errors": [{…}]'),
    _warning("SUB062", _METADATA, "`attempt` is not a positive integer")
    .says("`attempt` is {value}; agentwatch understands it only as an integer from 1 on.")
    .because("`attempt` is not of the contract; agentwatch counts retries by it.")
    .example('"attempt": 2', '"attempt": "second"'),
)

TABLE: Final = Table(
    Contract.SUBAGENT_RETURN,
    SubagentReturn,
    _RULES,
    why={
        "status": "The status decides what the orchestrator does next.",
        "summary": "The summary is all that the orchestrator reads of the work.",
        "artifacts": "The orchestrator checks that what was promised exists; it must know what was promised.",
        "artifacts[].type": "The type tells the orchestrator where the file belongs.",
        "artifacts[].path": "An artifact without a path cannot be found.",
        "artifacts[].summary": "The summary says what the file holds without opening it.",
        "metadata": "The orchestrator routes, correlates and resumes by the metadata.",
        "metadata.session_id": "The session id must match the one of the delegation; it ties the return to the call.",
        "metadata.delegation_path": "The path from the orchestrator to this agent places the return in the tree.",
        **dict.fromkeys(map("metadata.{}".format, _SIZES), "The number says how large the work was."),
        "errors": "Errors are what a retry is decided by.",
        "errors[].type": "The type routes the error.",
        "errors[].message": "The message is what the operator reads.",
        "errors[].recoverable": "It says whether a retry can help.",
        "errors[].recommendation": "It is the hint that a retry starts from.",
        "next_steps": "The next steps are what the operator may start.",
    },
    sections=("{key} (required)", "{key} (optional)"),
)


_NO_METADATA: Final = ReturnMetadata()
_NO_ERROR: Final = ReturnError()


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[SubagentReturn, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    returned = validated(SubagentReturn, top, TABLE.judging, judgement)
    if returned.summary is not None and returned.summary.strip():
        _judge_summary(returned.summary, judgement)
    if top.get("artifacts") == [] and returned.status in ("completed", "partial"):
        judgement.add("SUB012", ("artifacts",), status=returned.status)
    judge_paths("SUB020", "artifacts", top, judgement)
    # Anything else that is empty, such as an object, is of the wrong type: that is said already.
    if returned.status not in (None, "completed") and top.get("errors") in (None, []):
        judgement.add("SUB050", ("errors",), status=returned.status)
    if returned.status == "completed" and top.get("errors"):
        judgement.add("SUB061", ("errors",))
    if returned.metadata is not None:
        path = top["metadata"].get("delegation_path")
        if path == []:
            judgement.add("SUB047", ("metadata", "delegation_path"))
        elif returned.metadata.delegation_path:
            judge_depth("SUB042", _DEPTH, returned.metadata.delegation_depth, path, judgement)
    status = top.get("status")
    outcome = Outcome(returned.status) if returned.status else None
    reported = status if isinstance(status, str) else None
    made = summary_of(
        Contract.SUBAGENT_RETURN,
        returned,
        reported,
        outcome,
        stated_at(top, outcome),
        attempt=attempt_of(top, "SUB062", judgement),
    )
    if outcome is Outcome.BLOCKED:
        made = replace(made, blockers=made.errors or wording.briefs(blocked_by(top)))
    return returned, made


def _judge_summary(summary: str, judgement: Judgement) -> None:
    count = wording.tokens(summary)
    if count > wording.MAX_TOKENS:
        rule = "SUB007" if len(summary) > wording.FAR_TOO_LONG else "SUB009"
        judgement.add(rule, ("summary",), tokens=count, characters=len(summary))
    elif (sentences := wording.sentences(summary)) not in _FEW_SENTENCES:
        judgement.add("SUB008", ("summary",), count=f"{sentences} sentence{'' if sentences == 1 else 's'}")


def judge_depth(rule: str, place: Location, depth: int | None, path: object, judgement: Judgement) -> None:
    """Compare the depth with the path as it was written: an entry of another type is a level all the same."""
    if depth is None or not isinstance(path, list) or not path:
        return
    expected = max(len(path) - _ENDS_OF_PATH, 0)
    if depth != expected:
        judgement.add(rule, place, depth=shown(depth), length=len(path), expected=expected)


def summary_of(
    contract: Contract,
    returned: SubagentReturn | ReturnMeta,
    reported: str | None,
    outcome: Outcome | None,
    stated_at: float | None,
    **more: Any,
) -> Return:
    """What the delegation tree needs of a return; `reported` is its status as it was written, `more` other fields."""
    metadata = returned.metadata or _NO_METADATA
    errors = returned.errors or []
    first = errors[0] if errors else _NO_ERROR
    path = tuple(map(intern, metadata.delegation_path or ()))
    said = [error.recoverable for error in errors if error.recoverable is not None]
    return Return(
        contract=contract,
        reported_state=wording.shared(wording.brief(reported)),
        outcome=outcome,
        session_id=metadata.session_id or None,
        agent=wording.shared(metadata.agent_type) or (path[-1] if path else None),
        delegation_path=path,
        summary=wording.brief(returned.summary),
        error_code=wording.brief(first.type),
        error_message=wording.brief(first.message),
        errors=wording.briefs(error.message for error in errors if error.message),
        # All that say so must be recoverable.
        retry_recommended=all(said) if said else None,
        retry_hint=wording.brief(first.recommendation),
        next_steps=wording.brief(returned.next_steps),
        artifacts=wording.briefs(artifact.path for artifact in returned.artifacts or () if artifact.path),
        stated_at=stated_at,
        **more,
    )
