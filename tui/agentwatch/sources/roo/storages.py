"""Where Roo Code, its relatives and their command lines keep their tasks."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentwatch.state import is_there

_SERVER: Final = re.compile(r"\.[\w-]+-server(-[\w-]+)?")
"""What an editor keeps on a machine that is worked on from elsewhere: `.vscode-server`, `.cursor-server`."""
_NOT_READ: Final = "saoudrizwan.claude-dev"
"""Cline, of which Roo Code was made: its tasks hand nothing to each other."""
_CUSTOM: Final = re.compile(rb'"[\w-]{1,100}\.customStoragePath"\s*:\s*("(?:[^"\\\n]|\\.){1,4096}")')
_COMMAND_LINE: Final = ".vscode-mock/global-storage"
_LONGEST_SETTINGS: Final = 4 * 1024 * 1024


def storages(home: Path) -> Iterator[Path]:
    """The directories that hold `tasks/`, whichever editor and extension made them; each once."""
    settings = _settings(home)
    users = [settings / name / "User" for name in _names(settings)]
    users += [home / name / "data" / "User" for name in _names(home) if _SERVER.fullmatch(name)]
    places: list[Path] = []
    for user in (*users, home / ".local" / "share" / "code-server" / "User"):
        extensions = (name for name in _names(user / "globalStorage") if name != _NOT_READ)
        places += [*(user / "globalStorage" / name for name in extensions), *_custom(user / "settings.json")]
    yield from (place for place in dict.fromkeys((*places, home / _COMMAND_LINE)) if is_there(place / "tasks"))


def searched(home: Path) -> list[Path]:
    """Where the usual ones lie; a `*` stands for an editor, and for an extension."""
    above = (_settings(home) / "*" / "User" / "globalStorage" / "*", home / _COMMAND_LINE)
    return [path / "tasks" for path in above]


def _settings(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")


def _custom(settings: Path) -> Iterator[Path]:
    """Where the settings of an editor have its extensions keep their tasks: `roo-cline.customStoragePath`."""
    try:
        # Links are followed: people keep their settings elsewhere.
        is_read = settings.is_file() and settings.stat().st_size < _LONGEST_SETTINGS
        places = [json.loads(quoted) for quoted in _CUSTOM.findall(settings.read_bytes())] if is_read else []
    except (OSError, ValueError):
        return
    yield from (Path(place) for place in places if place.startswith("/"))


def _names(directory: Path) -> list[str]:
    """What is in a directory; "." where it cannot be listed, for then it may be any of them."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return ["."]
