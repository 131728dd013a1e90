"""The report-contract: one JSON object with report_metadata and findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from agentwatch.contracts.drift import blocked_by
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.stated import stated_at
from agentwatch.contracts.validation import Contracted, Faults, Schema, Whole, is_blank, validated
from agentwatch.contracts.wording import brief, briefs

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

LOW_CONFIDENCE: Final = 0.5
"""A confidence below this is flagged for a human."""

STATUSES: Final = ("completed", "blocked", "failed")
LEVELS: Final = ("summary", "detailed", "comprehensive")
_POINTER: Final = re.compile(
    r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z"
)
_PAIR: Final = 2


class ReportMetadata(Contracted):
    """What the orchestrator tracks and manages the task by."""

    agent_name: str | None = None
    task_id: str | None = None
    status: Literal["completed", "blocked", "failed"] | None = None
    verbosity_level: Literal["summary", "detailed", "comprehensive"] | None = None
    confidence_level: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    token_usage: Annotated[Whole, Field(ge=0)] | None = None
    execution_time_seconds: Annotated[Whole, Field(ge=0)] | None = None
    error_message: str | None = None


class ContextEntry(Contracted):
    """One row of a context map. `first` and `last` are 1-based lines of `path`; None where the row has no pointer."""

    description: str
    path: str | None = None
    first: int | None = None
    last: int | None = None


class Report(Contracted):
    """The whole report. `findings` are as the agent wrote them, whatever they are; `context_map` is what they map."""

    report_metadata: ReportMetadata | None = None
    findings: dict[str, Any] | None = None
    context_map: list[ContextEntry] | None = None
    recommendations: list[str] | None = None
    identified_gaps: list[str] | None = None
    blockers: list[str] | None = None


_FAULTS: Final[Faults] = {
    (("report_metadata",), "missing"): "REP001",
    (("report_metadata",), "type"): "REP002",
    (("report_metadata", "agent_name"), "missing"): "REP003",
    (("report_metadata", "agent_name"), "type"): "REP004",
    (("report_metadata", "agent_name"), "empty"): "REP005",
    (("report_metadata", "task_id"), "missing"): "REP006",
    (("report_metadata", "task_id"), "type"): "REP007",
    (("report_metadata", "task_id"), "empty"): "REP008",
    (("report_metadata", "status"), "missing"): "REP009",
    (("report_metadata", "status"), "type"): "REP010",
    (("report_metadata", "status"), "value"): "REP011",
    (("report_metadata", "status"), "case"): "REP012",
    (("report_metadata", "verbosity_level"), "missing"): "REP013",
    (("report_metadata", "verbosity_level"), "type"): "REP014",
    (("report_metadata", "verbosity_level"), "value"): "REP015",
    (("report_metadata", "verbosity_level"), "case"): "REP016",
    (("report_metadata", "confidence_level"), "missing"): "REP017",
    (("report_metadata", "confidence_level"), "type"): "REP018",
    (("report_metadata", "confidence_level"), "range"): "REP019",
    (("report_metadata", "token_usage"), "type"): "REP021",
    (("report_metadata", "token_usage"), "range"): "REP025",
    (("report_metadata", "execution_time_seconds"), "type"): "REP022",
    (("report_metadata", "execution_time_seconds"), "range"): "REP025",
    (("report_metadata", "error_message"), "type"): "REP023",
    (("findings",), "missing"): "REP030",
    (("findings",), "type"): "REP031",
    (("recommendations",), "type"): "REP040",
    (("recommendations", "*"), "type"): "REP041",
    (("identified_gaps",), "type"): "REP042",
    (("identified_gaps", "*"), "type"): "REP043",
    (("blockers",), "type"): "REP044",
    (("blockers", "*"), "type"): "REP045",
}
_SCHEMA: Final = Schema(
    _FAULTS, {("report_metadata", "status"): STATUSES, ("report_metadata", "verbosity_level"): LEVELS}
)


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[Report, Return]:
    """The typed report and its summary; every rule it breaks is noted."""
    raw = {key: value for key, value in top.items() if key != "context_map"} if "context_map" in top else top
    report = validated(Report, raw, _SCHEMA, judgement)
    metadata = report.report_metadata or ReportMetadata()
    confidence = metadata.confidence_level
    if confidence is not None and confidence < LOW_CONFIDENCE:
        place = ("report_metadata", "confidence_level")
        judgement.add("REP020", place, value=shown(confidence), threshold=LOW_CONFIDENCE)
    if metadata.status == "failed":
        message = top["report_metadata"].get("error_message")
        if message is None or is_blank(message):
            judgement.add("REP024", ("report_metadata", "error_message"))
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
    report = report.model_copy(update={"context_map": _context_map(report.findings or {}, judgement)})
    return report, _summary_of(report, top)


def _context_map(findings: dict[str, Any], judgement: Judgement) -> list[ContextEntry] | None:
    rows = findings.get("context_map")
    if rows is None:
        return None
    place = ("findings", "context_map")
    if not isinstance(rows, list):
        judgement.add("REP032", place, value=shown(rows))
        return None
    entries: list[ContextEntry] = []
    for index, row in enumerate(rows[:MAX_ENTRIES]):
        here = (*place, index)
        if not isinstance(row, list):
            judgement.add("REP033", here, value=shown(row))
        elif len(row) != _PAIR:
            judgement.add("REP033", here, value=f"an array of {len(row)}")
        elif not isinstance(row[0], str):
            judgement.add("REP034", (*here, 0), value=shown(row[0]))
        else:
            entries.append(_context_entry(row[0], row[1], (*here, 1), judgement))
    return entries


def _context_entry(
    description: str, pointer: object, place: tuple[str | int, ...], judgement: Judgement
) -> ContextEntry:
    if pointer is None:
        return ContextEntry(description=description)
    match = _POINTER.match(pointer) if isinstance(pointer, str) else None
    if match is None or why_not_relative(match["path"]) is not None:
        judgement.add("REP035", place, value=shown(pointer))
        return ContextEntry(description=description)
    if match["first"] is None:
        return ContextEntry(description=description, path=match["path"])
    first = int(match["first"])
    last = int(match["last"] or first)
    if not 1 <= first <= last:
        judgement.add("REP036", place, value=shown(pointer))
        return ContextEntry(description=description, path=match["path"])
    return ContextEntry(description=description, path=match["path"], first=first, last=last)


def _summary_of(report: Report, top: dict[str, Any]) -> Return:
    metadata = report.report_metadata or ReportMetadata()
    raw = top.get("report_metadata")
    status = raw.get("status") if isinstance(raw, dict) else None
    outcome = Outcome(metadata.status) if metadata.status else None
    return Return(
        contract=Contract.REPORT_CONTRACT,
        reported_state=brief(status) if isinstance(status, str) else None,
        outcome=outcome,
        task_id=metadata.task_id or None,
        agent=metadata.agent_name or None,
        error_message=brief(metadata.error_message),
        retry_hint=None,
        blockers=briefs(report.blockers or blocked_by(top)),
        next_steps=brief("\n".join(report.recommendations or ())),
        confidence=metadata.confidence_level,
        stated_at=stated_at(top, outcome),
    )
