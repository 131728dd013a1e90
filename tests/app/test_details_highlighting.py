"""Colours of source lines: what is a key, a string, a number; and that spans lie inside their line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.source import (
    CODE,
    JSON,
    KEY,
    MARKDOWN,
    NUMBER,
    PLAIN,
    STRING,
    TITLE,
    WORD,
    highlighted,
    spans_of,
)


def styled(line: str, spans) -> list[tuple[str, str]]:
    return [(line[span.start : span.end], str(span.style)) for span in spans]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"key": "value",', [('"key"', KEY), ('"value"', STRING)]),
        ('  "a\\"b" : -1.5e3', [('"a\\"b"', KEY), ("-1.5e3", NUMBER)]),
        ("[true, false, null]", [("true", WORD), ("false", WORD), ("null", WORD)]),
        ('"cut off', [('"cut off', STRING)]),
        ("nothing here", []),
    ],
)
def test_json_lines(line: str, expected: list[tuple[str, str]]) -> None:
    assert styled(line, spans_of(line, JSON)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("## Status", [("## Status", TITLE)]),
        ("state: ERROR", [("state", KEY)]),
        ("**state**: ERROR", [("**state**", KEY)]),
        ("- state: ERROR", [("- ", FAINT), ("state", KEY)]),
        ("- [x] done", [("- [x]", FAINT)]),
        ("http://x.test", []),
        ("words only", []),
    ],
)
def test_markdown_lines(line: str, expected: list[tuple[str, str]]) -> None:
    assert styled(line, spans_of(line, MARKDOWN)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('def f(): return "a" # b', [("def", KEY), ("return", KEY), ('"a"', STRING), ("# b", FAINT)]),
        ("let x = 0x1f; // c", [("let", KEY), ("0x1f", NUMBER), ("// c", FAINT)]),
        ("fn f(x: &'static str) {}", [("fn", KEY), ("static", KEY)]),
        ("SELECT 'x' -- y", [("SELECT", KEY), ("'x'", STRING), ("-- y", FAINT)]),
        ("values = None", [("None", WORD)]),
        ('"cut off', [('"cut off', STRING)]),
    ],
)
def test_lines_of_code(line: str, expected: list[tuple[str, str]]) -> None:
    assert styled(line, spans_of(line, CODE)) == expected


def test_json_in_a_fence_is_coloured_and_other_code_is_not() -> None:
    text = ["```json", '{"a": 1}', "```", "```sh", '{"a": 1}', "```", "state: x"]
    found = [styled(line, spans) for line, spans in highlighted(text, MARKDOWN)]
    assert found[1] == [('"a"', KEY), ("1", NUMBER)]
    assert found[4] == []
    assert found[6] == [("state", KEY)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(alphabet='ab1-.:"\\{}[]#>*`~ \t', max_size=60), max_size=6),
    st.sampled_from([JSON, MARKDOWN, PLAIN, CODE]),
)
def test_spans_lie_inside_their_line(lines: list[str], language: str) -> None:
    found = list(highlighted(lines, language))
    assert [line for line, _ in found] == lines
    for line, spans in found:
        assert all(0 <= span.start <= span.end <= len(line) for span in spans)
