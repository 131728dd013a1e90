"""What a tab is made of: blocks that lay themselves out into lines of a given width, lazily and without a widget."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Final, NamedTuple, Protocol

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, NOTHING, Paragraph, inline, markdown
from agentwatch.app.widgets.cells import shown, summary
from agentwatch.text import LINE_LIMIT, clean
from agentwatch.view.looks import Look

LABEL_WIDTH: Final = 12
"""Cells of the left column with the labels; every label of ours is at most ten cells."""
WIDE: Final = 60
"""Cells from which labels stand in a column of their own; narrower, each stands above its value."""
MAX_LINES: Final = 4_000
"""Lines of one tab. Blocks are laid out lazily, so this bounds the work as well."""
MAX_ROWS: Final = 300
"""Rows of one table or list that are shown."""
ACCENT: Final = "bold $text-accent"
_INDENT: Final = "  "
_GAP: Final = 2
_MIN_FLEXIBLE: Final = 22


class Line(NamedTuple):
    """One line on screen. The first `margin` characters are ours (indent, gutter): they are not copied.

    Lines with the same `choice` are one entry that the cursor can stand on; they begin with a blank for its mark.
    `tint` is the style of the whole row, to its end; a terminal of sixteen colours shows none.
    """

    content: Content
    margin: int = 0
    choice: Hashable = None
    tint: str = ""


class Block(Protocol):
    """A part of a tab."""

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` cells."""


def lay_out(blocks: Iterable[Block], width: int) -> list[Line]:
    """The lines of all blocks, at most `MAX_LINES`, without blank lines at the edges or two in a row."""
    width = max(width, 1)
    laid: list[Line] = []
    for line in chain.from_iterable(block.lines(width) for block in blocks):
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


class Gap(NamedTuple):
    """A blank line; several in a row count as one."""

    def lines(self, width: int) -> Iterator[Line]:  # noqa: ARG002 - a blank line is as wide as any
        yield Line(NOTHING)


class Text(NamedTuple):
    """A paragraph, indented by `indent` cells."""

    paragraph: Paragraph
    indent: int = 0

    def lines(self, width: int) -> Iterator[Line]:
        paragraph = self.paragraph
        indent = " " * min(self.indent, width // 3)
        first, rest = Content.assemble(indent, paragraph.first), Content(indent + paragraph.rest)
        if first.cell_length > max(width // 2, rest.cell_length):
            # A long key would leave no room beside it: what it stands for goes below.
            for part in first.rstrip().wrap(width):
                yield Line(part)
            first = rest
        room = max(width - max(first.cell_length, rest.cell_length), 8)
        parts = paragraph.content.wrap(room) if paragraph.wrap else paragraph.content.fold(room)
        for number, part in enumerate(parts):
            prefix = rest if number else first
            yield Line(prefix + part if prefix else part, len(prefix))


def text(content: Content, indent: int = 0) -> Text:
    """A plain paragraph."""
    return Text(Paragraph(content), indent)


def caution(words: str, indent: int = 0) -> Text:
    """A paragraph of safe words that warn."""
    return text(Content.styled(words, "$text-warning"), indent)


def bullet(content: Content) -> Text:
    """An item of a list."""
    return Text(Paragraph(content, faint("• "), "  "))


class Rich(NamedTuple):
    """A foreign Markdown string. `first` stands before its first line, `rest` before the others."""

    source: str
    first: Content = NOTHING
    rest: str = ""

    def lines(self, width: int) -> Iterator[Line]:
        prefix = self.first
        for part in markdown(self.source):
            first, rest = prefix + part.first, self.rest + part.rest
            yield from Text(Paragraph(part.content, first, rest, wrap=part.wrap)).lines(width)
            prefix = Content(self.rest)


class Heading(NamedTuple):
    """The title of a section with a blank line above it; `number` of items and a note stand behind it."""

    title: str
    number: int | None = None
    note: Content | None = None

    def lines(self, width: int) -> Iterator[Line]:
        yield Line(NOTHING)
        heading = Content.styled(self.title, "bold")
        if self.number is not None:
            heading += faint(f"  {self.number:,}")
        if self.note is not None:
            heading += Content.assemble("  ", self.note)
        yield Line(heading.truncate(width, ellipsis=True))


class Field(NamedTuple):
    """A label and its value: side by side, but if there is little room a longer value stands below its label."""

    label: str
    body: Sequence[Block]

    def lines(self, width: int) -> Iterator[Line]:
        label = faint(self.label)
        title, under = label.pad_right(LABEL_WIDTH - len(label)), Content(" " * LABEL_WIDTH)
        beside = list(islice(_shifted(self.body, title, under, width), 2)) if width < WIDE else []
        if width >= WIDE or (len(beside) == 1 and beside[0].content.cell_length <= width):
            yield from _shifted(self.body, title, under, width)
        else:
            yield Line(label)
            yield from _shifted(self.body, Content(_INDENT), Content(_INDENT), width)


def _shifted(body: Iterable[Block], first: Content, rest: Content, width: int) -> Iterator[Line]:
    prefix = first
    for line in chain.from_iterable(block.lines(max(width - len(rest), 8)) for block in body):
        yield line._replace(content=prefix + line.content, margin=len(prefix) + line.margin) if line.content else line
        prefix = rest


def field(label: str, content: Content) -> Field:
    """A label and one paragraph."""
    return Field(label, (text(content),))


def rich_field(label: str, source: str) -> Field:
    """A label and a foreign Markdown string."""
    return Field(label, (Rich(source),))


def fields(*pairs: tuple[str, str | None]) -> Iterator[Field]:
    """Labels and foreign strings, those that are there."""
    return (field(label, plain(value)) for label, value in pairs if value)


def rich_fields(*pairs: tuple[str, str | None]) -> Iterator[Field]:
    """Labels and foreign Markdown strings, those that are there."""
    return (rich_field(label, source) for label, source in pairs if source)


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
        rows = self.rows[:MAX_ROWS]
        widths = self._widths(rows, width)
        if widths is None:
            yield from self._stacked(rows, width)
        else:
            if any(column.title for column in self.columns):
                yield self._joined([faint(column.title) for column in self.columns], widths)
            for row in rows:
                yield from self._row(row, widths)
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
        # The narrowest first: what it does not need is left for the others.
        for left, index in enumerate(sorted(flexible, key=natural.__getitem__)):
            share = room // (len(flexible) - left)
            if natural[index] > share:
                if share < _MIN_FLEXIBLE:
                    return None
                natural[index] = share
            room -= natural[index]
        return natural if room >= 0 else None

    def _row(self, row: Sequence[Content], widths: Sequence[int]) -> Iterator[Line]:
        sized = zip(row, widths, strict=True)
        wrapped = [cell.wrap(size) if cell.cell_length > size else [cell] for cell, size in sized]
        for cells in zip_longest(*wrapped, fillvalue=NOTHING):
            yield self._joined(cells, widths)

    def _stacked(self, rows: Sequence[Sequence[Content]], width: int) -> Iterator[Line]:
        for row in rows:
            fixed = [cell for cell, column in zip(row, self.columns, strict=True) if not column.flexible and cell]
            flexible = [cell for cell, column in zip(row, self.columns, strict=True) if column.flexible and cell]
            yield from text(Content("  ").join(fixed)).lines(width)
            for cell in flexible:
                yield from text(cell, indent=len(_INDENT) if fixed else 0).lines(width)

    def _joined(self, cells: Sequence[Content], widths: Sequence[int]) -> Line:
        padded = []
        for cell, size, column in zip(cells, widths, self.columns, strict=True):
            missing = size - cell.cell_length
            padded.append(cell.pad_left(missing) if column.right else cell.pad_right(missing))
        return Line(Content(" " * _GAP).join(padded).rstrip())


def left_out(count: int, most: int = MAX_ROWS, where: str = "", indent: str = "") -> Iterator[Block]:
    """Say how many of `count` are not shown, if any."""
    if count > most:
        yield text(faint(f"{indent}… and {count - most:,} more{where}"))


def listed(items: Sequence[str], none: str) -> Iterator[Block]:
    """A list of foreign one-line strings, `none` in their place if it is empty."""
    if not items:
        yield text(faint(none))
    yield from (bullet(plain(item)) for item in items[:MAX_ROWS])
    yield from left_out(len(items))


def rich_list(
    items: Sequence[str], marker: str = "•", style: str = FAINT, most: int = MAX_ROWS, where: str = ""
) -> Iterator[Block]:
    """A list of foreign Markdown strings. `where` says where those after `most` are."""
    for item in items[:most]:
        yield Rich(item, Content.styled(f"{marker} ", style), " " * (len(marker) + 1))
    yield from left_out(len(items), most, where)


def section(
    title: str, items: Sequence[str] | None, marker: str = "•", style: str = FAINT, none: str = ""
) -> Iterator[Block]:
    """A section of foreign Markdown strings. Where there are none, it says `none`, or is not there."""
    if items:
        yield Heading(title, len(items))
        yield from rich_list(items, marker, style)
    elif none:
        yield Heading(title, 0)
        yield text(faint(none))
