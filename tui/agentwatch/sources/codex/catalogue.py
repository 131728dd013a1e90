"""The rollouts of a Codex home: which are there, whose they are, and how they are opened.

The first line of a rollout says whose session it is, in which directory, and which agent asked for it. The shapes are
those of Codex 0.66 to 0.169: `{"timestamp", "ordinal"?, "type": "session_meta", "payload"}`.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions import tail
from agentwatch.sources.sessions.fields import Fields, inner, mapping, moment, text, whole
from agentwatch.sources.sessions.listing import Listings
from agentwatch.sources.sessions.reader import Workspace
from agentwatch.sources.sessions.tail import record, size_of

THREAD_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

TO_DECOMPRESS: Final = (
    "this Python was built without zstd" if sys.version_info >= (3, 14) else "install the package backports.zstd"
)
"""What is to be done, or said, where `can_decompress` is false."""

_ROOTS: Final = ("sessions", "archived_sessions")
_DEPTH: Final = 3
"""Year, month, day; the archive is flat."""
_PLAIN: Final = ".jsonl"
_COMPRESSED: Final = ".zst"
"""Behind the name of the plain file."""
_OWN_WORK: Final = frozenset({"compact", "memory_consolidation", "guardian"})
"""Agents that Codex runs for itself: to shorten a context, to remember, to judge an approval."""
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})")


class Header(NamedTuple):
    """What a rollout says of its session. `began_at` is in seconds since the epoch; texts are foreign.

    `inherited_below`: records with a smaller ordinal are a copy of the parent's history, None where that is not told.
    `own_work`: no task of anybody, but housekeeping of Codex.
    """

    thread: str
    parent: str | None
    directory: str
    began_at: float
    ordinal: int
    agent: str | None
    task_name: str | None
    version: tuple[int, ...]
    inherited_below: int | None
    own_work: bool


class StoredRollout(NamedTuple):
    """The name of its plain file, and where it is now. Archiving moves the file, compressing replaces it."""

    name: str
    path: Path
    header: Header


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
        self._ours: list[StoredRollout] | None = None

    def look(self) -> None:
        """See which rollouts are there now."""
        before = self._listings.changes
        files = [file for root in _ROOTS for file in self._walk(f"{self._home}/{root}", _DEPTH)]
        if self._listings.changes == before:
            return
        plain: dict[str, Path] = {}
        compressed: dict[str, Path] = {}
        for directory, file in files:
            name = file.removesuffix(_COMPRESSED)
            if name.startswith("rollout-") and name.endswith(_PLAIN):
                (plain if name == file else compressed).setdefault(name, Path(directory, file))
        self._locked.clear()
        if compressed and not can_decompress():
            self._locked.update(_threads_in(compressed.keys() - plain.keys()))
            compressed.clear()
        # Where both are there, Codex is about to remove the compressed one.
        self._present = compressed | plain
        for known in (self._headers, self._headerless, self.refused):
            for name in known.keys() - self._present.keys():
                del known[name]
        self.strange &= self._present.keys()
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
        damaged = (name for name in self._headerless if self._present[name].suffix == _COMPRESSED)
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

    def ours(self) -> Sequence[StoredRollout]:
        """The rollouts of the workspace, the youngest first: those begun in it, and all their agents, wherever."""
        if self._ours is None:
            threads = self._threads()
            self._ours = [
                StoredRollout(name, self._present[name], header)
                for name, header in sorted(self._headers.items(), reverse=True)
                if header.thread in threads and not header.own_work
            ]
        return self._ours

    def forget(self, name: str) -> None:
        """Read the header of a rollout again: its file was replaced."""
        self._headers.pop(name, None)
        self._ours = None

    def _read_header(self, name: str, path: Path) -> None:
        size = size_of(path)
        if self._headerless.get(name) == size:
            return
        line = line_at(path, 0)
        # What is still being written is no record yet.
        first = record(line) if line is not None else None
        self.refused.pop(name, None)
        if first is None:
            # With more behind it, a first line is whole. What is compressed is told apart elsewhere.
            is_damaged = line is not None and path.suffix == _PLAIN and size > len(line)
            if why := tail.refusal_of(path) or ("damaged" if is_damaged else ""):
                self.refused[name] = why
                return
        header = header_of(first) if first is not None else None
        if header is not None and (header.directory or header.parent):
            self.strange.discard(name)
        elif first is not None:
            self.strange.add(name)
        if header is None:
            self._headerless[name] = size
        else:
            self._headerless.pop(name, None)
            self._headers[name] = header
            self._ours = None

    def _threads(self) -> set[str]:
        threads = {header.thread for header in self._headers.values() if self._workspace.is_at(header.directory)}
        strangers = [header for header in self._headers.values() if header.parent and header.thread not in threads]
        grown = True
        while grown:
            children = {header.thread for header in strangers if header.parent in threads} - threads
            threads |= children
            grown = bool(children)
        return threads

    def _walk(self, directory: str, depth: int) -> Iterator[tuple[str, str]]:
        """(directory, name) of the files there are."""
        listing = self._listings.of(directory)
        if listing is not None:
            yield from ((directory, name) for name in listing.files)
            for name in listing.directories if depth else ():
                yield from self._walk(f"{directory}/{name}", depth - 1)


def header_of(record: Fields) -> Header | None:
    """The header in a record, None where it is no usable one."""
    meta = mapping(record.get("payload"))
    thread = text(meta, "id")
    if record.get("type") != "session_meta" or thread is None:
        return None
    subagent = inner(meta, "source").get("subagent")
    spawn = inner(mapping(subagent), "thread_spawn")
    kind = subagent if isinstance(subagent, str) else text(mapping(subagent), "other")
    role = text(meta, "agent_role") or text(spawn, "agent_role") or text(spawn, "agent_type") or kind
    nickname = text(meta, "agent_nickname") or text(spawn, "agent_nickname")
    version = _VERSION.match(text(meta, "cli_version") or "")
    return Header(
        thread=thread,
        parent=text(meta, "parent_thread_id") or text(spawn, "parent_thread_id"),
        directory=text(meta, "cwd") or "",
        began_at=moment(meta.get("timestamp")) or moment(record.get("timestamp")) or 0.0,
        ordinal=whole(record, "ordinal") or 0,
        agent=f"{nickname} ({role})" if nickname and role else nickname or role,
        task_name=text(meta, "agent_path") or text(spawn, "agent_path"),
        version=tuple(map(int, version.groups())) if version is not None else (),
        inherited_below=whole(meta, "subagent_history_start_ordinal"),
        own_work=kind in _OWN_WORK or "internal" in inner(meta, "source"),
    )


def can_decompress() -> bool:
    """Whether compressed rollouts can be read here. What decompresses is loaded when the first one is met."""
    try:
        import agentwatch.sources.codex.compressed  # noqa: F401
    except ImportError:
        return False
    return True


def tail_of(path: Path) -> tail.Tail:
    """A reader of the lines of a rollout, plain or compressed."""
    if path.suffix != _COMPRESSED:
        return tail.Tail(path)
    from agentwatch.sources.codex.compressed import CompressedTail

    return CompressedTail(path)


def line_at(path: Path, offset: int) -> bytes | None:
    """The line of a rollout that begins at a byte offset of the plain file; None where there is none."""
    if path.suffix != _COMPRESSED:
        return tail.line_at(path, offset)
    from agentwatch.sources.codex import compressed

    return compressed.line_at(path, offset)


def _threads_in(names: Iterable[str]) -> Iterator[str]:
    """The threads in the names of rollouts."""
    for name in names:
        yield from THREAD_ID.findall(name)[:1]
