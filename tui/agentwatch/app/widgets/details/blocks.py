"""Parts of a tab: blocks that lay themselves out into lines of a given width, lazily and without a widget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, NOTHING, Line, Text, markdown
from agentwatch.app.widgets.cells import shown, summary
from agentwatch.text import LINE_LIMIT
from agentwatch.view.looks import Look

LABEL_WIDTH: Final = 12
MAX_LINES: Final = 4_000
MAX_ROWS: Final = 300
"""Rows of one table or list that are shown."""
ACCENT: Final = "bold $text-accent"
_GAP: Final = 2
_MIN_FLEXIBLE: Final = 22


class Block(Protocol):
    """A part of a tab."""

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` cells."""


def lay_out(blocks: Iterable[Block], width: int) -> list[Line]:
    """The lines of all blocks, at most `MAX_LINES`, without blank lines at the edges or two in a row."""
    laid: list[Line] = []
    for line in chain.from_iterable(block.lines(max(width, 1)) for block in blocks):
        if len(laid) >= MAX_LINES:
            laid.append(Line(faint(f"truncated: the first {MAX_LINES:,} lines are shown")))
            break
        if line.content or (laid and laid[-1].content):
            laid.append(line)
    while laid and not laid[-1].content:
        laid.pop()
    return laid


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


def heading(title: str, number: int | None = None, note: Content | None = None) -> Iterator[Block]:
    """The title of a section with a blank line above it; `number` of items and a note stand behind it."""
    words = Content.styled(title, "bold")
    if number is not None:
        words += faint(f"  {number:,}")
    yield GAP
    yield Text(words if note is None else Content.assemble(words, "  ", note))


class Field(NamedTuple):
    """A label, and its value beside it."""

    label: str
    body: Sequence[Block]

    def lines(self, width: int) -> Iterator[Line]:
        first, rest = faint(self.label.ljust(LABEL_WIDTH)), Content(" " * LABEL_WIDTH)
        for line in chain.from_iterable(block.lines(max(width - LABEL_WIDTH, 8)) for block in self.body):
            yield line._replace(content=first + line.content, margin=len(first) + line.margin) if line.content else line
            first = rest


def fields(*pairs: tuple[str, str | Content | Iterable[Block] | None]) -> Iterator[Field]:
    """Labels and their values, those that are there: foreign strings, content, or blocks."""
    for label, value in pairs:
        content = plain(value) if isinstance(value, str) else value
        body = ([text(content)] if content else []) if isinstance(content, Content) else list(content or ())
        if body:
            yield Field(label, body)


class Table(NamedTuple):
    """Rows in aligned columns, of which the last wraps. Where that would get too narrow, it has lines of its own."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Content]]

    def lines(self, width: int) -> Iterator[Line]:
        titles = [[faint(title) for title in self.titles]] if any(self.titles) else []
        rows = [*titles, *self.rows[:MAX_ROWS]]
        sizes = [max(cell.cell_length for cell in column) for column in zip(*rows, strict=True)][:-1]
        lead = sum(sizes) + _GAP * len(sizes)
        is_stacked = width - lead < _MIN_FLEXIBLE
        for row in rows[len(titles) :] if is_stacked else rows:
            *fixed, last = row
            if is_stacked:
                yield from text(Content(" " * _GAP).join(filter(None, fixed))).lines(width)
                yield from text(last, _GAP if any(fixed) else 0).lines(width)
            else:
                padded = zip(fixed, sizes, strict=True)
                cells = (cell.pad_right(size + _GAP - cell.cell_length) for cell, size in padded)
                yield from Text(last, Content.assemble(*cells), " " * lead).lines(width)
        for block in left_out(len(self.rows)):
            yield from block.lines(width)


def left_out(count: int, most: int = MAX_ROWS, where: str = "", indent: str = "") -> Iterator[Block]:
    """Say how many of `count` are not shown, if any."""
    if count > most:
        yield text(faint(f"{indent}… and {count - most:,} more{where}"))


def listed(items: Sequence[str], none: str) -> Iterator[Block]:
    """A list of foreign one-line strings, `none` in their place if it is empty."""
    if not items:
        yield text(faint(none))
    yield from (Text(plain(item), faint("• "), "  ") for item in items[:MAX_ROWS])
    yield from left_out(len(items))


def rich_list(
    items: Sequence[str], marker: str = "•", style: str = FAINT, most: int = MAX_ROWS, where: str = ""
) -> Iterator[Block]:
    """A list of foreign Markdown strings. `where` says where those after `most` are."""
    for item in items[:most]:
        yield from markdown(item, Content.styled(f"{marker} ", style), "  ")
    yield from left_out(len(items), most, where)


def section(title: str, items: Sequence[str] | None, marker: str = "•", style: str = FAINT) -> Iterator[Block]:
    """A section of foreign Markdown strings, where there are any."""
    if items:
        yield from heading(title, len(items))
        yield from rich_list(items, marker, style)
