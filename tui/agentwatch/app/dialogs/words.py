"""What the child said, beside a decision: every line of it behind a bar of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, Paragraph
from agentwatch.app.widgets.details.blocks import Block, Line, Text, faint, text
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.task import Task
from agentwatch.text import clean_lines
from agentwatch.view.looks import false_claims

MOST_LINES: Final = 400
"""Lines of a return that are shown beside a decision; the details have the rest."""

BAR: Final = "┊ "
"""In front of every line of foreign text."""

_LABEL: Final = 13


class Quotation(NamedTuple):
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
    parts: list[tuple[str, str | None]] = []
    if result is None:
        yield text(faint("The child has returned nothing that can be read."))
    else:
        parts = [
            ("hint", result.retry_hint),
            ("blockers", "\n".join(result.blockers)),
            ("error code", result.error_code),
            ("error", result.error_message),
            ("summary", result.summary if result.summary != result.error_message else None),
            ("review", result.review_reason),
            ("confidence", f"{result.confidence:.2f}" if result.confidence is not None else None),
            ("limits", "\n".join(result.limitations)),
        ]
    lies = (f"{claim.path}: {claim.detail}" for claim in false_claims(task))
    errors = [placed.finding for placed in task.findings if placed.finding.severity is Severity.ERROR]
    places = [f", line {finding.line}" if finding.line else "" for finding in errors]
    broken = [f"{one.rule}{place}: {one.message}" for one, place in zip(errors, places, strict=True)]
    # A file that is missing is often claimed in several places.
    parts += [("false claims", "\n".join(dict.fromkeys(lies))), ("breaks rules", "\n".join(broken))]
    for label, source in (*parts, ("whole return", returned)):
        if source:
            yield Quotation(label, source)
