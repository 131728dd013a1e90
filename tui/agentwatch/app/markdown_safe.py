"""Foreign Markdown made into paragraphs that are safe to show: a small set of it, in linear time, and never markup.

Not markdown-it-py: hostile input of 16 KiB took it 0.8 s, and it takes 40 ms to import. A scanner looks at each
character a bounded number of times. A link or an image is shown as its text and its address and cannot be clicked; all
else that it does not know is shown as it was written, HTML too.

Every line passes `agentwatch.text` first, so that nothing here sees a control character.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

from textual.content import Content

from agentwatch.text import clean_lines

MAX_CHARACTERS: Final = 64 * 1024
MAX_LINES: Final = 1_000
"""The part of one string that is looked at; an agent's note is one or two screens."""

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

# No part may hold a character that ends it: a match that fails looks at no character more than a few times.
_INLINE: Final = re.compile(
    r"(?<!`)(`{1,3})(?P<code>[^`]+)\1(?!`)"
    r"|(?P<mark>(?P<stars>\*{1,3})|~~|(?<![^\W_])__?)(?=\S)(?P<inner>(?(stars)[^*]|[^~_])+)(?<=\S)(?P=mark)(?!(?<=_)\w)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|!?\[(?P<words>[^\[\]]*)\]\((?P<address>[^()\s]*)\)"
)
_EMPHASIS: Final = {"*": "italic", "_": "italic", "**": "bold", "__": "bold", "***": "bold italic", "~~": "strike"}


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
        # To wrap costs the most by far.
        is_short = self.content.cell_length <= room
        for part in [self.content] if is_short else self.content.wrap(room) if self.wrap else self.content.fold(room):
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
    pieces: list[Content | str | tuple[str, str]] = []
    position = 0
    for found in _INLINE.finditer(text):
        pieces.append(text[position : found.start()])
        position = found.end()
        if found["code"]:
            pieces.append((found["code"].strip(" "), CODE))
        elif found["inner"]:
            pieces.append(inline(found["inner"]).stylize(_EMPHASIS[found["mark"]]))
        elif found["escaped"]:
            pieces.append(found["escaped"])
        else:
            pieces += [f"{found['words']} (", (found["address"], ADDRESS), ")"]
    return Content.assemble(*pieces, text[position:])
