"""The files of one session: read in turn, and told as the runs that have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.claude_code.family import SESSION
from agentwatch.sources.claude_code.meta import MAX_BYTES, read_meta
from agentwatch.sources.claude_code.processes import UNKNOWN, Program
from agentwatch.sources.claude_code.session import Session
from agentwatch.sources.claude_code.store import Entry, holds
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.sessions.reader import Change
from agentwatch.sources.sessions.tail import Tail

_HEAD: Final = 64 * 1024
_CHUNK: Final = 1024 * 1024

Remember = Callable[[str, str, float, int], Message]
"""Makes a message of (path, text, time, offset of its line)."""


@dataclass(slots=True)
class _File:
    entry: Entry
    tail: Tail
    transcript: Transcript
    status: os.stat_result
    sweep: int = 0
    unread: bool = True
    is_refused: bool = False


@dataclass(slots=True)
class _Description:
    agent: str
    mark: tuple[int, ...]
    sweep: int
    is_bad: bool = False


class Group:
    """A session of one project directory. `belongs` is whether it was begun in the workspace, None until it is known.

    What is not of this workspace is read only as far as the record that says so.
    """

    def __init__(self, session_id: str, workspace: str, remember: Remember) -> None:
        self.session = Session(session_id)
        self.belongs: bool | None = None
        self.newest = 0.0
        """When a file of it last changed, in seconds since the epoch."""
        self._workspace = workspace
        self._remember = remember
        self._files: dict[str, _File] = {}
        self._metas: dict[str, _Description] = {}
        self._emitted: dict[str, Run] = {}
        self._caught_up = False
        self._changed = False
        self._may_be_unread = False
        self._is_open = False
        self._program = UNKNOWN

    @property
    def total(self) -> int:
        """Bytes of its files."""
        return sum(file.status.st_size for file in self._files.values())

    @property
    def left(self) -> int:
        """Bytes of them that are to be read yet."""
        files = (self._files[path] for path in self.pending())
        return sum(max(file.status.st_size - file.tail.position, 0) for file in files)

    @property
    def agents(self) -> int:
        """How many were asked for in it, also of those that never began."""
        return sum(run.parent_session is not None for run in self._emitted.values())

    @property
    def unreadable(self) -> int:
        return sum(file.is_refused for file in self._files.values())

    @property
    def not_understood(self) -> int:
        """Lines that are left out."""
        return sum(file.transcript.not_understood + file.tail.passed_over for file in self._files.values())

    @property
    def bad_metas(self) -> int:
        """Descriptions of agents that are half written, or none."""
        return sum(found.is_bad for found in self._metas.values())

    @property
    def is_settled(self) -> bool:
        """Whether nothing goes on in it, and a file of its own would change first if it did."""
        return self.belongs is False or (self._caught_up and not self._is_open and SESSION in self.session.transcripts)

    @property
    def empty(self) -> bool:
        """Nothing is left of it, and nothing of it was told."""
        return not (self._files or self._metas or self._emitted)

    def look(self, entry: Entry, status: os.stat_result, sweep: int) -> bool:
        """Take notice of a file as it is now; True where it has changed. `sweep` counts the looks at the store."""
        if entry.is_meta:
            return self._look_at_meta(entry, status, sweep)
        file = self._files.get(entry.path)
        if file is None:
            file = self._files[entry.path] = _File(entry, Tail(Path(entry.path)), self._new(entry), status)
            self._place(file)
        elif _fingerprint(status) != _fingerprint(file.status):
            if self.belongs is False and status.st_ino != file.status.st_ino:
                self.belongs = None
            file.status, file.unread, file.is_refused = status, True, False
        file.sweep = sweep
        if file.unread:
            self._may_be_unread = True
            self.newest = max(other.status.st_mtime for other in self._files.values())
        return file.unread

    def forget(self, sweep: int) -> bool:
        """Drop the files that are not there any more; True where there were any."""
        files = [path for path, file in self._files.items() if file.sweep != sweep]
        metas = [path for path, found in self._metas.items() if found.sweep != sweep]
        for path in files:
            agent = self._files.pop(path).entry.agent or SESSION
            self.session.transcripts.pop(agent, None)
            self.session.places.pop(agent, None)
        for path in metas:
            self.session.metas.pop(self._metas.pop(path).agent, None)
        self._changed |= bool(files or metas)
        return bool(files or metas)

    def pending(self) -> Iterator[str]:
        """Paths that are to be read now, the session's own first: it says whether the others matter."""
        if not self._may_be_unread:
            return
        for file in sorted(self._files.values(), key=_turn):
            if self._is_pending(file):
                yield file.entry.path
        self._may_be_unread = False

    def advance(self, path: str) -> bool:
        """Read on in one file. True where something is left of it."""
        file = self._files[path]
        try:
            look = file.tail.read(_CHUNK if self.belongs else _HEAD)
        except OSError:
            file.is_refused = True
            return False
        file.unread = file.tail.behind
        if look.restarted:
            file.transcript = self._new(file.entry)
            self._place(file)
        for stretch in look.stretches:
            file.transcript.fold(stretch)
        self._changed |= look.restarted or bool(look.stretches)
        if self.session.cwd is not None:
            self.belongs = holds(self._workspace, self.session.cwd)
        return self._is_pending(file)

    def changes(self, program: Program) -> list[Change]:
        """What has changed since the call before; nothing before all files were read to their end once."""
        if not self._caught_up:
            if any(True for _ in self.pending()):
                return []
            self._caught_up = True
        if not self._changed and program == self._program:
            return []
        self._changed, self._program = False, program
        runs = self.session.runs(program) if self.belongs else {}
        changes = [Change(key, None) for key in self._emitted.keys() - runs.keys()]
        changes += [Change(key, run) for key, run in runs.items() if self._emitted.get(key) != run]
        self._emitted = runs
        self._is_open = any(run.state in (RunState.SUBMITTED, RunState.WORKING) for run in runs.values())
        return changes

    def _new(self, entry: Entry) -> Transcript:
        def keep(text: str, at: float, offset: int) -> Message:
            return self._remember(entry.path, text, at, offset)

        return Transcript(keep, is_agent=entry.agent is not None)

    def _place(self, file: _File) -> None:
        agent = file.entry.agent or SESSION
        self.session.transcripts[agent] = file.transcript
        self.session.places[agent] = file.entry.path
        self._changed = True

    def _is_pending(self, file: _File) -> bool:
        return file.unread and not file.is_refused and self._may_matter(file)

    def _may_matter(self, file: _File) -> bool:
        if self.belongs is not None or file.entry.agent is None:
            return self.belongs is not False
        return SESSION not in self.session.transcripts

    def _look_at_meta(self, entry: Entry, status: os.stat_result, sweep: int) -> bool:
        mark = _fingerprint(status)
        known = self._metas.get(entry.path)
        if known is not None and known.mark == mark:
            known.sweep = sweep
            return False
        agent = entry.agent or SESSION
        try:
            meta = read_meta(Path(entry.path).read_bytes()) if status.st_size <= MAX_BYTES else None
        except OSError:
            meta = None
        self._metas[entry.path] = _Description(agent, mark, sweep, meta is None)
        # A half-written one says nothing: what the file said before still holds.
        if meta is not None:
            self._changed |= self.session.metas.get(agent) != meta
            self.session.metas[agent] = meta
        return True


def _fingerprint(status: os.stat_result) -> tuple[int, ...]:
    # The time of the status: it changes with the content, and when reading is allowed again.
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _turn(file: _File) -> tuple[bool, float]:
    return file.entry.agent is not None, -file.status.st_mtime
