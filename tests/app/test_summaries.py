"""Words that an agent wrote as Markdown, in one line: without the marks, never as markup, and nothing else changed."""

from time import monotonic

import pytest

from agentwatch.app.widgets.line import clip_sentence
from agentwatch.text import LINE_LIMIT, summary

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
        # A mark that may mean something else is left as it is.
        *((same, same) for same in ("src/**/*.py and tests/**/*.py", "**/*.md or **", "(*.py, *.md)", "(*a.*, *b.*)")),
        *((same, same) for same in ("2 * 3 * 4, 2*3*4", "pkg/__init__.py and _private_", "~~not this~~", "a\\*b\\*")),
        *((same, same) for same in ("issue #12, C# too", "**never closed, `nor this")),
    ],
)
def test_the_marks_are_left_out(source, said):
    assert summary(source) == said


@pytest.mark.parametrize("part", ["*a", "**a ", "`", "*", "(*a ", "*a`", "# ", " *a", "**`a"])
def test_a_hostile_line_costs_no_time(part):
    start = monotonic()
    summary(part * LINE_LIMIT, LINE_LIMIT)
    assert monotonic() - start < 1.0


def test_a_sentence_is_cut_between_words_where_most_is_left():
    assert clip_sentence("look at it, then accept", 23) == "look at it, then accept"
    assert clip_sentence("look at it, then accept", 14) == "look at it…"
    assert clip_sentence("look at it, then accept", 17) == "look at it, then…"
    assert clip_sentence("missing: docs/payment.md", 20) == "missing: docs/payme…"
    assert clip_sentence("missing: docs/runbooks/payment.md", 24) == "missing: …/payment.md"
    assert clip_sentence("日本語 の文章です", 9) == "日本語…"
    assert [clip_sentence("look", width) for width in (0, 1, 2)] == ["", "…", "l…"]
