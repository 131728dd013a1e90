"""The names in a directory, however few or many."""

from __future__ import annotations

import pytest

from agentwatch.sources.files.directories import Directories, Directory, names_of


@pytest.mark.parametrize("count", [1, 8, 9, 30])
def test_what_comes_and_goes_in_a_directory_is_known(count: int) -> None:
    known = Directories({"": Directory(1, racy=False), "a": Directory(2, racy=False)})
    known.add_directory("a")
    files = [f"a/{number:02}.json" for number in range(count)]
    for path in [*reversed(files), files[0]]:
        known.add_file(path)
    assert known.subtree("") == ({"", "a"}, set(files))
    assert len(known["a"].files) == count
    known.discard_file(files[0])
    known.discard_file("a/never.json")
    assert known.subtree("a") == ({"a"}, set(files[1:]))
    assert known.discard("a")
    assert not known.discard("a")
    assert known.subtree("") == ({""}, set())


def test_few_names_are_in_their_order_whatever_order_they_came_in() -> None:
    assert names_of(["b", "a"]) == names_of({"a", "b"}) == ("a", "b")
