"""Foreign Markdown made into paragraphs that are safe to show: a small set of it, in linear time, and never markup.

Why not markdown-it-py, which Textual brings along: hostile input of 16 KiB took it 0.8 s and 198,000 tokens, and it
takes 40 ms to import. Textual's own widget mounts one for every block. Agents write short notes, so a scanner that
looks at each character a bounded number of times is enough: headings, emphasis, inline code, lists, quotations, rules,
fences and tables (as text). A link or an image is shown as its text and its address and cannot be clicked. All else is
shown as it was written, HTML and line breaks too.

Every line passes `agentwatch.text` first, so that nothing here sees a control character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from textual.content import Content, Span

from agentwatch.text import clean_lines

MAX_CHARACTERS: Final = 64 * 1024
MAX_LINES: Final = 1_000
"""What is looked at of one string; an agent's note is one or two screens."""

MAX_INDENT: Final = 8
"""Columns of nesting that are kept: deeper lists would leave no room for their text."""

CODE: Final = "$text-secondary"
ADDRESS: Final = "$text-muted underline"
FAINT: Final = ".details--faint"
"""A component class of the details pane: dim words are dim in a theme of sixteen colours, too."""

NOTHING: Final = Content("")
_HEADING: Final = re.compile(r"(#{1,6})(?: +|$)")
_ITEM: Final = re.compile(r"([-*+]|\d{1,9}[.)]) +(?:\[([ xX-])\] +)?")
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_TABLE_RULE: Final = re.compile(r"[ :|-]+")
_CHECKED: Final = {" ": "○ ", "-": "◐ ", "x": "✓ ", "X": "✓ "}

# How everything begins that could be more than plain text.
_SPECIAL: Final = re.compile(r"([`*_~])\1*|[\\!\[]")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
# Neither part may hold a character that could start another link: a failed match never looks at a character twice.
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\(([^()\s]*)\)")
_DELIMITERS: Final = {"*": "italic", "_": "italic", "**": "bold", "__": "bold", "***": "bold italic", "~~": "strike"}


class Paragraph(NamedTuple):
    """One paragraph and how it wraps: `first` stands before its first line, `rest` before the others.

    `wrap` is False for code: such a line is folded at the edge instead of between words.
    """

    content: Content
    first: Content = NOTHING
    rest: str = ""
    wrap: bool = True


def markdown(text: str) -> Iterator[Paragraph]:
    """The paragraphs of a foreign Markdown string, one a line. A cut is said in the last one."""
    lines, note = clean_lines(text.strip("\r\n"), MAX_LINES, MAX_CHARACTERS)
    fence = ""
    hanging = ""
    for raw in lines:
        line = raw.strip()
        if fence:
            if line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
            else:
                yield Paragraph(Content.styled(raw, CODE), Content("  "), "  ", wrap=False)
        elif opening := _opens_fence(line):
            fence = opening
        elif item := _ITEM.match(line):
            indent = " " * min(len(raw) - len(raw.lstrip()), MAX_INDENT)
            marker = _CHECKED[item[2]] if item[2] else "• " if item[1] in "-*+" else f"{item[1]} "
            hanging = indent + " " * len(marker)
            yield Paragraph(inline(line[item.end() :]), Content.assemble(indent, (marker, FAINT)), hanging)
        elif line and raw.startswith(" ") and hanging:
            yield Paragraph(inline(line), Content(hanging), hanging)
        else:
            hanging = ""
            yield from _line(line)
    if note:
        yield Paragraph(Content.styled(note, FAINT))


def _opens_fence(line: str) -> str:
    fence = _FENCE.match(line)
    # ```code``` on one line is inline code.
    return fence[0] if fence and "`" not in line[fence.end() :] else ""


def _line(line: str) -> Iterator[Paragraph]:
    """A line outside of lists and fences; none for the line between a table's head and body."""
    if heading := _HEADING.match(line):
        yield Paragraph(inline(line[heading.end() :].rstrip("# ")).stylize_before("bold"))
    elif len(line) >= 3 and line[0] in "-*_" and not line.strip(line[0] + " "):
        yield Paragraph(Content.styled("─" * 8, FAINT))
    elif line.startswith("|"):
        if not _TABLE_RULE.fullmatch(line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            yield Paragraph(inline(" │ ".join(cells)), rest="  ")
    elif line.startswith(">"):
        yield Paragraph(inline(line.lstrip("> ")).stylize_before(FAINT), Content.styled("▏ ", FAINT), "▏ ")
    else:
        yield Paragraph(inline(line))


def inline(text: str) -> Content:
    """One line of Markdown, already cleaned, as content: emphasis, code, links as text and address."""
    draft = _Draft()
    missing_ticks: set[int] = set()
    position = 0
    while special := _SPECIAL.search(text, position):
        start = special.start()
        draft.put(text[position:start])
        character = text[start]
        position = start + 1
        if character in "*_~":
            position = start + len(special[0])
            draft.delimit(text[start:position], text[start - 1 : start] or " ", text[position : position + 1] or " ")
        elif character == "`":
            ticks = special[0]
            position = start + len(ticks)
            close = -1 if len(ticks) in missing_ticks else text.find(ticks, position)
            if close < 0:
                # Not found once is not found later: no length is looked for twice in vain.
                missing_ticks.add(len(ticks))
                draft.put(ticks)
            else:
                draft.put(text[position:close].strip(" "), CODE)
                position = close + len(ticks)
        elif character == "\\" and (escaped := _ESCAPED.match(text, start)):
            draft.put(escaped[1])
            position = escaped.end()
        elif link := _LINK.match(text, start):
            draft.put(f"{link[1]} (")
            draft.put(link[2], ADDRESS)
            draft.put(")")
            position = link.end()
        else:
            draft.put(character)
    draft.put(text[position:])
    return draft.content()


class _Draft:
    """A line being put together from pieces; a pair of delimiters is taken out again when it closes."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._styled: list[tuple[int, int, str]] = []
        # Each kind of run waits in one slot, so that closing never searches back.
        self._opened: dict[str, int] = {}

    def put(self, text: str, style: str = "") -> None:
        if style:
            self._styled.append((len(self._pieces), len(self._pieces) + 1, style))
        self._pieces.append(text)

    def delimit(self, run: str, before: str, after: str) -> None:
        """Open or close emphasis with a run of one character that stands between `before` and `after`."""
        here = len(self._pieces)
        self._pieces.append(run)
        if run not in _DELIMITERS or (run[0] == "_" and before.isalnum() and after.isalnum()):
            return
        if run in self._opened and not before.isspace():
            there = self._opened.pop(run)
            self._pieces[there] = self._pieces[here] = ""
            self._styled.append((there, here, _DELIMITERS[run]))
        elif not after.isspace():
            self._opened[run] = here

    def content(self) -> Content:
        offsets = list(accumulate(map(len, self._pieces), initial=0))
        spans = [Span(offsets[first], offsets[last], style) for first, last, style in self._styled]
        return Content("".join(self._pieces), [span for span in spans if span.end > span.start])
