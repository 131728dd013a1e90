"""What the child said, beside a decision: every line of it behind a bar of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, Paragraph
from agentwatch.app.widgets.details.blocks import Block, Line, Text, faint, text
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Task
from agentwatch.text import clean_lines

MOST_LINES: Final = 400
"""Lines of a return that are shown beside a decision; the details have the rest."""

BAR: Final = "┊ "
"""In front of every line of foreign text."""

_LABEL: Final = 13


@dataclass(frozen=True, slots=True)
class Quotation:
    """Foreign text under a label of ours: whatever is in it, each of its lines begins behind the bar."""

    label: str
    source: str

    def lines(self, width: int) -> Iterator[Line]:
        shown, cut = clean_lines(self.source.removesuffix("\n"), MOST_LINES)
        under = " " * _LABEL + BAR
        first = Content.styled(f"{self.label:<{_LABEL}}{BAR}", FAINT)
        for line in shown:
            yield from Text(Paragraph(Content(line), first, under)).lines(width)
            first = Content.styled(under, FAINT)
        if cut:
            yield Line(faint(cut))


def said(task: Task, returned: str | None) -> Iterator[Block]:
    """What the child says of this attempt. `returned` is the text of its return, None if it is not there (yet)."""
    result = task.result
    if result is None:
        yield text(faint("The child has returned nothing that can be read."))
    else:
        yield from _part("hint", result.retry_hint)
        yield from _parts("blockers", result.blockers)
        yield from _part("error code", result.error_code)
        yield from _part("error", result.error_message)
        yield from _part("summary", result.summary if result.summary != result.error_message else None)
        yield from _part("review", result.review_reason)
        yield from _part("confidence", f"{result.confidence:.2f}" if result.confidence is not None else None)
        yield from _parts("limits", result.limitations)
    lies = [f"{claim.path}: {claim.detail}" for claim in task.claims if claim.verdict is Verdict.CONTRADICTED]
    # A file that is missing is often claimed in several places.
    yield from _parts("false claims", list(dict.fromkeys(lies)))
    errors = [placed.finding for placed in task.findings if placed.finding.severity is Severity.ERROR]
    yield from _parts("breaks rules", [_broken(finding) for finding in errors])
    yield from _part("whole return", returned)


def _broken(finding: Finding) -> str:
    place = f", line {finding.line}" if finding.line else ""
    return f"{finding.rule}{place}: {finding.message}"


def _part(label: str, source: str | None) -> Iterator[Block]:
    if source:
        yield Quotation(label, source)


def _parts(label: str, sources: Sequence[str]) -> Iterator[Block]:
    yield from _part(label, "\n".join(sources))
