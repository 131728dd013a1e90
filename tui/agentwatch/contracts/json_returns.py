"""Returns in JSON: the subagent-return, its dialect return-meta, and the report-contract.

The authors of return-meta left the document of subagent-return on purpose: stage words as status, an early
`in_progress`, optional errors. Only a status that says nothing breaks it; the rest are warnings where a reader loses
something.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from sys import intern
from typing import Any, Final, Literal

from agentwatch.contracts.fields import Model, Table, Whole, Word, read, row
from agentwatch.contracts.reading import METADATA_KEYS, OUTSIDE_THE_ENUM, STAGE_WORDS
from agentwatch.contracts.rules import (
    MAX_ENTRIES,
    MAX_TOKENS,
    Findings,
    Location,
    brief,
    briefs,
    is_blank,
    judge_paths,
    sentences,
    shared,
    shown,
    tokens,
    why_not_relative,
)
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.text import folded

LOW_CONFIDENCE: Final = 0.5
"""A confidence below this is flagged for a human."""
_FAR_TOO_LONG: Final = 500
"""Characters of a summary above which no count of tokens makes it short enough."""
_SIZE: Final = "The number says how large the work was."
_COST: Final = "The number says what the work cost."
_NO_REASON: Final = "The return asks for a review without saying why."
_HANDOFF_LIKE: Final = re.compile(r"-handoff[^/]*\Z", re.IGNORECASE | re.ASCII)
_POINTER: Final = re.compile(
    r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z"
)

# How returns say how they ended, what blocks them, and when.
_MEANS: Final[dict[str, Outcome]] = dict.fromkeys((*STAGE_WORDS, *OUTSIDE_THE_ENUM), Outcome.COMPLETED) | {
    word: outcome
    for outcome, words in {
        Outcome.COMPLETED: "completed complete succeeded finished ok"
        " reviewed analyzed documented verified validated tested",
        Outcome.WORKING: "in_progress running started working pending"
        " researching planning implementing reviewing revising testing",
        Outcome.PARTIAL: "partial partially_completed partially_done partially_implemented",
        Outcome.BLOCKED: "blocked",
        Outcome.FAILED: "failed failure error",
    }.items()
    for word in words.split()
}
_FINISHING: Final = frozenset(
    """
    added analysed analyzed answered applied approved archived assembled assessed audited benchmarked built
    checked cleaned closed collected committed compared compiled complete completed composed configured converted
    corrected created debugged decomposed defined deleted delivered deployed described designed developed
    diagnosed documented done drafted edited elaborated enhanced estimated evaluated executed explored exported
    extended extracted finalised finalized finished fixed formalised formalized formatted formulated gathered
    generated identified implemented imported improved indexed inspected installed integrated investigated listed
    made mapped measured merged migrated modeled modelled moved optimised optimized organised organized outlined
    packaged passed polished ported prepared prioritised prioritized produced profiled prototyped proved proven
    published pushed ready rebased recorded refactored refined released removed renamed rendered repaired replaced
    reported researched resolved restructured reviewed revised rewritten saved scaffolded scoped selected
    simplified sketched solved specified structured studied summarised summarized synthesised synthesized tested
    traced transformed translated triaged updated validated verified wired written
    """.split()  # noqa: SIM905 - a line for each would fill a page
)
"""Verbs of making: alone, or as the last part of a word (`tasks_created`), they say that a stage has been finished."""
_DOUBT: Final = frozenset(
    """
    abandoned aborted almost be being blocked blocker blockers canceled cancelled cannot conflict conflicts crash
    crashed deferred denied dropped error errors fail failed failing failure failures few half halted if
    incomplete incompletely interrupted killed lost merely mostly nearly need needed needs never no non none not
    nothing only part partial partially partly paused pending poorly postponed refused rejected semi should
    skipped some stalled stopped suspended terminated timed timeout to unable unless unresolved until when without
    wrongly
    """.split()  # noqa: SIM905 - a line for each would fill a page
)
"""Parts of a word that say that it was not, or not all: `not_ready`, `errors_generated`."""
# What was wrong and is mended: `conflicts_resolved`.
_MENDED: Final = re.compile(
    r"(?<![^_])(?:blocker|conflict|error|failure)s?_(?=(?:corrected|fixed|repaired|resolved|solved)\Z)"
)
_BLOCKERS: Final = ("blockers", "blocking_issues", "blocker", "blocking_issue")
_BLOCKER_TEXTS: Final = (
    *("description", "message", "issue", "reason", "summary"),
    *("blocker", "title", "text", "why_it_failed"),
)
_OVERCOME: Final = ("resolved", "fixed", "closed", "cleared")
_ENDED: Final = ("completed_at", "ended_at", "finished_at", "updated_at", "last_updated", "timestamp")
_BEGAN: Final = ("started_at", "created_at")


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
    delegation_path: list[Word] | None = row(
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


class MetaArtifact(Model):
    """A file the agent created; any word may be its type."""

    type: str | None = row("report", "type MET019", "The type says where the file belongs.")
    path: str | None = row(
        "plan.md", "missing empty MET016, type MET019", "An artifact without a path cannot be found.", warns="missing"
    )
    summary: str | None = row("The plan.", "type MET019", "The summary says what the file holds.")


class Progress(Model):
    """Phases of the task, at top level or in the metadata."""

    phases_completed: Whole | None = row(1, "type range MET033", "Progress is counted in phases.", ge=0, le=1000000)
    phases_total: Whole | None = row(2, "type range MET033", "Progress is counted in phases.", ge=0, le=1000000)


class MetaMetadata(Progress):
    """Who returns; each field is taken from `metadata`, else from the top level."""

    session_id: str | None = row("sess_1735460684_a1b2c3", "type MET026", "Attempts are told apart by their session.")
    agent_type: str | None = row("planner", "type MET026", "The task is known by its directory and its agent.")
    delegation_depth: Whole | None = row(1, "type MET026", "It is the length of the path, less two.")
    delegation_path: list[str] | None = row(
        ["orchestrator", "plan", "planner"], "type entry MET025", "It places the return in the tree."
    )


class MetaError(ReturnError):
    """An error that the agent met; nothing is required of it."""

    type: str | None = row("timeout", "type MET031")
    message: str | None = row("The tool timed out.", "type MET031")
    recoverable: bool | None = row(True, "type MET031")
    recommendation: str | None = row("Raise the time-out.", "type MET031")


class ReturnMeta(Progress):
    """The whole return in one shape, whichever way it was written. `more` are the keys that nobody defined.

    What has no row may be written in several ways, or be of any type: it is left out where it is of another.
    """

    status: str | None = row(
        "researched",
        "missing MET001, type MET002",
        "The status is how the orchestrator knows whether the stage has ended, and how.",
        needs="a stage word such as `in_progress`, `researched` or `partial`",
    )
    summary: str | None = row(
        "Read the sources.", "type MET010", "The summary is what the orchestrator reads.", warns="type"
    )
    artifacts: list[MetaArtifact] | None = row(
        None,
        "type MET013, entry MET015",
        "What a stage created can only be checked if it is listed.",
        warns="type entry",
    )
    metadata: MetaMetadata | None = row(
        None,
        "missing MET020, type MET021",
        "Without metadata the return is placed by what stands at top level, or by its directory alone.",
        needs="an object with `session_id`, `agent_type` and `delegation_path`",
        warns="missing type",
    )
    errors: list[MetaError] | None = row(
        None, "type entry MET030", "The recommendation of an error is the hint that a retry starts from."
    )
    blockers: list[str] | None = None
    next_steps: str | None = row("Plan it.", "type MET032", "They are what comes next.", warns="type")
    requires_user_review: bool | None = None
    review_reason: str | None = None
    files_created: list[str] | None = None
    files_modified: list[str] | None = None
    more: dict[str, Any] | None = None


class ReportMetadata(Model):
    """What the orchestrator tracks and manages the task by."""

    agent_name: str | None = row(
        "investigator",
        "missing REP003, type REP004, empty REP005",
        "The orchestrator must know who reports.",
        needs="the name of the agent",
    )
    task_id: str | None = row(
        "sprint-1-auth",
        "missing REP006, type REP007, empty REP008",
        "The task id correlates the report with the request.",
        needs="the id of the briefing",
    )
    status: Literal["completed", "blocked", "failed"] | None = row(
        "failed",
        "missing REP009, type REP010, value REP011, case REP012",
        "The status decides what the orchestrator does next.",
        other="partial",
    )
    verbosity_level: Literal["summary", "detailed", "comprehensive"] | None = row(
        "detailed",
        "missing REP013, type REP014, value REP015, case REP016",
        "Without it `detailed`, the default, is assumed.",
        section="3. Verbosity Levels",
        other="full",
        warns="missing",
    )
    confidence_level: float | None = row(
        0.9,
        "missing REP017, type REP018, range REP019",
        "The orchestrator flags low confidence for review by a human.",
        ge=0.0,
        le=1.0,
    )
    token_usage: Whole | None = row(4250, "type REP021, range REP025", _COST, ge=0)
    execution_time_seconds: Whole | None = row(45, "type REP022, range REP025", _COST, ge=0)
    error_message: str | None = row("It broke.", "type REP023", "The message is what a retry is decided by.")


class ContextEntry(Model):
    """One row of a context map. `first` and `last` are 1-based lines of `path`; None where the row has no pointer."""

    description: str
    path: str | None = None
    first: int | None = None
    last: int | None = None


class Report(Model):
    """The whole report. `findings` are as the agent wrote them, whatever they are; `context_map` is what they map."""

    report_metadata: ReportMetadata | None = row(
        None,
        "missing REP001, type REP002",
        "The metadata is what the orchestrator tracks and manages the task by.",
        section="4.1. report_metadata (Required)",
    )
    findings: dict[str, Any] | None = row(
        {"cause": "The key has expired."},
        "missing REP030, type REP031",
        "The findings are the result of the work.",
        section="4.2. findings (Required)",
    )
    context_map: list[ContextEntry] | None = None
    recommendations: list[str] | None = row(
        ["Add tests."],
        "type REP040, entry REP041",
        "By them the orchestrator knows the next step.",
        section="4.3. recommendations (Optional, Recommended)",
    )
    identified_gaps: list[str] | None = row(
        [],
        "type REP042, entry REP043",
        "They are what a task that succeeds leaves open.",
        section="4.4. identified_gaps (Optional)",
    )
    blockers: list[str] | None = row(
        [],
        "type REP044, entry REP045",
        "They are what somebody must remove first.",
        section="4.5. blockers (Optional, Required if status is 'blocked')",
    )


TABLES: Final = {
    table.contract: table
    for table in (
        Table(Contract.SUBAGENT_RETURN, SubagentReturn, ("{key} (required)", "{key} (optional)")),
        Table(Contract.RETURN_META, ReturnMeta, ("return-meta dialect", "return-meta dialect")),
        Table(Contract.REPORT_CONTRACT, Report),
    )
}


def judge(contract: Contract, top: dict[str, Any], findings: Findings, name: str) -> tuple[Model, Return]:
    """The typed return and its fields; every rule it breaks is noted."""
    if contract is Contract.REPORT_CONTRACT:
        return _judge_report(top, findings)
    if contract is Contract.RETURN_META:
        return _judge_meta(top, findings, name)
    return _judge_subagent_return(top, findings)


def _judge_subagent_return(top: dict[str, Any], findings: Findings) -> tuple[SubagentReturn, Return]:
    returned = read(SubagentReturn, top, findings)
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
            _judge_depth("SUB042", ("metadata", "delegation_depth"), returned.metadata.delegation_depth, path, findings)
    outcome = Outcome(status) if status else None
    fields = _fields_of(Contract.SUBAGENT_RETURN, returned, top, outcome, attempt=_attempt_of(top, "SUB062", findings))
    if outcome is Outcome.BLOCKED:
        fields = replace(fields, blockers=fields.errors or briefs(_blockers(top, Findings())))
    return returned, fields


def _judge_meta(top: dict[str, Any], findings: Findings, name: str) -> tuple[ReturnMeta, Return]:
    outcome = _judge_status(top.get("status"), findings)
    raw = {**top, "more": None, "blockers": _blockers(top, findings)}
    raw["errors"] = _objects(top, "errors", "message", "MET030", findings)
    artifacts = raw["artifacts"] = _objects(top, "artifacts", "path", "MET014", findings) or _single_artifact(top)
    if (
        artifacts is None
        and outcome in (Outcome.COMPLETED, Outcome.PARTIAL)
        and not any(key.endswith("_path") for key in top)
    ):
        how = "is empty" if "artifacts" in top else "is missing"
        findings.add("MET012", (), how=how, status=brief(str(top["status"])))
    # An orchestrator's handoff never has metadata: its directory says whose it is.
    if raw.get("metadata") is None and _HANDOFF_LIKE.search(name):
        raw["metadata"] = {}
    returned = read(ReturnMeta, raw, findings)
    changed: dict[str, Any] = {"metadata": _metadata(top, returned, findings)}

    summary = returned.summary or ""
    if tokens(summary) > MAX_TOKENS:
        findings.add("MET011", ("summary",), tokens=tokens(summary), characters=len(summary))
    judge_paths("MET018", "artifacts", top, findings)
    listed = top.get("artifacts")
    for index, artifact in enumerate(listed[:MAX_ENTRIES] if isinstance(listed, list) else ()):
        kind = artifact.get("type") if isinstance(artifact, dict) else None
        if isinstance(kind, str) and kind not in ("plan", "report", "summary", "implementation", "documentation"):
            findings.add("MET017", ("artifacts", index, "type"), value=shown(kind))
    # What is there and cannot be read is said already.
    if outcome is Outcome.BLOCKED and not any(top.get(key) for key in (*_BLOCKERS, "errors")):
        findings.add("MET035", ("blockers",))
    if returned.requires_user_review and is_blank(returned.review_reason or ""):
        findings.add("MET036", ("review_reason",))

    for key in ("phases_completed", "phases_total"):
        changed[key] = _phases(top, key, returned)
    if isinstance(steps := top.get("next_steps"), list):
        changed["next_steps"] = "\n".join(step for step in steps[:MAX_ENTRIES] if isinstance(step, str)) or None
    if not isinstance(artifacts, list | None):
        changed["artifacts"] = [MetaArtifact(path=path) for path in _paths_in(artifacts)] or None
    changed["more"] = {key: value for key, value in top.items() if key not in ReturnMeta.model_fields} or None
    returned = returned.model_copy(update=changed)
    done, total = returned.phases_completed, returned.phases_total
    fields = _fields_of(
        Contract.RETURN_META,
        returned,
        top,
        outcome,
        attempt=_attempt_of(top, "MET037", findings),
        blockers=briefs(returned.blockers),
        review_reason=(brief(returned.review_reason) or _NO_REASON) if returned.requires_user_review else None,
        progress=(min(done, total), total) if done is not None and total else None,
        files_created=briefs(returned.files_created),
        files_modified=briefs(returned.files_modified),
    )
    if outcome is Outcome.BLOCKED and not fields.blockers:
        fields = replace(fields, blockers=fields.errors)
    return returned, fields


def _judge_report(top: dict[str, Any], findings: Findings) -> tuple[Report, Return]:
    raw = {key: value for key, value in top.items() if key != "context_map"}
    report = read(Report, raw, findings)
    metadata = report.report_metadata or ReportMetadata()
    confidence, status = metadata.confidence_level, metadata.status
    if confidence is not None and confidence < LOW_CONFIDENCE:
        place = ("report_metadata", "confidence_level")
        findings.add("REP020", place, value=shown(confidence), threshold=LOW_CONFIDENCE)
    message = top["report_metadata"].get("error_message") if status else None
    if status == "failed" and (message is None or is_blank(message)):
        findings.add("REP024", ("report_metadata", "error_message"))
    elif status == "completed" and not is_blank(metadata.error_message or ""):
        findings.add("REP026", ("report_metadata", "error_message"))
    blocking = top.get("blockers")
    blank = blocking is None or (isinstance(blocking, list) and all(map(is_blank, blocking)))
    if status == "blocked" and blank:
        findings.add("REP046", ("blockers",))
    elif status in ("completed", "failed") and report.blockers and not blank:
        findings.add("REP047", ("blockers",), status=status)
    if "recommendations" not in top:
        findings.add("REP048", ())
    if "blockers" not in top and status != "blocked":
        findings.add("REP049", ())
    if status in ("blocked", "failed") and not all(map(is_blank, report.identified_gaps or ())):
        findings.add("REP050", ("identified_gaps",), status=status)
    context_map = _context_map((report.findings or {}).get("context_map"), findings)
    report = report.model_copy(update={"context_map": context_map})
    raw_metadata = top.get("report_metadata")
    return report, Return(
        contract=Contract.REPORT_CONTRACT,
        reported_state=_reported(raw_metadata if isinstance(raw_metadata, dict) else {}),
        outcome=(outcome := Outcome(status) if status else None),
        task_id=metadata.task_id or None,
        attempt=_attempt_of(top, "REP051", findings),
        agent=shared(metadata.agent_name),
        error_message=brief(metadata.error_message),
        blockers=briefs(report.blockers or _blockers(top, Findings())),
        next_steps=brief("\n".join(report.recommendations or ())),
        confidence=confidence,
        stated_at=_stated_at(top, outcome),
    )


def _fields_of(
    contract: Contract, returned: SubagentReturn | ReturnMeta, top: dict[str, Any], outcome: Outcome | None, **more: Any
) -> Return:
    """The fields that the delegation tree needs; `more` are others."""
    metadata = returned.metadata or ReturnMetadata()
    errors = returned.errors or []
    first = errors[0] if errors else ReturnError()
    path = tuple(map(intern, metadata.delegation_path or ()))
    recoverable = [error.recoverable for error in errors if error.recoverable is not None]
    return Return(
        contract=contract,
        reported_state=_reported(top),
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
        stated_at=_stated_at(top, outcome),
        **more,
    )


def _reported(holder: dict[str, Any]) -> str | None:
    status = holder.get("status")
    return shared(brief(status)) if isinstance(status, str) else None


def _judge_depth(rule: str, place: Location, depth: int | None, path: object, findings: Findings) -> None:
    """Compare the depth with the path as it was written: an entry of another type is a level all the same."""
    if depth is not None and isinstance(path, list) and path:
        # The orchestrator and its command are no level of delegation.
        expected = max(len(path) - 2, 0)
        if depth != expected:
            findings.add(rule, place, depth=shown(depth), length=len(path), expected=expected)


def _objects(top: dict[str, Any], key: str, name: str, rule: str, findings: Findings) -> Any:
    """A list in which each string is the object that it stands for, its text by `name`; anything else as it is."""
    raw = top.get(key)
    if not isinstance(raw, list):
        return raw
    entries = raw[: MAX_ENTRIES + 1]
    for index, entry in enumerate(entries):
        if isinstance(entry, str):
            findings.add(rule, (key, index), value=shown(entry))
            entries[index] = {name: entry}
    return entries


def _single_artifact(top: dict[str, Any]) -> list[dict[str, Any]] | None:
    single = top.get("artifact_path", top.get("artifact"))
    if isinstance(single, dict) and single.get("path"):
        return [single]
    return [{"path": single}] if isinstance(single, str) and single else None


def _metadata(top: dict[str, Any], returned: ReturnMeta, findings: Findings) -> MetaMetadata:
    """The metadata with what stands at the top level instead."""
    told = isinstance(top.get("metadata"), dict)
    inside: dict[str, Any] = top["metadata"] if told else {}
    above: dict[str, Any] = {key: top[key] for key in METADATA_KEYS if key in top and key not in inside}
    metadata = returned.metadata or MetaMetadata()
    if above:
        at_top = read(MetaMetadata, above, findings)
        metadata = at_top.model_copy(update=metadata.model_dump(exclude_none=True))
    if told and inside.get("session_id") is None and top.get("session_id") is None:
        findings.add("MET022", ("metadata",))
    if told and not any(key in place for key in ("agent_type", "delegation_path") for place in (inside, top)):
        findings.add("MET023", ("metadata",))
    written = (inside if "delegation_path" in inside else top).get("delegation_path")
    place = ("metadata", "delegation_depth") if "delegation_depth" in inside else ("delegation_depth",)
    _judge_depth("MET024", place, metadata.delegation_depth, written, findings)
    return metadata


def _phases(top: dict[str, Any], key: str, returned: ReturnMeta) -> int | None:
    """A number of phases, at top level or in the metadata; a list counts by its length."""
    for place, fields in ((top, returned), (top.get("metadata"), returned.metadata)):
        raw = place.get(key) if isinstance(place, dict) else None
        if raw is not None:
            return len(raw) if isinstance(raw, list) else getattr(fields, key, None)
    return None


def _context_map(rows: object, findings: Findings) -> list[ContextEntry] | None:
    place = ("findings", "context_map")
    if not isinstance(rows, list):
        if rows is not None:
            findings.add("REP032", place, value=shown(rows))
        return None
    entries: list[ContextEntry] = []
    for index, pair in enumerate(rows[:MAX_ENTRIES]):
        if not isinstance(pair, list) or len(pair) != 2:
            value = f"an array of {len(pair)}" if isinstance(pair, list) else shown(pair)
            findings.add("REP033", (*place, index), value=value)
        elif not isinstance(pair[0], str):
            findings.add("REP034", (*place, index, 0), value=shown(pair[0]))
        else:
            entries.append(_context_entry(pair[0], pair[1], (*place, index, 1), findings))
    return entries


def _context_entry(description: str, pointer: object, place: Location, findings: Findings) -> ContextEntry:
    match = _POINTER.match(pointer) if isinstance(pointer, str) else None
    if match is None or why_not_relative(match["path"]) is not None:
        if pointer is not None:
            findings.add("REP035", place, value=shown(pointer))
        return ContextEntry(description=description)
    first = last = None
    if match["first"] is not None:
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if not 1 <= first <= last:
            findings.add("REP036", place, value=shown(pointer))
            first = last = None
    return ContextEntry(description=description, path=match["path"], first=first, last=last)


def judge_two_statuses(top: dict[str, Any], findings: Findings) -> None:
    """Note where the status of one contract says something else than that of another in the same object."""
    said = (top.get("status"), top["report_metadata"].get("status"))
    if len({_MEANS[word] for word in map(_plain, said) if word in _MEANS}) > 1:
        findings.add("DOC015", ("status",), value=shown(said[0]), other=shown(said[1]))


def _plain(status: object) -> str:
    return folded(status.strip()).replace(" ", "_").replace("-", "_") if isinstance(status, str) else ""


def _judge_status(status: object, findings: Findings) -> Outcome | None:
    """What the status of a return means, None where it means nothing known; what is wrong with the word is noted."""
    if not isinstance(status, str):
        return None
    meant = _plain(status)
    outcome = _MEANS.get(meant)
    if outcome is not None:
        if meant != status:
            findings.add("MET005", ("status",), value=shown(status), meant=meant)
        return outcome
    *others, last = _MENDED.sub("", meant).split("_")
    is_finished = last in _FINISHING and _DOUBT.isdisjoint(others)
    findings.add("MET004" if is_finished else "MET003", ("status",), value=shown(status))
    return Outcome.COMPLETED if is_finished else None


def _blockers(top: dict[str, Any], findings: Findings) -> list[str] | None:
    """What blocks, from `blockers` and its kin, without what did; None where there is none of them."""
    found: list[str] = []
    told = {key: top[key] for key in _BLOCKERS if top.get(key) is not None}
    for key, value in told.items():
        entries = value
        if isinstance(value, str):
            entries = [value] if value.strip() else []
        elif isinstance(value, dict) and key in ("blocker", "blocking_issue"):
            entries = [value]
        if not isinstance(entries, list):
            findings.add("MET034", (key,), key=key, value=shown(value))
            continue
        for index, entry in enumerate(entries[:MAX_ENTRIES]):
            texts: list[Any] = [entry]
            if isinstance(entry, dict):
                if folded(str(entry.get("status", ""))) in _OVERCOME:
                    continue
                # That of a key that is known, else of any.
                texts = [*(entry.get(key) for key in _BLOCKER_TEXTS), *entry.values()]
            text = next((text for text in texts if isinstance(text, str) and text.strip()), None)
            if text is None:
                findings.add("MET034", (key, index), key=key, value=shown(entry))
            else:
                found.append(text)
    return found if told else None


def _paths_in(raw: object) -> list[str]:
    """The paths of artifacts that were written as one string, or as an object of paths by kind."""
    values = list(raw.values())[:MAX_ENTRIES] if isinstance(raw, dict) else [raw]
    entries = (entry for value in values for entry in (value[:MAX_ENTRIES] if isinstance(value, list) else [value]))
    return [entry for entry in entries if isinstance(entry, str)][:MAX_ENTRIES]


def _holders(top: dict[str, Any]) -> list[tuple[Location, dict[str, Any]]]:
    """The object and the metadata in it, each with its place."""
    inner = [((key,), top.get(key)) for key in ("metadata", "report_metadata")]
    return [((), top), *((place, value) for place, value in inner if isinstance(value, dict))]


def _stated_at(top: dict[str, Any], outcome: Outcome | None) -> float | None:
    """The latest time in the keys that say when it ended, in seconds since the epoch; None where there is none.

    While it works, when it began is its last sign of life.
    """
    keys = _ENDED if outcome is not Outcome.WORKING else (*_ENDED, *_BEGAN)
    moments = []
    for text in [holder[key] for _, holder in _holders(top) for key in keys if isinstance(holder.get(key), str)]:
        try:
            at = datetime.fromisoformat(text.strip())
            moments.append((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            continue
    return max(moments, default=None)


def _attempt_of(top: dict[str, Any], rule: str, findings: Findings) -> int | None:
    """The attempt that a return says it answers, at its top or in its metadata; what is no number breaks the rule."""
    for place, holder in _holders(top):
        value = holder.get("attempt")
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000:
            return value
        if value is not None:
            findings.add(rule, (*place, "attempt"), value=shown(value))
    return None
