"""The work trees of a git repository, read without running git, because git runs programs that its configuration names.

Each work tree has a `.git` file that names its directory in the repository's `.git/worktrees`, and a file there names
the work tree. Only if both agree does it count: a foreign file alone leads nowhere.
"""

import os
from contextlib import suppress
from pathlib import Path

from agentwatch.sources.files.read import FileRefusedError, read_file

_SMALL = 64 * 1024
_MOST = 200  # work trees of one repository that are looked at


class NoRepositoryError(Exception):
    """There is no readable repository; the message is the reason."""


def find_git_directories(top: str) -> tuple[str, str]:
    """Return a work tree's git directory and the shared one, as real paths. Raise FileNotFoundError if there is no
    `.git`, NoRepositoryError if it cannot be followed."""
    mark = f"{top.rstrip('/')}/.git"
    if not os.path.lexists(mark):
        raise FileNotFoundError(mark)
    if not os.path.islink(mark) and os.path.isdir(mark) and read_git_file(mark, "commondir") is None:
        return mark, mark
    kind, _, target = (read_git_file(top, ".git") or "").partition(":")
    git = _resolve(top, target)
    # A linked work tree is named back; any other file may point wherever its writer liked.
    back, shared = read_git_file(git, "gitdir"), read_git_file(git, "commondir")
    if kind != "gitdir" or back is None or shared is None or _resolve(git, back) != mark:
        raise NoRepositoryError(".git is no git directory of its own, nor the file of a work tree: it is not followed")
    return git, _resolve(git, shared)


def read_git_file(directory: str, name: str, max_bytes: int = _SMALL) -> str | None:
    """Return the text of a small file of git's, None if it is missing or may not be read."""
    try:
        text = read_file(directory, name, max_bytes).text
    except (FileRefusedError, FileNotFoundError):
        return None
    return None if "\0" in text else text


def find_other_worktrees(workspace: str) -> dict[str, str]:
    """Return the other work trees of the workspace's repository, with their git directories; all are real paths."""
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
    """Return the other work trees, without those still being checked out, which would look like agents' work."""
    others = find_other_worktrees(str(workspace)).items()
    return [Path(top) for top, own in others if not (read_git_file(own, "locked") or "").startswith("initializing")]


def worktree_made_at(workspace: str) -> float | None:
    """Return when a linked work tree (a real path) was made, in epoch seconds; None for any other place. Files that git
    checked out there are no work of its agents."""
    with suppress(OSError, NoRepositoryError):
        git, common = find_git_directories(workspace)
        # Written once, even if the work tree is moved.
        return None if git == common else os.lstat(f"{git}/commondir").st_mtime
    return None


def is_other_worktree(workspace: str, directory: str) -> bool:
    """Tell whether a directory is another work tree of the workspace's repository; both are real paths."""
    return os.path.isfile(f"{directory}/.git") and directory in find_other_worktrees(workspace)


def lies_in_other_worktree(workspace: str, directory: str) -> bool:
    """Tell whether a directory (a real path) in the workspace lies in another work tree of its repository."""
    below = (place for place in find_other_worktrees(workspace) if place.startswith(f"{workspace.rstrip('/')}/"))
    return any(f"{directory}/".startswith(f"{place}/") for place in below)


def _resolve(directory: str, target: str) -> str:
    return os.path.realpath(os.path.join(directory, target.strip()))  # noqa: PTH118
