"""Numbered source lines, coloured and wrapped: a text with marks and remarks, or the changes between two texts.

Each line is coloured on its own, in linear time, when it is drawn: enough to find one's way in JSON, in a Markdown
return and in code. No content chooses how: pygments would hand a fenced block to whichever lexer the block names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from posixpath import splitext
from typing import Final, NamedTuple

from textual.content import Content, Span

from agentwatch.app.markdown_safe import FAINT, Line, Text
from agentwatch.app.widgets.details.blocks import Block, caution, faint, plain
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.text import clean_lines
from agentwatch.view import looks

KEY: Final = "$text-primary"
STRING: Final = "$text-success"
NUMBER: Final = "$text-warning"
WORD: Final = "$text-accent"
TITLE: Final = "bold"
COLORED: Final = 64 * 1024
"""Characters up to which a text is coloured; a larger one is a dump that is looked through, not read."""
JSON: Final = "json"
MARKDOWN: Final = "markdown"
CODE: Final = "code"
PLAIN: Final = ""
MARKED: Final = "▌"
"""In front of the lines that a claim names."""
CONTEXT: Final = 3
"""Unchanged lines around a change."""
_MESSAGES: Final = 3
"""Findings told below one line of source; a hostile line can break any number of rules."""

_KEYWORDS: Final = (
    r"and|as|async|await|break|case|catch|class|const|continue|def|default|do|elif|else|enum|except|export|"
    r"extends|finally|fn|for|from|func|function|if|impl|import|in|interface|is|let|mod|mut|new|not|or|package|"
    r"pass|private|pub|public|raise|return|select|static|struct|switch|table|this|throw|trait|try|use|var|where|while|with|yield"
)
# A string ends at its quotation mark or, cut off, with the line. An apostrophe opens one only where it closes, too.
_PATTERNS: Final = {
    JSON: re.compile(
        r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<number>-?\d[\d.eE+-]*)'
        r"|(?P<word>\b(?:true|false|null)\b)"
    ),
    MARKDOWN: re.compile(
        r"^(?P<title>#{1,6}\s.*)|^(?P<comment>\s*>.*)|^(?P<mark>\s*(?:[-*+]|\d{1,9}[.)])\s(?:\[[ xX-]\])?)"
        r"|(?:^\s*|(?<=^[-*+] ))(?P<key>\**\w[\w .-]{0,40}\**)(?=:(?:\s|$))"
    ),
    CODE: re.compile(
        r"(?P<string>\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'|`[^`]*`)|(?P<comment>(?<!\S)(?:#|//|--)(?:\s.*|$))"
        r"|\b(?:(?P<number>\d[\w.]*)|(?P<word>true|false|null|none|nil)|(?P<key>" + _KEYWORDS + r"))\b",
        re.IGNORECASE,
    ),
}
_STYLES: Final = {
    "key": KEY,
    "string": STRING,
    "number": NUMBER,
    "word": WORD,
    "title": TITLE,
    "comment": FAINT,
    "mark": FAINT,
}
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})\s*(\w*)")
_LANGUAGES: Final = {
    **dict.fromkeys((".json", ".jsonl"), JSON),
    **dict.fromkeys((".md", ".markdown", ".mdx"), MARKDOWN),
    **dict.fromkeys(("", ".txt", ".log", ".csv", ".rst"), PLAIN),
}
"""By the end of a name; every other file is code."""
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_COLORS: Final = {"+": "$text-success", "-": "$text-error", " ": FAINT}
_TINTS: Final = {"+": "on $success 14%", "-": "on $error 14%"}


def language_of(document: str) -> str:
    """How one of our own documents is coloured."""
    if len(document) > COLORED:
        return PLAIN
    return JSON if document[:1_000].lstrip()[:1] in ("{", "[") else MARKDOWN


def language_of_file(name: str, characters: int) -> str:
    """How a file is coloured: by the end of its name, and not at all if it is large."""
    return PLAIN if characters > COLORED else _LANGUAGES.get(splitext(name)[1].lower(), CODE)


def spans_of(line: str, language: str) -> list[Span]:
    """The coloured parts of one line."""
    found = _PATTERNS[language].finditer(line) if language else ()
    return [Span(*one.span(one.lastgroup or 0), _STYLES[one.lastgroup or ""]) for one in found]


def highlighted(lines: Iterable[str], language: str) -> Iterator[tuple[str, list[Span]]]:
    """The lines of one cleaned text with their coloured parts. A fence that is unnamed, or named JSON, holds JSON."""
    fence, inside = "", PLAIN
    for line in lines:
        mark = _FENCE.match(line) if language == MARKDOWN else None
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence, inside = "" if fence else mark[1][:3], JSON if mark[2].lower() in ("json", "") else PLAIN
            yield line, [Span(0, len(line), FAINT)]
        else:
            yield line, spans_of(line, inside if fence else language)


def _numbered(sign: str, color: str, number: str, source: tuple[str, Sequence[Span]], width: int) -> Iterator[Line]:
    """One cleaned line of source behind a sign and its number, as many lines of the screen as it needs."""
    margin = len(number) + 5
    gutter = Content(f"{sign} {number} │ ", [Span(0, 1, color), Span(1, margin, FAINT)])
    for line in Text(Content(source[0], list(source[1])), gutter, "│ ".rjust(margin)).lines(width):
        yield line._replace(tint=_TINTS.get(sign, ""))


class Listing(NamedTuple):
    """Lines with their numbers; one with a finding has its mark in the gutter and its message below.

    `marked` is the range of lines that a claim names, both included.
    """

    source: Sequence[str]
    language: str
    findings: Mapping[int, Sequence[Finding]] = {}
    marked: tuple[int, int] | None = None

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(len(self.source)))
        first, last = self.marked or (0, -1)
        for number, (line, spans) in enumerate(highlighted(self.source, self.language), 1):
            findings = self.findings.get(number, ())
            sign, color = " ", FAINT
            if findings:
                worst = looks.SEVERITIES[min((one.severity for one in findings), key=list(Severity).index)]
                sign, color = worst.glyph, f"${worst.color}"
            if first <= number <= last:
                sign, color = MARKED, "$text-accent"
            yield from _numbered(sign, color, f"{number:>{digits}}", (line, spans), width)
            for finding in findings[:_MESSAGES]:
                color, indent = f"${looks.SEVERITIES[finding.severity].color}", " " * (digits + 3)
                message = Content.assemble(plain(finding.rule, 20), "  ", plain(finding.message, 400)).stylize(color)
                yield from Text(message, Content.styled(f"{indent}╰ ", color), f"{indent}  ").lines(width)


class Change(NamedTuple):
    """A line of a difference. `sign` is `+`, `-`, a blank, or "" for words between two changes.

    `number` is that of the line in the text it is in.
    """

    sign: str
    number: int
    text: str
    spans: Sequence[Span] = ()


class Difference(NamedTuple):
    """The changes from one text to another, safe to show. `note` says how much was cut, None if nothing was."""

    rows: Sequence[Change]
    note: str | None = None

    @property
    def counted(self) -> Content:
        """How many lines came and went."""
        signs = [row.sign for row in self.rows]
        added, removed = f"+{signs.count('+'):,}", f"−{signs.count('-'):,}"
        return Content.assemble((added, _COLORS["+"]), " ", (removed, _COLORS["-"]))

    @property
    def noted(self) -> list[Block]:
        """The changes, and how much was cut."""
        return [self, caution(self.note)] if self.note else [self]

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(max((row.number for row in self.rows), default=0)))
        for sign, number, words, spans in self.rows:
            if sign:
                yield from _numbered(sign, _COLORS[sign], f"{number:>{digits}}", (words, spans), width)
            else:
                yield Line(faint(f"  {'⋮':>{digits}}   {words}".rstrip()).truncate(width, ellipsis=True))


def compare(before: str, after: str) -> Difference:
    """The changes from one of our documents to another. Blocks for some milliseconds."""
    old, old_note = clean_lines(before.removesuffix("\n"))
    new, new_note = clean_lines(after.removesuffix("\n"))
    changes = _changes(unified_diff(old, new, n=CONTEXT, lineterm=""))
    return Difference(_colored(changes, language_of(after)), new_note or old_note)


def read_git(text: str, language: str) -> Difference:
    """The changes that `git diff` tells of one file."""
    lines, note = clean_lines(text.removesuffix("\n"))
    return Difference(_colored(_changes(lines), language), note)


def _changes(lines: Iterable[str]) -> Iterator[Change]:
    """The changes of a unified diff; what stands outside of its hunks tells of none."""
    old = new = old_left = new_left = 0
    is_first = True
    for line in lines:
        sign, words = line[:1] or " ", line[1:]
        if sign == "\\":
            yield Change("", 0, "no line break at the end")
        elif (old_left or new_left) and sign in "+- ":
            yield Change(sign, old if sign == "-" else new, words)
            old, old_left = (old + 1, old_left - 1) if sign != "+" else (old, old_left)
            new, new_left = (new + 1, new_left - 1) if sign != "-" else (new, new_left)
        elif hunk := _HUNK.match(line):
            old, old_left, new, new_left = (int(part or 1) for part in hunk.groups()[:4])
            if not is_first:
                yield Change("", 0, hunk[5])
            is_first = False
        elif line.startswith("Binary files "):
            yield Change("", 0, line)


def _colored(changes: Iterable[Change], language: str) -> list[Change]:
    some = list(changes)
    spans = highlighted([change.text for change in some], language)
    return [one._replace(spans=colored if one.sign else ()) for one, (_, colored) in zip(some, spans, strict=True)]
