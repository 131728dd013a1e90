"""Blocks that lay themselves out into lines of a given width; foreign Markdown becomes some that are safe to show.

Not markdown-it-py: hostile input of 16 KiB took it 0.8 s. A scanner looks at each character a bounded number of times.
A link or an image is shown as its text and its address and cannot be clicked; all else that it does not know is shown
as it was written, HTML too. Every line passes `agentwatch.text` first, so that nothing here sees a control character.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

from textual.content import Content

from agentwatch.app.widgets.cells import shown, summary
from agentwatch.text import LINE_LIMIT, clean_lines
from agentwatch.view.looks import Look

LABEL_WIDTH: Final = 12
MAX_LINES: Final = 4_000
"""Lines of all blocks together that are shown."""
MAX_ROWS: Final = 300
"""Rows of one table or list that are shown."""
_MARKDOWN: Final = 1_000, 64 * 1024
"""The lines and characters of one string that are looked at; an agent's note is one or two screens."""
_MAX_INDENT: Final = 8
"""Columns of nesting that are kept: deeper lists would leave no room for their text."""
_MIN_FLEXIBLE: Final = 22
"""Cells that the last column of a table needs."""

ACCENT: Final = "bold $text-accent"
FAINT: Final = ".details--faint"
"""A component class of the screens: dim words are dim in a theme of sixteen colours, too."""
_CODE: Final = "$text-secondary"
_ADDRESS: Final = "$text-muted underline"
NOTHING: Final = Content("")

_HEADING: Final = re.compile(r"(#{1,6})(?: +|$)")
_ITEM: Final = re.compile(r"([-*+]|\d{1,9}[.)]) +(?:\[([ xX-])\] +)?")
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_CHECKED: Final = {" ": "○ ", "-": "◐ ", "x": "✓ ", "X": "✓ "}
# No part may hold a character that ends it: a match that fails looks at no character more than a few times.
_INLINE: Final = re.compile(
    r"(?<!`)(`{1,3})(?P<code>[^`]+)\1(?!`)"
    r"|(?P<mark>(?P<stars>\*{1,3})|~~|(?<![^\W_])__?)(?=\S)(?P<inner>(?(stars)[^*]|[^~_])+)(?<=\S)(?P=mark)(?!(?<=_)\w)"
    r"|!?\[(?P<words>[^\[\]]*)\]\((?P<address>[^()\s]*)\)"
)
_EMPHASIS: Final = {"*": "italic", "_": "italic", "**": "bold", "__": "bold", "***": "bold italic", "~~": "strike"}


class Line(NamedTuple):
    """One line on screen. Lines with the same `choice` are one entry that the cursor can stand on; they begin with a
    blank for its mark."""

    content: Content
    choice: Hashable = None


class Block(Protocol):
    """A part of a tab."""

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` cells."""


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
        content, first, rest = self.content, self.first, Content(self.rest)
        if first.cell_length > max(width // 2, rest.cell_length):
            # A long key would leave no room beside it: its value goes below.
            yield from (Line(part, self.choice) for part in first.rstrip().wrap(width))
            first = rest
        room = max(width - max(first.cell_length, rest.cell_length), 8)
        # To wrap costs the most by far.
        is_short = content.cell_length <= room
        for part in [content] if is_short else content.wrap(room) if self.wrap else content.fold(room):
            yield Line(first + part, self.choice)
            first = rest


class Table(NamedTuple):
    """Rows in aligned columns, of which the last wraps. Where that would get too narrow, it has lines of its own."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Content]]

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` cells."""
        rows = [list(map(faint, self.titles)), *self.rows[:MAX_ROWS]]
        sizes = [max(cell.cell_length for cell in column) + 2 for column in zip(*rows, strict=True)][:-1]
        is_stacked = width - sum(sizes) < _MIN_FLEXIBLE
        for *fixed, last in rows if any(self.titles) and not is_stacked else rows[1:]:
            if is_stacked:
                yield from text(Content("  ").join(filter(None, fixed))).lines(width)
                yield from text(last, 2).lines(width)
            else:
                padded = (cell.pad_right(size - cell.cell_length) for cell, size in zip(fixed, sizes, strict=True))
                yield from Text(last, Content("").join(padded), " " * sum(sizes)).lines(width)
        for block in left_out(len(self.rows)):
            yield from block.lines(width)


def lay_out(blocks: Iterable[Block], width: int) -> list[Line]:
    """The lines of all blocks, at most `MAX_LINES`, without blank lines at the edges or two in a row."""
    laid: list[Line] = []
    for line in chain.from_iterable(block.lines(max(width, 1)) for block in blocks):
        if len(laid) >= MAX_LINES:
            laid.append(Line(faint(f"truncated: the first {MAX_LINES:,} lines are shown")))
            break
        if line.content or (laid and laid[-1].content):
            laid.append(line)
    return laid if not laid or laid[-1].content else laid[:-1]


def plain(text: str, limit: int = LINE_LIMIT) -> Content:
    """A foreign string as content of one line."""
    return Content(shown(text, limit))


def gist(text: str) -> Content:
    """A foreign string that may be Markdown as content of one line, without its marks."""
    return Content(summary(text, LINE_LIMIT))


def faint(text: str) -> Content:
    """Words of ours that stand back."""
    return Content.styled(text, FAINT)


def in_color(look: Look, words: str = "") -> Content:
    """The glyph of a look with its word, or words in its place, in its colour."""
    return Content.styled(f"{look.glyph} {words or look.word}", f"${look.color}")


GAP: Final = Text(NOTHING)
"""A blank line; several in a row count as one."""


def text(content: Content, indent: int = 0) -> Text:
    """A plain paragraph."""
    return Text(content, Content(" " * indent), " " * indent)


def caution(words: str, indent: int = 0) -> Text:
    """A paragraph of safe words that warn."""
    return text(Content.styled(words, "$text-warning"), indent)


def heading(title: str, number: int | None = None, note: Content = NOTHING) -> Iterator[Text]:
    """The title of a section with a blank line above it; `number` of items and a note stand behind it."""
    counted = "" if number is None else f"  {number:,}"
    yield GAP
    yield Text(Content.assemble((title, "bold"), (counted, FAINT), "  " if note else "", note))


def fields(*pairs: tuple[str, str | Content | Iterable[Text] | None]) -> Iterator[Text]:
    """Labels and their values, those that are there: foreign strings, content, or paragraphs."""
    for label, value in pairs:
        content = plain(value) if isinstance(value, str) else value
        lead = faint(label.ljust(LABEL_WIDTH))
        for part in ([Text(content)] if content else []) if isinstance(content, Content) else content or ():
            yield part._replace(first=lead + part.first, rest=" " * LABEL_WIDTH + part.rest)
            lead = Content(" " * LABEL_WIDTH)


def left_out(count: int, most: int = MAX_ROWS, where: str = "", indent: str = "") -> Iterator[Text]:
    """Say how many of `count` are not shown, if any."""
    if count > most:
        yield text(faint(f"{indent}… and {count - most:,} more{where}"))


def listed(
    items: Sequence[str], marker: str = "•", style: str = FAINT, most: int = MAX_ROWS, where: str = ""
) -> Iterator[Text]:
    """A list of foreign Markdown strings. `where` says where those after `most` are."""
    for item in items[:most]:
        yield from markdown(item, Content.styled(f"{marker} ", style), "  ")
    yield from left_out(len(items), most, where)


def paths(items: Sequence[str]) -> Iterator[Text]:
    """A list of foreign names as they are."""
    yield from (Text(plain(item), faint("• "), "  ") for item in items[:MAX_ROWS])
    yield from left_out(len(items))


# Markdown


def markdown(text: str, first: Content = NOTHING, rest: str = "") -> Iterator[Text]:
    """Paragraphs of a foreign Markdown string, one a line, behind `first` and `rest`. The last tells of a cut."""
    for part in _paragraphs(text):
        yield part._replace(first=first + part.first, rest=rest + part.rest)
        first = Content(rest)


def _paragraphs(text: str) -> Iterator[Text]:
    lines, note = clean_lines(text.strip("\r\n"), *_MARKDOWN)
    fence = hanging = ""
    for raw in lines:
        line = raw.strip()
        if fence:
            if line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
            else:
                yield Text(Content.styled(raw, _CODE), Content("  "), "  ", wrap=False)
        elif (opening := _FENCE.match(line)) and "`" not in line[opening.end() :]:
            fence = opening[0]
        elif item := _ITEM.match(line):
            indent = " " * min(len(raw) - len(raw.lstrip()), _MAX_INDENT)
            marker = _CHECKED[item[2]] if item[2] else "• " if item[1] in "-*+" else f"{item[1]} "
            hanging = indent + " " * len(marker)
            yield Text(inline(line[item.end() :]), Content.assemble(indent, (marker, FAINT)), hanging)
        elif line and raw.startswith(" ") and hanging:
            yield Text(inline(line), Content(hanging), hanging)
        else:
            hanging = ""
            if title := _HEADING.match(line):
                yield Text(inline(line[title.end() :].rstrip("# ")).stylize_before("bold"))
            elif not line.startswith("|"):
                yield Text(inline(line))
            elif line.strip(" :|-"):
                yield Text(inline(" │ ".join(cell.strip() for cell in line.strip("|").split("|"))), rest="  ")
    if note:
        yield Text(faint(note))


def inline(text: str) -> Content:
    """One line of Markdown, already cleaned, as content: emphasis, code, links as text and address."""
    pieces: list[Content | str | tuple[str, str]] = []
    position = 0
    for found in _INLINE.finditer(text):
        pieces.append(text[position : found.start()])
        position = found.end()
        if found["code"]:
            pieces.append((found["code"].strip(" "), _CODE))
        elif found["inner"]:
            pieces.append(inline(found["inner"]).stylize(_EMPHASIS[found["mark"]]))
        else:
            pieces += [f"{found['words']} (", (found["address"], _ADDRESS), ")"]
    return Content.assemble(*pieces, text[position:])
