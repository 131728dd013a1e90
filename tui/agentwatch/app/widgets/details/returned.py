"""The return tab: what the child gave back, written out in the way of its contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details import session, wording
from agentwatch.app.widgets.details.blocks import (
    MAX_ROWS,
    Block,
    Column,
    Gap,
    Heading,
    Rich,
    Table,
    faint,
    field,
    plain,
    rich_field,
    rich_line,
    rich_list,
    text,
)
from agentwatch.app.widgets.details.claims import artifact_table, attestation_fields
from agentwatch.app.widgets.details.json_outline import outline
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.report import ContextEntry, Report, ReportMetadata
from agentwatch.contracts.return_format import ReturnFormat
from agentwatch.contracts.return_meta import MetaMetadata, ReturnMeta
from agentwatch.contracts.shapes import Return, Severity
from agentwatch.contracts.subagent_return import ReturnError, ReturnMetadata, SubagentReturn
from agentwatch.delegation.task import Version
from agentwatch.view import times
from agentwatch.view.words import plural

_GONE: Final = "The text of the return is gone; this is what was read of it."
_UNREADABLE: Final = "The return cannot be read in whole; this is what was understood. The Raw tab has its text."


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    attempt = view.returned
    if (attempt is None or attempt.returned is None) and view.task.run is not None:
        yield from session.answered(view, view.task.run)
        return
    if attempt is None or attempt.returned is None:
        yield text(faint("Nothing has come back yet."))
        return
    if attempt is not view.task.latest:
        now = view.task.attempt
        yield text(faint(f"Attempt {now} has not returned yet; this is what attempt {attempt.number} returned."))
        yield Gap()
    version = attempt.returned
    errors = sum(1 for finding in version.findings if finding.severity is Severity.ERROR)
    if errors:
        broken = f"‼ breaks its contract: {plural(errors, 'error')}, see Findings"
        yield text(Content.styled(broken, "$state-invalid"))
        yield Gap()
    yield from _document(view, version, attempt.result)


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
    yield from _fields(
        ("status", result.reported_state),
        ("summary", result.summary),
        ("error", result.error_code),
        ("message", result.error_message),
        ("hint", result.retry_hint),
        ("next", result.next_steps),
        ("agent", result.agent),
        ("session", result.session_id),
    )
    for title, items in (("Blockers", result.blockers), ("Artifacts", result.artifacts)):
        yield from _section(title, items)


def _fields(*pairs: tuple[str, str | None]) -> Iterator[Block]:
    for label, value in pairs:
        if value:
            yield field(label, plain(value))


def _section(title: str, items: Sequence[str] | None, marker: str = "•", style: str = FAINT) -> Iterator[Block]:
    """A section of Markdown strings; nothing if there are none."""
    if items:
        yield Heading(title, len(items))
        yield from rich_list(items, marker, style)


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
        if status.summary:
            yield rich_field("summary", status.summary)
        yield from _fields(
            ("error", status.error_code),
            ("retry", status.retry_recommended),
            ("hint", status.retry_hint),
            ("task", status.task_id),
            ("attempt", str(status.attempt) if status.attempt else None),
        )
    yield Heading("Deliverables", None if returned.deliverables is None else len(returned.deliverables))
    if returned.deliverables:
        rows = [(plain(one.path), rich_line(one.description or "-")) for one in returned.deliverables]
        yield Table((Column("path", flexible=True), Column("description", flexible=True)), rows)
    else:
        yield text(faint(_absent(returned.deliverables)))
    yield Heading("Evidence", None if returned.evidence is None else len(returned.evidence))
    if returned.evidence:
        yield from rich_list(returned.evidence)
    else:
        yield text(faint(_absent(returned.evidence)))
    yield Heading("Runtime attestation")
    if returned.attestation is None:
        yield text(faint("the section is missing"))
    else:
        yield from attestation_fields(returned.attestation)


def _absent(section: Sequence[object] | None) -> str:
    return "the section is missing" if section is None else "none"


def _subagent_return(returned: SubagentReturn, reported: str | None) -> Iterator[Block]:
    yield from _status_and_summary(returned.status, reported, returned.summary)
    yield from artifact_table(returned.artifacts)
    yield from _errors(returned.errors)
    yield from _next_steps(returned.next_steps)
    if metadata := returned.metadata:
        yield Heading("Metadata")
        yield from _who(metadata)
        if metadata.duration_seconds is not None:
            yield field("took", Content(times.duration(metadata.duration_seconds)))
        for label, number in (
            ("phases", metadata.phase_count),
            ("estimated", metadata.estimated_hours),
            ("findings", metadata.findings_count),
        ):
            if number is not None:
                yield field(label, Content(f"{number:g} hours" if label == "estimated" else f"{number:,}"))


def _return_meta(returned: ReturnMeta, reported: str | None) -> Iterator[Block]:
    yield from _status_and_summary(returned.status, reported, returned.summary)
    done, total = returned.phases_completed, returned.phases_total
    if done is not None and total:
        yield field("phases", Content.assemble(f"{done} of {total}  ", (_bar(min(done, total), total), FAINT)))
    elif done is not None:
        yield field("phases", Content(f"{done:,} done"))
    if returned.requires_user_review:
        yield field("review", plain(returned.review_reason or "asked for, without a reason").stylize(wording.ACCENT))
    yield from artifact_table(returned.artifacts)
    yield from _section("Blockers", returned.blockers, "■", "$state-blocked")
    yield from _errors(returned.errors)
    yield from _next_steps(returned.next_steps)
    yield from _section("Files created", returned.files_created)
    yield from _section("Files modified", returned.files_modified)
    if returned.metadata:
        yield Heading("Metadata")
        yield from _who(returned.metadata)
    if returned.more:
        yield Heading("More that it says", len(returned.more))
        yield from outline(returned.more)


def _status_and_summary(status: str | None, reported: str | None, summary: str | None) -> Iterator[Block]:
    yield _state("status", status, reported)
    if summary:
        yield rich_field("summary", summary)
    else:
        yield field("summary", faint("none"))


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
            yield Rich(error.recommendation, Content.styled("  → ", FAINT), "    ")


def _next_steps(steps: str | None) -> Iterator[Block]:
    if steps:
        yield Heading("Next steps")
        yield Rich(steps)


def _who(metadata: ReturnMetadata | MetaMetadata) -> Iterator[Block]:
    yield from _fields(("agent", metadata.agent_type), ("session", metadata.session_id))
    if metadata.delegation_path:
        path = Content.styled(" › ", FAINT).join([plain(part, 60) for part in metadata.delegation_path[:MAX_ROWS]])
        yield field("path", path)
    if metadata.delegation_depth is not None:
        yield field("depth", Content(str(metadata.delegation_depth)))


def _report(report: Report, reported: str | None) -> Iterator[Block]:
    if report.report_metadata:
        yield from _report_metadata(report.report_metadata, reported)
    yield from _section("Blockers", report.blockers, "■", "$state-blocked")
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
        yield from outline(others)
    elif not mapped:
        yield Heading("Findings")
        yield text(faint("none"))
    yield from _section("Recommendations", report.recommendations, "→")
    yield from _section("Gaps", report.identified_gaps, "○")


def _report_metadata(metadata: ReportMetadata, reported: str | None) -> Iterator[Block]:
    yield _state("status", metadata.status, reported)
    if metadata.error_message:
        yield rich_field("message", metadata.error_message)
    yield from _fields(("agent", metadata.agent_name), ("task", metadata.task_id), ("level", metadata.verbosity_level))
    if metadata.confidence_level is not None:
        yield field("confidence", Content(f"{metadata.confidence_level:.2f}"))
    if metadata.token_usage is not None:
        yield field("tokens", Content(f"{metadata.token_usage:,}"))
    if metadata.execution_time_seconds is not None:
        yield field("took", Content(times.duration(metadata.execution_time_seconds)))


def _location(entry: ContextEntry) -> Content:
    if entry.path is None:
        return faint("-")
    lines = f":{entry.first}-{entry.last}" if entry.first is not None else ""
    return plain(entry.path + lines)


def _bar(done: int, total: int, width: int = 6) -> str:
    """A progress bar of `width` cells: full blocks for what is done."""
    filled = round(width * done / total) if total else 0
    return "█" * filled + "░" * (width - filled)
