"""What a workspace is observed by: the source of its files, and that of the agents' sessions in it."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.config import Settings
from agentwatch.evidence.commits import Commits
from agentwatch.sources.files.documents import Reader
from agentwatch.sources.files.readings import Readings
from agentwatch.sources.files.settings import DEFAULT_PRUNED, FilesSettings
from agentwatch.sources.files.source import MOST_TEXT_BYTES, ONE_LOOK_BYTES, FilesSource
from agentwatch.sources.sessions.registry import Registry
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.sources.source import CombinedSource, Source

if TYPE_CHECKING:
    from subprocess import Popen

    from agentwatch.evidence.beside import Beside
    from agentwatch.evidence.one_look import OneLook
    from agentwatch.sources.files.texts import Texts
    from agentwatch.sources.sessions.selection import Selection


def source_of(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    sessions: Source | None = None,
    *,
    dates: bool = False,
    one_look: OneLook | None = None,
    readings: Readings | None = None,
    texts: Texts | None = None,
    recognise: Reader | None = None,
) -> Source:
    """The files of a workspace, and the agents' sessions in it unless the settings leave them out.

    With `dates`, what is there at first is as old as it says itself, or git. `one_look` reads the documents for one
    look, and `readings` and `texts` may know what files hold. `recognise` tells instead which texts are documents.
    """
    files = FilesSource(
        workspace,
        FilesSettings(
            pruned=pruned_of(settings),
            max_bytes=settings.max_bytes,
            force_polling=settings.poll,
        ),
        read_document=recognise if one_look is None else one_look.read,
        committed=Commits(workspace).time_of if dates else None,
        text_bytes=MOST_TEXT_BYTES if one_look is None else ONE_LOOK_BYTES,
        readings=readings,
        texts=texts,
    )
    return CombinedSource([files, sessions or sessions_of(workspace, selection)]) if settings.sessions else files


def readings_of(
    workspace: Path,
    settings: Settings,
    one_look: OneLook | None = None,
    *,
    keeps: bool = True,
    begun: Popen[bytes] | None = None,
) -> Readings:
    """What was read in the files of a workspace before, and is read now by another process for this look, which may
    have `begun`."""
    where = os.path.realpath(workspace), pruned_of(settings), settings.max_bytes
    if one_look is None:
        begin = partial(_read_beside, begun=begun)
        return Readings(*where, begin=begin, keeps=keeps, is_ready=begun is not None)
    return Readings(*where, begin=partial(_read_beside, tells=True), take=one_look.take, keeps=keeps)


def texts_of(workspace: Path, settings: Settings) -> Texts:
    """The texts of the files of a workspace, as they were read before."""
    from agentwatch.sources.files.texts import Texts  # only who looks for a task needs them

    return Texts(os.path.realpath(workspace), pruned_of(settings), settings.max_bytes)


def _read_beside(
    root: str,
    max_bytes: int,
    beginning: str,
    paths: Sequence[str],
    *,
    tells: bool = False,
    begun: Popen[bytes] | None = None,
) -> Beside:
    from agentwatch.evidence.beside import Beside  # few workspaces are large

    return Beside(root, max_bytes, beginning, paths, tells=tells, begun=begun)


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
