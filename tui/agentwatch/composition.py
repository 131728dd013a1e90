"""What a monitor is made of, for every command that looks at a workspace."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.config import Settings
from agentwatch.monitor import Monitor
from agentwatch.place import state_directory
from agentwatch.sources.combined import CombinedSource
from agentwatch.sources.files.settings import DEFAULT_PRUNED, FilesSettings
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.sources.source import Source

if TYPE_CHECKING:
    from agentwatch.decisions.desk import Desk
    from agentwatch.sources.sessions.reader import SessionReader
    from agentwatch.sources.sessions.selection import Selection


def monitor_of(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    *,
    remembers: bool = False,
    inspects: bool = True,
    open_desk: Callable[[], Desk] | None = None,
) -> Monitor:
    """A monitor of the files and the agents' sessions of a workspace; it has not looked yet."""
    source = source_of(workspace, settings, selection)
    return Monitor(workspace, settings, source, time.time, inspects=inspects, remembers=remembers, open_desk=open_desk)


def scanned(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    *,
    desk: Desk | None = None,
    inspects: bool = True,
) -> Monitor:
    """A monitor that has looked once, with the history of the workspace. Blocks, and writes nothing."""
    open_desk = None if desk is None else lambda: desk
    monitor = monitor_of(workspace, settings, selection, remembers=True, inspects=inspects, open_desk=open_desk)
    monitor.scan()
    return monitor


def source_of(workspace: Path, settings: Settings, selection: Selection | None = None) -> Source:
    """The files of a workspace, and the agents' sessions in it unless the settings leave them out."""
    files = FilesSource(
        workspace,
        FilesSettings(
            pruned=DEFAULT_PRUNED if settings.pruned is None else settings.pruned,
            max_bytes=settings.max_bytes,
            force_polling=settings.poll,
        ),
    )
    return CombinedSource([files, sessions_of(workspace, selection)]) if settings.sessions else files


def sessions_of(workspace: Path, selection: Selection | None = None) -> SessionsSource:
    """The agents' sessions in a workspace."""

    def open_readers(known: Collection[str], broken: Callable[[str, Exception], None]) -> Iterable[SessionReader]:
        # In the source's thread: the readers take as long to load as a screen to appear.
        from agentwatch.sources.sessions import registry  # noqa: PLC0415

        return registry.open_readers(workspace, known, broken)

    return SessionsSource(open_readers, selection)


def known_desk(workspace: Path) -> Desk | None:
    """The decisions of a workspace where there are any, for reading."""
    if not (state_directory(workspace) / "decisions").is_dir():
        return None
    # Signatures take a while to load.
    from agentwatch.decisions.desk import Desk  # noqa: PLC0415

    return Desk(workspace, read_only=True)
