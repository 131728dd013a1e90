"""Where Roo Code, its relatives and their command lines keep their tasks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.state import is_there

_NOT_READ: Final = "saoudrizwan.claude-dev"
"""Cline, of which Roo Code was made: its tasks hand nothing to each other."""
_COMMAND_LINE: Final = ".vscode-mock/global-storage"


def storages(home: Path) -> Iterator[Path]:
    """The directories that hold `tasks/`, whichever editor and extension made them; each once."""
    # An editor keeps its own on a machine that is worked on from elsewhere: `.vscode-server`, `.cursor-server`.
    patterns = (".*-server*/data/User/globalStorage/*", ".local/share/code-server/User/globalStorage/*", _COMMAND_LINE)
    found: list[Path] = []
    for above, pattern in ((_settings(home), "*/User/globalStorage/*"), *((home, one) for one in patterns)):
        # A broken mount beside them must hide none but those behind it.
        with suppress(OSError):
            found += above.glob(pattern)
    yield from sorted(path for path in found if path.name != _NOT_READ and is_there(path / "tasks"))


def searched(home: Path) -> list[Path]:
    """Where the usual ones lie; a `*` stands for an editor, and for an extension."""
    above = (_settings(home) / "*" / "User" / "globalStorage" / "*", home / _COMMAND_LINE)
    return [path / "tasks" for path in above]


def _settings(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
