"""Numbered source lines, wrapped: a text with marks and remarks at its lines, or what changed between two texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content, Span

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import Block, Line, caution, faint, plain
from agentwatch.app.widgets.details.highlighting import Language, highlighted, language_of
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.text import clean_lines
from agentwatch.view import looks

MARKED: Final = "▌"
"""In front of the lines that a claim names."""
CONTEXT: Final = 3
"""Unchanged lines around a change."""
_MARK_WIDTH: Final = 2
_MESSAGES: Final = 3
"""Findings told below one line of source; a hostile line can break any number of rules."""
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_COLORS: Final = {"+": "$text-success", "-": "$text-error", " ": FAINT}
_TINTS: Final = {"+": "on $success 14%", "-": "on $error 14%", " ": ""}


def _gutter(mark: str, color: str, number: int, digits: int) -> Content:
    """What stands in front of one line of source: a mark in its colour, and a number in `digits` cells."""
    words = f"{mark} {number:>{digits}} │ "
    return Content(words, [Span(0, 1, color), Span(1, len(words), FAINT)])


def _numbered(gutter: Content, line: str, spans: Sequence[Span], width: int, tint: str = "") -> Iterator[Line]:
    """One cleaned line of source behind its gutter, as many lines of the screen as it needs."""
    margin = len(gutter)
    room = max(width - margin, 8)
    # One content for the whole line: a text of 2,000 lines is laid out in some 50 ms.
    if cell_len(line) <= room:
        shifted = [Span(start + margin, end + margin, style) for start, end, style in spans]
        yield Line(Content(gutter.plain + line, [*gutter.spans, *shifted]), margin, tint=tint)
        return
    for part in Content(line, list(spans)).wrap(room):
        yield Line(gutter + part, margin, tint=tint)
        gutter = faint("│ ".rjust(margin))


class Listing(NamedTuple):
    """Lines with their numbers; one with a finding has its mark in the gutter and its message below.

    `marked` is the range of lines that a claim names, both included.
    """

    source: Sequence[str]
    language: Language
    findings: Mapping[int, Sequence[Finding]] = {}
    marked: tuple[int, int] | None = None

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(len(self.source)))
        first, last = self.marked or (0, -1)
        for number, (line, spans) in enumerate(highlighted(self.source, self.language), 1):
            findings = self.findings.get(number, ())
            glyph, color = _mark(findings)
            if first <= number <= last:
                glyph, color = MARKED, "$text-accent"
            yield from _numbered(_gutter(glyph, color, number, digits), line, spans, width)
            for finding in findings[:_MESSAGES]:
                yield from _told(finding, _MARK_WIDTH + digits + 1, width)


def _mark(findings: Sequence[Finding]) -> tuple[str, str]:
    """Glyph and colour of the worst of the findings of a line."""
    if not findings:
        return " ", FAINT
    errors = any(finding.severity is Severity.ERROR for finding in findings)
    look = looks.SEVERITIES[Severity.ERROR if errors else Severity.WARNING]
    return look.glyph, f"${look.color}"


def _told(finding: Finding, indent: int, width: int) -> Iterator[Line]:
    color = f"${looks.SEVERITIES[finding.severity].color}"
    message = Content.assemble(plain(finding.rule, 20), "  ", plain(finding.message, 400)).stylize(color)
    for index, part in enumerate(message.wrap(max(width - indent - 4, 8))):
        line = Content.styled(" " * indent + ("  " if index else "╰ "), color) + part
        yield Line(line, len(line))


class Change(NamedTuple):
    """A line of a difference. `sign` is `+`, `-`, a blank, or "" for words between two changes.

    `number` is that of the line in the text it is in.
    """

    sign: str
    number: int
    text: str
    spans: Sequence[Span] = ()


class Difference(NamedTuple):
    """The changes from one text to another, safe to show. `note` says what was cut, None if nothing was."""

    rows: Sequence[Change]
    note: str | None = None

    @property
    def added(self) -> int:
        return sum(row.sign == "+" for row in self.rows)

    @property
    def removed(self) -> int:
        return sum(row.sign == "-" for row in self.rows)

    @property
    def counted(self) -> Content:
        """How many lines came and went."""
        return Content.assemble((f"+{self.added:,}", _COLORS["+"]), " ", (f"−{self.removed:,}", _COLORS["-"]))

    @property
    def noted(self) -> Iterator[Block]:
        """The changes, and what was cut."""
        yield self
        if self.note:
            yield caution(self.note)

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(max((row.number for row in self.rows), default=0)))
        for sign, number, words, spans in self.rows:
            if sign:
                yield from _numbered(_gutter(sign, _COLORS[sign], number, digits), words, spans, width, _TINTS[sign])
            else:
                yield Line(faint(f"  {'⋮':>{digits}}   {words}".rstrip()).truncate(width, ellipsis=True))


def compare(before: str, after: str) -> Difference:
    """The changes from one of our documents to another, as a unified diff. Blocks for some milliseconds."""
    old, old_note = clean_lines(before.removesuffix("\n"))
    new, new_note = clean_lines(after.removesuffix("\n"))
    old_rows = list(highlighted(old, language_of(before)))
    new_rows = list(highlighted(new, language_of(after)))
    rows: list[Change] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        if rows:
            rows.append(Change("", 0, ""))
        for tag, first_old, last_old, first_new, last_new in group:
            if tag == "equal":
                rows += [Change(" ", number + 1, *new_rows[number]) for number in range(first_new, last_new)]
            else:
                rows += [Change("-", number + 1, *old_rows[number]) for number in range(first_old, last_old)]
                rows += [Change("+", number + 1, *new_rows[number]) for number in range(first_new, last_new)]
    return Difference(rows, new_note or old_note)


def read_git(text: str, language: Language) -> Difference:
    """The changes that `git diff` tells, of one file or of several."""
    lines, note = clean_lines(text.removesuffix("\n"))
    several = sum(line.startswith("diff --git ") for line in lines) > 1
    signed: list[tuple[str, int, str]] = []
    old = new = old_left = new_left = 0
    for line in lines:
        sign, words = line[:1] or " ", line[1:]
        if sign == "\\":
            signed.append(("", 0, "no line break at the end"))
        elif (old_left or new_left) and sign in "+- ":
            signed.append((sign, old if sign == "-" else new, words))
            old, old_left = (old + 1, old_left - 1) if sign != "+" else (old, old_left)
            new, new_left = (new + 1, new_left - 1) if sign != "-" else (new, new_left)
        elif hunk := _HUNK.match(line):
            old, old_left, new, new_left = (int(part or 1) for part in hunk.groups()[:4])
            if signed:
                signed.append(("", 0, hunk[5]))
        elif line.startswith("Binary files ") or (several and line.startswith("diff --git ")):
            signed.append(("", 0, line.removeprefix("diff --git ")))
    colored = highlighted([words for _sign, _number, words in signed], language)
    rows = [Change(*row, spans if row[0] else ()) for row, (_words, spans) in zip(signed, colored, strict=True)]
    return Difference(rows, note)
