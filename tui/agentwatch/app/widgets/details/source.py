"""Numbered source lines, coloured and wrapped: a text with marks and remarks, or the changes between two texts.

Each line is coloured on its own, in linear time, when it is drawn: enough to find one's way in JSON, in a Markdown
return and in code. No content chooses how: pygments would hand a fenced block to whichever lexer the block names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from posixpath import splitext
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content, Span

from agentwatch.app.markdown_safe import FAINT, Line
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
PLAIN: Final = ""
"""Languages; that of code is the sign with which its comments begin."""
MARKED: Final = "▌"
"""In front of the lines that a claim names."""
CONTEXT: Final = 3
"""Unchanged lines around a change."""
_MESSAGES: Final = 3
"""Findings told below one line of source; a hostile line can break any number of rules."""

# A string ends at its quotation mark or, cut off, with the line: JSON allows no line break in it.
_JSON: Final = (
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<number>-?\d[\d.eE+-]*)'
    r"|(?P<word>[A-Za-z]\w*)"
)
# An apostrophe opens a string only where it closes, too: it may be a word's or a lifetime's.
_CODE: Final = (
    r"(?P<string>\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'|`[^`]*`)|(?P<comment>{comment}.*)"
    r"|(?P<number>\b\d[\w.]*)|(?P<word>[A-Za-z_]\w*)"
)
_MARKDOWN: Final = (
    r"^(?P<title>#{1,6}\s.*)|^(?P<comment>\s*>.*)|^(?P<mark>\s*(?:[-*+]|\d{1,9}[.)])\s(?:\[[ xX-]\])?)"
    r"|(?:^\s*|(?<=^[-*+] ))(?P<key>\**\w[\w .-]{0,40}\**)(?=:(?:\s|$))"
)
_PATTERNS: Final = {
    JSON: re.compile(_JSON),
    MARKDOWN: re.compile(_MARKDOWN),
    **{sign: re.compile(_CODE.replace("{comment}", sign)) for sign in ("#", "//", "--")},
}
_STYLES: Final = {
    "key": KEY,
    "string": STRING,
    "number": NUMBER,
    "title": TITLE,
    **dict.fromkeys(("comment", "mark"), FAINT),
}
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})\s*(\w*)")
_SHARED: Final = (
    "and as async await break case catch class const continue def default do elif else enum except export extends "
    "finally fn for from func function if impl import in interface is let mod mut new not or package pass private "
    "pub public raise return static struct switch this throw trait try use var while with yield"
)
_QUERY: Final = (
    "alter by create delete drop group insert into join key limit on order primary select set table update values where"
)
_KEYWORDS: Final = frozenset(_SHARED.split())
_QUERY_KEYWORDS: Final = _KEYWORDS.union(_QUERY.split())
_CONSTANTS: Final = frozenset({"true", "false", "null", "none", "nil", "undefined"})
_SUFFIXES: Final = {
    JSON: ".json .jsonl",
    MARKDOWN: ".md .markdown .mdx",
    "#": ".py .pyi .sh .bash .rb .toml .yaml .yml .ini .cfg .ex .exs .r .pl .jl .nix",
    "//": ".c .cc .cpp .cs .css .dart .go .h .hpp .java .js .jsx .kt .mjs .php .proto .rs .scala .scss .swift .ts .tsx "
    ".vue .zig",
    "--": ".sql .lua .hs .lean .elm",
}
_LANGUAGES: Final = {suffix: language for language, names in _SUFFIXES.items() for suffix in names.split()}
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_COLORS: Final = {"+": "$text-success", "-": "$text-error", " ": FAINT}
_TINTS: Final = {"+": "on $success 14%", "-": "on $error 14%", " ": ""}


def language_of(document: str) -> str:
    """How one of our own documents is coloured."""
    if len(document) > COLORED:
        return PLAIN
    return JSON if document[:1_000].lstrip()[:1] in ("{", "[") else MARKDOWN


def language_of_file(name: str, characters: int) -> str:
    """How a file is coloured: by the end of its name, and not at all if it is large."""
    return PLAIN if characters > COLORED else _LANGUAGES.get(splitext(name)[1].lower(), PLAIN)


def spans_of(line: str, language: str) -> list[Span]:
    """The coloured parts of one line."""
    spans = []
    keywords = frozenset[str]() if language == JSON else _QUERY_KEYWORDS if language == "--" else _KEYWORDS
    for token in _PATTERNS[language].finditer(line) if language else ():
        kind, word = token.lastgroup or "", token[0].lower()
        style = _STYLES.get(kind) or (KEY if word in keywords else WORD if word in _CONSTANTS else None)
        if style is not None:
            spans.append(Span(*token.span(kind), style))
    return spans


def highlighted(lines: Iterable[str], language: str) -> Iterator[tuple[str, list[Span]]]:
    """The lines of one cleaned text with their coloured parts. A fence that is unnamed, or named JSON, holds JSON."""
    fence = named = ""
    for line in lines:
        opening = _FENCE.match(line) if language == MARKDOWN else None
        if fence and opening is not None and line.lstrip().startswith(fence):
            fence = ""
            yield line, [Span(0, len(line), FAINT)]
        elif fence:
            yield line, spans_of(line, JSON if named in ("json", "") else PLAIN)
        elif opening is not None:
            fence, named = opening[1][:3], opening[2].lower()
            yield line, [Span(0, len(line), FAINT)]
        else:
            yield line, spans_of(line, language)


def _numbered(sign: str, color: str, number: str, source: tuple[str, Sequence[Span]], width: int) -> Iterator[Line]:
    """One cleaned line of source behind a sign and its number, as many lines of the screen as it needs."""
    (line, spans), words = source, f"{sign} {number} │ "
    margin, tint = len(words), _TINTS.get(sign, "")
    gutter, room = Content(words, [Span(0, 1, color), Span(1, margin, FAINT)]), max(width - margin, 8)
    # To wrap costs five times as much as to shift the spans.
    if cell_len(line) <= room:
        shifted = [Span(start + margin, end + margin, style) for start, end, style in spans]
        yield Line(Content(words + line, [*gutter.spans, *shifted]), margin, tint=tint)
        return
    for part in Content(line, list(spans)).wrap(room):
        yield Line(gutter + part, margin, tint=tint)
        gutter = faint("│ ".rjust(margin))


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
                for at, part in enumerate(message.wrap(max(width - len(indent) - 4, 8))):
                    words = Content.styled(indent + ("  " if at else "╰ "), color) + part
                    yield Line(words, len(words))


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
    def counts(self) -> str:
        """How many lines came and went."""
        signs = [row.sign for row in self.rows]
        return f"+{signs.count('+'):,} −{signs.count('-'):,}"

    @property
    def counted(self) -> Content:
        """The same in colours."""
        added, removed = self.counts.split()
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
            if tag != "equal":
                rows += [Change("-", number + 1, *old_rows[number]) for number in range(first_old, last_old)]
            sign = " " if tag == "equal" else "+"
            rows += [Change(sign, number + 1, *new_rows[number]) for number in range(first_new, last_new)]
    return Difference(rows, new_note or old_note)


def read_git(text: str, language: str) -> Difference:
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
