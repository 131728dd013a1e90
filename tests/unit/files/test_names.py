"""Which file names are read, and how names that are no text are written."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.sources.files.names import is_candidate, looks_like_ours, pruning, to_name, to_path


@pytest.mark.parametrize("name", ["a.json", ".return-meta.json", "x.return.md", "NOTES.MD", "a.markdown", "d/e.Json"])
def test_json_and_markdown_are_worth_reading(name: str) -> None:
    assert is_candidate(name)


@pytest.mark.parametrize("name", ["a.py", "json", "a.json.tmp", "a.jsonl", "README", "md", "a.json~", ""])
def test_everything_else_is_not_worth_reading(name: str) -> None:
    assert not is_candidate(name)


@pytest.mark.parametrize(
    "path",
    [
        "a/x.handoff.json",
        "HANDOFF.md",
        ".return-meta.json",
        "x.todos.md",
        "x.report.json",
        "todos.md",
        "handoffs/api.json",
        "a/returns/b.md",
    ],
)
def test_names_of_handoffs_returns_and_todos_look_like_ours(path: str) -> None:
    assert looks_like_ours(path)


@pytest.mark.parametrize(
    "path", ["package.json", "a/handoffs/readme.txt", "handoff.py", "returns/a/b.json", "my-todos.json", "report.json"]
)
def test_other_names_do_not_look_like_ours(path: str) -> None:
    assert not looks_like_ours(path)


def test_directories_are_pruned_by_name_and_by_pattern() -> None:
    is_pruned = pruning(frozenset({"node_modules", "build-*", "cache[0-9]"}))
    assert [
        name for name in ("node_modules", "build-x", "cache1", "build", "node_modules2", "cachex") if is_pruned(name)
    ] == [
        "node_modules",
        "build-x",
        "cache1",
    ]


def test_a_name_that_is_no_utf8_shows_its_bytes() -> None:
    assert to_path(os.fsdecode(b"caf\xe9/\xff.json")) == r"caf\xe9/\xff.json"


def test_a_name_that_looks_like_an_escaped_one_stays_apart_from_it() -> None:
    assert to_path(r"\xff.json") != to_path(os.fsdecode(b"\xff.json"))


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name))
def test_a_path_can_be_encoded_and_leads_back_to_the_name(name: bytes) -> None:
    path = to_path(os.fsdecode(name))
    path.encode()
    assert os.fsencode(to_name(path)) == name


@given(st.text(alphabet="\\xf0e", max_size=12))
def test_names_with_backslashes_lead_back_too(name: str) -> None:
    assert to_name(to_path(name)) == name
