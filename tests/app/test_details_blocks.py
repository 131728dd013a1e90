"""How the blocks of a tab lay themselves out: no line wider than asked, labels beside or above, and caps."""

from __future__ import annotations

import pytest
from textual.content import Content

from agentwatch.app.markdown_safe import Paragraph
from agentwatch.app.widgets.details.blocks import (
    LABEL_WIDTH,
    MAX_LINES,
    MAX_ROWS,
    Column,
    Field,
    Gap,
    Heading,
    Rich,
    Table,
    Text,
    bullet,
    field,
    lay_out,
    listed,
    plain,
    text,
)

WORDS = "The migration tool timed out before the schema was applied to the database of the shop."


def shown(blocks, width: int = 40) -> list[str]:
    return [line.content.plain for line in lay_out(blocks, width)]


def everything():
    columns = (Column("no", right=True), Column("path", flexible=True), Column("words", flexible=True))
    return [
        text(plain(WORDS), indent=3),
        bullet(plain(WORDS)),
        Heading("A long heading " * 5, 3, plain(WORDS)),
        field("label", plain(WORDS)),
        Field("label", (Rich(f"- {WORDS}\n\n```\n{'x' * 300}\n```"), bullet(plain("宽" * 60)))),
        Table(columns, [(Content("1"), plain("a" * 50), plain(WORDS)), (Content("12"), plain("b"), plain(""))]),
    ]


@pytest.mark.parametrize("width", [20, 38, 59, 60, 78, 120])
def test_no_line_is_wider_than_asked(width: int) -> None:
    assert max(line.content.cell_length for line in lay_out(everything(), width)) <= width


@pytest.mark.parametrize("width", [20, 38, 60, 120])
def test_nothing_is_lost_in_wrapping(width: int) -> None:
    laid = "".join("".join(shown(everything(), width)).split())
    assert laid.count("timedout") + laid.count("timed out") >= 4
    assert "".join("x" * 300) in laid.replace("  ", "")


def test_labels_stand_in_a_column_where_there_is_room() -> None:
    lines = shown([field("why", plain(WORDS))], 60)
    assert lines[0].startswith("why" + " " * (LABEL_WIDTH - 3) + "The migration")
    assert all(line.startswith(" " * LABEL_WIDTH) for line in lines[1:])


def test_labels_stand_above_in_a_narrow_page() -> None:
    lines = shown([field("why", plain(WORDS))], 59)
    assert lines[0] == "why"
    assert lines[1].startswith("  The migration")


def test_a_table_lines_its_columns_up() -> None:
    table = Table(
        (Column("no", right=True), Column("state"), Column("message", flexible=True)),
        [(Content("1"), Content("failed"), Content("short")), (Content("10"), Content("ok"), Content("other"))],
    )
    assert shown([table]) == ["no  state   message", " 1  failed  short", "10  ok      other"]


def test_a_table_measures_wide_characters_in_cells() -> None:
    table = Table((Column("a"), Column("b")), [(Content("宽宽"), Content("x")), (Content("abcd"), Content("y"))])
    assert shown([table])[1:] == ["宽宽  x", "abcd  y"]


def test_a_table_without_room_puts_each_flexible_cell_on_a_line_of_its_own() -> None:
    table = Table(
        (Column("rule"), Column("path", flexible=True), Column("message", flexible=True)),
        [(Content("RET004"), Content("work/a.md"), Content("Say why it failed in so many words"))],
    )
    assert shown([table], 30) == ["RET004", "  work/a.md", "  Say why it failed in so many", "  words"]


def test_rows_and_items_are_capped_and_counted() -> None:
    rows = [(Content(str(number)),) for number in range(MAX_ROWS + 5)]
    assert shown([Table((Column("n"),), rows)])[-1] == "… and 5 more"
    assert shown(listed([str(number) for number in range(MAX_ROWS + 7)], "none"))[-1] == "… and 7 more"
    assert shown(listed([], "none")) == ["none"]


def test_an_endless_page_is_cut_without_being_written() -> None:
    def endless():
        while True:
            yield text(Content("line"))

    lines = shown(endless())
    assert len(lines) == MAX_LINES + 1
    assert lines[-1].startswith("truncated")


def test_blank_lines_never_pile_up() -> None:
    blocks = [Gap(), Gap(), text(Content("a")), Gap(), Heading("b"), Gap(), Gap()]
    assert shown(blocks) == ["a", "", "b"]


def test_margins_cover_what_the_layout_put_in_front() -> None:
    lines = lay_out([field("why", plain(WORDS)), Text(Paragraph(Content("code " * 20), wrap=False), 4)], 60)
    assert all(not line.content.plain[: line.margin].strip() for line in lines[1:])
    assert lines[1].content.plain[lines[1].margin :][:1].strip()
