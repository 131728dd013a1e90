"""Finds the work trees of a git repository without running git: its configuration could make git run any program.

Each linked work tree has a file `.git`. This file names a directory in the repository's `.git/worktrees`. A file in
this directory names the work tree. A work tree is accepted only if both files agree: one forged file has no effect."""

import os
from contextlib import suppress
from pathlib import Path

from agentwatch.sources.files.read import FileRefusedError, read_file

_SMALL = 64 * 1024
_MOST = 200  # at most so many work trees of one repository are read


class NoRepositoryError(Exception):
    """The directory's `.git` leads to no git repository. The message gives the reason."""


def find_git_directories(top: str) -> tuple[str, str]:
    """Return two real paths: the work tree's own git directory, and the git directory that all work trees share.
    Raise FileNotFoundError if there is no `.git`. Raise NoRepositoryError if `.git` leads to no repository."""
    git_file = f"{top.rstrip('/')}/.git"
    if not os.path.lexists(git_file):
        raise FileNotFoundError(git_file)
    if not os.path.islink(git_file) and os.path.isdir(git_file) and read_git_file(git_file, "commondir") is None:
        return git_file, git_file
    kind, _, target = (read_git_file(top, ".git") or "").partition(":")
    git = _resolve(top, target)
    # A forged `.git` file may name any directory. The git directory of a real work tree names the work tree.
    back, shared = read_git_file(git, "gitdir"), read_git_file(git, "commondir")
    if kind != "gitdir" or back is None or shared is None or _resolve(git, back) != git_file:
        raise NoRepositoryError(".git is no git directory of its own, nor the file of a work tree: it is not followed")
    return git, _resolve(git, shared)


def read_git_file(directory: str, name: str, max_bytes: int = _SMALL) -> str | None:
    """Return the text of a small file in a git directory, or None if it is missing or may not be read."""
    try:
        text = read_file(directory, name, max_bytes).text
    except (FileRefusedError, FileNotFoundError):
        return None
    return None if "\0" in text else text


def find_other_worktrees(workspace: str) -> dict[str, str]:
    """Return the other work trees of the workspace's repository and their git directories. All paths are real paths."""
    known: dict[str, str] = {}
    with suppress(OSError, NoRepositoryError):
        common = find_git_directories(workspace)[1]
        if os.path.basename(common) == ".git" and os.path.isdir(common):  # noqa: PTH119
            known[os.path.dirname(common)] = common  # noqa: PTH120
        for name in sorted(os.listdir(f"{common}/worktrees"))[:_MOST]:  # noqa: PTH208
            own = f"{common}/worktrees/{name}"
            top, last = os.path.split(_resolve(own, read_git_file(own, "gitdir") or ""))
            with suppress(OSError, NoRepositoryError):
                if last == ".git" and find_git_directories(top) == (own, common):
                    known[top] = own
    return known if known.pop(workspace, None) else {}


def find_ready_worktrees(workspace: Path) -> list[Path]:
    """Return the other work trees. Skip those that git is still checking out, because no agent works in them yet."""
    others = find_other_worktrees(str(workspace)).items()
    return [Path(top) for top, own in others if not (read_git_file(own, "locked") or "").startswith("initializing")]


def worktree_made_at(workspace: str) -> float | None:
    """Return when git made a linked work tree, in epoch seconds. Return None for any other directory. The files that
    git wrote at that time are not agents' work. `workspace` is a real path."""
    with suppress(OSError, NoRepositoryError):
        git, common = find_git_directories(workspace)
        # git writes this file only once, even if the work tree is moved later.
        return None if git == common else os.lstat(f"{git}/commondir").st_mtime
    return None


def is_other_worktree(workspace: str, directory: str) -> bool:
    """Tell whether a directory is another work tree of the workspace's repository. Both paths are real paths."""
    return os.path.isfile(f"{directory}/.git") and directory in find_other_worktrees(workspace)


def lies_in_other_worktree(workspace: str, directory: str) -> bool:
    """Tell whether a directory lies in another work tree that is inside the workspace. Both paths are real paths."""
    below = (place for place in find_other_worktrees(workspace) if place.startswith(f"{workspace.rstrip('/')}/"))
    return any(f"{directory}/".startswith(f"{place}/") for place in below)


def _resolve(directory: str, target: str) -> str:
    return os.path.realpath(os.path.join(directory, target.strip()))  # noqa: PTH118
