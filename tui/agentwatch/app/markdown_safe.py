"""Foreign Markdown made into paragraphs that are safe to show: a small set of it, in linear time, and never markup.

Not markdown-it-py: hostile input of 16 KiB took it 0.8 s, and it takes 40 ms to import. A scanner looks at each
character a bounded number of times. A link or an image is shown as its text and its address and cannot be clicked; all
else that it does not know is shown as it was written, HTML too.

Every line passes `agentwatch.text` first, so that nothing here sees a control character.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
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


class Line(NamedTuple):
    """One line on screen. The first `margin` characters are ours (indent, gutter): they are not copied.

    Lines with the same `choice` are one entry that the cursor can stand on; they begin with a blank for its mark.
    `tint` is the style of the whole row, to its end.
    """

    content: Content
    margin: int = 0
    choice: Hashable = None
    tint: str = ""


class Text(NamedTuple):
    """A paragraph: `first` stands before its first line, `rest` before the others.

    `wrap` is False for code: such a line is folded at the edge instead of between words.
    """

    content: Content
    first: Content = NOTHING
    rest: str = ""
    wrap: bool = True
    choice: Hashable = None

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` cells."""
        first, rest = self.first, Content(self.rest)
        if first.cell_length > max(width // 2, rest.cell_length):
            # A long key would leave no room beside it: what it stands for goes below.
            yield from (Line(part, choice=self.choice) for part in first.rstrip().wrap(width))
            first = rest
        room = max(width - max(first.cell_length, rest.cell_length), 8)
        for part in self.content.wrap(room) if self.wrap else self.content.fold(room):
            yield Line(first + part if first else part, len(first), self.choice)
            first = rest


def markdown(text: str, first: Content = NOTHING, rest: str = "") -> Iterator[Text]:
    """Paragraphs of a foreign Markdown string, one a line, behind `first` and `rest`. The last tells of a cut."""
    for part in _paragraphs(text):
        yield part._replace(first=first + part.first, rest=rest + part.rest)
        first = Content(rest)


def _paragraphs(text: str) -> Iterator[Text]:
    lines, note = clean_lines(text.strip("\r\n"), MAX_LINES, MAX_CHARACTERS)
    fence = hanging = ""
    for raw in lines:
        line = raw.strip()
        if fence:
            if line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
            else:
                yield Text(Content.styled(raw, CODE), Content("  "), "  ", wrap=False)
        elif (opening := _FENCE.match(line)) and "`" not in line[opening.end() :]:
            fence = opening[0]
        elif item := _ITEM.match(line):
            indent = " " * min(len(raw) - len(raw.lstrip()), MAX_INDENT)
            marker = _CHECKED[item[2]] if item[2] else "• " if item[1] in "-*+" else f"{item[1]} "
            hanging = indent + " " * len(marker)
            yield Text(inline(line[item.end() :]), Content.assemble(indent, (marker, FAINT)), hanging)
        elif line and raw.startswith(" ") and hanging:
            yield Text(inline(line), Content(hanging), hanging)
        else:
            hanging = ""
            yield from _line(line)
    if note:
        yield Text(Content.styled(note, FAINT))


def _line(line: str) -> Iterator[Text]:
    """A line outside of lists and fences; none for the line between a table's head and body."""
    if heading := _HEADING.match(line):
        yield Text(inline(line[heading.end() :].rstrip("# ")).stylize_before("bold"))
    elif len(line) >= 3 and line[0] in "-*_" and not line.strip(line[0] + " "):
        yield Text(Content.styled("─" * 8, FAINT))
    elif line.startswith("|"):
        if not _TABLE_RULE.fullmatch(line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            yield Text(inline(" │ ".join(cells)), rest="  ")
    elif line.startswith(">"):
        yield Text(inline(line.lstrip("> ")).stylize_before(FAINT), Content.styled("▏ ", FAINT), "▏ ")
    else:
        yield Text(inline(line))


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
