"""Walking a workspace: directories pruned before they are entered, symbolic links never followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from sys import intern
from typing import Final

from agentwatch.sources.files.names import is_candidate

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_MARK: Final = ".git"
_INODE_BITS: Final = 64
_INODE: Final = (1 << _INODE_BITS) - 1


def fingerprint(status: os.stat_result) -> int:
    """What tells that a file or directory changed without reading it: mtime, ctime, size and inode in one number.
    Nobody can set the ctime, so a rewrite of the same size that restores the mtime is noticed."""
    return fingerprint_of(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def fingerprint_of(mtime_ns: int, ctime_ns: int, size: int, inode: int) -> int:
    """A fingerprint made of its four numbers; a negative inode is one of more than 63 bits."""
    return (mtime_ns << 192) | (ctime_ns << 128) | (size << _INODE_BITS) | (inode & _INODE)


def numbers_in(known: int) -> tuple[int, int, int, int]:
    """The four numbers of a fingerprint, each of at most 64 bits with its sign, as databases hold them."""
    inode = known & _INODE
    parts = (known >> 192, known >> 128 & _INODE, known >> _INODE_BITS & _INODE)
    return (*parts, inode - (1 << _INODE_BITS) if inode >> (_INODE_BITS - 1) else inode)


def inode_in(known: int | None) -> int | None:
    """The inode in a fingerprint."""
    return None if known is None else known & _INODE


def mtime_in(known: int | None) -> int:
    """The mtime in a fingerprint, in nanoseconds; 0 where there is none."""
    return (known or 0) >> 3 * _INODE_BITS


@dataclass(slots=True)
class FolderListing:
    """One directory as it was listed; `fingerprint` and `changed_ns`, its ctime, are from before that."""

    fingerprint: int
    changed_ns: int
    directories: dict[str, int] = field(default_factory=dict)
    """Names of the directories to enter, with their inode."""
    candidates: dict[str, int] = field(default_factory=dict)
    """Names of the files worth reading (of whatever kind: links, pipes too), with their inode."""


def list_directory(
    path: str, is_pruned: Callable[[str], bool], is_another: Callable[[str], bool] | None = None
) -> FolderListing:
    """List one directory, given as an absolute path. Raises OSError; a symbolic link is NotADirectoryError.

    Nothing is in it where it has a `.git` file and `is_another` says of it that it is another workspace.
    """
    has_mark = False
    descriptor = os.open(path, _OPEN_DIRECTORY)
    try:
        status = os.fstat(descriptor)
        listing = FolderListing(fingerprint(status), status.st_ctime_ns)
        directories, candidates = listing.directories, listing.candidates
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not is_pruned(entry.name):
                        directories[entry.name] = entry.inode()
                elif is_candidate(entry.name):
                    candidates[intern(entry.name)] = entry.inode()  # many directories hold the same names
                elif entry.name == _MARK:
                    has_mark = True
    finally:
        os.close(descriptor)
    if has_mark and is_another is not None and is_another(path):
        directories.clear()
        candidates.clear()
    return listing


def walk(
    root: str, is_pruned: Callable[[str], bool], below: str = "", is_another: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, FolderListing | OSError]]:
    """Every directory of a workspace from `below` on, its path relative to `root` ("" is the root), before those in it.
    One that cannot be listed comes with its error. `is_another` is that of `list_directory`; the root is never one."""
    prefix = root if root.endswith("/") else root + "/"
    pending = [below]
    while pending:
        path = pending.pop()
        try:
            listing = list_directory(prefix + path, is_pruned, is_another) if path else list_directory(root, is_pruned)
        except OSError as error:
            yield path, error
            continue
        yield path, listing
        pending.extend([f"{path}/{name}" if path else name for name in listing.directories])
