"""The operator's editor on a file."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from agentwatch.text import clean


def editor_command(configured: str | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of the editor's command: `$VISUAL`, `$EDITOR`, else the configured one; empty if there is none.

    Raises ValueError if the command's quotation marks do not match.
    """
    environment = os.environ if environment is None else environment
    return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or configured or "")


def edit(command: list[str], path: Path) -> int:
    """Run the editor on a file and wait for it; its exit code. Raises OSError if it cannot be started."""
    # No shell: neither the file's name nor anything in it is ever a command. An absolute path is never an option.
    return subprocess.run([*command, str(path.absolute())], check=False).returncode  # noqa: S603


def hand_over(app: App[Any], configured: str | None, path: Path) -> str | None:
    """Give the terminal to the operator's editor on a file, until it ends.

    Returns what went wrong, a sentence; None if nothing did.
    """
    try:
        command = editor_command(configured)
    except ValueError as error:
        return f"The editor's command cannot be understood ({error}): set $VISUAL or $EDITOR right."
    if not command:
        return "No editor is set: set $VISUAL or $EDITOR, or `editor` in agentwatch's config.toml."
    try:
        with app.suspend():
            code = edit(command, path)
    except SuspendNotSupported:
        return "An editor cannot be started from here: the terminal cannot be handed over."
    except OSError as error:
        return f"{clean(command[0], 80)} could not be started: {error.strerror}. Set $VISUAL or $EDITOR."
    return f"{clean(command[0], 80)} ended with exit code {code}." if code else None
