"""What a workspace is observed by: the source of its files, and that of the agents' sessions in it."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.config import Settings
from agentwatch.evidence.commits import Commits
from agentwatch.sources.files.settings import DEFAULT_PRUNED, FilesSettings
from agentwatch.sources.files.source import MOST_TEXT_BYTES, ONE_LOOK_BYTES, FilesSource
from agentwatch.sources.sessions.registry import Registry
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.sources.source import CombinedSource, Source

if TYPE_CHECKING:
    from agentwatch.evidence.one_look import OneLook
    from agentwatch.sources.sessions.selection import Selection


def source_of(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    sessions: Source | None = None,
    *,
    dates: bool = False,
    one_look: OneLook | None = None,
) -> Source:
    """The files of a workspace, and the agents' sessions in it unless the settings leave them out.

    With `dates`, what is there at first is as old as it says itself, or git. `one_look` reads the documents for one
    look.
    """
    files = FilesSource(
        workspace,
        FilesSettings(
            pruned=pruned_of(settings),
            max_bytes=settings.max_bytes,
            force_polling=settings.poll,
        ),
        read_document=None if one_look is None else one_look.read,
        committed=Commits(workspace).time_of if dates else None,
        text_bytes=MOST_TEXT_BYTES if one_look is None else ONE_LOOK_BYTES,
    )
    return CombinedSource([files, sessions or sessions_of(workspace, selection)]) if settings.sessions else files


def pruned_of(settings: Settings) -> frozenset[str]:
    """The directories that are not looked into, by name or by a pattern."""
    return DEFAULT_PRUNED if settings.pruned is None else settings.pruned


def sessions_of(workspace: Path, selection: Selection | None = None) -> SessionsSource:
    """The agents' sessions in a workspace."""
    since = selection.since if selection is not None else None
    registry = Registry(workspace, since)
    return SessionsSource(registry.open, selection, heard=registry.heard)


def read_sources(workspace: Path, settings: Settings) -> Set[str]:
    """The names of the readers that know a session of a workspace. Blocks."""
    if not settings.sessions:
        return frozenset()
    source = sessions_of(workspace)
    try:
        source.scan()
        return {one.source for one in source.found() if one.sessions}
    finally:
        source.close()
