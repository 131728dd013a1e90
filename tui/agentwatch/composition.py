"""What a monitor is made of, for every command that looks at a workspace."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agentwatch.config import Settings
from agentwatch.evidence.commits import Commits
from agentwatch.first_watch import first_watched
from agentwatch.history import schema
from agentwatch.monitor import Monitor
from agentwatch.place import is_there, state_directory
from agentwatch.sources.files.settings import DEFAULT_PRUNED, FilesSettings
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.sessions.registry import Registry
from agentwatch.sources.sessions.source import KeptSessions, SessionsSource
from agentwatch.sources.source import CombinedSource, Source

if TYPE_CHECKING:
    from agentwatch.decisions.desk import Desk
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
    source = source_of(workspace, settings, selection, dates=True)
    return Monitor(
        workspace,
        settings,
        source,
        time.time,
        inspects=inspects,
        remembers=remembers,
        open_desk=open_desk,
        first_watched=_first_watched(workspace) if remembers else None,
    )


def scanned(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    *,
    sessions: Source | None = None,
    desk: Desk | None = None,
    inspects: bool = True,
) -> Monitor:
    """A monitor that has looked once, with the history of the workspace. Blocks, and writes nothing.

    `sessions` takes the place of a source of its own.
    """
    # Who wants to know how things stand now asks nobody how old they are.
    source = source_of(workspace, settings, selection, sessions, dates=inspects)
    open_desk = None if desk is None else lambda: desk
    # A database takes a while to load as well.
    remembers = is_there(state_directory(workspace) / schema.NAME)
    monitor = Monitor(
        workspace,
        settings,
        source,
        time.time,
        inspects=inspects,
        remembers=remembers,
        open_desk=open_desk,
        first_watched=_first_watched(workspace),
    )
    monitor.scan()
    return monitor


def _first_watched(workspace: Path) -> float:
    """When the workspace was first watched; where it never was, this look is the first. Epoch seconds."""
    now, noted = time.time(), first_watched(state_directory(workspace))
    return now if noted is None else min(noted, now)


class Load(Protocol):
    """Loads a workspace, with its history. Blocks, and writes nothing."""

    def __call__(
        self, workspace: Path, settings: Settings, *, desk: Desk | None = None, inspects: bool = True
    ) -> Monitor:
        """With a `desk` the tree knows the decisions; with `inspects` it knows which claims are false."""


class Repeated:
    """`scanned` for a server, which looks each time that it is asked: of the agents' sessions it reads what is new.

    Any thread may call it.
    """

    def __init__(self) -> None:
        self._sessions: dict[Path, KeptSessions] = {}

    def __call__(
        self, workspace: Path, settings: Settings, *, desk: Desk | None = None, inspects: bool = True
    ) -> Monitor:
        sessions = self._sessions.setdefault(workspace, KeptSessions(sessions_of(workspace)))
        return scanned(workspace, settings, sessions=sessions, desk=desk, inspects=inspects)


def source_of(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    sessions: Source | None = None,
    *,
    dates: bool = False,
) -> Source:
    """The files of a workspace, and the agents' sessions in it unless the settings leave them out.

    With `dates`, what is there at first is as old as it says itself, or git.
    """
    files = FilesSource(
        workspace,
        FilesSettings(
            pruned=DEFAULT_PRUNED if settings.pruned is None else settings.pruned,
            max_bytes=settings.max_bytes,
            force_polling=settings.poll,
        ),
        committed=Commits(workspace).time_of if dates else None,
    )
    return CombinedSource([files, sessions or sessions_of(workspace, selection)]) if settings.sessions else files


def sessions_of(workspace: Path, selection: Selection | None = None) -> SessionsSource:
    """The agents' sessions in a workspace."""
    since = selection.since if selection is not None else None
    return SessionsSource(Registry(workspace, since).open, selection)


def desk_of(workspace: Path, settings: Settings, passphrase: Callable[[], str] | None = None) -> Desk:
    """The operator's desk, as the settings have it. `passphrase` is asked where the key is encrypted."""
    from datetime import timedelta

    # Signatures take a while to load.
    from agentwatch.decisions.desk import Desk

    lifetime = timedelta(seconds=settings.expires_after)
    return Desk(workspace, passphrase=passphrase, read_only=settings.read_only, lifetime=lifetime)


def known_desk(workspace: Path) -> Desk | None:
    """The decisions of a workspace where there are any, for reading."""
    if not is_there(state_directory(workspace) / "decisions"):
        return None
    # Signatures take a while to load.
    from agentwatch.decisions.desk import Desk

    return Desk(workspace, read_only=True)
