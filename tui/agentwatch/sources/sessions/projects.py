"""Where programs keep transcripts that have a directory for each project: its files, as far as they are a workspace's.

The directory of a project is named after the working directory, and only the records tell for certain which one it is;
or a file in it names it; or there is one directory for the sessions of all.
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

    Projects lie in the directory `root` of the program. `directory_of` gives the working directory of one, by its path,
    where a file in it says so, None where none does; it raises OSError where that cannot be read. `is_one`: `root`
    itself has the sessions of all of them.
    """

    files: str
    directories: str
    root: str = "projects"
    directory_of: Callable[[str], str | None] | None = None
    is_one: bool = False


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

    def __init__(self, workspace: Path, home: Path, layout: Layout) -> None:
        self.workspace = os.path.realpath(workspace)
        self.home = home
        self.root = home / layout.root
        self.listings = Listings()
        self.are_ours = layout.directory_of is not None
        """Whether all sessions of a candidate are the workspace's: their records need not say so."""
        self._layout = layout
        self._entered: tuple[Interest, ...] = ("own", "all") if layout.is_one else ("all",)
        self._is_file = re.compile(layout.files, re.DOTALL).fullmatch
        self._is_directory = re.compile(layout.directories, re.DOTALL).fullmatch
        self._refused: set[str] = set()
        self._nameless: set[str] = set()
        """Projects of which it cannot be read whose they are."""
        self._known: dict[str, _SortedListing] = {}
        self._owners: dict[tuple[str, int], str] = {}

    @property
    def unreadable(self) -> set[str]:
        """Directories and files, as far as was looked; what was known of them may still be so."""
        return self._refused | self._nameless | self.listings.refused.keys()

    def files(self, wanted: Wanted) -> Iterator[tuple[StoredFile, os.stat_result]]:
        """The files that are there now, with their status, as far as they are wanted."""
        if self._refused:
            self._refused = {path for path in self._refused if os.path.lexists(path)}
        for project in self.candidates():
            yield from self._below(project, project, "", None, wanted)

    def candidates(self) -> list[str]:
        """Directories that may be those of the workspace or of a directory below it."""
        listing = self.listings.of(os.fspath(self.root))
        if listing is None or self._layout.is_one:
            return [os.fspath(self.root)] if listing is not None else []
        whole = slug(self.workspace)
        start = whole[:_CUT] if whole.endswith("-") else f"{whole[:_CUT]}-"
        named, paths = self._layout.directory_of, {name: os.path.join(self.root, name) for name in listing.directories}  # noqa: PTH118
        if named is None:
            return [path for name, path in paths.items() if name == whole or name.startswith(start)]
        self._nameless = set()
        return [path for path in paths.values() if self._is_named(path, named)]

    def _is_named(self, project: str, directory_of: Callable[[str], str | None]) -> bool:
        """Whether a file in the directory of a project names the workspace or a directory below it."""
        try:
            place = directory_of(project)
        except OSError:
            self._nameless.add(project)
            return False
        return place is not None and holds(self.workspace, place)

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
                owner = self._owner(file.path, status)
            if status is not None and owner is not None:
                yield file if file.session == owner else file._replace(session=owner), status
        for path, name, owner in known.below if known is not None else ():
            if owner is None or session is not None or wanted(project, owner) in self._entered:
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
                    its = match.groupdict()
                    session, agent = its.get("own") or its.get("session"), its.get("agent") or SESSION
                    path = os.path.join(directory, name)  # noqa: PTH118  paths are strings for speed
                    known.files.append(StoredFile(path, project, session, agent, bool(its.get("meta"))))
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

    def _owner(self, path: str, status: os.stat_result) -> str | None:
        """The session of a transcript whose name does not say it; it may be that of an agent, among the sessions'."""
        inode = status.st_ino
        if (path, inode) not in self._owners:
            line = line_at(Path(path), 0, _FIRST_LINE)
            owner = text(record(line) or {}, "sessionId") if line is not None else None
            if owner is None:
                # With more behind it, a first line is whole.
                is_damaged = self.are_ours and line is not None and status.st_size > len(line) + 1
                self._refused |= {path} if is_damaged or refusal_of(Path(path)) else set()
                return None
            self._owners[path, inode] = owner
        return self._owners[path, inode]
