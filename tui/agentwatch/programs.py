"""Finds the programs of others that agentwatch starts: git, ssh, a notifier, an editor, a pager, nats-server."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_HOMEBREW: Final = frozenset({"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"})
"""Places where programs are installed although they may be git work trees."""

_watched: set[str] = set()


def watch_workspace(workspace: Path) -> None:
    """Take no program from this workspace from now on."""
    _watched.add(os.path.realpath(workspace))


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of a program that may be started; None if there is none.

    An absolute path is taken as it is: the operator has written it. A name is looked up in the absolute directories of
    PATH (or `path`); one counts only if neither it nor the place its links lead to lies in a watched workspace or a git
    work tree, where agents write, or where everybody may write. A path relative to the current directory never counts.
    """
    if name.startswith("/"):
        return name
    if "/" in name:
        return None
    import shutil  # a hook needs none of it

    for entry in trusted_path(path).split(os.pathsep):
        found = shutil.which(name, path=entry) if entry else None
        if found is not None and _is_trusted(os.path.dirname(os.path.realpath(found))):  # noqa: PTH120
            return found
    return None


def resolve_command(command: Sequence[str], path: str | None = None) -> list[str]:
    """A command with the absolute path of its program. Raises FileNotFoundError where `find_program` finds none."""
    program = find_program(command[0], path)
    if program is None:
        why = "it is in no directory of PATH outside of workspaces and git work trees"
        raise FileNotFoundError(errno.ENOENT, why, command[0])
    return [program, *command[1:]]


def trusted_path(path: str | None = None) -> str:
    """The directories of PATH (or `path`) from which a program may be taken."""
    path = os.environ.get("PATH", os.defpath) if path is None else path
    entries = (entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if _is_trusted(os.path.realpath(entry)))


def _is_trusted(directory: str) -> bool:
    """Whether agents and other users cannot write there, as far as this shows; the path is real."""
    for place in (Path(directory), *Path(directory).parents):
        try:
            mode = place.stat().st_mode
        except OSError:
            return False
        is_open = mode & stat.S_IWOTH and (str(place) == directory or not mode & stat.S_ISVTX)
        is_worktree = str(place) not in _HOMEBREW and os.path.lexists(place / ".git")
        if is_open or is_worktree or str(place) in _watched:
            return False
    return True
