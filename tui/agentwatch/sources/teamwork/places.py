"""Where the roles of a team keep their files: a directory each in `.agents/`, or in `.agents/teamwork/` since 2026."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from posixpath import basename
from typing import Final

from agentwatch.sources.teamwork.roles import BRIEFING

TOP: Final = ".agents"
NEWER: Final = ".agents/teamwork"
_MOST_ROLES: Final = 1_000
# `.agents/` is also where other programs look for what agents are to read: a command there may be called handoff.md.
_NO_ROLES: Final = frozenset(
    {"agents", "commands", "docs", "instructions", "plugins", "prompts", "rules", "skills", "templates", "workflows"}
)


def places_of_roles(root: Path) -> dict[str, str]:
    """The directories that may be those of roles, from the workspace on, by the role's name; raises OSError.

    The role that watches over a team has at times no directory of its own, and a briefing beside those of the others.
    """
    return dict(_listed(root, TOP)) | dict(_listed(root, NEWER))


def _listed(root: Path, above: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(root / above) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return
    if found.get(BRIEFING) is False:
        yield basename(above), above
    names = [name for name, is_directory in sorted(found.items()) if is_directory and _may_be_role(root, above, name)]
    for name in names[:_MOST_ROLES]:
        yield f"{above}/{name}".removeprefix(f"{TOP}/"), f"{above}/{name}"


def _may_be_role(root: Path, above: str, name: str) -> bool:
    if f"{above}/{name}" == NEWER:
        return False
    return name not in _NO_ROLES or os.path.lexists(root / above / name / BRIEFING)
