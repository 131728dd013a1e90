"""Colours of source lines: the key, the string, the number; and spans that lie inside their line."""

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
    ("language", "line", "expected"),
    [
        (JSON, '"key": "value",', [('"key"', KEY), ('"value"', STRING)]),
        (JSON, '  "a\\"b" : [-1.5e3, true]', [('"a\\"b"', KEY), ("-1.5e3", NUMBER), ("true", WORD)]),
        (JSON, '"cut off', [('"cut off', STRING)]),
        (MARKDOWN, "## Status", [("## Status", TITLE)]),
        (MARKDOWN, "- state: ERROR", [("- ", FAINT), ("state", KEY)]),
        (MARKDOWN, "http://x.test", []),
        (CODE, 'def f(): return "a" # b', [("def", KEY), ("return", KEY), ('"a"', STRING), ("# b", FAINT)]),
        (CODE, "fn f(x: &'static str) {} // c", [("fn", KEY), ("static", KEY), ("// c", FAINT)]),
        (CODE, "SELECT 'x' -- y", [("SELECT", KEY), ("'x'", STRING), ("-- y", FAINT)]),
    ],
)
def test_a_line_is_coloured(language: str, line: str, expected: list[tuple[str, str]]) -> None:
    assert styled(line, spans_of(line, language)) == expected


def test_json_in_a_fence_is_coloured_and_other_code_is_not() -> None:
    text = ["```json", '{"a": 1}', "```", "```sh", '{"a": 1}', "```", "state: x"]
    found = [styled(line, spans) for line, spans in highlighted(text, MARKDOWN)]
    assert (found[1], found[4], found[6]) == ([('"a"', KEY), ("1", NUMBER)], [], [("state", KEY)])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(alphabet='ab1-.:"\\{}[]#>*`~ \t', max_size=60), max_size=6),
    st.sampled_from([JSON, MARKDOWN, PLAIN, CODE]),
)
def test_spans_lie_inside_their_line(lines: list[str], language: str) -> None:
    found = list(highlighted(lines, language))
    assert [line for line, _ in found] == lines
    assert all(0 <= span.start <= span.end <= len(line) for line, spans in found for span in spans)
