"""One way to name a workspace, and to ask whether another word is meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentwatch.errors import WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question where a word is nearly one of those that are known, else ""."""
    from difflib import get_close_matches

    near = get_close_matches(word, [*known], 1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else ""


def workspaces_at(paths: Sequence[str]) -> list[Path]:
    """The real paths of directories, each once; of none, where we are. Raises WorkspaceError."""
    return list(dict.fromkeys(workspace_at(path) for path in paths or ["."]))


def workspace_at(path: str) -> Path:
    """The real path of a directory. Raises WorkspaceError."""
    from pathlib import Path  # not needed for --help

    from agentwatch.shell import watch_workspace

    if "://" in path:
        raise WorkspaceError(f"{path}: this command is about a directory of this machine; run it where that is")
    try:
        # Its dot is looked up in it: that takes the right to enter it, besides the right to list it.
        os.scandir(os.path.join(path, ".")).close()  # noqa: PTH118  pathlib would drop the dot
        workspace = Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        known = {"FileNotFoundError": "no such directory", "NotADirectoryError": "not a directory"}
        reason = known.get(type(error).__name__) or getattr(error, "strerror", None) or str(error)
        is_wrong = isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError))
        give = "the directory that the agents work in" if is_wrong else "a directory that you can read and enter"
        raise WorkspaceError(f"{path}: {reason}; give {give}") from error
    watch_workspace(workspace)
    return workspace
