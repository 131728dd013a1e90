"""The transcripts of one session and its agents: read in turn, and told as the runs that have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.fields import Fields, text
from agentwatch.sources.sessions.following import EntriesIn
from agentwatch.sources.sessions.growing import Fold, Growing
from agentwatch.sources.sessions.processes import UNKNOWN, Processes, Program
from agentwatch.sources.sessions.projects import SESSION, Layout, Projects, StoredFile, holds
from agentwatch.sources.sessions.reader import Change, changes_between
from agentwatch.sources.sessions.runs import OPEN, Keep
from agentwatch.sources.sessions.tail import Stamp, Tail, record, stamp_of

_LARGEST_META: Final = 256 * 1024
_HEAD: Final = 64 * 1024
_CHUNK: Final = 1024 * 1024

LARGE: Final = 16 * 1024 * 1024
"""Bytes of a session, or a file of it, from which all others are read before it."""


class AgentTranscript(Fold, Protocol):
    """What one file of lines comes to."""

    cwd: str | None
    """The directory in which its agent began, None where no record says it yet."""
    not_understood: int
    """Lines that are left out."""


T = TypeVar("T", bound=AgentTranscript)


@dataclass(slots=True)
class StoredSession(Generic[T]):
    """What is known of one session. All is by agent id, that of the session itself under SESSION.

    `places` are the paths of the transcripts, `metas` the JSON objects that describe agents.
    """

    session_id: str
    transcripts: dict[str, T] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    metas: dict[str, Fields] = field(default_factory=dict)

    @property
    def cwd(self) -> str | None:
        """The directory in which it began, None where no record says it yet."""
        own = self.transcripts.get(SESSION)
        if own is not None:
            return own.cwd
        return next((one.cwd for _, one in sorted(self.transcripts.items()) if one.cwd is not None), None)

    def runs(self, program: Program) -> dict[str, Run]:
        """All runs by key, where `program` is what is known of the one that runs the session."""
        raise NotImplementedError

    def place(self, agent_id: str) -> str:
        """The file that shows an agent."""
        return self.places.get(agent_id) or self.places.get(SESSION) or min(self.places.values(), default="")


class Kind(NamedTuple, Generic[T]):
    """A program: where its files lie, and how they become runs.

    `transcript` gives the state of a file before its first line, of an agent or not; `session` gives one of which
    only the id is known. `texts_in` finds all texts of a line again, `entries_in` what it says. `processes` tells of
    the programs that run them. `once` is the mark of a record that may stand in a transcript twice. `directory_in` is
    where the agent works from a record on, for programs that do not say it with each.
    """

    name: str
    layout: Layout
    transcript: Callable[[Keep, bool], T]
    session: Callable[[str], StoredSession[T]]
    texts_in: Callable[[Fields], Iterable[str]]
    entries_in: EntriesIn
    processes: Callable[[Projects], Processes] = lambda projects: Processes(projects.home)
    once: Callable[[Fields], str | None] = lambda fields: text(fields, "uuid")
    directory_in: Callable[[Fields], str | None] | None = None


class Stock(NamedTuple):
    """Bytes of all files and of what is to be read yet; agents, also those that never began; files that cannot be read;
    lines and descriptions that are not understood."""

    total: int
    left: int
    agents: int
    unreadable: int
    lines: int
    metas: int


@dataclass(slots=True)
class _File(Generic[T]):
    stored: StoredFile
    growing: Growing[T]
    status: os.stat_result
    sweep: int = 0
    unread: bool = True


@dataclass(slots=True)
class _Description:
    agent: str
    stamp: Stamp
    sweep: int
    is_bad: bool = False


class Group(Generic[T]):
    """A session of one project directory. `belongs` is whether it was begun in the workspace, None until it is known:
    `is_ours` says that it is.

    What is not of this workspace is read only as far as the record that says so. `remember` makes a message of (path,
    text, time, offset of its line).
    """

    def __init__(
        self,
        session_id: str,
        workspace: str,
        kind: Kind[T],
        remember: Callable[[str, str, float, int], Message],
        *,
        is_ours: bool = False,
    ) -> None:
        self.session = kind.session(session_id)
        self.belongs: bool | None = True if is_ours else None
        self.sweep = 0
        """The last look in which something of it was seen."""
        self._newest: float | None = 0.0
        self._workspace = workspace
        self._transcript = kind.transcript
        self._remember = remember
        self._files: dict[str, _File[T]] = {}
        self._metas: dict[str, _Description] = {}
        self._given: Mapping[str, Run] = {}
        self._caught_up = False
        self._is_sketched = False
        self._changed = False
        self._may_be_unread = False
        self._is_open = False
        self._cwd: str | None = None
        self._is_held = False
        self._program = UNKNOWN

    def stock(self) -> Stock:
        """What it holds now."""
        files = [(file.growing, file.status.st_size, self._is_pending(file)) for file in self._files.values()]
        return Stock(
            total=sum(size for _, size, _ in files),
            left=sum(max(size - growing.tail.position, 0) for growing, size, is_pending in files if is_pending),
            agents=sum(run.parent_session is not None for run in self._given.values()),
            unreadable=sum(growing.is_stuck for growing, _, _ in files),
            lines=sum(growing.fold.not_understood + growing.tail.passed_over for growing, _, _ in files),
            metas=sum(meta.is_bad for meta in self._metas.values()),
        )

    @property
    def newest(self) -> float:
        """When a file of it last changed, in seconds since the epoch."""
        if self._newest is None:
            self._newest = max(file.status.st_mtime for file in self._files.values())
        return self._newest

    @property
    def left(self) -> int:
        """Bytes that are to be read yet."""
        files = self._files.values() if self._may_be_unread else ()
        return sum(file.status.st_size - file.growing.tail.position for file in files if file.unread)

    @property
    def is_settled(self) -> bool:
        """Whether nothing goes on in it, and a file of its own would change first if it did."""
        return self.belongs is False or (self._caught_up and not self._is_open and SESSION in self.session.transcripts)

    @property
    def is_elsewhere(self) -> bool:
        """It was begun in another directory, and nothing of it was told."""
        return self.belongs is False and not self._given

    @property
    def empty(self) -> bool:
        """Nothing is left of it, and nothing of it was told."""
        return not (self._files or self._metas or self._given)

    def look(self, stored: StoredFile, status: os.stat_result, sweep: int) -> bool:
        """Take notice of a file as it is now; True where it has changed. `sweep` counts the looks at the store."""
        self.sweep = sweep
        if stored.is_meta:
            return self._look_at_meta(stored, status, sweep)
        file = self._files.get(stored.path)
        if file is None:
            keep = partial(self._remember, stored.path)
            growing = Growing(Tail(Path(stored.path)), lambda: self._transcript(keep, stored.agent != SESSION))
            file = self._files[stored.path] = _File(stored, growing, status)
            self._newest = None
            self._place(file)
        elif stamp_of(status) != stamp_of(file.status):
            if self.belongs is False and status.st_ino != file.status.st_ino:
                self.belongs = None
            file.status, file.unread, file.growing.is_stuck = status, True, False
            self._newest = None
        file.sweep = sweep
        self._may_be_unread = self._may_be_unread or file.unread
        return file.unread

    def forget(self, sweep: int) -> bool:
        """Drop the files that are not there any more; True where there were any."""
        files = [path for path, file in self._files.items() if file.sweep != sweep]
        metas = [path for path, meta in self._metas.items() if meta.sweep != sweep]
        for agent in [self._files.pop(path).stored.agent for path in files]:
            self.session.transcripts.pop(agent, None)
            self.session.places.pop(agent, None)
        for path in metas:
            self.session.metas.pop(self._metas.pop(path).agent, None)
        self._changed |= bool(files or metas)
        return bool(files or metas)

    def pending(self) -> Iterator[str]:
        """Paths that are to be read now: the session's own first, for it says whether the others matter, and what is
        large last, once that is known."""
        if not self._may_be_unread:
            return
        files = sorted(self._files.values(), key=lambda one: (one.stored.agent != SESSION, -one.status.st_mtime))
        for file in files:
            if self.belongs is not None:
                break
            if self._is_pending(file):
                yield file.stored.path
        for file in sorted(files, key=_is_large):
            if self._is_pending(file):
                yield file.stored.path
        self._may_be_unread = any(map(self._is_pending, files))

    def comes_last(self, path: str) -> bool:
        """Whether a file is so large that all others are read before it; not where it says whether these matter."""
        return self.belongs is not None and _is_large(self._files[path])

    def advance(self, path: str) -> bool:
        """Read on in one file. True where it is to be read on now."""
        file, belonged = self._files[path], self.belongs
        before = file.growing.fold
        self._changed |= file.growing.read(_CHUNK if self.belongs else _HEAD)
        file.unread = file.growing.is_stuck or file.growing.tail.behind
        if file.growing.fold is not before:
            self._place(file)
        if self.session.cwd is not None and self.session.cwd != self._cwd:
            self._cwd = self.session.cwd
            self._is_held = holds(self._workspace, self._cwd)
        if self.session.cwd is not None:
            self.belongs = self._is_held
        return self.belongs is belonged and self._is_pending(file)

    def changes(self, program: Program) -> list[Change]:
        """What has changed since the call before; nothing before all files were read to their end once.

        A session that is large is told one time before: what its agents' files say stands, but for what it heard.
        """
        if not self._caught_up:
            path = next(self.pending(), None)
            if path is not None and (self._is_sketched or not self.belongs or not _is_large(self._files[path])):
                return []
            self._is_sketched, self._caught_up = True, path is None
            program = program if path is None else UNKNOWN
        if not self._changed and program == self._program:
            return []
        self._changed, self._program = False, program
        before, self._given = self._given, self.session.runs(program) if self.belongs else {}
        self._is_open = any(run.state in OPEN for run in self._given.values())
        return changes_between(before, self._given)

    def _place(self, file: _File[T]) -> None:
        self.session.transcripts[file.stored.agent] = file.growing.fold
        self.session.places[file.stored.agent] = file.stored.path
        self._changed = True

    def _is_pending(self, file: _File[T]) -> bool:
        if self.belongs is not None or file.stored.agent == SESSION:
            matters = self.belongs is not False
        else:
            matters = SESSION not in self.session.transcripts
        return matters and file.unread and not file.growing.is_stuck

    def _look_at_meta(self, stored: StoredFile, status: os.stat_result, sweep: int) -> bool:
        known = self._metas.get(stored.path)
        if known is not None and known.stamp == stamp_of(status):
            known.sweep = sweep
            return False
        try:
            meta = record(Path(stored.path).read_bytes()) if status.st_size <= _LARGEST_META else None
        except OSError:
            meta = None
        self._metas[stored.path] = _Description(stored.agent, stamp_of(status), sweep, meta is None)
        # A half-written one says nothing: what the file said before still holds.
        if meta is not None:
            self._changed |= self.session.metas.get(stored.agent) != meta
            self.session.metas[stored.agent] = meta
        return True


def _is_large(file: _File[T]) -> bool:
    return file.status.st_size - file.growing.tail.position > LARGE
