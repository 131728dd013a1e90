"""Foreign text on the screen: which Markdown is understood, colours, differences, and that no text does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.terminal import TerminalGuard
from agentwatch.app.widgets.details.blocks import (
    Difference,
    Quotation,
    compare_texts,
    format_alike,
    inline_markdown,
    lay_out,
    markdown,
    parse_git_diff,
    source_lines,
)
from agentwatch.app.widgets.line import clip_sentence
from agentwatch.contracts.shapes import Outcome
from agentwatch.sources import Health
from agentwatch.text import LINE_LIMIT, clean_summary
from tests.app.scenes import HOSTILE, Scene
from tests.app.stage import Stage, stage


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
    content = inline_markdown(text)
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
    # A line is cut at 4,000 characters, so this counts the output, which no input may multiply.
    paragraphs = list(markdown(unit * (200_000 // len(unit))))
    assert sum(len(paragraph.content) for paragraph in paragraphs) <= 2 * 4_000
    assert sum(len(paragraph.content.spans) for paragraph in paragraphs) <= 2 * 4_000


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
    content = next(source_lines([line])).content
    assert [content.plain[span.start : span.end] for span in content.spans] == expected


def rows(difference: Difference) -> list[str]:
    return [f"{row.sign}{row.number or ''} {row.text}".rstrip() for row in difference.rows]


def test_a_cut_is_marked_and_no_control_character_is_sent():
    shown = lay_out(compare_texts("a", "\x1b]0;x\x07[@click=app.quit]b[/]").blocks, 60)
    assert "\x1b" not in "".join(line.content.plain for line in shown)
    assert "at most 2,000 lines" in (compare_texts("x\n", "y\n" * 5_000).note or "")


def test_a_quoted_line_that_goes_on_is_told_from_a_new_line():
    for width in (24, 2 * LINE_LIMIT):
        shown = lay_out([Quotation("it says", "x" * (LINE_LIMIT + 1) + "\ny")], width)
        first, *further, last = (line.content.plain for line in shown)
        assert [first[:15], last] == ["it says      ┊ ", f"{'┊':>14} y"]
        assert {line[:15] for line in further} == {f"{'┊›':>15}"}


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
    assert [row for row in rows(compare_texts(*format_alike(before, after))) if row[0] in "+-"] == expected


lines = st.lists(st.sampled_from(["a", "b", "c", "", "{", '"k": 1']), max_size=12)


@given(lines, lines)
def test_both_texts_can_be_read_from_their_difference(before, after):
    changes = compare_texts("\n".join(before), "\n".join(after)).rows
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
    assert rows(parse_git_diff(GIT)) == [
        " 1 SELECT 1;", "-2 -- a comment goes", "+2 ++ one comes", " 3 SELECT 2;", " CREATE TABLE t (",
        "-20 a", "+20 a", "+21 b", " No newline at end of file",
    ]  # fmt: skip
    assert rows(parse_git_diff("@@ -0,0 +1,2 @@\n+new\n+file")) == ["+1 new", "+2 file"]
    assert rows(parse_git_diff("@@ -1,2 +0,0 @@\n-old\n-file")) == ["-1 old", "-2 file"]
    assert rows(parse_git_diff("--- a/x\nBinary files a/x and b/x differ")) == [" Binary files a/x and b/x differ"]


@given(st.text(alphabet="+- @\\,01x\n", max_size=80))
def test_nothing_that_looks_like_a_difference_is_an_error(text):
    lay_out(parse_git_diff(text).blocks + parse_git_diff("@@ -1,3 +1,3 @@\n" + text).blocks, 60)


QUESTION = "Which flow: the **redirect** or the `embedded` one?"
PLAIN = "Which flow: the redirect or the embedded one?"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (QUESTION, PLAIN),
        ("## Blocked\nBy *one* thing.", "Blocked By one thing."),
        ("**Fix `api.py` now**: ***all*** of it.", "Fix api.py now: all of it."),
        ('"**no**", he said. **Scope.** これは**日本語**です', '"no", he said. Scope. これは日本語です'),
        ("[bold]x[/] **[@click=app.quit]y[/]**", "[bold]x[/] [@click=app.quit]y[/]"),
        ("**\x1b[31m**", "**␛[31m**"),
        # A mark that may have another meaning is left unchanged.
        *((same, same) for same in ("src/**/*.py and tests/**/*.py", "**/*.md or **", "(*.py, *.md)", "(*a.*, *b.*)")),
        *((same, same) for same in ("2 * 3 * 4, 2*3*4", "pkg/__init__.py and _private_", "~~not this~~", "a\\*b\\*")),
        *((same, same) for same in ("issue #12, C# too", "**never closed, `nor this")),
    ],
)
def test_the_marks_are_left_out(source, said):
    assert clean_summary(source) == said


@pytest.mark.parametrize("part", ["*a", "**a ", "`", "*", "(*a ", "*a`", "# ", " *a", "**`a"])
def test_a_hostile_line_is_read_once(part):
    assert len(clean_summary(part * LINE_LIMIT, LINE_LIMIT)) <= LINE_LIMIT


def test_a_sentence_is_cut_between_words_if_enough_is_left():
    assert clip_sentence("look at it, then accept", 23) == "look at it, then accept"
    assert clip_sentence("look at it, then accept", 14) == "look at it…"
    assert clip_sentence("look at it, then accept", 17) == "look at it, then…"
    assert clip_sentence("missing: docs/payment.md", 20) == "missing: docs/payme…"
    assert clip_sentence("missing: docs/runbooks/payment.md", 24) == "missing: …/payment.md"
    assert clip_sentence("日本語 の文章です", 9) == "日本語…"
    assert [clip_sentence("look", width) for width in (0, 1, 2)] == ["", "…", "l…"]


def poisoned(*texts: str) -> Scene:
    """Return a scene with each text in every field of a document."""
    scene = Scene()
    for text in texts:
        scene.handoff(f"root {text}", text, done="x- ")
        for state in ("failed", "blocked"):
            scene.handoff(f"{state} {text}", text, parent_task_id=f"root {text}")
        said = {"agent": text, "summary": text, "retry_hint": text, "error_code": text, "files_created": (text,)}
        scene.returned(f"failed {text}", Outcome.FAILED, **said)
        scene.returned(f"blocked {text}", Outcome.BLOCKED, agent=text, blockers=(text, text))
        scene.unreadable(f"returns/{text}.return.md", text)
    return scene


def check(s: Stage):
    for strip in s.strips():
        for segment in strip:
            assert segment.text.isprintable(), segment
            if segment.style:
                assert (segment.style.link, "@click" in segment.style.meta) == (None, False)


async def test_hostile_text_is_only_text():
    texts = list(HOSTILE.values())
    health = Health("degraded", f"cannot watch {texts[0]} {texts[2]}")
    async with stage(scene=poisoned(*texts), health=health, workspace=f"/home/kim/{texts[0]}") as s:
        for size, some in (((80, 24), texts[::2]), ((140, 40), texts[1::2])):
            await s.resize(*size)
            for text in some:
                s.tree.select(f"failed {text}")
                assert s.cursor == f"failed {text}"
                for key in ("enter", *"23456", "escape", "c"):
                    s.press_ahead(key)
                    await s.pilot.pause()
                    check(s)
        for keys in (["!"], ["escape", "C"], ["/", "r", "o"], ["enter", "s"]):
            await s.press(*keys)
            check(s)
        assert s.app.is_running


def test_the_guard_replaces_the_unprintable_and_takes_links_away():
    segments = [
        Segment("plain ✓ 日本"),
        Segment("a\x1b[31mb\u202e\n"),
        Segment("link", Style(link="https://evil.example", bold=True)),
    ]
    kept, replaced, unlinked = TerminalGuard().apply(segments, Color(0, 0, 0))
    assert kept is segments[0]
    assert replaced.text == "a�[31mb� "
    assert unlinked.style is not None
    assert unlinked.style.link is None
    assert unlinked.style.bold


async def test_the_guard_covers_every_widget():
    async with stage(size=(80, 24)) as s:
        await s.main.mount(Static(Content("\x1b]0;x\x07")))
        await s.shows("�]0;x")
        check(s)
