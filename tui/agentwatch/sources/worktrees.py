"""The work trees of a git repository, as `git worktree list` knows them, read without running git.

Each has a `.git` file that names its directory in the repository's `.git/worktrees`, and a file there names it back.
Only where both say so is it one: what a foreign file claims alone leads nowhere. An agent writes what git's
configuration says, and git runs programs that it names; here nothing is run, and no configuration is read.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.sources.files.read import FileRefusedError, read_file

_SMALL: Final = 64 * 1024
_MOST: Final = 200
"""Work trees of one repository that are looked at."""
_REST_SECONDS: Final = 2.5
"""Since the last checkout, or whatever else has written the index, of a work tree that is younger than the next."""
_YOUNG_SECONDS: Final = 60.0


class NoRepositoryError(Exception):
    """There is no repository that can be asked, and why, in words."""


def git_directories(top: str) -> tuple[str, str]:
    """(git directory, the one that it shares with other work trees) of a work tree, a real path.

    Both are absolute and resolved. Raises FileNotFoundError where there is no `.git`, NoRepositoryError.
    """
    mark = f"{top.rstrip('/')}/.git"
    try:
        status = os.lstat(mark)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), mark) from None
    except OSError as error:
        raise NoRepositoryError(f"{mark} cannot be looked at: {os.strerror(error.errno or 0)}") from None
    if stat.S_ISDIR(status.st_mode):
        if git_text(mark, "commondir") is not None:
            raise NoRepositoryError("the .git directory borrows another one: agentwatch does not follow it")
        return mark, mark
    if not stat.S_ISREG(status.st_mode):
        raise NoRepositoryError(".git is neither a directory nor a file: agentwatch does not follow it")
    text = git_text(top, ".git") or ""
    target = text.removeprefix("gitdir:").strip()
    if not text.startswith("gitdir:") or not target or "\0" in target:
        raise NoRepositoryError(".git is a file that names no git directory")
    git = os.path.realpath(os.path.join(top, target))  # noqa: PTH118
    # A linked work tree knows its work tree; anything else is a file that points wherever its writer liked.
    back, shared = git_text(git, "gitdir"), git_text(git, "commondir")
    if back is None or shared is None or os.path.realpath(os.path.join(git, back.strip())) != mark:  # noqa: PTH118
        raise NoRepositoryError(".git is a file that points elsewhere: agentwatch does not follow it")
    return git, os.path.realpath(os.path.join(git, shared.strip()))  # noqa: PTH118


def git_text(directory: str, name: str, max_bytes: int = _SMALL) -> str | None:
    """The text of a small file of git's, None where there is none that may be read."""
    try:
        return read_file(Path(directory), name, max_bytes).text
    except (FileRefusedError, FileNotFoundError):
        return None


def worktrees_of(workspace: str) -> list[str]:
    """The other work trees of the repository of which the workspace, a real path, is one: real paths, sorted.

    Empty where it is none. Raises NoRepositoryError, in words for the operator, where its `.git` leads nowhere.
    """
    return sorted(_others(workspace))


class Worktrees:
    """The other work trees of one repository, at each look as they are then; the workspace is a real path."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._made: set[str] = set()

    def find(self) -> list[Path]:
        """Those that git was used in last first. Raises NoRepositoryError.

        Without those that git is still making: what it checks out is not told from an agent's work then.
        """
        others = _others(str(self.workspace))
        # One that was made stays so: the next commit in it looks like the first checkout.
        self._made = {place for place, own in others.items() if place in self._made or not _is_being_made(own)}
        newest_first = sorted(self._made, key=lambda place: -_changed_at(f"{others[place]}/index"))
        return list(map(Path, newest_first))


def worktrees_below(workspace: str) -> list[str]:
    """Those of the other work trees that lie below the workspace, a real path."""
    with suppress(NoRepositoryError):
        return [place for place in worktrees_of(workspace) if place.startswith(f"{workspace.rstrip('/')}/")]
    return []


def made_at(workspace: str) -> float | None:
    """When a linked work tree, a real path, was made, in epoch seconds; None for what is none.

    What git checked out there is no work of its agents: it belongs to those that committed it.
    """
    with suppress(OSError, NoRepositoryError):
        git, common = git_directories(workspace)
        # Written once, also where the work tree is moved.
        return None if git == common else os.lstat(f"{git}/commondir").st_mtime
    return None


def is_another(workspace: str, directory: str) -> bool:
    """Whether a directory is another work tree of the repository of which the workspace is one. Both are real paths."""
    with suppress(OSError, NoRepositoryError):
        return stat.S_ISREG(os.lstat(f"{directory}/.git").st_mode) and directory in worktrees_of(workspace)
    return False


def lies_in_another(workspace: str, directory: str) -> bool:
    """Whether a directory of the workspace, a real path, lies in another work tree of its repository."""
    return any(f"{directory}/".startswith(f"{place}/") for place in worktrees_below(workspace))


def _others(workspace: str) -> dict[str, str]:
    """The git directory of each of the other work trees."""
    others: dict[str, str] = {}
    if (common := _repository(workspace)) is None:
        return others
    with suppress(OSError):
        for name in sorted(os.listdir(f"{common}/worktrees"))[:_MOST]:  # noqa: PTH208
            own = f"{common}/worktrees/{name}"
            if (place := _place(common, own)) is not None:
                others[place] = own
    if os.path.basename(common) == ".git" and os.path.isdir(common):  # noqa: PTH119
        others[os.path.dirname(common)] = common  # noqa: PTH120
    others.pop(workspace, None)
    return others


def _repository(workspace: str) -> str | None:
    """The git directory that the work trees share, None where the workspace is no work tree."""
    try:
        git, common = git_directories(workspace)
    except FileNotFoundError:
        return None
    except NoRepositoryError:
        if _is_submodule(workspace):
            return None
        raise
    # The repository has to know the work tree as well: else its `.git` file could lead to any other.
    return common if git == common or os.path.dirname(git) == f"{common}/worktrees" else None  # noqa: PTH120


def _is_submodule(workspace: str) -> bool:
    """Whether the git directory lies elsewhere and is nobody else's, as that of a submodule does."""
    target = (git_text(workspace, ".git") or "").removeprefix("gitdir:").strip()
    with suppress(OSError, ValueError):
        git = os.path.join(workspace, target)  # noqa: PTH118
        return stat.S_ISREG(os.lstat(f"{git}/HEAD").st_mode) and not os.path.lexists(f"{git}/commondir")
    return False


def _place(common: str, own: str) -> str | None:
    """Where a linked work tree is; None where it was moved, removed or is no work tree of this repository."""
    back = (git_text(own, "gitdir") or "").strip()
    if not back or "\0" in back:
        return None
    top, last = os.path.split(os.path.realpath(os.path.join(own, back)))  # noqa: PTH118
    with suppress(OSError, NoRepositoryError):
        if last == ".git" and git_directories(top) == (own, common):
            return top
    return None


def _is_being_made(own: str) -> bool:
    """`git worktree add` keeps a lock until everything is checked out. What looks half written then has to rest."""
    if (git_text(own, "locked") or "").startswith("initializing"):
        return True
    now = time.time()
    return now - _changed_at(f"{own}/commondir") < _YOUNG_SECONDS and now - _changed_at(f"{own}/index") < _REST_SECONDS


def _changed_at(path: str) -> float:
    """Epoch seconds; 0 where there is nothing."""
    with suppress(OSError):
        return os.lstat(path).st_mtime
    return 0.0
