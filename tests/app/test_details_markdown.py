"""Foreign Markdown: the forms that are understood, and that neither markup nor controls get through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.markdown_safe import MAX_LINES, inline, markdown


def said(text: str) -> list[str]:
    return [paragraph.first.plain + paragraph.content.plain for paragraph in markdown(text)]


@pytest.mark.parametrize(
    ("text", "plain", "styled"),
    [
        ("a **bold** _word_", "a bold word", [("bold", "bold"), ("word", "italic")]),
        ("***both*** ~~gone~~", "both gone", [("both", "bold italic"), ("gone", "strike")]),
        ("run `a*b*c` now", "run a*b*c now", [("a*b*c", "$text-secondary")]),
        ("**a _b_ c**", "a b c", [("b", "italic"), ("a b c", "bold")]),
        ("snake_case_name, 2 * 3 * 4, an open ** and `tick", "snake_case_name, 2 * 3 * 4, an open ** and `tick", []),
        (r"\*not italic\*, back\slash", "*not italic*, back\\slash", []),
        ("[text](app.approve)", "text (app.approve)", [("app.approve", "$text-muted underline")]),
        ("[not a link] <b onclick=x>html</b>", "[not a link] <b onclick=x>html</b>", []),
    ],
)
def test_inline_markdown(text: str, plain: str, styled: list[tuple[str, str]]) -> None:
    content = inline(text)
    assert content.plain == plain
    assert [(plain[span.start : span.end], str(span.style)) for span in content.spans] == styled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("### Title ###\n#hashtag", ["Title", "#hashtag"]),
        ("- one\n  goes on\n  - nested", ["• one", "  goes on", "  • nested"]),
        ("1. one\n2) two\n- [x] done", ["1. one", "2) two", "✓ done"]),
        ("> quoted\n---", ["▏ quoted", "────────"]),
        ("```py\nx = *1*\n```\nafter", ["  x = *1*", "after"]),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", ["a │ b", "1 │ 2"]),
    ],
)
def test_block_markdown(text: str, expected: list[str]) -> None:
    assert said(text) == expected


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = said("line\n" * (MAX_LINES * 3))
    assert len(shown) == MAX_LINES + 1
    assert shown[-1].startswith("truncated: of ")


@pytest.mark.parametrize("unit", ["[", "![", "[a](", "**a ", "*", "`", "_a", "~~", "\\", "> ", "- ", "|", "#", "[a](b"])
def test_work_grows_with_the_length_only(unit: str) -> None:
    # A line is cut at 4,000 characters: so this counts what comes out, which no input may multiply.
    paragraphs = list(markdown(unit * (200_000 // len(unit))))
    assert sum(len(paragraph.content) for paragraph in paragraphs) <= 2 * 4_000
    assert sum(len(paragraph.content.spans) for paragraph in paragraphs) <= 2 * 4_000


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab *_`~[]()!\\#->|\n.1x\x1b\u202e", max_size=200))
def test_any_text_gives_safe_spans_inside_it(text: str) -> None:
    for paragraph in markdown(text):
        plain = paragraph.content.plain
        assert not set("\x1b\u202e\n") & set(plain)
        assert all(0 <= span.start < span.end <= len(plain) for span in paragraph.content.spans)
        assert all("click" not in str(span.style) for span in paragraph.content.spans)
