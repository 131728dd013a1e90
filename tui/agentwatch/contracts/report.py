"""The report-contract: one JSON object with report_metadata and findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.contracts.drift import attempt_of, blocked_by, stated_at
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.validation import Contracted, Whole, is_blank, validated
from agentwatch.contracts.wording import brief, briefs, shared

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_error, _warning = makers(Contract.REPORT_CONTRACT)
_METADATA = "4.1. report_metadata (Required)"
_STRUCTURE = "2. Standard Report Structure"
_FINDINGS = "4.2. findings (Required)"
_GAPS = "4.4. identified_gaps (Optional)"
_BLOCKERS = "4.5. blockers (Optional, Required if status is 'blocked')"

LOW_CONFIDENCE: Final = 0.5
"""A confidence below this is flagged for a human."""

_POINTER: Final = re.compile(
    r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z"
)
_PAIR: Final = 2
_COST: Final = "The number says what the work cost."


class ReportMetadata(Contracted):
    """What the orchestrator tracks and manages the task by."""

    agent_name: str | None = row(
        "investigator", needs="the name of the agent", missing="REP003", type="REP004", empty="REP005"
    )
    task_id: str | None = row(
        "sprint-1-auth", needs="the id of the briefing", missing="REP006", type="REP007", empty="REP008"
    )
    status: Literal["completed", "blocked", "failed"] | None = row(
        "failed", other="partial", missing="REP009", type="REP010", value="REP011", case="REP012"
    )
    verbosity_level: Literal["summary", "detailed", "comprehensive"] | None = row(
        "detailed",
        section="3. Verbosity Levels",
        other="full",
        warns="missing",
        missing="REP013",
        type="REP014",
        value="REP015",
        case="REP016",
    )
    confidence_level: float | None = row(0.9, ge=0.0, le=1.0, missing="REP017", type="REP018", range="REP019")
    token_usage: Whole | None = row(4250, ge=0, type="REP021", range="REP025")
    execution_time_seconds: Whole | None = row(45, ge=0, type="REP022", range="REP025")
    error_message: str | None = row("It broke.", type="REP023")


class ContextEntry(Contracted):
    """One row of a context map. `first` and `last` are 1-based lines of `path`; None where the row has no pointer."""

    description: str
    path: str | None = None
    first: int | None = None
    last: int | None = None


class Report(Contracted):
    """The whole report. `findings` are as the agent wrote them, whatever they are; `context_map` is what they map."""

    report_metadata: ReportMetadata | None = row(
        section="4.1. report_metadata (Required)", missing="REP001", type="REP002"
    )
    findings: dict[str, Any] | None = row(
        {"cause": "The key has expired."}, section="4.2. findings (Required)", missing="REP030", type="REP031"
    )
    context_map: list[ContextEntry] | None = None
    recommendations: list[str] | None = row(
        ["Add tests."], section="4.3. recommendations (Optional, Recommended)", type="REP040", entry="REP041"
    )
    identified_gaps: list[str] | None = row(
        [], section="4.4. identified_gaps (Optional)", type="REP042", entry="REP043"
    )
    blockers: list[str] | None = row(
        [], section="4.5. blockers (Optional, Required if status is 'blocked')", type="REP044", entry="REP045"
    )


_RULES: Final[tuple[Rule, ...]] = (
    _warning("REP020", _METADATA, "low confidence")
    .says("`report_metadata.confidence_level` is {value}, below {threshold}; have a human look at the result.")
    .because("The level exists so that low-confidence results are flagged for review by a human.")
    .example('"confidence_level": 0.9', '"confidence_level": 0.2'),
    _error("REP024", _METADATA, "`report_metadata.error_message` missing")
    .says("The status is `failed`, but `report_metadata.error_message` is missing or empty; describe the error.")
    .because("The error message is required if the status is failed: it is what a retry is decided by.")
    .example('"status": "failed", "error_message": "It broke."', '"status": "failed", "error_message": null'),
    _warning("REP025", _METADATA, "a count of `report_metadata` is negative")
    .says("`report_metadata.{key}` is {value}; it must be 0 or more.")
    .because("Neither tokens nor seconds can be fewer than none: a sum over many reports would be wrong.")
    .example('"token_usage": 4250', '"token_usage": -1'),
    _warning("REP026", _METADATA, "`report_metadata.error_message` though completed")
    .says("`report_metadata.error_message` is filled though the status is `completed`; drop it or report `failed`.")
    .because("An error beside a success leaves open which of the two holds.")
    .example('"status": "completed", "error_message": null', '"status": "completed", "error_message": "It broke."'),
    _warning("REP032", _FINDINGS, "`findings.context_map` is not an array of rows")
    .says("`findings.context_map` is {value}; it must be an array of rows.")
    .because("Readers rely on `findings.context_map` being an array of rows; anything else makes them fail or guess.")
    .example('"context_map": [["Signs.", "repo://src/auth.py:45-120"]]', '"context_map": {"auth": "src/auth.py"}'),
    _warning("REP033", _FINDINGS, "row of `findings.context_map` is no pair")
    .says("A row of `findings.context_map` is {value}; each must be a pair: a description, and a pointer or null.")
    .because("The map is compact because every row has the same two elements.")
    .example('["Signs the tokens.", "repo://src/auth.py:45-120"]', '["Signs the tokens."]'),
    _warning("REP034", _FINDINGS, "context without a description")
    .says("The first element of this row of `findings.context_map` is {value}; it must be a string that describes it.")
    .because("A pointer without a description forces the reader to open it.")
    .example('["Signs the tokens.", "repo://src/auth.py:45-120"]', '[null, "repo://src/auth.py:45-120"]'),
    _warning("REP035", _FINDINGS, "pointer is not `repo://path:first-last`")
    .says("The pointer {value} is neither null nor `repo://path:first-last`; write path and lines that way.")
    .because("A pointer in the standard form can be opened by a program.")
    .example('"repo://src/auth.py:45-120"', '"src/auth.py, line 45"'),
    _warning("REP036", _FINDINGS, "pointer's lines are not in order")
    .says("The pointer {value} does not name lines from 1 on in rising order; correct the range.")
    .because("A range that ends before it starts shows nothing.")
    .example('"repo://src/auth.py:45-120"', '"repo://src/auth.py:120-45"'),
    _error("REP046", _BLOCKERS, "blocked without blockers")
    .says("The status is `blocked`, but `blockers` is missing or empty; name what blocks the task.")
    .because("The blockers are required if the status is blocked: nobody can remove what is not named.")
    .example('"status": "blocked", "blockers": ["The key is missing."]', '"status": "blocked", "blockers": []'),
    _warning("REP047", _BLOCKERS, "blockers though not blocked")
    .says("`blockers` is filled though the status is `{status}`; move them to `identified_gaps` or report `blocked`.")
    .because("The field should only be populated if the status is blocked; else nobody knows whether the task waits.")
    .example('"status": "completed", "blockers": []', '"status": "completed", "blockers": ["No key."]'),
    _warning("REP048", _STRUCTURE, "`recommendations` missing")
    .says("`recommendations` is missing; add it as an array of strings.")
    .because("They are strongly recommended: by them the orchestrator knows the next step. An empty array says none.")
    .example('"recommendations": []', "(no `recommendations`)"),
    _warning("REP049", _STRUCTURE, "`blockers` missing")
    .says("`blockers` is missing; add it as an array of strings.")
    .because("They are strongly recommended: an empty array says that nothing blocks, a missing one says nothing.")
    .example('"blockers": []', "(no `blockers`)"),
    _warning("REP050", _GAPS, "gaps of an unsuccessful task")
    .says("`identified_gaps` is filled though the status is `{status}`; say in `blockers` what went wrong.")
    .because("Gaps are for issues found while a task succeeds; a reader of a failed one looks for the cause elsewhere.")
    .example(
        '"status": "completed", "identified_gaps": ["Tests."]', '"status": "failed", "identified_gaps": ["Tests."]'
    ),
    _warning("REP051", _METADATA, "`attempt` is not a positive integer")
    .says("`attempt` is {value}; agentwatch understands it only as an integer from 1 on.")
    .because("`attempt` is not of the contract; agentwatch counts retries by it.")
    .example('"attempt": 2', '"attempt": "second"'),
)

TABLE: Final = Table(
    Contract.REPORT_CONTRACT,
    Report,
    _RULES,
    why={
        "report_metadata": "The metadata is what the orchestrator tracks and manages the task by.",
        "report_metadata.agent_name": "The orchestrator must know who reports.",
        "report_metadata.task_id": "The task id correlates the report with the request.",
        "report_metadata.status": "The status decides what the orchestrator does next.",
        "report_metadata.verbosity_level": "Without it `detailed`, the default, is assumed.",
        "report_metadata.confidence_level": "The orchestrator flags low confidence for review by a human.",
        "report_metadata.token_usage": _COST,
        "report_metadata.execution_time_seconds": _COST,
        "report_metadata.error_message": "The message is what a retry is decided by.",
        "findings": "The findings are the result of the work.",
        "recommendations": "By them the orchestrator knows the next step.",
        "identified_gaps": "They are what a task that succeeds leaves open.",
        "blockers": "They are what somebody must remove first.",
    },
)


_NO_METADATA: Final = ReportMetadata()


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[Report, Return]:
    """The typed report and its summary; every rule it breaks is noted."""
    raw = {key: value for key, value in top.items() if key != "context_map"} if "context_map" in top else top
    report = validated(Report, raw, TABLE.judging, judgement)
    metadata = report.report_metadata or _NO_METADATA
    confidence = metadata.confidence_level
    if confidence is not None and confidence < LOW_CONFIDENCE:
        place = ("report_metadata", "confidence_level")
        judgement.add("REP020", place, value=shown(confidence), threshold=LOW_CONFIDENCE)
    if metadata.status == "failed":
        message = top["report_metadata"].get("error_message")
        if message is None or is_blank(message):
            judgement.add("REP024", ("report_metadata", "error_message"))
    elif metadata.status == "completed" and metadata.error_message and not is_blank(metadata.error_message):
        judgement.add("REP026", ("report_metadata", "error_message"))
    blockers = top.get("blockers")
    blank = blockers is None or (isinstance(blockers, list) and all(map(is_blank, blockers)))
    if metadata.status == "blocked" and blank:
        judgement.add("REP046", ("blockers",))
    elif metadata.status in ("completed", "failed") and report.blockers and not blank:
        judgement.add("REP047", ("blockers",), status=metadata.status)
    if "recommendations" not in top:
        judgement.add("REP048", ())
    if "blockers" not in top and metadata.status != "blocked":
        judgement.add("REP049", ())
    if metadata.status in ("blocked", "failed") and not all(map(is_blank, report.identified_gaps or ())):
        judgement.add("REP050", ("identified_gaps",), status=metadata.status)
    context_map = _context_map(report.findings or {}, judgement)
    if context_map is not None:
        report = report.model_copy(update={"context_map": context_map})
    return report, _summary_of(report, top, attempt_of(top, "REP051", judgement))


def _context_map(findings: dict[str, Any], judgement: Judgement) -> list[ContextEntry] | None:
    rows = findings.get("context_map")
    if rows is None:
        return None
    place = ("findings", "context_map")
    if not isinstance(rows, list):
        judgement.add("REP032", place, value=shown(rows))
        return None
    entries: list[ContextEntry] = []
    for index, pair in enumerate(rows[:MAX_ENTRIES]):
        here = (*place, index)
        if not isinstance(pair, list):
            judgement.add("REP033", here, value=shown(pair))
        elif len(pair) != _PAIR:
            judgement.add("REP033", here, value=f"an array of {len(pair)}")
        elif not isinstance(pair[0], str):
            judgement.add("REP034", (*here, 0), value=shown(pair[0]))
        else:
            entries.append(_context_entry(pair[0], pair[1], (*here, 1), judgement))
    return entries


def _context_entry(
    description: str, pointer: object, place: tuple[str | int, ...], judgement: Judgement
) -> ContextEntry:
    match = _POINTER.match(pointer) if isinstance(pointer, str) else None
    if match is None or why_not_relative(match["path"]) is not None:
        if pointer is not None:
            judgement.add("REP035", place, value=shown(pointer))
        return ContextEntry(description=description)
    first = last = None
    if match["first"] is not None:
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if not 1 <= first <= last:
            judgement.add("REP036", place, value=shown(pointer))
            first = last = None
    return ContextEntry(description=description, path=match["path"], first=first, last=last)


def _summary_of(report: Report, top: dict[str, Any], attempt: int | None) -> Return:
    metadata = report.report_metadata or _NO_METADATA
    raw = top.get("report_metadata")
    status = raw.get("status") if isinstance(raw, dict) else None
    outcome = Outcome(metadata.status) if metadata.status else None
    return Return(
        contract=Contract.REPORT_CONTRACT,
        reported_state=shared(brief(status)) if isinstance(status, str) else None,
        outcome=outcome,
        task_id=metadata.task_id or None,
        attempt=attempt,
        agent=shared(metadata.agent_name),
        error_message=brief(metadata.error_message),
        retry_hint=None,
        blockers=briefs(report.blockers or blocked_by(top)),
        next_steps=brief("\n".join(report.recommendations or ())),
        confidence=metadata.confidence_level,
        stated_at=stated_at(top, outcome),
    )
