"""The directories of a workspace as they were last listed, by their path relative to its root, "" for that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from posixpath import basename, dirname
from typing import Final

Names = tuple[str, ...] | set[str]
"""Of most directories few: a set weighs three times as much."""
_FEW: Final = 8


@dataclass(slots=True)
class Directory:
    """One of them."""

    fingerprint: int
    racy: bool
    """It changed so shortly before it was listed that the next change may not show in its fingerprint."""
    directories: Names = ()
    files: Names = ()
    """The names in it."""


class Directories(dict[str, Directory]):
    """All of them."""

    def add_file(self, path: str) -> None:
        """A file is in its directory, if that is known."""
        parent = self.get(dirname(path))
        if parent is not None:
            parent.files = _with(parent.files, basename(path))

    def discard_file(self, path: str) -> None:
        """It is there no more."""
        parent = self.get(dirname(path))
        if parent is not None:
            parent.files = _without(parent.files, basename(path))

    def add_directory(self, path: str) -> None:
        """A directory is in the one above it, if that is known; it is not listed yet."""
        parent = self.get(dirname(path))
        if parent is not None:
            parent.directories = _with(parent.directories, basename(path))

    def discard(self, path: str) -> bool:
        """It is there no more. Returns whether it was known."""
        if self.pop(path, None) is None:
            return False
        parent = self.get(dirname(path))
        if parent is not None:
            parent.directories = _without(parent.directories, basename(path))
        return True

    def subtree(self, below: str) -> tuple[set[str], set[str]]:
        """The directories from one on, and the files in them."""
        directories: set[str] = set()
        files: set[str] = set()
        pending = [below]
        while pending:
            path = pending.pop()
            if path in self:
                directories.add(path)
                files.update(paths_in(path, self[path].files))
                pending.extend(paths_in(path, self[path].directories))
        return directories, files


def paths_in(directory: str, names: Iterable[str]) -> Iterator[str]:
    """The paths of names in a directory, in their order; of a set in the order of the alphabet."""
    ordered = sorted(names) if isinstance(names, set) else names
    return (f"{directory}/{name}" for name in ordered) if directory else iter(ordered)


def names_of(names: Collection[str]) -> Names:
    """The same, small and in their order where they are few, and quick to change where they are many."""
    return set(names) if len(names) > _FEW else tuple(sorted(names))


def _with(names: Names, name: str) -> Names:
    if isinstance(names, set):
        names.add(name)
        return names
    return names if name in names else names_of((*names, name))


def _without(names: Names, name: str) -> Names:
    if isinstance(names, set):
        names.discard(name)
        return names
    return tuple(one for one in names if one != name)
