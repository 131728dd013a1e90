"""The directories of a workspace as they were last listed, by their path relative to its root, "" for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import basename, dirname


@dataclass(slots=True)
class Directory:
    """One of them."""

    fingerprint: int
    racy: bool
    """It changed so shortly before it was listed that the next change may not show in its fingerprint."""
    directories: set[str] | None = None
    files: set[str] | None = None
    """The names in it; None, because most directories hold either of them, and an empty set is large."""


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
        if parent is not None and parent.files is not None:
            parent.files.discard(basename(path))

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
        if parent is not None and parent.directories is not None:
            parent.directories.discard(basename(path))
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
                files.update(paths_in(path, self[path].files or ()))
                pending.extend(paths_in(path, self[path].directories or ()))
        return directories, files


def paths_in(directory: str, names: Iterable[str]) -> Iterator[str]:
    """The paths of names in a directory, in their order; of a set in the order of the alphabet."""
    ordered = sorted(names) if isinstance(names, set) else names
    return (f"{directory}/{name}" for name in ordered) if directory else iter(ordered)


def _with(names: set[str] | None, name: str) -> set[str]:
    names = set() if names is None else names
    names.add(name)
    return names
