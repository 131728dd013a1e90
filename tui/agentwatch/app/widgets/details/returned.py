"""The return tab: what the child gave back, written out in the way of its contract."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, Paragraph
from agentwatch.app.widgets.details.attestation import artifact_table, attestation_fields, paths
from agentwatch.app.widgets.details.blocks import (
    ACCENT,
    MAX_ROWS,
    Block,
    Column,
    Gap,
    Heading,
    Rich,
    Table,
    Text,
    faint,
    field,
    fields,
    left_out,
    plain,
    rich_field,
    rich_fields,
    rich_line,
    rich_list,
    section,
    text,
)
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.json_returns import (
    ContextEntry,
    MetaMetadata,
    Report,
    ReportMetadata,
    ReturnError,
    ReturnMeta,
    ReturnMetadata,
    SubagentReturn,
)
from agentwatch.contracts.return_format import ReturnFormat
from agentwatch.contracts.shapes import Return, Severity
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import Version
from agentwatch.text import clean
from agentwatch.view import times
from agentwatch.view.words import plural

MAX_DEPTH: Final = 8
"""Levels of a JSON value that are written out; deeper ones are left to the Raw tab."""
_GONE: Final = "The text of the return is gone; this is what was read of it."
_UNREADABLE: Final = "The return cannot be read in whole; this is what was understood. The Raw tab has its text."
_STEP: Final = "  "
_DEEPER: Final = faint("… deeper than is shown: see Raw")
_BAR: Final = 6
"""Cells of the bar of done phases."""


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    attempt = view.returned
    if attempt is None or attempt.returned is None:
        if view.task.run is not None:
            yield from _answered(view, view.task.run)
        else:
            yield text(faint("Nothing has come back yet."))
        return
    yield from view.older(attempt, "has not returned yet; this is what", " returned")
    version = attempt.returned
    errors = sum(1 for finding in version.findings if finding.severity is Severity.ERROR)
    if errors:
        broken = f"‼ breaks its contract: {plural(errors, 'error')}, see Findings"
        yield text(Content.styled(broken, "$state-invalid"))
        yield Gap()
    yield from _document(view, version, attempt.result)


def _answered(view: View, run: Run) -> Iterator[Block]:
    """What a run said, where that follows no contract."""
    if run.said is None:
        ended = run.state not in (RunState.SUBMITTED, RunState.WORKING)
        yield text(faint("It ended without an answer." if ended else "Nothing has come back yet."))
        if run.reason:
            yield text(plain(run.reason))
    else:
        yield text(faint("Its answer follows none of the contracts; these are its words:"))
        yield Gap()
        yield view.words(run.said)
    for number, message in reversed(list(enumerate(run.earlier, 1))):
        yield Gap()
        yield Heading(f"Answer {number}", note=faint("in the same session, before it was sent on"))
        yield view.words(message)


def _document(view: View, version: Version, result: Return | None) -> Iterator[Block]:
    opened = view.opened(version)
    if opened is None:
        yield READING
        return
    document = opened.model
    reported = result.reported_state if result else None
    if document is None or not any(document.model_dump(exclude_none=True).values()):
        yield text(faint(_UNREADABLE if opened else _GONE))
        yield Gap()
        if result:
            yield from _summary(result)
    elif isinstance(document, ReturnFormat):
        yield from _return_format(document, reported)
    elif isinstance(document, SubagentReturn):
        yield from _subagent_return(document, reported)
    elif isinstance(document, ReturnMeta):
        yield from _return_meta(document, reported)
    elif isinstance(document, Report):
        yield from _report(document, reported)


def _summary(result: Return) -> Iterator[Block]:
    """What is known of a return whose text is not there any more."""
    yield from fields(
        ("status", result.reported_state),
        ("summary", result.summary),
        ("error", result.error_code),
        ("message", result.error_message),
        ("hint", result.retry_hint),
        ("next", result.next_steps),
        ("agent", result.agent),
        ("session", result.session_id),
    )
    yield from section("Blockers", result.blockers)
    yield from paths("Artifacts", result.artifacts)


def _state(label: str, state: str | None, reported: str | None) -> Block:
    """The state as the contract knows it; a word that it does not know is what was reported all the same."""
    if state:
        return field(label, plain(state))
    if reported:
        return field(label, Content.assemble(plain(reported, 60), ("   the contract does not have this word", FAINT)))
    return field(label, faint("none"))


def _return_format(returned: ReturnFormat, reported: str | None) -> Iterator[Block]:
    status = returned.status
    if status is None:
        yield text(faint("The Status section is missing."))
    else:
        yield _state("state", status.state, reported)
        yield from rich_fields(("summary", status.summary))
        yield from fields(
            ("error", status.error_code),
            ("retry", status.retry_recommended),
            ("hint", status.retry_hint),
            ("task", status.task_id),
            ("attempt", str(status.attempt) if status.attempt else None),
        )
    yield from _heading("Deliverables", returned.deliverables)
    if returned.deliverables:
        rows = [(plain(one.path), rich_line(one.description or "-")) for one in returned.deliverables]
        yield Table((Column("path", flexible=True), Column("description", flexible=True)), rows)
    yield from _heading("Evidence", returned.evidence)
    yield from rich_list(returned.evidence or ())
    yield Heading("Runtime attestation")
    if returned.attestation is None:
        yield text(faint("the section is missing"))
    else:
        yield from attestation_fields(returned.attestation)


def _heading(title: str, items: Sequence[object] | None) -> Iterator[Block]:
    """The heading of a section of the contract, and under it whether the section is missing or empty."""
    yield Heading(title, None if items is None else len(items))
    if not items:
        yield text(faint("the section is missing" if items is None else "none"))


def _subagent_return(returned: SubagentReturn, reported: str | None) -> Iterator[Block]:
    yield from _status_and_summary(returned.status, reported, returned.summary)
    yield from artifact_table(returned.artifacts)
    yield from _errors(returned.errors)
    yield from _next_steps(returned.next_steps)
    if metadata := returned.metadata:
        yield Heading("Metadata")
        yield from _who(metadata)
        yield from _took(metadata.duration_seconds)
        phases, hours, findings = metadata.phase_count, metadata.estimated_hours, metadata.findings_count
        yield from fields(
            ("phases", None if phases is None else f"{phases:,}"),
            ("estimated", None if hours is None else f"{hours:g} hours"),
            ("findings", None if findings is None else f"{findings:,}"),
        )


def _return_meta(returned: ReturnMeta, reported: str | None) -> Iterator[Block]:
    yield from _status_and_summary(returned.status, reported, returned.summary)
    done, total = returned.phases_completed, returned.phases_total
    if done is not None and total:
        filled = round(_BAR * min(done, total) / total)
        bar = "█" * filled + "░" * (_BAR - filled)
        yield field("phases", Content.assemble(f"{done} of {total}  ", (bar, FAINT)))
    elif done is not None:
        yield field("phases", Content(f"{done:,} done"))
    if returned.requires_user_review:
        yield field("review", plain(returned.review_reason or "asked for, without a reason").stylize(ACCENT))
    yield from artifact_table(returned.artifacts)
    yield from section("Blockers", returned.blockers, "■", "$state-blocked")
    yield from _errors(returned.errors)
    yield from _next_steps(returned.next_steps)
    yield from paths("Files created", returned.files_created)
    yield from paths("Files modified", returned.files_modified)
    if returned.metadata:
        yield Heading("Metadata")
        yield from _who(returned.metadata)
    if returned.more:
        yield Heading("More that it says", len(returned.more))
        yield from _outline(returned.more)


def _status_and_summary(status: str | None, reported: str | None, summary: str | None) -> Iterator[Block]:
    yield _state("status", status, reported)
    yield rich_field("summary", summary) if summary else field("summary", faint("none"))


def _errors(errors: Sequence[ReturnError] | None) -> Iterator[Block]:
    if not errors:
        return
    yield Heading("Errors", len(errors))
    for error in errors[:MAX_ROWS]:
        recoverable = {True: "recoverable", False: "not recoverable", None: ""}[error.recoverable]
        kind = plain(error.type, 40).stylize("$text-error") if error.type else faint("no type")
        yield text(Content.assemble(("✗ ", "$text-error"), kind, (f"   {recoverable}", FAINT)))
        if error.message:
            yield Rich(error.message, Content("  "), "  ")
        if error.recommendation:
            yield Rich(error.recommendation, faint("  → "), "    ")


def _next_steps(steps: str | None) -> Iterator[Block]:
    if steps:
        yield Heading("Next steps")
        yield Rich(steps)


def _who(metadata: ReturnMetadata | MetaMetadata) -> Iterator[Block]:
    yield from fields(("agent", metadata.agent_type), ("session", metadata.session_id))
    if metadata.delegation_path:
        names = [plain(part, 60) for part in metadata.delegation_path[:MAX_ROWS]]
        yield field("path", faint(" › ").join(names))
    if metadata.delegation_depth is not None:
        yield field("depth", Content(str(metadata.delegation_depth)))


def _took(seconds: float | None) -> Iterator[Block]:
    if seconds is not None:
        yield field("took", Content(times.duration(seconds)))


def _report(report: Report, reported: str | None) -> Iterator[Block]:
    if report.report_metadata:
        yield from _report_metadata(report.report_metadata, reported)
    yield from section("Blockers", report.blockers, "■", "$state-blocked")
    mapped = report.context_map
    if mapped:
        yield Heading("Context map", len(mapped))
        yield Table(
            (Column("statement", flexible=True), Column("location", flexible=True)),
            [(rich_line(entry.description), _location(entry)) for entry in mapped],
        )
    others = {key: value for key, value in (report.findings or {}).items() if key != "context_map" or not mapped}
    if others:
        yield Heading("Findings")
        yield from _outline(others)
    elif not mapped:
        yield Heading("Findings")
        yield text(faint("none"))
    yield from section("Recommendations", report.recommendations, "→")
    yield from section("Gaps", report.identified_gaps, "○")


def _report_metadata(metadata: ReportMetadata, reported: str | None) -> Iterator[Block]:
    yield _state("status", metadata.status, reported)
    yield from rich_fields(("message", metadata.error_message))
    confidence, tokens = metadata.confidence_level, metadata.token_usage
    yield from fields(
        ("agent", metadata.agent_name),
        ("task", metadata.task_id),
        ("level", metadata.verbosity_level),
        ("confidence", None if confidence is None else f"{confidence:.2f}"),
        ("tokens", None if tokens is None else f"{tokens:,}"),
    )
    yield from _took(metadata.execution_time_seconds)


def _location(entry: ContextEntry) -> Content:
    if entry.path is None:
        return faint("-")
    return plain(entry.path + (f":{entry.first}-{entry.last}" if entry.first is not None else ""))


def _outline(value: object, indent: str = "", depth: int = 0, lead: Content | None = None) -> Iterator[Block]:
    """Any JSON value as an indented outline: it has whatever shape its agent chose. Strings in it are Markdown.

    `lead`, as long as `indent`, stands in its place before the first line.
    """
    before = Content(indent) if lead is None else lead
    if isinstance(value, dict):
        for key, inner in islice(value.items(), MAX_ROWS):
            yield from _entry(faint(clean(str(key), 60)), inner, before, indent, depth)
            before = Content(indent)
        yield from left_out(len(value), indent=indent)
    elif isinstance(value, list):
        for inner in value[:MAX_ROWS]:
            yield from _item(inner, before, indent, depth)
            before = Content(indent)
        yield from left_out(len(value), indent=indent)
    elif isinstance(value, str):
        yield Rich(value, before, indent)
    else:
        yield Text(Paragraph(_short(value), before, indent))


def _entry(label: Content, value: object, before: Content, indent: str, depth: int) -> Iterator[Block]:
    """A key with its value behind it where that is one line, else below it."""
    if isinstance(value, (dict, list)) and value and depth < MAX_DEPTH:
        yield Text(Paragraph(label, before, indent))
        yield from _outline(value, indent + _STEP, depth + 1)
    elif isinstance(value, str) and "\n" in value.strip():
        yield Text(Paragraph(label, before, indent))
        yield Rich(value, Content(indent + _STEP), indent + _STEP)
    else:
        yield Text(Paragraph(_short(value), Content.assemble(before, label, "  "), indent + _STEP))


def _item(value: object, before: Content, indent: str, depth: int) -> Iterator[Block]:
    """An item of a list: its first line stands beside the bullet."""
    lead = Content.assemble(before, ("• ", FAINT))
    if isinstance(value, (dict, list)) and not (value and depth < MAX_DEPTH):
        yield Text(Paragraph(_short(value), lead, indent + _STEP))
    else:
        yield from _outline(value, indent + _STEP, depth + 1, lead)


def _short(value: object) -> Content:
    """What is left in one line: a string; an empty list or one that lies too deep; a number, true, false or null."""
    if isinstance(value, str):
        return rich_line(value)
    if isinstance(value, (dict, list)):
        return _DEEPER if value else faint("none")
    return plain(json.dumps(value), 400)
