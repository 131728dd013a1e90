"""The tree of a workspace as it is at one moment, for the commands that look at it once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from agentwatch.config import Settings
from agentwatch.decisions.desk import Desk
from agentwatch.delegation.task import Version
from agentwatch.history.store import History
from agentwatch.monitor import Monitor


class Load(Protocol):
    """Loads a workspace, with its history. Blocks, and writes nothing."""

    def __call__(
        self, workspace: Path, settings: Settings, *, desk: Desk | None = None, inspects: bool = True
    ) -> Monitor:
        """With a `desk` the tree knows the decisions; with `inspects` it knows which claims are false."""


def text_of(monitor: Monitor) -> Callable[[Version], str | None]:
    """Gives the text that a version had, from the history where the file is not that any more."""

    def text(version: Version) -> str | None:
        found = monitor.content(version)
        if found is not None:
            return found
        history = History.open_read_only(monitor.workspace)
        if history is None:
            return None
        try:
            return history.text(version.digest)
        finally:
            history.close()

    return text
