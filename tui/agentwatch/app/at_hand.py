"""The file that the operator's commands are about: the one that is inspected, else one of the selected task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import Screen

from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor


async def file_at_hand(screen: Screen[object], monitor: Monitor) -> Path | str:
    """The file that is inspected; else the return of the selected task's latest attempt, else its handoff.

    If there is none, a sentence that says why. The disk is asked in a thread.
    """
    inspected, task_id = getattr(screen, "inspected", None), getattr(screen, "task_id", None)
    task = monitor.tree.tasks.get(task_id) if isinstance(task_id, str) else None
    versions = (attempt.returned or attempt.handoff for attempt in reversed(task.attempts if task else []))
    version = next(filter(None, versions), None)
    if isinstance(inspected, Path) and await asyncio.to_thread(_is_file, inspected):
        return inspected
    if task is None:
        return "No task is selected."
    if version is None:
        return "No file speaks of this task: it is only named in another's delegation path."
    path = monitor.absolute(version.path)
    if await asyncio.to_thread(_is_file, path):
        return path
    if version.stored:
        return "A session store keeps it, not a file of its own: the Raw tab has its text."
    return f"{clean(version.path, 200)} is no longer there; the Raw tab has its last content."


def _is_file(path: Path) -> bool:
    """Whether it can be opened by name; a name that the system refuses names no file."""
    try:
        return path.is_file()
    except OSError:
        return False
