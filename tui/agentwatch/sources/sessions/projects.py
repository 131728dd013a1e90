"""Where programs keep transcripts that have a directory for each project: its files, as far as they are a workspace's.

The directory of a project is named after the working directory; only the records tell for certain which one it is.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentwatch.sources.sessions.fields import text
from agentwatch.sources.sessions.listing import Listing, Listings
from agentwatch.sources.sessions.tail import line_at, record, refusal_of
from agentwatch.sources.worktrees import lies_in_another

SESSION: Final = ""
"""Stands for the session itself where agents are named by id."""

_CUT: Final = 200
_OTHER: Final = re.compile(r"[^a-zA-Z0-9]")
_FIRST_LINE: Final = 1024 * 1024


class Layout(NamedTuple):
    """What lies in the directory of a project, by paths from there on: patterns for `fullmatch`.

    `files` has the groups `own`, a session's id, for its own file, or `session`, `agent` and `meta` for those of an
    agent; `session` is missing where only the records say it, `meta` is there in what describes it. `directories` are
    those to enter, with the group `session` where all in it is one session's.
    """

    files: str
    directories: str


class StoredFile(NamedTuple):
    """One file of the store. `agent` is SESSION for a session's own, `session` None where only the records say it."""

    path: str
    project: str
    session: str | None
    agent: str
    is_meta: bool


Interest = Literal["none", "own", "all"]
"""Which files of a session are to be looked at: its own changes first if it goes on."""

Wanted = Callable[[str, str], Interest]
"""What is of interest of (project, session)."""


class _SortedListing(NamedTuple):
    """What a listing comes to: the files, and (path, path from the project on, session) of directories to enter."""

    listing: Listing
    files: list[StoredFile]
    below: list[tuple[str, str, str | None]]


def slug(directory: str) -> str:
    """The name of the directory in which the sessions of a working directory lie, whole: longer ones are cut."""
    return _OTHER.sub("-", unicodedata.normalize("NFC", directory))


def holds(workspace: str, directory: str) -> bool:
    """Whether a working directory is the workspace or lies below it, and in no worktree below it."""
    above = unicodedata.normalize("NFC", workspace)
    below = unicodedata.normalize("NFC", directory)
    if below == above:
        return True
    return below.startswith(above.rstrip(os.sep) + os.sep) and not lies_in_another(workspace, directory)


class Projects:
    """Lists the files that may belong to a workspace. Nothing outside `root`, with all projects, is ever named."""

    def __init__(self, workspace: Path, root: Path, layout: Layout) -> None:
        self.workspace = os.path.realpath(workspace)
        self.root = root
        self.listings = Listings()
        self._is_file = re.compile(layout.files, re.DOTALL).fullmatch
        self._is_directory = re.compile(layout.directories, re.DOTALL).fullmatch
        self._refused: set[str] = set()
        self._known: dict[str, _SortedListing] = {}
        self._owners: dict[tuple[str, int], str] = {}

    @property
    def unreadable(self) -> set[str]:
        """Directories and files, as far as was looked; what was known of them may still be so."""
        return self._refused | self.listings.refused.keys()

    def files(self, wanted: Wanted) -> Iterator[tuple[StoredFile, os.stat_result]]:
        """The files that are there now, with their status, as far as they are wanted."""
        if self._refused:
            self._refused = {path for path in self._refused if os.path.lexists(path)}
        for project in self.candidates():
            yield from self._below(project, project, "", None, wanted)

    def candidates(self) -> list[str]:
        """Directories whose name fits the workspace or a directory below it."""
        whole = slug(self.workspace)
        start = whole[:_CUT] if whole.endswith("-") else f"{whole[:_CUT]}-"
        listing = self.listings.of(os.fspath(self.root))
        names = listing.directories if listing is not None else ()
        return [os.path.join(self.root, name) for name in names if name == whole or name.startswith(start)]  # noqa: PTH118

    def _below(
        self, directory: str, project: str, within: str, session: str | None, wanted: Wanted
    ) -> Iterator[tuple[StoredFile, os.stat_result]]:
        known = self._sorted(directory, project, within)
        for file in known.files if known is not None else ():
            if file.agent == SESSION and wanted(project, file.session or "") == "none":
                continue
            status = self._status(file.path)
            owner = file.session or session
            if status is not None and owner is None:
                owner = self._owner(file.path, status.st_ino)
            if status is not None and owner is not None:
                yield file if file.session == owner else file._replace(session=owner), status
        for path, name, owner in known.below if known is not None else ():
            if owner is None or session is not None or wanted(project, owner) == "all":
                yield from self._below(path, project, name, session or owner, wanted)

    def _sorted(self, directory: str, project: str, within: str) -> _SortedListing | None:
        listing = self.listings.of(directory)
        if listing is None:
            self._known.pop(directory, None)
            return None
        known = self._known.get(directory)
        if known is None or known.listing[2:] != listing[2:]:
            known = self._known[directory] = _SortedListing(listing, [], [])
            for name in listing.files:
                if match := self._is_file(within + name):
                    session, agent = match["own"] or match["session"], match["agent"] or SESSION
                    path = os.path.join(directory, name)  # noqa: PTH118  paths are strings for speed
                    known.files.append(StoredFile(path, project, session, agent, bool(match["meta"])))
            for name in listing.directories:
                if match := self._is_directory(within + name):
                    known.below.append((os.path.join(directory, name), f"{within}{name}/", match["session"]))  # noqa: PTH118
        return known

    def _status(self, path: str) -> os.stat_result | None:
        self._refused.discard(path)
        try:
            status = os.stat(path, follow_symlinks=False)  # noqa: PTH116
        except FileNotFoundError:
            return None
        except OSError:
            self._refused.add(path)
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _owner(self, path: str, inode: int) -> str | None:
        """The session of an agent whose transcript lies among the sessions'."""
        if (path, inode) not in self._owners:
            line = line_at(Path(path), 0, _FIRST_LINE)
            owner = text(record(line) or {}, "sessionId") if line is not None else None
            if owner is None:
                self._refused |= {path} if refusal_of(Path(path)) else set()
                return None
            self._owners[path, inode] = owner
        return self._owners[path, inode]
