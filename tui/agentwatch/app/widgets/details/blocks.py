"""Parts of a tab: blocks that lay themselves out into lines of a given width, lazily and without a widget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Final, NamedTuple, Protocol

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, NOTHING, Line, Text, inline, markdown
from agentwatch.app.widgets.cells import shown, summary
from agentwatch.text import LINE_LIMIT, clean
from agentwatch.view.looks import Look

LABEL_WIDTH: Final = 12
WIDE: Final = 60
"""Cells from which labels stand in a column of their own; narrower, each stands above its value."""
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


def rich_line(source: str) -> Content:
    """A foreign Markdown string as one line."""
    return inline(clean(source))


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
    """A label and its value: side by side, but if there is little room a longer value stands below its label."""

    label: str
    body: Sequence[Block]

    def lines(self, width: int) -> Iterator[Line]:
        title, under = faint(self.label.ljust(LABEL_WIDTH)), Content(" " * LABEL_WIDTH)
        beside = list(islice(self._shifted(title, under, width), 2)) if width < WIDE else []
        if width >= WIDE or (len(beside) == 1 and beside[0].content.cell_length <= width):
            yield from self._shifted(title, under, width)
        else:
            yield Line(faint(self.label))
            yield from self._shifted(Content("  "), Content("  "), width)

    def _shifted(self, first: Content, rest: Content, width: int) -> Iterator[Line]:
        for line in chain.from_iterable(block.lines(max(width - len(rest), 8)) for block in self.body):
            yield line._replace(content=first + line.content, margin=len(first) + line.margin) if line.content else line
            first = rest


def field(label: str, content: Content) -> Field:
    """A label and one paragraph."""
    return Field(label, (text(content),))


def fields(*pairs: tuple[str, str | None]) -> Iterator[Field]:
    """Labels and foreign strings, those that are there."""
    return (field(label, plain(value)) for label, value in pairs if value)


def rich_fields(*pairs: tuple[str, str | None]) -> Iterator[Field]:
    """Labels and foreign Markdown strings, those that are there."""
    return (Field(label, tuple(markdown(source))) for label, source in pairs if source)


class Column(NamedTuple):
    """A column of a table. Flexible columns share the room that the others leave, and wrap."""

    title: str
    flexible: bool = False
    right: bool = False


class Table(NamedTuple):
    """Rows in aligned columns. Where the flexible ones would get too narrow, their cells have lines of their own."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Content]]

    def lines(self, width: int) -> Iterator[Line]:
        rows = list(self.rows[:MAX_ROWS])
        widths = self._widths(rows, width)
        if widths is None:
            yield from self._stacked(rows, width)
        else:
            titles = [faint(column.title) for column in self.columns]
            for row in [titles, *rows] if any(titles) else rows:
                wrapped = [cell.wrap(size) if cell else [cell] for cell, size in zip(row, widths, strict=True)]
                for cells in zip_longest(*wrapped, fillvalue=NOTHING):
                    parts = []
                    for cell, size, column in zip(cells, widths, self.columns, strict=True):
                        missing = size - cell.cell_length
                        parts.append(cell.pad_left(missing) if column.right else cell.pad_right(missing))
                    yield Line(Content(" " * _GAP).join(parts).rstrip())
        for block in left_out(len(self.rows)):
            yield from block.lines(width)

    def _widths(self, rows: Sequence[Sequence[Content]], width: int) -> list[int] | None:
        """Cells of each column; None if the flexible ones do not fit."""
        natural = [
            max([len(column.title), *(row[index].cell_length for row in rows)])
            for index, column in enumerate(self.columns)
        ]
        flexible = [index for index, column in enumerate(self.columns) if column.flexible]
        fixed = sum(size for index, size in enumerate(natural) if index not in flexible)
        room = width - _GAP * (len(self.columns) - 1) - fixed
        # The narrowest first: the room that it does not need is left for the others.
        for left, index in enumerate(sorted(flexible, key=natural.__getitem__)):
            share = room // (len(flexible) - left)
            if natural[index] > share:
                if share < _MIN_FLEXIBLE:
                    return None
                natural[index] = share
            room -= natural[index]
        return natural if room >= 0 else None

    def _stacked(self, rows: Sequence[Sequence[Content]], width: int) -> Iterator[Line]:
        for row in rows:
            cells = list(zip(row, self.columns, strict=True))
            fixed = [cell for cell, column in cells if not column.flexible and cell]
            yield from text(Content("  ").join(fixed)).lines(width)
            for cell in (cell for cell, column in cells if column.flexible and cell):
                yield from text(cell, indent=2 if fixed else 0).lines(width)


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
