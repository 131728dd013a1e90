"""What the disk says of a path: looked at without opening files, following links or leaving the workspace."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES: Final = 20_000
"""Names of one directory that are searched for another spelling."""
_LISTINGS: Final = 256
"""Directories listed in one look."""
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


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
        found, links = self._walk(set(paths))
        targets: dict[str, str] = {}
        for path in links:
            target = os.path.realpath(f"{self.root}/{path}")
            base = self.root.rstrip("/") + "/"
            if target.startswith(base):
                targets[path] = target.removeprefix(base)
            elif target == self.root:
                found[path] = DiskFacts(FileKind.DIRECTORY, linked=True)
            else:
                found[path] = DiskFacts(FileKind.OUTSIDE)
        behind, moving = self._walk(set(targets.values()))
        for path, target in targets.items():
            if target in moving:
                found[path] = DiskFacts(FileKind.REFUSED, words="its symbolic link leads in a circle or is changing")
            else:
                found[path] = behind[target]._replace(linked=True)
        return found

    def _walk(self, paths: set[str]) -> tuple[dict[str, DiskFacts], list[str]]:
        """(facts by path, paths that are or lie behind a symbolic link)."""
        found: dict[str, DiskFacts] = {}
        links: list[str] = []
        if not paths:
            return found, links
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
                shared = 0
                while shared < min(len(names), len(parts) - 1) and names[shared] == parts[shared]:
                    shared += 1
                while len(names) > shared:
                    names.pop()
                    os.close(descriptors.pop())
                facts = self._descend(parts, names, descriptors)
                if facts is None:
                    links.append(path)
                else:
                    found[path] = facts
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return found, links

    def _descend(self, parts: list[str], names: list[str], descriptors: list[int]) -> DiskFacts | None:
        """The facts of a path whose first directories are open; None where a link is on it."""
        try:
            for name in parts[len(names) : -1]:
                if stat.S_ISLNK(os.stat(name, dir_fd=descriptors[-1], follow_symlinks=False).st_mode):
                    return None
                descriptors.append(os.open(name, _OPEN_DIRECTORY, dir_fd=descriptors[-1]))
                names.append(name)
            status = os.stat(parts[-1], dir_fd=descriptors[-1], follow_symlinks=False)
        except OSError as error:
            if error.errno in _GONE:
                variant = self._variant(parts, names, descriptors[-1])
                return MISSING._replace(variant=variant) if variant else MISSING
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
        known = self._folding.get(path)
        if known is None:
            try:
                other = os.stat(swapped, dir_fd=directory, follow_symlinks=False)
                known = (other.st_ino, other.st_dev) == (status.st_ino, status.st_dev)
            except OSError:
                known = False
            self._folding[path] = known
        return known

    def _variant(self, parts: list[str], names: list[str], directory: int) -> str | None:
        """The path of a file that differs from a missing one only by letter case or Unicode form."""
        spelled = list(names)
        opened: list[int] = []
        try:
            for position in range(len(names), len(parts)):
                name = self._spellings(tuple(spelled), directory).get(_folded(parts[position]))
                if name is None:
                    return None
                spelled.append(name)
                if position < len(parts) - 1:
                    directory = os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
                    opened.append(directory)
        except OSError:
            return None
        finally:
            for descriptor in opened:
                os.close(descriptor)
        return "/".join(spelled)

    def _spellings(self, path: tuple[str, ...], directory: int) -> dict[str, str]:
        """The names of a directory by their folded form."""
        known = self._listings.get(path)
        if known is None:
            known = {}
            if len(self._listings) < _LISTINGS:
                try:
                    with os.scandir(directory) as entries:
                        known = {_folded(entry.name): entry.name for entry in islice(entries, _NAMES)}
                except OSError:
                    known = {}
                self._listings[path] = known
        return known


def trace(path: str) -> object:
    """Something that is equal as long as a file is not written, replaced or removed. Blocks for one look."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return "gone"
    return status.st_mtime_ns, status.st_size, status.st_ino


def _folded(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def _facts(status: os.stat_result, name: str, directory: int) -> DiskFacts:
    mode = status.st_mode
    times = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    if stat.S_ISREG(mode):
        return DiskFacts(FileKind.REGULAR, status.st_size, *times, empty=status.st_size == 0, names=status.st_nlink)
    if stat.S_ISDIR(mode):
        return DiskFacts(FileKind.DIRECTORY, 0, *times, empty=_is_empty(name, directory))
    words = next((words for is_kind, words in _KINDS if is_kind(mode)), "no regular file")
    return DiskFacts(FileKind.OTHER, 0, *times, words=words)


def _is_empty(name: str, directory: int) -> bool:
    try:
        descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
    except OSError:
        return False
    try:
        with os.scandir(descriptor) as entries:
            return next(entries, None) is None
    except OSError:
        return False
    finally:
        os.close(descriptor)
