"""Which words of an evidence bullet are paths."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.claims import ClaimKind, claims_of, is_named
from agentwatch.evidence.disk import pointers
from tests.unit.evidence.repository import returned


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
        ("", []),
    ],
)
def test_the_paths_of_a_bullet(text: str, paths: list[tuple[str, tuple[int, int] | None]]) -> None:
    assert [(pointer.path, pointer.lines) for pointer in pointers(text)] == paths


@pytest.mark.parametrize("text", ["3/4", "and/or", "tests/unit", "Makefile", "my file.md"])
def test_what_may_be_no_path_is_doubtful(text: str) -> None:
    assert [pointer.doubtful for pointer in pointers(text)] == [True]


def test_a_command_is_said_to_be_unverifiable() -> None:
    (stated,) = claims_of(returned(evidence=["`pytest -q`: 3 passed"]), "a.return.md", None, None)
    assert stated.claim.kind is ClaimKind.EVIDENCE
    assert (stated.claim.verdict, bool(stated.claim.detail)) == (Verdict.UNVERIFIABLE, True)


@given(st.text(max_size=200))
def test_any_bullet_is_read_without_an_error(text: str) -> None:
    for pointer in pointers(text):
        assert pointer.path


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=100))
def test_any_text_is_read_without_an_error(text: str, path: str, constraint: str) -> None:
    claims_of(text, path, constraint, path)
    claims_of(returned(created=[path], evidence=[text]), "a.return.md", text, "a.handoff.json")


@given(
    st.lists(
        st.sampled_from(["a", "a.md", "/", ".", "./", "../", "-", "_", " ", "`", "repo://", "\n", "é"]), max_size=8
    ),
    st.sampled_from(["a", "a.md", "a/a.md", "é/a"]),
)
def test_a_path_is_cited_where_it_is_no_part_of_a_longer_one(parts: list[str], path: str) -> None:
    cited = "".join(parts)
    before = r"(?:(?<![\w./-])|(?<![\w./-])\./|(?<=repo://))"
    stands_there = re.search(rf"{before}{re.escape(path)}(?![\w-]|\.\w)", cited) is not None

    assert is_named(path, cited) is stands_there
