"""The rollouts of a Codex home: which are there, and which belong to one workspace."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.sources.codex.files import COMPRESSED, PLAIN, can_decompress, line_at
from agentwatch.sources.codex.header import THREAD_ID, Header, header_of
from agentwatch.sources.sessions.listing import Listings
from agentwatch.sources.sessions.store import Workspace
from agentwatch.sources.sessions.tail import open_regular, record

_ROOTS: Final = ("sessions", "archived_sessions")
_DEPTH: Final = 3
"""Year, month, day; the archive is flat."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rollout: the name of its plain file, and where it is now. Archiving moves the file, compressing replaces it."""

    name: str
    path: Path


class Catalogue:
    """Looks through the directories of rollouts again and again; those that have not changed cost one call each."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.closed: set[str] = set()
        """Threads that are there only compressed, and cannot be read so."""
        self.refused: dict[str, str] = {}
        """Rollouts whose beginning cannot be read, and why: they may be of any workspace."""
        self.strange: set[str] = set()
        """Rollouts that do not say whose they are, or in which directory they work."""
        self.waiting = 0
        """Rollouts whose header has not been looked for yet."""
        self._home = home
        self._workspace = Workspace(workspace)
        self._listings = Listings()
        self._headers: dict[str, Header] = {}
        self._headerless: dict[str, int] = {}
        """Rollouts without a whole header yet, and how long they were then."""
        self._locked: set[str] = set()
        """Threads whose rollouts are compressed, where nothing can be decompressed."""
        self._present: dict[str, Path] = {}
        self._ours: list[tuple[Place, Header]] | None = None

    def look(self) -> None:
        """See which rollouts are there now."""
        before = self._listings.changes
        found = [file for root in _ROOTS for file in self._walk(f"{self._home}/{root}", _DEPTH)]
        if self._listings.changes == before:
            return
        plain: dict[str, Path] = {}
        compressed: dict[str, Path] = {}
        for directory, file in found:
            name = file.removesuffix(COMPRESSED)
            if name.startswith("rollout-") and name.endswith(PLAIN):
                (plain if name == file else compressed).setdefault(name, Path(directory, file))
        self._locked.clear()
        if compressed and not can_decompress():
            self._locked.update(_threads_in(compressed.keys() - plain.keys()))
            compressed.clear()
        # Where both are there, Codex is about to remove the compressed one.
        present = compressed | plain
        for known in (self._headers, self._headerless, self.refused):
            for name in known.keys() - present.keys():
                del known[name]
        self.strange &= present.keys()
        self._present = present
        self._ours = None

    def read_headers(self, deadline: float) -> None:
        """Read headers that are not known yet, until a time of `time.monotonic`; always some."""
        # Their names begin with the time they were begun: the youngest are wanted first.
        waiting = sorted(self._present.keys() - self._headers.keys())
        while waiting:
            name = waiting.pop()
            self._read_header(name, self._present[name])
            if time.monotonic() > deadline:
                break
        self.waiting = len(waiting)
        damaged = (name for name in self._headerless if self._present[name].suffix == COMPRESSED)
        self.closed = self._locked.union(_threads_in(damaged))

    @property
    def trouble(self) -> str | None:
        """The first directory that cannot be listed."""
        refused = self._listings.refused
        return next((f"{directory} cannot be read: {why}." for directory, why in refused.items()), None)

    @property
    def is_drifting(self) -> bool:
        """The youngest rollout does not say whose it is: that of a newer Codex, as it seems."""
        return bool(self.strange) and max(self.strange) == max(self._present)

    def ours(self) -> Sequence[tuple[Place, Header]]:
        """The rollouts of the workspace, the youngest first: those begun in it, and all their agents, wherever."""
        if self._ours is None:
            threads = self._threads()
            self._ours = [
                (Place(name, self._present[name]), header)
                for name, header in sorted(self._headers.items(), reverse=True)
                if header.thread in threads and not header.own_work
            ]
        return self._ours

    def _read_header(self, name: str, path: Path) -> None:
        size = _size_of(path)
        if self._headerless.get(name) == size:
            return
        line = line_at(path, 0)
        # What is still being written is no record yet.
        first = record(line) if line is not None else None
        self.refused.pop(name, None)
        if first is None and (why := _why_not(path, size, line)):
            self.refused[name] = why
            return
        header = header_of(first) if first is not None else None
        if first is not None and (header is None or not (header.directory or header.parent)):
            self.strange.add(name)
        if header is None:
            self._headerless[name] = size
            return
        if header.directory or header.parent:
            self.strange.discard(name)
        self._headerless.pop(name, None)
        self._headers[name] = header
        self._ours = None

    def _threads(self) -> set[str]:
        threads = {header.thread for header in self._headers.values() if self._workspace.is_at(header.directory)}
        strangers = [header for header in self._headers.values() if header.parent and header.thread not in threads]
        grown = True
        while grown:
            found = {header.thread for header in strangers if header.parent in threads} - threads
            threads |= found
            grown = bool(found)
        return threads

    def forget(self, name: str) -> None:
        """Read the header of a rollout again: its file was replaced."""
        self._headers.pop(name, None)
        self._ours = None

    def _walk(self, directory: str, depth: int) -> Iterator[tuple[str, str]]:
        """(directory, name) of the files there are."""
        listing = self._listings.of(directory)
        yield from ((directory, name) for name in (listing.files if listing is not None else ()))
        for name in listing.directories if listing is not None and depth else ():
            yield from self._walk(f"{directory}/{name}", depth - 1)


def _why_not(path: Path, size: int, line: bytes | None) -> str | None:
    """Why a rollout without a first record cannot be read; None where it may still be being written."""
    try:
        os.close(open_regular(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror or "unreadable"
    # With more behind it, a first line is whole. What is compressed is told apart elsewhere.
    return "damaged" if line is not None and path.suffix == PLAIN and size > len(line) else None


def _threads_in(names: Iterable[str]) -> Iterator[str]:
    """The threads in the names of rollouts."""
    for name in names:
        yield from THREAD_ID.findall(name)[:1]


def _size_of(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_size
    except OSError:
        return -1
