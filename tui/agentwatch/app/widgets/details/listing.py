"""Numbered source lines: the text of a document or of a claimed file, wrapped, with marks and remarks at its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len
from textual.content import Content, Span

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import Line, plain
from agentwatch.app.widgets.details.highlighting import Language, highlighted
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.view import looks

MARKED: Final = "▌"
"""In front of the lines that a claim names."""

_MARK_WIDTH: Final = 2
_MESSAGES: Final = 3
"""Findings told below one line of source; a hostile line can break any number of rules."""


@dataclass(frozen=True, slots=True)
class Gutter:
    """What stands in front of one line of source: a mark in its colour, and a number in `digits` cells."""

    mark: str
    color: str
    number: int
    digits: int

    @property
    def width(self) -> int:
        return _MARK_WIDTH + self.digits + 3


def numbered(gutter: Gutter, line: str, spans: list[Span], width: int, tint: str = "") -> Iterator[Line]:
    """One cleaned line of source behind its gutter, as many lines of the screen as it needs."""
    room = max(width - gutter.width, 8)
    first = f"{gutter.mark} {gutter.number:>{gutter.digits}} │ "
    first_spans = [Span(0, 1, gutter.color), Span(1, gutter.width, FAINT)]
    # One content for the whole line: a text of 2,000 lines is laid out in some 50 ms.
    if cell_len(line) <= room:
        shifted = [Span(start + gutter.width, end + gutter.width, style) for start, end, style in spans]
        yield Line(Content(first + line, first_spans + shifted), gutter.width, tint=tint)
        return
    continued = Content.styled(" " * (_MARK_WIDTH + gutter.digits) + " │ ", FAINT)
    for index, part in enumerate(Content(line, spans).wrap(room)):
        yield Line((continued if index else Content(first, first_spans)) + part, gutter.width, tint=tint)


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines with their numbers; one with a finding has its mark in the gutter and its message below.

    `marked` is the range of lines that a claim names, both included.
    """

    source: Sequence[str]
    language: Language
    findings: Mapping[int, Sequence[Finding]] = field(default_factory=dict)
    marked: tuple[int, int] | None = None

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(len(self.source)))
        first, last = self.marked or (0, -1)
        for number, (line, spans) in enumerate(highlighted(self.source, self.language), 1):
            found = self.findings.get(number, ())
            glyph, color = _mark(found)
            if first <= number <= last:
                glyph, color = MARKED, "$text-accent"
            gutter = Gutter(glyph, color, number, digits)
            yield from numbered(gutter, line, spans, width)
            for finding in found[:_MESSAGES]:
                yield from _told(finding, gutter.width, width)


def _mark(found: Sequence[Finding]) -> tuple[str, str]:
    """Glyph and colour of the worst of the findings of a line."""
    if not found:
        return " ", FAINT
    errors = any(finding.severity is Severity.ERROR for finding in found)
    look = looks.SEVERITIES[Severity.ERROR if errors else Severity.WARNING]
    return look.glyph, f"${look.color}"


def _told(finding: Finding, gutter: int, width: int) -> Iterator[Line]:
    look = looks.SEVERITIES[finding.severity]
    message = Content.assemble(plain(finding.rule, 20), "  ", plain(finding.message, 400))
    for index, part in enumerate(message.stylize(f"${look.color}").wrap(max(width - gutter - 2, 8))):
        lead = Content.styled(" " * (gutter - 2) + ("╰ " if index == 0 else "  "), f"${look.color}")
        line = lead + part
        yield Line(line, len(line))
