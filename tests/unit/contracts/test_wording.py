"""How long a text is, and which paths stay inside the repository."""

from __future__ import annotations

import pytest

from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.wording import BRIEF, brief, sentences, tokens


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("...", 0),
        ("Done", 1),
        ("Done.", 1),
        ("Built the API; all tests pass.", 1),
        ("Built the API. All tests pass.", 2),
        ("Built it! Does it work? Yes.", 3),
        ("Wrote docs/a.md and b.py in 3.5 s.", 1),
        ("Used tools, e.g. Grep, and more.", 1),
        ("Phases 1-2 of 3. Phase 3 is open.", 2),
        ("Version 2. It works.", 2),
        ("First\nSecond. Third", 2),
        ("He said \u201cdone.\u201d Then he left.", 2),
        ("See J. Smith for it.", 1),
        ("Uses Vitamin C. Works.", 1),
        ("...wait. Go.", 2),
        ("\u5b8c\u4e86\u3002", 1),
    ],
)
def test_sentences_are_counted_as_a_person_would(text: str, count: int) -> None:
    assert sentences(text) == count


def test_a_token_is_four_characters() -> None:
    assert tokens("x" * 400) == 100
    assert tokens("x" * 401) == 101


def test_a_brief_text_is_cut_visibly() -> None:
    assert brief("x" * BRIEF) == "x" * BRIEF
    assert brief("x" * (BRIEF + 1)) == "x" * (BRIEF - 1) + "\u2026"
    assert brief("") is None


@pytest.mark.parametrize(
    "path", ["a", "a/b.md", "./a", ".agents/x.md", "a/../b", "a b/c.md", "a:b", "x/~/y", "...", "a//b"]
)
def test_paths_inside_the_repository(path: str) -> None:
    assert why_not_relative(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        " ",
        "/a",
        "\\a",
        "\\\\host\\share",
        "~",
        "~/a",
        "~ada/a",
        "C:\\a",
        "c:/a",
        "file:///a",
        "https://a/b",
        "..",
        "../a",
        "a/../../b",
        "a\\..\\..\\b",
        "a\0b",
        "a/" * 3_000,
    ],
)
def test_paths_that_lead_elsewhere(path: str) -> None:
    assert why_not_relative(path)
