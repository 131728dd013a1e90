"""When a screen first showed a workspace: a line of ISO 8601 in its state directory, written once.

It is a file of its own, so that it outlives a history that was damaged and begins anew.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agentwatch.disk import Directory

_NAME: Final = "first-watched"
_LONGEST: Final = 64


def first_watched(state: Path) -> float | None:
    """When the workspace of this state directory was first watched, in epoch seconds; None where that is not known."""
    with suppress(OSError), Directory.open(state) as directory:
        try:
            return datetime.fromisoformat(directory.read(_NAME, _LONGEST).decode("ascii").strip()).timestamp()
        except (ValueError, OverflowError):
            # Damaged: nobody has written it since, so its own time is good enough.
            return directory.look(_NAME).st_mtime
    return None


def note_first_watch(state: Path, at: float) -> None:
    """The workspace is watched since then (epoch seconds), unless that was noted before. Blocks.

    Where it cannot be written, the next start counts as the first.
    """
    with suppress(OSError), Directory.make(state) as directory:
        directory.publish(_NAME, f"{datetime.fromtimestamp(at, UTC).isoformat()}\n".encode())
