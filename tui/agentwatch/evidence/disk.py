"""What the disk says of a path: looked at without opening files, following links or leaving the workspace."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from agentwatch.sources.files.read import kind_of

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES: Final = 20_000
"""Names of one directory that are searched for another spelling."""
_LISTINGS: Final = 256
"""Directories listed in one look."""
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


class FileKind(StrEnum):
    """What is there."""

    MISSING = "missing"
    REGULAR = "regular"
    DIRECTORY = "directory"
    OTHER = "other"
    OUTSIDE = "outside"
    """A symbolic link, or one on the way, leads out of the workspace."""
    REFUSED = "refused"
    """The system does not let us look."""


class DiskFacts(NamedTuple):
    """One path as it was found. `mtime_ns` is in nanoseconds since the epoch, `size` in bytes.

    `words` name an OTHER's kind or why it was REFUSED. `variant` is the path in the spelling that the disk has, where
    that differs from the one asked for. `linked`: a symbolic link inside the workspace leads there.
    `names` is how many hard links it has.
    """

    kind: FileKind
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0
    empty: bool = False
    words: str = ""
    variant: str | None = None
    linked: bool = False
    names: int = 1


MISSING: Final = DiskFacts(FileKind.MISSING)
_MOVING: Final = DiskFacts(FileKind.REFUSED, words="its symbolic link leads in a circle or is changing")


class Disk:
    """Looks at many paths of one workspace at a time. `root` is absolute and resolved."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._listings: dict[tuple[str, ...], dict[str, str]] = {}
        self._folding: dict[tuple[str, ...], bool] = {}

    def look(self, paths: Iterable[str]) -> dict[str, DiskFacts]:
        """The facts of each path, given relative to the root, with `/`, without `.` and `..`."""
        self._listings.clear()
        self._folding.clear()
        facts, links = self._walk(set(paths))
        targets: dict[str, str] = {}
        base = self.root.rstrip("/") + "/"
        for path in links:
            target = os.path.realpath(f"{self.root}/{path}")
            if target.startswith(base):
                targets[path] = target.removeprefix(base)
            else:
                is_root = target == self.root
                facts[path] = DiskFacts(FileKind.DIRECTORY if is_root else FileKind.OUTSIDE, linked=is_root)
        behind, _ = self._walk(set(targets.values()))
        # What is behind a link again leads in a circle.
        facts |= {
            path: behind.get(target, _MOVING)._replace(linked=target in behind) for path, target in targets.items()
        }
        return facts

    def _walk(self, paths: set[str]) -> tuple[dict[str, DiskFacts], list[str]]:
        """(facts by path, paths that are or lie behind a symbolic link)."""
        known: dict[str, DiskFacts] = {}
        links: list[str] = []
        if not paths:
            return known, links
        try:
            descriptors = [os.open(self.root, _OPEN_DIRECTORY)]
        except OSError as error:
            words = os.strerror(error.errno or 0)
            return dict.fromkeys(paths, DiskFacts(FileKind.REFUSED, words=f"the workspace: {words}")), links
        names: list[str] = []
        try:
            # In this order the paths of one directory stand together: each directory is opened once.
            for parts in sorted(path.split("/") for path in paths):
                path = "/".join(parts)
                while names != parts[:-1][: len(names)]:
                    names.pop()
                    os.close(descriptors.pop())
                facts = self._descend(parts, names, descriptors)
                if facts is None:
                    links.append(path)
                else:
                    known[path] = facts
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return known, links

    def _descend(self, parts: list[str], names: list[str], descriptors: list[int]) -> DiskFacts | None:
        """The facts of a path whose first directories are open; None where a link is on it."""
        try:
            for name in parts[len(names) : -1]:
                try:
                    descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=descriptors[-1])
                except OSError:
                    if stat.S_ISLNK(os.stat(name, dir_fd=descriptors[-1], follow_symlinks=False).st_mode):
                        return None
                    raise
                descriptors.append(descriptor)
                names.append(name)
            status = os.stat(parts[-1], dir_fd=descriptors[-1], follow_symlinks=False)
        except OSError as error:
            if error.errno in _GONE:
                variant = self._variant(parts, names, descriptors[-1])
                return MISSING if variant is None else MISSING._replace(variant=variant)
            return DiskFacts(FileKind.REFUSED, words=os.strerror(error.errno or 0))
        if stat.S_ISLNK(status.st_mode):
            return None
        facts = _facts(status, parts[-1], descriptors[-1])
        if self._folds_case(tuple(parts[:-1]), parts[-1], status, descriptors[-1]):
            spelled = self._spellings(tuple(parts[:-1]), descriptors[-1]).get(_folded(parts[-1]), parts[-1])
            if spelled != parts[-1]:
                return facts._replace(variant="/".join([*parts[:-1], spelled]))
        return facts

    def _folds_case(self, path: tuple[str, ...], name: str, status: os.stat_result, directory: int) -> bool:
        """Files of this directory answer to their names in other letters: it does not tell them apart."""
        swapped = name.swapcase()
        if swapped == name:
            return False
        if path not in self._folding:
            self._folding[path] = False
            with suppress(OSError):
                other = os.stat(swapped, dir_fd=directory, follow_symlinks=False)
                self._folding[path] = os.path.samestat(other, status)
        return self._folding[path]

    def _variant(self, parts: list[str], names: list[str], directory: int) -> str | None:
        """The path of a file that differs from a missing one only by letter case or Unicode form."""
        part, *others = parts[len(names) :]
        name = self._spellings(tuple(names), directory).get(_folded(part))
        if name is None:
            return None
        spelled = [*names, name]
        with suppress(OSError), ExitStack() as opened:
            for part in others:
                directory = os.open(spelled[-1], _OPEN_DIRECTORY, dir_fd=directory)
                opened.callback(os.close, directory)
                name = self._spellings(tuple(spelled), directory).get(_folded(part))
                if name is None:
                    return None
                spelled.append(name)
            return "/".join(spelled)
        return None

    def _spellings(self, path: tuple[str, ...], directory: int) -> dict[str, str]:
        """The names of a directory by their folded form."""
        if path not in self._listings and len(self._listings) < _LISTINGS:
            self._listings[path] = {}
            with suppress(OSError), os.scandir(directory) as entries:
                self._listings[path] = {_folded(entry.name): entry.name for entry in islice(entries, _NAMES)}
        return self._listings.get(path, {})


def trace(path: str) -> object:
    """Something that is equal as long as a file is not written, replaced or removed. Blocks for one look."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return "gone"
    return status.st_mtime_ns, status.st_size, status.st_ino


def look_of(traces: Iterable[object]) -> int:
    """What many traces look like, in one number: it is kept of every return. Another look is as good as never alike."""
    return hash(tuple(traces))


def _folded(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def _facts(status: os.stat_result, name: str, directory: int) -> DiskFacts:
    mode = status.st_mode
    times = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    if stat.S_ISREG(mode):
        return DiskFacts(FileKind.REGULAR, status.st_size, *times, empty=status.st_size == 0, names=status.st_nlink)
    if stat.S_ISDIR(mode):
        return DiskFacts(FileKind.DIRECTORY, 0, *times, empty=_is_empty(name, directory))
    return DiskFacts(FileKind.OTHER, 0, *times, words=kind_of(mode))


def _is_empty(name: str, directory: int) -> bool:
    with suppress(OSError), ExitStack() as opened:
        descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
        opened.callback(os.close, descriptor)
        with os.scandir(descriptor) as entries:
            return next(entries, None) is None
    return False
