"""Finds the files that claims name in the workspace, and reads facts about these files, such as their times.

No file is opened. `~` is not expanded. No link is followed out of the workspace.
"""

import errno
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import NamedTuple

from agentwatch.sources.files.read import kind_in_words, system_name

_ELSEWHERE = re.compile(r"~(?:[^/]*/|\Z)|[A-Za-z][A-Za-z0-9+.-]{1,31}://|[A-Za-z]:[\\/]|\\\\")
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
# The names of documents. A test run stays valid if a document changes after it.
DOCUMENT = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst)|\.(?:handoff|return|report)\.json|return-meta[\w.-]*\.json)\Z", re.IGNORECASE
)


class ClaimedPlace(NamedTuple):
    """A claimed path, `relative` to the workspace. If `relative` is None, `fault` says why the path names no file."""

    relative: str | None
    fault: str = ""


def place_of(path: str, workspace: str) -> ClaimedPlace:
    """Find a claimed path in a workspace. The path of the workspace must be absolute and resolved."""
    path, base = path.strip(), f"{workspace.rstrip('/')}/"
    if not path:
        return ClaimedPlace(None, "it is empty: it names no file")
    there = posixpath.normpath(posixpath.join(workspace, path))
    if there == workspace:
        return ClaimedPlace(None, "it is the workspace itself, not a file in it")
    if _ELSEWHERE.match(path) or not there.startswith(base):
        return ClaimedPlace(None, "outside the workspace")
    return ClaimedPlace(there.removeprefix(base))


def moved_places(path: str, returned: str, former: Iterable[str] = ()) -> list[str]:
    """Return the paths to which a claimed file may have been moved together with its return, the likeliest first.

    `returned` is the present path of the return, and `former` are its earlier paths. Also guess that a directory was
    moved up or down: `specs/7/x.md` may now be in `specs/archive/7/`.
    """
    parts, into = path.split("/"), returned.split("/")[:-1]
    places: list[str] = []
    for name in former:
        old, new = system_name(name).split("/")[:-1], list(into)
        # Cut off the common end of both paths: only the directories above it have moved.
        while old and new and old[-1] == new[-1]:
            old.pop()
            new.pop()
        if parts[: len(old)] == old:
            places.append("/".join([*new, *parts[len(old) :]]))
    for end, start in product(range(len(into), 0, -1), range(len(parts) - 1, 0, -1)):
        old, new = parts[:start], into[:end]
        if old[-1] == new[-1] and (_is_subsequence(old, new) or _is_subsequence(new, old)):
            places.append("/".join([*new, *parts[start:]]))
    return [place for place in dict.fromkeys(places) if place != path]


def _is_subsequence(some: Sequence[str], all_of_them: Sequence[str]) -> bool:
    """Tell whether the second sequence has all names of the first, in the same order."""
    rest = iter(all_of_them)
    return all(name in rest for name in some)


class FileKind(StrEnum):
    """The kind of a file. OUTSIDE is a symbolic link out of the workspace. REFUSED is a file that cannot be read."""

    MISSING = "missing"
    REGULAR = "regular"
    DIRECTORY = "directory"
    OTHER = "other"
    OUTSIDE = "outside"
    REFUSED = "refused"


class DiskFacts(NamedTuple):
    """Facts about one path. They change if the file is written, replaced or removed. `words` describe a file
    of kind OTHER, or say why a file is REFUSED. `real` is the target of a symbolic link inside the workspace. `links`
    is the number of hard links."""

    kind: FileKind
    words: str = ""
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0
    size: int = 0
    links: int = 1
    empty: bool = False
    real: str = ""

    @property
    def is_there(self) -> bool:
        return self.kind in (FileKind.REGULAR, FileKind.DIRECTORY)


MISSING = DiskFacts(FileKind.MISSING)


def read_facts(root: str, path: str) -> DiskFacts:
    """Return the facts of a normalised path below the resolved directory `root`. Blocks for a short time."""
    try:
        real = os.path.realpath(f"{root}/{path}")
        if not f"{real}/".startswith(f"{root}/"):
            return DiskFacts(FileKind.OUTSIDE)
        found = os.lstat(real)
        kind = FileKind.DIRECTORY if stat.S_ISDIR(found.st_mode) else FileKind.REGULAR
        is_empty = not found.st_size if kind is FileKind.REGULAR else next(Path(real).iterdir(), None) is None
    except ValueError:
        return MISSING
    except OSError as error:
        is_gone = error.errno in _GONE and os.path.isdir(root)
        return MISSING if is_gone else DiskFacts(FileKind.REFUSED, os.strerror(error.errno or 0))
    if stat.S_ISLNK(found.st_mode):
        return DiskFacts(FileKind.REFUSED, "its symbolic link leads in a circle or is changing")
    if kind is FileKind.REGULAR and not stat.S_ISREG(found.st_mode):
        return DiskFacts(FileKind.OTHER, kind_in_words(found.st_mode))
    times, real = (found.st_mtime_ns, found.st_ctime_ns), "" if real == f"{root}/{path}".rstrip("/") else real
    links = found.st_nlink if kind is FileKind.REGULAR else 1
    return DiskFacts(kind, "", *times, found.st_ino, found.st_size, links, is_empty, real)
