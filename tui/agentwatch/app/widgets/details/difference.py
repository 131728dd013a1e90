"""What changed between two texts, as a unified diff: each line with its sign, its number and its colours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from textual.content import Content, Span

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import Line, faint
from agentwatch.app.widgets.details.highlighting import Language, highlighted, language_of
from agentwatch.app.widgets.details.listing import Gutter, numbered
from agentwatch.text import clean_lines

CONTEXT: Final = 3
"""Unchanged lines around a change."""

_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_COLORS: Final = {"+": "$text-success", "-": "$text-error", " ": FAINT}
_TINTS: Final = {"+": "on $success 14%", "-": "on $error 14%", " ": ""}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a difference. `sign` is `+`, `-`, a blank, or "" for words between two changes.

    `number` is that of the line in the text it is in.
    """

    sign: str
    number: int
    text: str
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes from one text to another, safe to show. `note` says what was cut, None if nothing was."""

    rows: Sequence[Row]
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

    def lines(self, width: int) -> Iterator[Line]:
        digits = len(str(max((row.number for row in self.rows), default=0)))
        for row in self.rows:
            if row.sign:
                gutter = Gutter(row.sign, _COLORS[row.sign], row.number, digits)
                yield from numbered(gutter, row.text, row.spans, width, _TINTS[row.sign])
            else:
                yield Line(faint(f"  {'⋮':>{digits}}   {row.text}".rstrip()).truncate(width, ellipsis=True))


def compare(before: str, after: str) -> Difference:
    """The changes from one of our documents to another. Blocks for some milliseconds."""
    old, old_note = clean_lines(before.removesuffix("\n"))
    new, new_note = clean_lines(after.removesuffix("\n"))
    old_rows = list(highlighted(old, language_of(before)))
    new_rows = list(highlighted(new, language_of(after)))
    rows: list[Row] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        if rows:
            rows.append(Row("", 0, ""))
        for tag, first_old, last_old, first_new, last_new in group:
            if tag == "equal":
                rows += [Row(" ", number + 1, *new_rows[number]) for number in range(first_new, last_new)]
            else:
                rows += [Row("-", number + 1, *old_rows[number]) for number in range(first_old, last_old)]
                rows += [Row("+", number + 1, *new_rows[number]) for number in range(first_new, last_new)]
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
    rows = [
        Row(sign, number, words, spans if sign else [])
        for (sign, number, words), (_words, spans) in zip(signed, colored, strict=True)
    ]
    return Difference(rows, note)
