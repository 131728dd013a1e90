"""The raw tab: the very text of the return and of the handoff, with line numbers and the findings at their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from textual.content import Content, Span

from agentwatch.app import present
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details import wording
from agentwatch.app.widgets.details.blocks import Block, Gap, Heading, Line, faint, plain, text
from agentwatch.app.widgets.details.highlighting import Language, highlighted
from agentwatch.app.widgets.details.view import View
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.task import Version
from agentwatch.text import clean_lines

_MARK_WIDTH: Final = 2
COLORED: Final = 64 * 1024
"""Characters up to which a text is coloured; a larger one is a dump that is looked through, not read."""

_MESSAGES: Final = 3
"""Findings told below one line of source; a hostile line can break any number of rules."""


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab: the return first, it is what is judged."""
    handed, returned = view.handed, view.returned
    if returned and returned.returned:
        yield from _source(view, "Return", returned.number, returned.returned)
    if handed and handed.handoff:
        yield from _source(view, "Handoff", handed.number, handed.handoff)
    if not (handed or returned):
        yield text(faint("No file speaks of this task."))


def _source(view: View, title: str, attempt: int, version: Version) -> Iterator[Block]:
    source = view.content(version)
    if source is None:
        yield Heading(title, note=plain(version.path))
        yield text(faint("The text of this version is gone: the file was deleted or rewritten since it was read."))
        return
    # Findings count lines as editors do: a carriage return alone ends one, too.
    lines, note = clean_lines(source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n"))
    total = present.plural(len(lines), "line") if note is None else note
    several = Content(f"attempt {attempt}   ") if len(view.task.attempts) > 1 else Content("")
    yield Heading(title, note=Content.assemble(several, plain(version.path), (f"   {total}", FAINT)))
    yield Listing(lines, _language(source), _by_line(version.findings, len(lines)))
    if note:
        yield text(Content.styled(note, "$text-warning"))
    yield Gap()


def _language(source: str) -> Language:
    if len(source) > COLORED:
        return Language.PLAIN
    return Language.JSON if source[:1_000].lstrip()[:1] in ("{", "[") else Language.MARKDOWN


def _by_line(findings: Sequence[Finding], lines: int) -> dict[int, list[Finding]]:
    """Findings by line number. What names no line, or one that is not shown, is left to the findings tab."""
    by_line: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.line and finding.line <= lines:
            by_line.setdefault(finding.line, []).append(finding)
    return by_line


@dataclass(frozen=True, slots=True)
class Listing:
    """Numbered source lines, wrapped; a line with a finding has its mark in the gutter and its message below."""

    source: Sequence[str]
    language: Language
    findings: dict[int, list[Finding]]

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(len(self.source)))
        gutter = _MARK_WIDTH + digits + 3
        room = max(width - gutter, 8)
        continued = Content.styled(" " * (_MARK_WIDTH + digits) + " │ ", FAINT)
        for number, (line, spans) in enumerate(highlighted(self.source, self.language), 1):
            found = self.findings.get(number, ())
            glyph, color = _mark(found)
            first = f"{glyph} {number:>{digits}} │ "
            first_spans = [Span(0, 1, color), Span(1, gutter, FAINT)]
            # One content for the whole line: a text of 2,000 lines is laid out in some 50 ms.
            if cell_len(line) <= room:
                shifted = [Span(start + gutter, end + gutter, style) for start, end, style in spans]
                yield Line(Content(first + line, first_spans + shifted), gutter)
            else:
                for index, part in enumerate(Content(line, spans).wrap(room)):
                    yield Line((continued if index else Content(first, first_spans)) + part, gutter)
            for finding in found[:_MESSAGES]:
                yield from _told(finding, gutter, width)


def _mark(found: Sequence[Finding]) -> tuple[str, str]:
    """Glyph and colour of the worst of the findings of a line."""
    if not found:
        return " ", FAINT
    errors = any(finding.severity is Severity.ERROR for finding in found)
    look = wording.SEVERITY_LOOKS[Severity.ERROR if errors else Severity.WARNING]
    return look.glyph, f"${look.color}"


def _told(finding: Finding, gutter: int, width: int) -> Iterator[Line]:
    look = wording.SEVERITY_LOOKS[finding.severity]
    message = Content.assemble(plain(finding.rule, 20), "  ", plain(finding.message, 400))
    for index, part in enumerate(message.stylize(f"${look.color}").wrap(max(width - gutter - 2, 8))):
        lead = Content.styled(" " * (gutter - 2) + ("╰ " if index == 0 else "  "), f"${look.color}")
        line = lead + part
        yield Line(line, len(line))
