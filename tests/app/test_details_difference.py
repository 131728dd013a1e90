"""Differences of two texts: signs, numbers, the words of git, and nothing foreign that gets through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.app.widgets.details.blocks import lay_out
from agentwatch.app.widgets.details.source import CODE, JSON, Difference, compare, read_git


def rows(difference: Difference) -> list[str]:
    return [f"{row.sign}{row.number or ''} {row.text}".rstrip() for row in difference.rows]


def laid(difference: Difference, width: int = 60) -> list[str]:
    return [line.content.plain for line in lay_out([difference], width)]


def test_a_change_stands_between_three_lines_of_what_stayed() -> None:
    before = "\n".join(f"line {number}" for number in range(1, 30))
    after = before.replace("line 10\n", "line ten\nand a half\n").replace("line 28\n", "")
    difference = compare(before, after)
    assert rows(difference) == [
        " 7 line 7", " 8 line 8", " 9 line 9", "-10 line 10", "+10 line ten", "+11 and a half",
        " 12 line 11", " 13 line 12", " 14 line 13", "",
        " 26 line 25", " 27 line 26", " 28 line 27", "-28 line 28", " 29 line 29",
    ]  # fmt: skip
    assert difference.counted.plain == "+2 −2"


def test_what_is_cut_is_said_and_no_control_character_is_sent() -> None:
    assert "\x1b" not in "".join(laid(compare("a", "\x1b]0;x\x07[@click=app.quit]b[/]")))
    assert "at most 2,000 lines" in (compare("x\n", "y\n" * 5_000).note or "")


lines = st.lists(st.sampled_from(["a", "b", "c", "", "{", '"k": 1']), max_size=12)


@given(lines, lines)
def test_both_texts_can_be_read_from_their_difference(before: list[str], after: list[str]) -> None:
    changes = compare("\n".join(before), "\n".join(after)).rows
    old, new = ("\n".join(text).removesuffix("\n").split("\n") for text in (before, after))
    assert all((old if row.sign == "-" else new)[row.number - 1] == row.text for row in changes if row.sign)
    removed = {row.number for row in changes if row.sign == "-"}
    added = {row.number for row in changes if row.sign == "+"}
    kept = [line for number, line in enumerate(old, 1) if number not in removed]
    assert kept == [line for number, line in enumerate(new, 1) if number not in added]


GIT = """\
diff --git a/db/x.sql b/db/x.sql
--- a/db/x.sql
+++ b/db/x.sql
@@ -1,3 +1,3 @@
 SELECT 1;
--- a comment goes
+++ one comes
 SELECT 2;
@@ -20 +20,2 @@ CREATE TABLE t (
-a
+a
+b
\\ No newline at end of file
"""


def test_the_words_of_git_are_read() -> None:
    assert rows(read_git(GIT, CODE)) == [
        " 1 SELECT 1;", "-2 -- a comment goes", "+2 ++ one comes", " 3 SELECT 2;", " CREATE TABLE t (",
        "-20 a", "+20 a", "+21 b", " no line break at the end",
    ]  # fmt: skip


@given(st.text(alphabet="+- @\\,01x\n", max_size=80))
def test_nothing_that_looks_like_a_difference_is_an_error(text: str) -> None:
    laid(read_git(text, JSON))
    laid(read_git("@@ -1,3 +1,3 @@\n" + text, JSON))
