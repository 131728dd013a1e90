"""The operator's editor on a file of the workspace."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path


def editor_command(configured: str | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of the editor's command: `$VISUAL`, `$EDITOR`, else the configured one; empty where there is none.

    Raises ValueError where the command's quotation marks do not match.
    """
    environment = os.environ if environment is None else environment
    return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or configured or "")


def edit(command: list[str], path: Path) -> int:
    """Run the editor on a file and wait for it; its exit code. Raises OSError where it cannot be started."""
    # No shell: neither the file's name nor anything in it is ever a command. An absolute path is never an option.
    return subprocess.run([*command, str(path.absolute())], check=False).returncode  # noqa: S603
