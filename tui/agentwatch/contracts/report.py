"""The report-contract: one JSON object with report_metadata and findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.contracts.catalogue.report import RULES
from agentwatch.contracts.drift import blocked_by
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.stated import stated_at
from agentwatch.contracts.validation import Contracted, Whole, is_blank, validated
from agentwatch.contracts.wording import brief, briefs

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

LOW_CONFIDENCE: Final = 0.5
"""A confidence below this is flagged for a human."""

_POINTER: Final = re.compile(
    r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z"
)
_PAIR: Final = 2


_COST: Final = "The number says what the work cost."


# A table: a field is a row.
# fmt: off
class ReportMetadata(Contracted):
    """What the orchestrator tracks and manages the task by."""

    agent_name: str | None = row(
        "The orchestrator must know who reports.", right="investigator", fill="name the agent that reports",
        missing="REP003", type="REP004", empty="REP005")
    task_id: str | None = row(
        "The task id correlates the report with the request.", right="sprint-1-auth",
        fill="repeat the id that the briefing gave", missing="REP006", type="REP007", empty="REP008")
    status: Literal["completed", "blocked", "failed"] | None = row(
        "The status decides what the orchestrator does next.", right="failed", other="partial",
        missing="REP009", type="REP010", value="REP011", case="REP012")
    verbosity_level: Literal["summary", "detailed", "comprehensive"] | None = row(
        "The agent confirms which level it delivers; without it `detailed`, the default, is assumed.",
        section="3. Verbosity Levels", right="detailed", other="full", warns="missing",
        missing="REP013", type="REP014", value="REP015", case="REP016")
    confidence_level: float | None = row(
        "The orchestrator flags low confidence for review by a human.", right=0.9, ge=0.0, le=1.0,
        missing="REP017", type="REP018", range="REP019")
    token_usage: Whole | None = row(_COST, right=4250, ge=0, type="REP021", range="REP025")
    execution_time_seconds: Whole | None = row(_COST, right=45, ge=0, type="REP022", range="REP025")
    error_message: str | None = row("The message is what a retry is decided by.", right="It broke.", type="REP023")


class ContextEntry(Contracted):
    """One row of a context map. `first` and `last` are 1-based lines of `path`; None where the row has no pointer."""

    description: str
    path: str | None = None
    first: int | None = None
    last: int | None = None


class Report(Contracted):
    """The whole report. `findings` are as the agent wrote them, whatever they are; `context_map` is what they map."""

    report_metadata: ReportMetadata | None = row(
        "The metadata is what the orchestrator tracks and manages the task by.",
        section="4.1. report_metadata (Required)", missing="REP001", type="REP002")
    findings: dict[str, Any] | None = row(
        "The findings are the result of the work.", section="4.2. findings (Required)",
        right={"cause": "The key has expired."}, missing="REP030", type="REP031")
    context_map: list[ContextEntry] | None = None
    recommendations: list[str] | None = row(
        "By them the orchestrator knows the next step.", section="4.3. recommendations (Optional, Recommended)",
        right=["Add tests."], type="REP040", entry="REP041")
    identified_gaps: list[str] | None = row(
        "They are what a task that succeeds leaves open.", section="4.4. identified_gaps (Optional)",
        right=[], type="REP042", entry="REP043")
    blockers: list[str] | None = row(
        "They are what somebody must remove first.",
        section="4.5. blockers (Optional, Required if status is 'blocked')", right=[], type="REP044", entry="REP045")
# fmt: on


TABLE: Final = Table(Contract.REPORT_CONTRACT, Report, RULES)


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[Report, Return]:
    """The typed report and its summary; every rule it breaks is noted."""
    raw = {key: value for key, value in top.items() if key != "context_map"} if "context_map" in top else top
    report = validated(Report, raw, TABLE.judging, judgement)
    metadata = report.report_metadata or ReportMetadata()
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
