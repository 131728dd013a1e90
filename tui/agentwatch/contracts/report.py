"""The report-contract: one JSON object with report_metadata and findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.contracts.checks import brief, briefs, is_blank, shared, why_not_relative
from agentwatch.contracts.dialect import attempt_of, blockers, stated_at
from agentwatch.contracts.fields import Model, Table, Whole, row
from agentwatch.contracts.findings import MAX_ENTRIES, Findings, shown
from agentwatch.contracts.shapes import Contract, Outcome, Return

if TYPE_CHECKING:
    from agentwatch.contracts.json_text import Location

LOW_CONFIDENCE: Final = 0.5
"""A confidence below this is flagged for a human."""
_POINTER: Final = re.compile(
    r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z"
)
_COST: Final = "The number says what the work cost."


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


TABLE: Final = Table(Contract.REPORT_CONTRACT, Report)


def judge(top: dict[str, Any], findings: Findings, _name: str) -> tuple[Report, Return]:
    """The typed report and its summary; every rule it breaks is noted."""
    raw = {key: value for key, value in top.items() if key != "context_map"} if "context_map" in top else top
    report = TABLE.read(Report, raw, findings)
    metadata = report.report_metadata or ReportMetadata()
    confidence, status = metadata.confidence_level, metadata.status
    if confidence is not None and confidence < LOW_CONFIDENCE:
        place = ("report_metadata", "confidence_level")
        findings.add("REP020", place, value=shown(confidence), threshold=LOW_CONFIDENCE)
    message = top["report_metadata"].get("error_message") if status else None
    if status == "failed" and (message is None or is_blank(message)):
        findings.add("REP024", ("report_metadata", "error_message"))
    elif status == "completed" and (metadata.error_message or "").strip():
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
    if context_map is not None:
        report = report.model_copy(update={"context_map": context_map})
    attempt = attempt_of(top, "REP051", findings)
    raw_metadata = top.get("report_metadata")
    reported = raw_metadata.get("status") if isinstance(raw_metadata, dict) else None
    outcome = Outcome(status) if status else None
    return report, Return(
        contract=Contract.REPORT_CONTRACT,
        reported_state=shared(brief(reported)) if isinstance(reported, str) else None,
        outcome=outcome,
        task_id=metadata.task_id or None,
        attempt=attempt,
        agent=shared(metadata.agent_name),
        error_message=brief(metadata.error_message),
        blockers=briefs(report.blockers or blockers(top, Findings())),
        next_steps=brief("\n".join(report.recommendations or ())),
        confidence=confidence,
        stated_at=stated_at(top, outcome),
    )


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
