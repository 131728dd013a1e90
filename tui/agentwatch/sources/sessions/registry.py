"""The readers of the session stores of one workspace: those of this package, and what others ship by entry point.

An entry point of the group `agentwatch.sources` names a callable that takes the workspace, a `pathlib.Path`, and
returns a `SessionReader`, or None where it has nothing to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from agentwatch.sources.claude_code.reader import ClaudeCodeReader
from agentwatch.sources.codex.reader import CodexReader
from agentwatch.sources.opencode.places import find_stores
from agentwatch.sources.opencode.reader import OpenCodeReader
from agentwatch.sources.roo.reader import RooReader
from agentwatch.sources.sessions.reader import SessionReader
from agentwatch.sources.teamwork.reader import TeamworkReader

GROUP: Final = "agentwatch.sources"

Broken = Callable[[str, Exception], None]
"""Takes the name of an entry point that does not work, and what it raised."""


def open_readers(workspace: Path, known: Collection[str], broken: Broken) -> Iterator[SessionReader]:
    """The readers whose names are not `known` yet: databases may appear while agentwatch runs."""
    if not known:
        yield ClaudeCodeReader(workspace)
        yield CodexReader(workspace)
        yield RooReader(workspace)
        yield TeamworkReader(workspace)
        yield from _shipped_by_others(workspace, broken)
    for store in find_stores(os.environ, Path.home()):
        if store.name not in known:
            yield OpenCodeReader(workspace, store.database, store.name)


def _shipped_by_others(workspace: Path, broken: Broken) -> Iterator[SessionReader]:
    for entry in entry_points(group=GROUP):
        try:
            reader = entry.load()(workspace)
            fits = reader is None or isinstance(reader, SessionReader)
        except Exception as error:  # noqa: BLE001  somebody else's code must not end ours
            broken(entry.name, error)
            continue
        if not fits:
            broken(entry.name, TypeError("what it gives is no SessionReader"))
        elif reader is not None:
            yield reader
