"""Which words of an evidence bullet are paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.evidence.claims import claims_of
from tests.goldens.verdicts.claude import returned


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("docs/a.md — why", [("docs/a.md", None)]),
        ("`docs/a.md`: why", [("docs/a.md", None)]),
        ("docs/a.md:12-40", [("docs/a.md", (12, 40))]),
        ("docs/a.md#L3-L9", [("docs/a.md", (3, 9))]),
        ("docs/a.md:7 — the rule", [("docs/a.md", (7, 7))]),
        ("src/a.py: line 5", [("src/a.py", (5, 5))]),
        ("`src/a.py`: lines 5-9", [("src/a.py", (5, 9))]),
        ("src/a.py: lines 5-9 — the parser", [("src/a.py", (5, 9))]),
        ("src/a.py: line 5 is wrong", [("src/a.py", None)]),
        ("a.md, b.md and c/d.py", [("a.md", None), ("b.md", None), ("c/d.py", None)]),
        ("[the plan](plans/x.md)", [("plans/x.md", None)]),
        ("I read `src/a.py` and more of it", [("src/a.py", None)]),
        ("src/lib (the library)", [("src/lib", None)]),
        ("docs/", [("docs/", None)]),
        ("`pytest -q tests/unit/test_a.py`", []),
        ("pytest tests/unit/test_a.py -q: 3 passed", []),
        ("84 tests passed", []),
        ("https://example.org/a.md", []),
        ("mailto:a@example.org", []),
        ("handoff-packet contract", []),
        ("3/4", [("3/4", None)]),
        ("my file.md \u2014 why", [("my file.md", None)]),
        ("`my file.md`: why", [("my file.md", None)]),
        ("pytest -q a.py", []),
        ("Ran `grep` in a.py", []),
    ],
)
def test_the_paths_of_a_bullet(text, paths):
    stated = claims_of(returned(evidence=[text]), "a.return.md")
    assert [(one.claim.path, one.claim.lines) for one in stated if one.is_file] == paths
    assert all(one.is_file or one.claim.detail for one in stated)


@pytest.mark.parametrize("text", ["3/4", "and/or", "tests/unit", "Makefile", "my file.md"])
def test_the_absence_of_what_may_be_no_path_is_no_lie(text):
    (stated,) = claims_of(returned(evidence=[text]), "a.return.md")
    assert (stated.is_file, bool(stated.excuse)) == (True, True)


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=100))
def test_any_text_is_read_without_an_error(text, path, constraint):
    claims_of(text, path, constraint, path)
    claims_of(returned(created=[path], evidence=[text]), "a.return.md", text, "a.handoff.json")
