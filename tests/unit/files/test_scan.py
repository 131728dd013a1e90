"""Walking a workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentwatch.sources.files.names import pruning
from agentwatch.sources.files.scan import FolderListing, list_directory, walk
from agentwatch.sources.files.settings import DEFAULT_PRUNED
from tests.unit.files.watching import candidates, descriptors


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_only_names_worth_reading_are_found_in_every_directory(tmp_path: Path) -> None:
    for name in ("a.json", "b/c.md", "b/.hidden/d.json", ".claude/e.md", "f.py", "target/g.json"):
        touch(tmp_path / name)
    assert set(candidates(tmp_path)) == {"a.json", "b/c.md", "b/.hidden/d.json", ".claude/e.md", "target/g.json"}


@pytest.mark.parametrize("name", sorted(DEFAULT_PRUNED))
def test_pruned_directories_are_not_entered(tmp_path: Path, name: str) -> None:
    touch(tmp_path / "a" / name / "x.json")
    touch(tmp_path / "a" / "y.json")
    assert list(candidates(tmp_path)) == ["a/y.json"]


def test_a_pruned_directory_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "node_modules" / "x.json")
    opened: list[str] = []
    real_open = os.open

    def recording_open(path: str, *arguments: int) -> int:
        opened.append(path)
        return real_open(path, *arguments)

    monkeypatch.setattr(os, "open", recording_open)
    assert list(candidates(tmp_path)) == []
    assert opened == [str(tmp_path)]


def test_what_is_ignored_by_git_is_found(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    touch(tmp_path / "x.json")
    assert list(candidates(tmp_path)) == ["x.json"]


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "everything").symlink_to("/")
    (tmp_path / "myself").symlink_to(".")
    touch(tmp_path / "x.json")
    assert list(candidates(tmp_path)) == ["x.json"]


def test_the_root_may_be_given_as_a_link(tmp_path: Path) -> None:
    touch(tmp_path / "real" / "x.json")
    (tmp_path / "link").symlink_to("real")
    assert list(candidates(tmp_path / "link")) == ["x.json"]


def test_a_directory_that_is_a_link_by_now_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        list_directory(f"{tmp_path}/link", pruning(frozenset()))


def test_a_directory_that_cannot_be_listed_is_reported_and_the_others_are_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "shut" / "x.json")
    touch(tmp_path / "open" / "y.json")
    real_open = os.open

    def refusing_open(path: str, *arguments: int) -> int:
        if path.endswith("/shut"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *arguments)

    monkeypatch.setattr(os, "open", refusing_open)
    walked = dict(walk(str(tmp_path), pruning(frozenset())))
    assert isinstance(walked["shut"], PermissionError)
    assert isinstance(walked["open"], FolderListing)
    assert list(candidates(tmp_path)) == ["open/y.json"]


def test_a_directory_named_like_a_document_is_walked(tmp_path: Path) -> None:
    touch(tmp_path / "x.json" / "y.json")
    assert list(candidates(tmp_path)) == ["x.json/y.json"]


def test_a_tree_deeper_than_python_can_recurse_is_walked(tmp_path: Path) -> None:
    depth = sys.getrecursionlimit() + 100
    touch(tmp_path / "d" / "x.json")
    for _ in range(depth - 1):
        (tmp_path / "above").mkdir()
        (tmp_path / "d").rename(tmp_path / "above" / "d")
        (tmp_path / "above").rename(tmp_path / "d")
    assert [found.count("d/") for found in candidates(tmp_path)] == [depth]
    # Whoever cleans up after the tests cannot recurse so deep either.
    for _ in range(depth - 1):
        (tmp_path / "d" / "d").rename(tmp_path / "above")
        (tmp_path / "d").rmdir()
        (tmp_path / "above").rename(tmp_path / "d")


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    for number in range(50):
        touch(tmp_path / str(number) / "x.json")
    before = descriptors()
    list(candidates(tmp_path))
    assert descriptors() == before
