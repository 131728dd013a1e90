"""Foreign Markdown: what is understood, what is left as written, and that neither markup nor controls get through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.markdown_safe import MAX_LINES, inline, markdown


def said(text: str) -> list[str]:
    return [paragraph.first.plain + paragraph.content.plain for paragraph in markdown(text)]


def styles(text: str) -> list[tuple[str, str]]:
    content = inline(text)
    return [(content.plain[span.start : span.end], str(span.style)) for span in content.spans]


@pytest.mark.parametrize(
    ("text", "plain", "styled"),
    [
        ("plain words", "plain words", []),
        ("a **bold** word", "a bold word", [("bold", "bold")]),
        ("an *italic* word", "an italic word", [("italic", "italic")]),
        ("an _italic_ word", "an italic word", [("italic", "italic")]),
        ("***both***", "both", [("both", "bold italic")]),
        ("~~gone~~", "gone", [("gone", "strike")]),
        ("run `a*b*c` now", "run a*b*c now", [("a*b*c", "$text-secondary")]),
        ("**a _b_ c**", "a b c", [("b", "italic"), ("a b c", "bold")]),
        ("snake_case_name stays", "snake_case_name stays", []),
        ("2 * 3 * 4", "2 * 3 * 4", []),
        ("an open ** stays", "an open ** stays", []),
        ("an open `tick", "an open `tick", []),
        (r"\*not italic\*", "*not italic*", []),
        ("back\\slash", "back\\slash", []),
        ("[text](http://x.test)", "text (http://x.test)", [("http://x.test", "$text-muted underline")]),
        ("![image](pic.png)", "image (pic.png)", [("pic.png", "$text-muted underline")]),
        ("[not a link]", "[not a link]", []),
        ("<b onclick=x>html</b>", "<b onclick=x>html</b>", []),
    ],
)
def test_inline_markdown(text: str, plain: str, styled: list[tuple[str, str]]) -> None:
    assert inline(text).plain == plain
    assert styles(text) == styled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title", ["Title"]),
        ("### Title ###", ["Title"]),
        ("#hashtag", ["#hashtag"]),
        ("- one\n- two", ["• one", "• two"]),
        ("1. one\n2) two", ["1. one", "2) two"]),
        ("- [ ] open\n- [x] done", ["○ open", "✓ done"]),
        ("- one\n  - nested", ["• one", "  • nested"]),
        ("- one\n  goes on", ["• one", "  goes on"]),
        ("one\ntwo", ["one", "two"]),
        ("> quoted", ["▏ quoted"]),
        ("---", ["────────"]),
        ("```py\nx = *1*\n```\nafter", ["  x = *1*", "after"]),
        ("```inline``` code", ["inline code"]),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", ["a │ b", "1 │ 2"]),
    ],
)
def test_block_markdown(text: str, expected: list[str]) -> None:
    assert said(text) == expected


def test_an_unclosed_fence_shows_the_rest_as_code() -> None:
    paragraphs = list(markdown("```\n**a**\n[b](c)"))
    assert [paragraph.content.plain for paragraph in paragraphs] == ["**a**", "[b](c)"]
    assert not any(paragraph.wrap for paragraph in paragraphs)


def test_markup_and_escapes_are_shown_and_not_obeyed() -> None:
    text = "\x1b]52;c;aGk=\x07 [@click=app.quit]go[/] [/] \u202edesrever"
    [shown] = said(text)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[@click=app.quit]go[/] [/]" in shown
    assert all("click" not in str(span.style) for paragraph in markdown(text) for span in paragraph.content.spans)


def test_a_link_to_an_action_is_only_text() -> None:
    [paragraph] = markdown("[see log](app.approve)")
    assert paragraph.content.plain == "see log (app.approve)"
    assert {str(span.style) for span in paragraph.content.spans} == {"$text-muted underline"}


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = said("line\n" * (MAX_LINES * 3))
    assert len(shown) == MAX_LINES + 1
    assert shown[-1].startswith("truncated: of ")


@pytest.mark.parametrize("unit", ["[", "![", "[a](", "**a ", "*", "`", "_a", "~~", "\\", "> ", "- ", "|", "#", "[a](b"])
def test_work_grows_with_the_length_only(unit: str) -> None:
    # A line is cut at 4,000 characters: so this counts what comes out, which no input may multiply.
    text = unit * (200_000 // len(unit))
    paragraphs = list(markdown(text))
    assert sum(len(paragraph.content) for paragraph in paragraphs) <= 2 * 4_000
    assert sum(len(paragraph.content.spans) for paragraph in paragraphs) <= 2 * 4_000


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab *_`~[]()!\\#->|\n.1x\x1b\u202e", max_size=200))
def test_any_text_gives_safe_spans_inside_it(text: str) -> None:
    for paragraph in markdown(text):
        plain = paragraph.content.plain
        assert "\x1b" not in plain
        assert "\u202e" not in plain
        assert "\n" not in plain
        assert all(0 <= span.start < span.end <= len(plain) for span in paragraph.content.spans)
