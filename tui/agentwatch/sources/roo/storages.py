"""Where editors keep what their extensions store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_EDITORS: Final = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS: Final = (
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
)
"""Their other halves, on a machine that is worked on from elsewhere."""
_EXTENSIONS: Final = ("rooveterinaryinc.roo-cline", "kilocode.kilo-code")


def storages(home: Path) -> Iterator[Path]:
    """The directories that may hold `tasks/`, whether they exist or not."""
    if sys.platform == "darwin":
        settings = home / "Library" / "Application Support"
    else:
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    above = [*(settings / editor for editor in _EDITORS), *(home / server / "data" for server in _SERVERS)]
    for directory in above:
        for extension in _EXTENSIONS:
            yield directory / "User" / "globalStorage" / extension
