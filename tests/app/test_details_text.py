"""Foreign text in the details: the Markdown that is understood, the colours of source lines, and differences."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentwatch.app.widgets.details.blocks import (
    Difference,
    compare,
    inline,
    laid_out_alike,
    lay_out,
    listing,
    markdown,
    read_git,
)


@pytest.mark.parametrize(
    ("text", "plain", "styled"),
    [
        ("a **bold** _word_", "a bold word", [("bold", "bold"), ("word", "italic")]),
        ("***both*** ~~gone~~", "both gone", [("both", "bold italic"), ("gone", "strike")]),
        ("run `a*b*c` now", "run a*b*c now", [("a*b*c", "$text-secondary")]),
        ("**a _b_ c**", "a b c", [("b", "italic"), ("a b c", "bold")]),
        ("snake_case_name, 2 * 3 * 4, an open ** and `tick", "snake_case_name, 2 * 3 * 4, an open ** and `tick", []),
        ("[text](app.approve)", "text (app.approve)", [("app.approve", "$text-muted underline")]),
        ("[not a link] <b onclick=x>html</b>", "[not a link] <b onclick=x>html</b>", []),
    ],
)
def test_inline_markdown(text, plain, styled):
    content = inline(text)
    assert content.plain == plain
    assert [(plain[span.start : span.end], str(span.style)) for span in content.spans] == styled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("### Title ###\n#hashtag", ["Title", "#hashtag"]),
        ("- one\n  goes on\n  - nested", ["• one", "  goes on", "  • nested"]),
        ("1. one\n2) two\n- [x] done", ["1. one", "2) two", "• [x] done"]),
        ("```py\nx = *1*\n```\nafter", ["  x = *1*", "after"]),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", ["a │ b", "1 │ 2"]),
    ],
)
def test_block_markdown(text, expected):
    assert [part.first.plain + part.content.plain for part in markdown(text)] == expected


def test_a_long_text_is_cut_and_says_so():
    shown = list(markdown("line\n" * 3_000))
    assert len(shown) == 1_001
    assert shown[-1].content.plain.startswith("truncated: of ")


@pytest.mark.parametrize("unit", ["[", "![", "[a](", "**a ", "*", "`", "_a", "~~", "\\", "> ", "- ", "|", "#", "[a](b"])
def test_work_grows_with_the_length_only(unit):
    # A line is cut at 4,000 characters: so this counts what comes out, which no input may multiply.
    paragraphs = list(markdown(unit * (200_000 // len(unit))))
    assert sum(len(paragraph.content) for paragraph in paragraphs) <= 2 * 4_000
    assert sum(len(paragraph.content.spans) for paragraph in paragraphs) <= 2 * 4_000


@settings(max_examples=300, deadline=None)
@example("` `")
@example("[a]()")
@given(st.text(alphabet="ab *_`~[]()!\\#->|\n.1x\x1b\u202e", max_size=200))
def test_any_text_gives_safe_spans_inside_it(text):
    for paragraph in markdown(text):
        plain = paragraph.content.plain
        assert not set("\x1b\u202e\n") & set(plain)
        assert all(0 <= span.start < span.end <= len(plain) for span in paragraph.content.spans)
        assert all("click" not in str(span.style) for span in paragraph.content.spans)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"key": "value",', ['"key"', '"value"']),
        ('  "a\\"b" : [-1.5e3, "cut off', ['"a\\"b"', '"cut off']),
        ("## Status", ["## Status"]),
        ("- state: ERROR", ["- state"]),
        ("http://x.test", []),
    ],
)
def test_a_line_of_source_is_coloured(line, expected):
    content = next(listing([line])).content
    assert [content.plain[span.start : span.end] for span in content.spans] == expected


def rows(difference: Difference) -> list[str]:
    return [f"{row.sign}{row.number or ''} {row.text}".rstrip() for row in difference.rows]


def test_a_cut_is_said_and_no_control_character_is_sent():
    shown = lay_out(compare("a", "\x1b]0;x\x07[@click=app.quit]b[/]").noted, 60)
    assert "\x1b" not in "".join(line.content.plain for line in shown)
    assert "at most 2,000 lines" in (compare("x\n", "y\n" * 5_000).note or "")


PACKET = '{\n  "task_id": "a",\n  "notes": [\n    {\n      "x": 1,\n      "y": "é"\n    }\n  ]\n}\n'
OTHER = '{"notes":[{"y":"\\u00e9","x":1}],"task_id":"a"}'


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PACKET, OTHER, []),
        (f"# Given\n```json\n{PACKET}```\nend\n", f"# Given\n```json\n{OTHER}\n```\nend\n", []),
        (PACKET, OTHER.replace("1", "2"), ['-5       "x": 1,', '+5       "x": 2,']),
        (OTHER, OTHER.replace('"task', '"new":0,"task'), ['+8   "new": 0,']),
        ("[1]", "{1}", ["-1 [1]", "+1 {1}"]),
    ],
)
def test_a_difference_tells_what_is_meant(before, after, expected):
    assert [row for row in rows(compare(*laid_out_alike(before, after))) if row[0] in "+-"] == expected


lines = st.lists(st.sampled_from(["a", "b", "c", "", "{", '"k": 1']), max_size=12)


@given(lines, lines)
def test_both_texts_can_be_read_from_their_difference(before, after):
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


def test_the_words_of_git_are_read():
    assert rows(read_git(GIT)) == [
        " 1 SELECT 1;", "-2 -- a comment goes", "+2 ++ one comes", " 3 SELECT 2;", " CREATE TABLE t (",
        "-20 a", "+20 a", "+21 b", " No newline at end of file",
    ]  # fmt: skip


@given(st.text(alphabet="+- @\\,01x\n", max_size=80))
def test_nothing_that_looks_like_a_difference_is_an_error(text):
    lay_out(read_git(text).noted + read_git("@@ -1,3 +1,3 @@\n" + text).noted, 60)
