"""Where a claimed path lies, judged by its letters alone: nothing is expanded and no link is followed."""

from __future__ import annotations

import re
from enum import StrEnum
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


class Place(NamedTuple):
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


def place_of(path: str, workspace: str) -> Place:
    """Judge a claimed path. `workspace` is absolute and resolved."""
    path = path.strip()
    if not path:
        return Place(None, Fault.EMPTY)
    if "\0" in path:
        return Place(None, Fault.NUL)
    if len(path) > _LONGEST:
        return Place(None, Fault.TOO_LONG)
    if path[0] == "~" and (len(path) == 1 or "/" in path):
        return Place(None, Fault.HOME)
    if _SCHEME.match(path) or _DRIVE.match(path) or path.startswith("\\\\"):
        return Place(None, Fault.SCHEME)
    if path[0] == "/":
        return _absolute(path, workspace)
    return _inside(path)


def _absolute(path: str, workspace: str) -> Place:
    inner = _inside("." + path)
    if inner.relative is None and inner.fault is not Fault.WORKSPACE:
        return Place(None, Fault.OUTSIDE if inner.fault is Fault.ABOVE else inner.fault)
    base = workspace.strip("/")
    normal = inner.relative or ""
    if normal == base:
        return Place(None, Fault.WORKSPACE)
    if not base or normal.startswith(base + "/"):
        return Place(normal.removeprefix(base).lstrip("/"), Fault.ABSOLUTE, inner.is_directory)
    return Place(None, Fault.OUTSIDE)


def _inside(path: str) -> Place:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return Place(None, Fault.ABOVE)
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if not parts:
        return Place(None, Fault.WORKSPACE)
    if len(parts) > _DEEPEST or any(len(part.encode("utf-8", "replace")) > _LONGEST_NAME for part in parts):
        return Place(None, Fault.TOO_LONG)
    return Place("/".join(parts), None, path.endswith(("/", "/.")))
