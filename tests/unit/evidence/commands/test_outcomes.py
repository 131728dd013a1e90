"""Words that are looked for before a pattern: none of them hides what the pattern would have found."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.evidence.commands import outcomes

ROWS: Final = [
    *((words, pattern) for words, pattern, *_ in outcomes._SUMMARIES),
    (outcomes._OF_FAULTS, outcomes._FAULTS),
    (outcomes._OF_CLEAN, outcomes._CLEAN),
]


@pytest.mark.parametrize(("words", "pattern"), ROWS)
def test_one_of_the_words_of_a_row_stands_in_all_that_its_pattern_matches(
    words: tuple[str, ...], pattern: re.Pattern[str]
) -> None:
    @settings(max_examples=30)
    @given(st.from_regex(pattern))
    def holds(output: str) -> None:
        match = pattern.search(output)
        assert match is not None
        looked_in = output.casefold() if pattern is outcomes._CLEAN else match[0]
        assert any(word in looked_in for word in words)

    holds()


@settings(max_examples=50)
@given(st.from_regex(outcomes._PLAIN))
def test_what_counts_without_a_row_of_its_own_holds_a_count(output: str) -> None:
    assert outcomes._COUNTED.search(output) is not None
