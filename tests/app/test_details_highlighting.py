"""Colours of source lines: what is a key, a string, a number; and that spans lie inside their line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.highlighting import (
    KEY,
    NUMBER,
    STRING,
    TITLE,
    WORD,
    Language,
    code_spans,
    highlighted,
    json_spans,
    language_of,
    language_of_file,
    markdown_spans,
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
    assert styled(line, json_spans(line)) == expected


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
    assert styled(line, markdown_spans(line)) == expected


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        (Language.HASHED, 'def f(): return "a" # b', [("def", KEY), ("return", KEY), ('"a"', STRING), ("# b", FAINT)]),
        (Language.SLASHED, "let x = 0x1f; // c", [("let", KEY), ("0x1f", NUMBER), ("// c", FAINT)]),
        (Language.SLASHED, "fn f(x: &'static str) {}", [("fn", KEY), ("static", KEY)]),
        (Language.DASHED, "SELECT 'x' -- y", [("SELECT", KEY), ("'x'", STRING), ("-- y", FAINT)]),
        (Language.HASHED, "values = None", [("None", WORD)]),
        (Language.HASHED, '"cut off', [('"cut off', STRING)]),
    ],
)
def test_lines_of_code(language: Language, line: str, expected: list[tuple[str, str]]) -> None:
    assert styled(line, code_spans(line, language)) == expected


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.PY", Language.HASHED),
        ("src/a.ts", Language.SLASHED),
        ("a.sql", Language.DASHED),
        ("a.json", Language.JSON),
        ("README.md", Language.MARKDOWN),
        ("Makefile", Language.PLAIN),
        ("a.py/b", Language.PLAIN),
    ],
)
def test_a_file_is_coloured_by_the_end_of_its_name(name: str, language: Language) -> None:
    assert language_of_file(name, 100) is language
    assert language_of_file(name, 100_000) is Language.PLAIN


def test_a_document_is_json_or_markdown() -> None:
    assert language_of('\n{"a": 1}') is Language.JSON
    assert language_of("## Status") is Language.MARKDOWN
    assert language_of("x" * 100_000) is Language.PLAIN


def test_json_in_a_fence_is_coloured_and_other_code_is_not() -> None:
    text = ["```json", '{"a": 1}', "```", "```sh", '{"a": 1}', "```", "state: x"]
    found = [styled(line, spans) for line, spans in highlighted(text, Language.MARKDOWN)]
    assert found[1] == [('"a"', KEY), ("1", NUMBER)]
    assert found[4] == []
    assert found[6] == [("state", KEY)]


def test_plain_text_has_no_colours() -> None:
    assert list(highlighted(['{"a": 1}'], Language.PLAIN)) == [('{"a": 1}', [])]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet='ab1-.:"\\{}[]#>*`~ \t', max_size=60), max_size=6), st.sampled_from(Language))
def test_spans_lie_inside_their_line(lines: list[str], language: Language) -> None:
    found = list(highlighted(lines, language))
    assert [line for line, _ in found] == lines
    for line, spans in found:
        assert all(0 <= span.start <= span.end <= len(line) for span in spans)
