"""Walking a workspace: directories pruned before they are entered, symbolic links never followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from agentwatch.sources.files.names import is_candidate, pruning
from agentwatch.sources.files.settings import DEFAULT_PRUNED

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_INODE_BITS: Final = 64
_INODE: Final = (1 << _INODE_BITS) - 1


def fingerprint(status: os.stat_result) -> int:
    """What tells that a file or directory changed without reading it: mtime, ctime, size and inode, as one number.

    One number, because there is one for every file of the workspace. The ctime is in it because nobody can set it: a
    rewrite of the same size that restores the mtime is noticed.
    """
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


def mtime_in(known: int) -> int:
    """The mtime in a fingerprint, in nanoseconds."""
    return known >> 3 * _INODE_BITS


@dataclass(slots=True)
class Listing:
    """One directory as it was listed; `fingerprint` and `changed_ns`, its ctime, are from before that."""

    fingerprint: int
    changed_ns: int
    directories: dict[str, int] = field(default_factory=dict)
    """Names of the directories to enter, with their inode."""
    candidates: dict[str, int] = field(default_factory=dict)
    """Names of the files worth reading (of whatever kind: links, pipes too), with their inode."""


def list_directory(path: str, is_pruned: Callable[[str], bool]) -> Listing:
    """List one directory, given as an absolute path. Raises OSError; a symbolic link is NotADirectoryError."""
    descriptor = os.open(path, _OPEN_DIRECTORY)
    try:
        status = os.fstat(descriptor)
        listing = Listing(fingerprint(status), status.st_ctime_ns)
        directories, candidates = listing.directories, listing.candidates
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name = entry.name
                if is_candidate(name):
                    if not entry.is_dir(follow_symlinks=False):
                        candidates[name] = entry.inode()
                        continue
                elif not entry.is_dir(follow_symlinks=False):
                    continue
                if not is_pruned(name):
                    directories[name] = entry.inode()
    finally:
        os.close(descriptor)
    return listing


def walk(root: str, is_pruned: Callable[[str], bool], below: str = "") -> Iterator[tuple[str, Listing | OSError]]:
    """Every directory of a workspace from `below` on, each path relative to `root` ("" is the root itself).

    A directory is yielded right after it was listed and before those in it are. One that cannot be listed comes with
    its error.
    """
    prefix = root if root.endswith("/") else root + "/"
    pending = [below]
    while pending:
        path = pending.pop()
        try:
            listing = list_directory(prefix + path if path else root, is_pruned)
        except OSError as error:
            yield path, error
            continue
        yield path, listing
        pending.extend([f"{path}/{name}" if path else name for name in listing.directories])


def scan_candidates(root: os.PathLike[str] | str, pruned: frozenset[str] = DEFAULT_PRUNED) -> Iterator[str]:
    """The files worth reading, as paths relative to `root`, in no order; what cannot be listed is left out."""
    for path, listing in walk(os.path.realpath(root), pruning(pruned)):
        if isinstance(listing, Listing):
            for name in listing.candidates:
                yield f"{path}/{name}" if path else name
