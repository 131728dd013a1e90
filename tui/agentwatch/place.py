"""Where agentwatch keeps what it knows of a workspace: a directory of the user's, never inside the workspace."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentwatch.errors import UsageError

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_]+")
_LONGEST: Final = 40
_ID: Final = re.compile(rf"[a-z0-9_-]{{1,{_LONGEST}}}-[0-9a-f]{{16}}")
_MOST_LINKS: Final = 40
"""On the way of one path, as for the system."""


def user_home() -> Path:
    """The user's home directory. Raises UsageError where the system knows none, as for a container's bare user id."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(
            "you have no home directory that the system knows of; set HOME to a directory of yours"
        ) from error


def in_home(path: str) -> str:
    """A path as people write it: `~` for the user's home directory."""
    home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def is_there(path: Path | str) -> bool:
    """Whether something has this path, or may have it: who is not allowed to look cannot say that nothing is there."""
    try:
        os.stat(path)  # noqa: PTH116  asked again and again
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def leads_through(path: Path, directory: Path) -> bool:
    """Whether a path leads into a directory, or passes it on its way, by links, too: who writes there can turn it."""
    root, here = os.path.realpath(directory), os.sep
    rest, links = [*(Path.cwd() / path).parts][::-1], 0
    while rest:
        if os.path.commonpath([here, root]) == root:
            return True
        name = rest.pop()
        if name == os.pardir:
            here = os.path.dirname(here)  # noqa: PTH120
        elif name == os.sep:
            here = os.sep
        else:
            below = os.path.join(here, name)  # noqa: PTH118
            try:
                link = os.readlink(below)  # noqa: PTH115
            except OSError:
                here = below
                continue
            links += 1
            if links > _MOST_LINKS:
                return True
            rest += Path(link).parts[::-1]
    return os.path.commonpath([here, root]) == root


def workspace_id(workspace: Path) -> str:
    """A name for people and 16 hex digits of the sha256 of the real path, `shop-3f9ac04e11d25b60`."""
    real = os.path.realpath(workspace)
    words = _NOT_IN_NAMES.sub("-", os.path.basename(real).lower())[:_LONGEST].strip("-")  # noqa: PTH119  may be no text
    return f"{words or 'workspace'}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"


def is_workspace_id(text: str) -> bool:
    """Whether some workspace may have this id: then it can stand in a path."""
    return _ID.fullmatch(text) is not None


def state_directory(workspace: Path, environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_STATE_HOME/agentwatch/<workspace id>`, else below `~/.local/state`. Nothing is created."""
    return state_directories(environment) / workspace_id(workspace)


def state_directories(environment: Mapping[str, str] | None = None) -> Path:
    """Where those of all workspaces lie."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_STATE_HOME") or ""
    # The specification says that a relative path in it is to be ignored.
    root = Path(base) if Path(base).is_absolute() else user_home() / ".local" / "state"
    return root / "agentwatch"
