"""Where Claude Code keeps what it has seen of a workspace: directories, transcripts and the files beside them."""

from __future__ import annotations

import os
import re
import stat
import time
import unicodedata
from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions.fields import text
from agentwatch.sources.sessions.tail import line_at, open_regular, record

_CUT: Final = 200
_OTHER: Final = re.compile(r"[^a-zA-Z0-9]")
_AGENT: Final = re.compile(r"agent-(.+)\.jsonl\Z")
_META: Final = re.compile(r"agent-(.+)\.meta\.json\Z")
_SESSION: Final = re.compile(r"([0-9a-zA-Z_-]{1,128})\.jsonl\Z")
_ASIDE: Final = ("acompact-", "aprompt_suggestion-")
"""Agents that the program runs for itself."""

_DEEPEST: Final = 6
_FIRST_LINE: Final = 1024 * 1024
_SETTLED_NS: Final = 2_000_000_000
"""A directory that changed less than this before it was listed may change again without its time telling."""


def slug(directory: str) -> str:
    """The name of the directory in which the sessions of a working directory lie, whole: longer ones are cut."""
    return _OTHER.sub("-", unicodedata.normalize("NFC", directory))


def holds(workspace: str, directory: str) -> bool:
    """Whether a working directory is the workspace or lies below it; worktrees of the workspace do."""
    above = unicodedata.normalize("NFC", workspace)
    below = unicodedata.normalize("NFC", directory)
    return below == above or below.startswith(above.rstrip(os.sep) + os.sep)


class Entry(NamedTuple):
    """One file of the store. `agent` is None for a session's own file, `session` where only the records say it."""

    path: str
    project: str
    session: str | None
    agent: str | None
    is_meta: bool


class Interest(Enum):
    """Which files of a session are to be looked at."""

    NONE = auto()
    OWN = auto()
    """The session's own file, which changes first if the session goes on."""
    ALL = auto()


class _Listing(NamedTuple):
    """A directory as it was listed: its time then, the time of listing, its files, and (path, name) of those below."""

    changed: int
    at: int
    entries: list[Entry]
    below: list[tuple[str, str]]


class Store:
    """Lists the files that may belong to a workspace. Nothing outside the projects directory is ever named."""

    def __init__(self, workspace: Path, directory: Path) -> None:
        self.workspace = os.path.realpath(workspace)
        self.projects = directory / "projects"
        self.unreadable: set[str] = set()
        """Directories and files, as far as was looked; what was known of them may still be so."""
        self._listings: dict[str, _Listing] = {}
        self._owners: dict[tuple[str, int], str] = {}

    def entries(self, interest: Callable[[str, str], Interest]) -> Iterator[tuple[Entry, os.stat_result]]:
        """The files that are there now, with their status, as far as (project, session) is of interest."""
        for project in self.candidates():
            yield from self._below(project, project, None, 0, interest)

    def candidates(self) -> list[str]:
        """Directories whose name fits the workspace or a directory below it; only their records tell for certain."""
        whole = slug(self.workspace)
        start = whole[:_CUT] if whole.endswith("-") else f"{whole[:_CUT]}-"
        root = self._list(os.fspath(self.projects), "", None, -1)
        return [path for path, name in root.below if name == whole or name.startswith(start)] if root else []

    def directories(self) -> list[str]:
        """The directories that were listed, in which something new may appear."""
        return list(self._listings)

    def _below(
        self, directory: str, project: str, session: str | None, depth: int, interest: Callable[[str, str], Interest]
    ) -> Iterator[tuple[Entry, os.stat_result]]:
        listing = self._list(directory, project, session, depth)
        if listing is None:
            return
        for entry in listing.entries:
            if depth == 0 and entry.session and interest(project, entry.session) is Interest.NONE:
                continue
            try:
                status = os.stat(entry.path, follow_symlinks=False)  # noqa: PTH116  paths are strings for speed
            except FileNotFoundError:
                self.unreadable.discard(entry.path)
                continue
            except OSError:
                self.unreadable.add(entry.path)
                continue
            self.unreadable.discard(entry.path)
            if not stat.S_ISREG(status.st_mode):
                continue
            owner = entry.session or self._owner(entry.path, status.st_ino)
            if owner is not None:
                yield entry if entry.session else entry._replace(session=owner), status
        for path, name in listing.below:
            if depth or interest(project, name) is Interest.ALL:
                yield from self._below(path, project, session or name, depth + 1, interest)

    def _owner(self, path: str, inode: int) -> str | None:
        """The session of an agent whose transcript lies among the sessions', where programs before 2.1 put it."""
        if (path, inode) not in self._owners:
            line = line_at(Path(path), 0, _FIRST_LINE)
            owner = text(record(line) or {}, "sessionId") if line is not None else None
            if owner is None:
                try:
                    os.close(open_regular(Path(path)))
                except OSError:
                    self.unreadable.add(path)
                return None
            self._owners[path, inode] = owner
        return self._owners[path, inode]

    def _forget(self, directory: str) -> None:
        """What could not be read of a directory and directly in it is to be found out again."""
        if self.unreadable:
            self.unreadable = {path for path in self.unreadable if directory not in (path, os.path.dirname(path))}  # noqa: PTH120

    def _list(self, directory: str, project: str, session: str | None, depth: int) -> _Listing | None:
        """What lies there, without links; None where there is no such directory."""
        try:
            changed = os.stat(directory).st_mtime_ns  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            self._listings.pop(directory, None)
            self._forget(directory)
            return None
        except OSError:
            self.unreadable.add(directory)
            return self._listings.get(directory)
        known = self._listings.get(directory)
        if known is not None and known.changed == changed and known.at - changed > _SETTLED_NS:
            return known
        listing = _Listing(changed, time.time_ns(), [], [])
        try:
            with os.scandir(directory) as found:
                for item in found:
                    if item.is_dir(follow_symlinks=False):
                        if depth < _DEEPEST and (depth != 1 or item.name == "subagents"):
                            listing.below.append((item.path, item.name))
                    elif (entry := _entry(item.name, item.path, project, session)) is not None:
                        listing.entries.append(entry)
        except OSError:
            self.unreadable.add(directory)
            return known
        self._forget(directory)
        self._listings[directory] = listing
        return listing


def _entry(name: str, path: str, project: str, session: str | None) -> Entry | None:
    agent = _AGENT.match(name) or _META.match(name)
    if agent is not None:
        return None if agent[1].startswith(_ASIDE) else Entry(path, project, session, agent[1], bool(_META.match(name)))
    own = _SESSION.match(name) if session is None else None
    return Entry(path, project, own[1], None, False) if own is not None else None
