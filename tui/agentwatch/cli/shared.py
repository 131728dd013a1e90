"""What commands share. Nothing of it is imported before a command has understood its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentwatch.cli.command import argument

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.decisions.desk import Desk
    from agentwatch.monitor import Monitor

PATH: Final = argument("path", "PATH", "the workspace (default: here)", nargs="?", default=".")


def load() -> Settings:
    """The operator's settings. Raises ConfigError."""
    from agentwatch.config import load

    return load()


def scanned(workspace: Path, settings: Settings, *, desk: Desk | None = None, inspects: bool = True) -> Monitor:
    """A workspace as it is now; see `composition.scanned`."""
    from agentwatch.composition import scanned

    return scanned(workspace, settings, desk=desk, inspects=inspects)
