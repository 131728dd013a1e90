"""`.agentwatch` in a workspace: ours by its name only, so nothing that lies in its place is followed."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from agentwatch.disk import DISK, Directory, Disk

NAME: Final = ".agentwatch"

_MODE: Final = 0o755
_LINKS: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})


class NotADirectoryOfOursError(OSError):
    """A link or a file stands where a directory of ours belongs; the message says what to do."""


def open_dot_directory(workspace: Path, *inner: str, make: bool = False, disk: Disk = DISK) -> Directory:
    """`.agentwatch` or a directory inside of it; with `make`, made where it is missing.

    Raises NotADirectoryOfOursError where a link or something else is in its place, FileNotFoundError where there is
    none, OSError for the rest.
    """
    directory = Directory.open(workspace, disk)
    path = ""
    for name in (NAME, *inner):
        path = f"{path}/{name}" if path else name
        with directory as parent:
            try:
                directory = parent.child(name, make=_MODE if make else None)
            except OSError as error:
                if error.errno in _LINKS:
                    raise NotADirectoryOfOursError(
                        error.errno, f"{path} is a link or no directory, so that files could land anywhere; remove it"
                    ) from None
                raise
    return directory


def make_dot_directory(workspace: Path, inner: str, disk: Disk = DISK) -> Directory:
    """A directory inside of `.agentwatch`, made where it is missing, and what git is told. Raises as above."""
    with open_dot_directory(workspace, make=True, disk=disk) as directory:
        ignore_ourselves(directory)
    return open_dot_directory(workspace, inner, make=True, disk=disk)


def ignore_ourselves(directory: Directory) -> None:
    """`.gitignore` in `.agentwatch`, unless something of that name is there."""
    try:
        directory.look(".gitignore")
    except FileNotFoundError:
        directory.replace(".gitignore", b"*\n", 0o644)
