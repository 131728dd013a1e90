"""Which files of a workspace are found, and how names that are no text are written."""

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.sources.files.read import DEFAULT_PRUNED, looks_like_ours, pruning, to_name, to_path, walk
from tests.unit.files.watching import candidates, descriptors, write


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ("a.json b/c.md b/.hidden/d.JSON .claude/e.markdown target/g.json x.json/y.json", "all"),
        ("f.py json a.json.tmp a.jsonl README md a.json~", "none"),
    ],
)
def test_documents_are_found_everywhere_by_their_names(tmp_path, files, found):
    write(tmp_path / ".gitignore", "*\n")
    for name in files.split():
        write(tmp_path / name, "")
    assert set(candidates(tmp_path)) == (set(files.split()) if found == "all" else set())


@pytest.mark.parametrize(
    ("paths", "are_ours"),
    [
        ("a/x.handoff.json HANDOFF.md .return-meta.json x.todos.md x.report.json todos.md handoffs/a.json", True),
        ("package.json a/handoffs/readme.txt handoff.py returns/a/b.json my-todos.json report.json", False),
    ],
)
def test_names_of_handoffs_returns_and_todos_look_like_ours(paths, are_ours):
    assert [looks_like_ours(path) for path in paths.split()] == [are_ours] * len(paths.split())


def test_pruned_directories_and_links_are_not_entered(tmp_path):
    for name in DEFAULT_PRUNED:
        write(tmp_path / "a" / name / "x.json", "")
    write(tmp_path / "a" / "y.json", "")
    (tmp_path / "everything").symlink_to("/")
    (tmp_path / "myself").symlink_to(".")
    assert list(candidates(tmp_path)) == ["a/y.json"]
    ((_, refused),) = walk(f"{tmp_path}/everything", pruning(frozenset()))
    assert isinstance(refused, OSError)


def test_directories_are_pruned_by_name_and_by_pattern():
    names = ("node_modules", "build-x", "cache1", "build", "node_modules2", "cachex")
    is_pruned = pruning(frozenset({"node_modules", "build-*", "cache[0-9]"}))
    assert [name for name in names if is_pruned(name)] == ["node_modules", "build-x", "cache1"]


def test_a_tree_deeper_than_python_can_recurse_is_walked(tmp_path):
    depth, before = sys.getrecursionlimit() + 100, descriptors()
    write(tmp_path / "d" / "x.json", "")
    for _ in range(depth - 1):
        (tmp_path / "above").mkdir()
        (tmp_path / "d").rename(tmp_path / "above" / "d")
        (tmp_path / "above").rename(tmp_path / "d")
    assert [found.count("d/") for found in candidates(tmp_path)] == [depth]
    assert descriptors() == before
    # Whoever cleans up after the tests cannot recurse so deep either.
    for _ in range(depth - 1):
        (tmp_path / "d" / "d").rename(tmp_path / "above")
        (tmp_path / "d").rmdir()
        (tmp_path / "above").rename(tmp_path / "d")


def test_a_name_that_is_no_utf8_shows_its_bytes():
    assert to_path(os.fsdecode(b"caf\xe9/\xff.json")) == r"caf\xe9/\xff.json"
    assert to_path(r"\xff.json") != to_path(os.fsdecode(b"\xff.json"))


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name) | st.text("\\xf0e", max_size=12).map(str.encode))
def test_a_path_can_be_encoded_and_leads_back_to_the_name(name):
    path = to_path(os.fsdecode(name))
    path.encode()
    assert os.fsencode(to_name(path)) == name


@pytest.mark.parametrize("is_another", [False, True])
def test_another_work_tree_below_is_empty(tmp_path, is_another):
    write(tmp_path / "other" / ".git", "gitdir: elsewhere\n")
    write(tmp_path / "other" / "a.return.md", "")
    found = dict(walk(str(tmp_path), lambda _: False, is_another=lambda directory: is_another))
    assert found["other"] == ([], [] if is_another else ["a.return.md"])
