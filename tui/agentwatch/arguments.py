"""Finds the directory that a workspace argument names. Suggests a known word in place of a misspelt word."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentwatch.errors import WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question such as "did you mean tree?". Return "" if no known word is similar to `word`."""
    from difflib import get_close_matches

    near = get_close_matches(word, [*known], 1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else ""


def workspaces_at(paths: Sequence[str]) -> list[Path]:
    """Return the real path of each directory, without repeats. Without `paths`, return the current directory."""
    return list(dict.fromkeys(workspace_at(path) for path in paths or ["."]))


def workspace_at(path: str) -> Path:
    """Return the real path of a directory. Raise WorkspaceError if the directory cannot be listed or entered."""
    from pathlib import Path  # imported late, because --help does not need it

    from agentwatch.shell import distrust_workspace

    if "://" in path:
        raise WorkspaceError(f"{path}: this command is about a directory of this machine; run it where that is")
    try:
        # This fails if the directory cannot be listed. The "." makes it fail also if the directory cannot be entered.
        os.scandir(os.path.join(path, ".")).close()  # noqa: PTH118  pathlib would drop the dot
        workspace = Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        known = {"FileNotFoundError": "no such directory", "NotADirectoryError": "not a directory"}
        reason = known.get(type(error).__name__) or getattr(error, "strerror", None) or str(error)
        is_wrong = isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError))
        give = "the directory that the agents work in" if is_wrong else "a directory that you can read and enter"
        raise WorkspaceError(f"{path}: {reason}; give {give}") from error
    distrust_workspace(workspace)
    return workspace
