"""Where a claimed path lies, judged by its letters alone: nothing is expanded and no link is followed.

And where it may lie after a directory was moved that holds the file and its return.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}://")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_LONGEST: Final = 4_096
_LONGEST_NAME: Final = 255
_DEEPEST: Final = 100


class Fault(StrEnum):
    """Why a claimed path is not a file of the workspace; the value is the reason in words."""

    EMPTY = "it is empty: it names no file"
    NUL = "it holds a NUL character, which no file name can"
    TOO_LONG = "it is longer than a path can be"
    HOME = "outside the workspace: it starts in a home directory, which is never expanded"
    SCHEME = "outside the workspace: it names a drive or a scheme"
    OUTSIDE = "outside the workspace"
    ABOVE = "outside the workspace: it leaves it by `..`"
    ABSOLUTE = "absolute: a claimed path has to be relative to the workspace"
    WORKSPACE = "it is the workspace itself, not a file in it"


class ClaimedPlace(NamedTuple):
    """Where a claimed path leads. `relative` is it below the workspace, with `/`, None where it is not inside.

    An absolute path inside the workspace has both: a fault and where it leads. `is_directory`: it ends in `/`.
    """

    relative: str | None
    fault: Fault | None = None
    is_directory: bool = False

    @property
    def slashed(self) -> str | None:
        r"""The same with `/` for `\`, None where there is no backslash."""
        if self.relative is None or "\\" not in self.relative:
            return None
        return place_of(self.relative.replace("\\", "/"), "/").relative


@lru_cache(256)  # one return names a file several times, and many name the same few
def place_of(path: str, workspace: str) -> ClaimedPlace:
    """Judge a claimed path. `workspace` is absolute and resolved."""
    path = path.strip()
    if not path:
        return ClaimedPlace(None, Fault.EMPTY)
    if "\0" in path:
        return ClaimedPlace(None, Fault.NUL)
    if len(path) > _LONGEST:
        return ClaimedPlace(None, Fault.TOO_LONG)
    if path[0] == "~" and (len(path) == 1 or "/" in path):
        return ClaimedPlace(None, Fault.HOME)
    if _SCHEME.match(path) or _DRIVE.match(path) or path.startswith("\\\\"):
        return ClaimedPlace(None, Fault.SCHEME)
    if path[0] == "/":
        return _absolute(path, workspace)
    return _inside(path)


def _absolute(path: str, workspace: str) -> ClaimedPlace:
    inner = _inside("." + path)
    if inner.relative is None and inner.fault is not Fault.WORKSPACE:
        return ClaimedPlace(None, Fault.OUTSIDE if inner.fault is Fault.ABOVE else inner.fault)
    base = workspace.strip("/")
    normal = inner.relative or ""
    if normal == base:
        return ClaimedPlace(None, Fault.WORKSPACE)
    if not base or normal.startswith(base + "/"):
        return ClaimedPlace(normal.removeprefix(base).lstrip("/"), Fault.ABSOLUTE, inner.is_directory)
    return ClaimedPlace(None, Fault.OUTSIDE)


def _inside(path: str) -> ClaimedPlace:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return ClaimedPlace(None, Fault.ABOVE)
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if not parts:
        return ClaimedPlace(None, Fault.WORKSPACE)
    is_short = path.isascii() and len(path) <= _LONGEST_NAME
    if len(parts) > _DEEPEST or not (is_short or all(map(_is_name, parts))):
        return ClaimedPlace(None, Fault.TOO_LONG)
    relative = "/".join(parts)
    # Most are written as they lead: then one text does for both.
    return ClaimedPlace(path if path == relative else relative, None, path.endswith(("/", "/.")))


def _is_name(part: str) -> bool:
    return len(part.encode("utf-8", "replace")) <= _LONGEST_NAME


def beside(path: str, returned: str, former: Iterable[str] = ()) -> list[str]:
    """The places where a file may be that was claimed as `path`, the likeliest first.

    `returned` is where its return lies now, `former` where it lay before. Without those, the return lies in a directory
    that the path names, too, and which has got deeper or less deep since: `specs/7/x.md` in `specs/archive/7/`.
    """
    parts, into = path.split("/"), returned.split("/")[:-1]
    places = [*_moved_along(parts, into, former), *_deeper(parts, into)]
    return [place for place in dict.fromkeys("/".join(one) for one in places) if place != path]


def _moved_along(parts: list[str], into: list[str], former: Iterable[str]) -> Iterator[list[str]]:
    for name in former:
        old, new = name.split("/")[:-1], list(into)
        # What stands at the end of both was inside of what was moved.
        while old and new and old[-1] == new[-1]:
            old.pop()
            new.pop()
        start = len(old)
        if parts[:start] == old:
            yield [*new, *parts[start:]]


def _deeper(parts: list[str], into: list[str]) -> Iterator[list[str]]:
    for end in range(len(into), 0, -1):
        for start in range(len(parts) - 1, 0, -1):
            old, new = parts[:start], into[:end]
            if old[-1] == new[-1] and (_is_within(old, new) or _is_within(new, old)):
                yield [*new, *parts[start:]]


def _is_within(some: Sequence[str], all_of_them: Sequence[str]) -> bool:
    """The names stand among the others, in their order."""
    rest = iter(all_of_them)
    return all(name in rest for name in some)
