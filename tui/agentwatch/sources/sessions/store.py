"""The reader of programs that keep files of JSON lines, one for each agent, and what is one loop for all of them: find
the files of a workspace, read what is new in each, fold it, and tell which runs have changed.

The runs are a function of what the files hold, however they grew.
"""

from __future__ import annotations

import os
import re
import stat
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from agentwatch.background import let_others_work
from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import Fields, text
from agentwatch.sources.sessions.following import LinesTranscript, RunTranscript
from agentwatch.sources.sessions.processes import UNKNOWN, Processes
from agentwatch.sources.sessions.reader import (
    Change,
    Found,
    Progress,
    StoreReader,
    several,
    spellings,
    texts_in,
)
from agentwatch.sources.sessions.runs import Keep
from agentwatch.sources.sessions.tail import (
    Record,
    Tail,
    is_utf8,
    line_at,
    reason_of,
    record,
    records,
    refusal_of,
)
from agentwatch.sources.worktrees import lies_in_another

SESSION: Final = ""
"""Stands for the session itself where agents are named by id."""

LARGE: Final = 16 * 1024 * 1024
"""Bytes of a session, or a file of it, from which all others are read before it."""

_CHUNK: Final = 1024 * 1024
_HEAD: Final = 64 * 1024
"""Bytes that are read at a stretch, of a session of the workspace and of one that may be another's."""
_LARGEST_META: Final = 256 * 1024
_MANY: Final = 1000
_WALK_SECONDS: Final = 2.0
"""So often a store of more files is looked through as a whole; in between, only what has changed of late."""
_COLD: Final = 900.0
"""Seconds without a change after which nothing is expected of a session."""
_QUIET: Final = 15.0
"""Seconds without a change after which a missing process is believed to be gone."""
_RECENT: Final = 86_400.0
"""Seconds in which a session has changed that is read before those that have not."""
_SLACK: Final = 3_600.0
"""Seconds by which the time of a file may lie before those that stand in it."""
_CUT: Final = 200
_OTHER: Final = re.compile(r"[^a-zA-Z0-9]")


class Fold(Protocol):
    """The fold of the records of one file: it depends on these alone, however they came."""

    cwd: str | None
    """The directory in which its agent began, None where no record says it yet."""
    not_understood: int
    """Lines that are left out."""

    def add(self, fields: Record, offset: int) -> None:
        """Fold in a record, whose line begins at an offset. Never raises for what it holds."""


F = TypeVar("F", bound=Fold)


class Layout(NamedTuple):
    """What lies in the directory of a project, by paths from there on: patterns for `fullmatch`.

    `files` has the groups `own`, a session's id, for its own file, or `session`, `agent` and `meta` for those of an
    agent; `session` is missing where only the records say it, `meta` is there in what describes it. `directories` are
    those to enter, with the group `session` where all in it is one session's. Projects lie in `root` of the program.
    """

    files: str
    directories: str
    root: str = "projects"


class FoundFile(NamedTuple):
    """One file of the store. `agent` is SESSION for a session's own."""

    path: str
    project: str
    session: str
    agent: str
    is_meta: bool
    status: os.stat_result


@dataclass(slots=True)
class StoredFile(Generic[F]):
    """A file of lines with what these come to. `refusal` says why it cannot be read, None where it can be."""

    agent: str
    tail: Tail
    fold: F
    status: os.stat_result
    sweep: int
    unread: bool = True
    refusal: str | None = None

    @property
    def left(self) -> int:
        return max(self.status.st_size - self.tail.position, 0)


@dataclass(slots=True)
class _Description:
    agent: str
    status: os.stat_result
    sweep: int
    fields: Fields | None = None
    is_bad: bool = False


@dataclass(slots=True)
class Session(Generic[F]):
    """One session of a project directory. `files` and `metas` are by path.

    `belongs` is whether it was begun in the workspace, None until it is known: what is another's is read only as far as
    the record that says so.
    """

    id: str
    project: str
    belongs: bool | None
    files: dict[str, StoredFile[F]] = field(default_factory=dict)
    metas: dict[str, _Description] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    newest: float = 0.0
    """When a file of it last changed, in seconds since the epoch."""
    has_unread: bool = True
    is_changed: bool = False
    is_sketched: bool = False
    is_whole: bool = False
    """All was read to its end once."""
    about: object = UNKNOWN
    cwd: str | None = None

    @property
    def folds(self) -> dict[str, F]:
        """By agent."""
        return {file.agent: file.fold for file in self.files.values()}

    @property
    def descriptions(self) -> dict[str, Fields]:
        """The JSON objects that describe agents, by agent."""
        return {meta.agent: meta.fields for meta in self.metas.values() if meta.fields is not None}

    @property
    def places(self) -> dict[str, str]:
        """The paths of the files, by agent."""
        return {file.agent: path for path, file in self.files.items()}

    @staticmethod
    def place(places: Mapping[str, str], agent: str) -> str:
        """The file that shows an agent, else the session, else any of its agents."""
        return places.get(agent) or places.get(SESSION) or min(places.values(), default="")

    def unread(self) -> list[StoredFile[F]]:
        """What is to be read now, the newest first: only its own file until that says whether the others matter."""
        if not self.has_unread:
            return []
        files = [file for file in self.files.values() if file.unread]
        self.has_unread = bool(files)
        if self.belongs is None and any(file.agent == SESSION for file in self.files.values()):
            files = [file for file in files if file.agent == SESSION]
        if len(files) > 1:
            files.sort(key=_newest)
        return files if self.belongs is not False else []

    def find_directory(self) -> str | None:
        """Where it began: its own file says so, or where it has none, those of its agents."""
        folds = self.folds
        if (own := folds.get(SESSION)) is not None:
            return own.cwd
        return next((folds[agent].cwd for agent in sorted(folds) if folds[agent].cwd is not None), None)


def _newest(file: StoredFile[F]) -> tuple[bool, bool, float]:
    return file.left > LARGE, file.agent != SESSION, -file.status.st_mtime


def slug(directory: str) -> str:
    """The name of the directory in which the sessions of a working directory lie, whole: longer ones are cut."""
    return _OTHER.sub("-", unicodedata.normalize("NFC", directory))


def holds(workspace: str, directory: str) -> bool:
    """Whether a working directory is the workspace or lies below it, and in no worktree below it."""
    above, below = unicodedata.normalize("NFC", workspace), unicodedata.normalize("NFC", directory)
    if below == above:
        return True
    return below.startswith(above.rstrip(os.sep) + os.sep) and not lies_in_another(workspace, directory)


class FilesReader(StoreReader, ABC, Generic[F]):
    """The sessions that were begun in `workspace` or below it, out of `home`, the directory of the program.

    Implements SessionReader. Sessions of which no file was written `since` a time (epoch seconds) are not read.
    """

    layout: ClassVar[Layout]
    all_belong: ClassVar[bool] = False
    """Whether all sessions that are found are the workspace's: their records need not say so."""

    def __init__(self, workspace: Path, home: Path, since: float | None = None) -> None:
        super().__init__(self._texts_at)
        self.workspace = os.path.realpath(workspace)
        self.places = spellings(workspace)
        self.home = home
        self.trouble: str | None = None
        self.root = os.fspath(home / self.layout.root)
        self.progress = Progress(0, 0)
        self.sessions: dict[tuple[str, str], Session[F]] = {}
        self.processes = Processes(home)
        self.refused: set[str] = set()
        """Directories and files that cannot be read; what was known of them may still be so."""
        self._since = float("-inf") if since is None else since - _SLACK
        self._is_file = re.compile(self.layout.files, re.DOTALL).fullmatch
        self._is_directory = re.compile(self.layout.directories, re.DOTALL).fullmatch
        self._owners: dict[tuple[str, int], str] = {}
        self._sweep = self._listed = 0
        self._walk_at = 0.0
        self._slug = slug(self.workspace)
        self._slugs_below = self._slug[:_CUT] if self._slug.endswith("-") else f"{self._slug[:_CUT]}-"
        self._projects: list[str] = []

    # A program says all this of itself.

    @abstractmethod
    def begin(self, keep: Keep, agent: str, path: str) -> F:
        """The fold of no record: at first, and once the file is another one."""

    @abstractmethod
    def runs_of(self, session: Session[F], about: object) -> dict[str, Run]:
        """All runs of a session by key; `about` is what is known of it beside its files."""

    @abstractmethod
    def entries(self, fields: Fields) -> Iterable[Entry]:
        """The entries of a record. Never raises."""

    def about(self, session: Session[F]) -> object:
        """Other facts that the runs of a session depend on: what is known of the program that runs it."""
        program = self.processes.of(session.id) if session.belongs else UNKNOWN
        return UNKNOWN if program.gone and time.time() - session.newest <= _QUIET else program

    def projects(self) -> list[str]:
        """Directories that may be those of the workspace or of a directory below it."""
        found = [
            one for one in self.scan(self.root) if one.name == self._slug or one.name.startswith(self._slugs_below)
        ]
        return sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))

    def is_skipped(self, data: bytes) -> bool:  # noqa: ARG002
        """Whether a line says nothing, by a look at its bytes."""
        return False

    def own_entries(self, run: Run) -> Callable[[Fields], Iterable[Entry]]:  # noqa: ARG002
        """Says of all records of a run's file, one after the other, what the agent itself did in them."""
        return self.entries

    def mark(self, fields: Fields) -> str | None:
        """The mark of a record that may stand in a file twice."""
        return text(fields, "uuid")

    def texts_in(self, fields: Fields) -> Iterator[str]:
        """All texts of a record that a message may be made of."""
        return texts_in(fields)

    def open_tail(self, path: str) -> Tail:
        return Tail(Path(path))

    def line_at(self, path: str, offset: int) -> bytes | None:
        return line_at(Path(path), offset)

    # What follows is the same for all.

    def read(self, seconds: float) -> Sequence[Change]:
        until = time.monotonic() + seconds
        moved = self._look()
        is_behind = self._read_on(until)
        changed = False
        for key, session in list(self.sessions.items()):
            changed |= session.newest >= self._since and self._refold(session)
            if not (session.files or session.metas):
                changed |= bool(session.runs)
                del self.sessions[key]
        if moved or is_behind or self.progress.done < self.progress.total:
            self._take_stock()
        if not changed:
            return []
        return self.give({key: run for session in self.sessions.values() for key, run in session.runs.items()})

    def transcript(self, run: Run) -> RunTranscript | None:
        """The fold of the file of a session or agent."""
        for session in self.sessions.values():
            file = session.files.get(run.place)
            if file is not None and file.agent == (SESSION if run.session_id == session.id else run.session_id):
                return LinesTranscript(Path(run.place), self.entries, self.mark, partial(self.own_entries, run))
        return None

    def found(self) -> Sequence[Found]:
        projects = self._projects
        if not projects and os.path.isdir(self.root):
            return [Found(self.name, self.root, 0, self.trouble or "no session of this workspace is there")]
        rows = []
        for project in projects:
            sessions = [session for session in self._wanted() if session.project == project]
            other = sum(session.belongs is False for session in sessions)
            reasons = [self.trouble] if self.refused and self.trouble else []
            reasons += [f"{several(other, 'session')} of other directories"] if other else []
            reasons += _left_out(sessions, "not understood")
            mine = sum(one.belongs is True and SESSION in one.folds for one in sessions)
            agents = sum(run.parent_session is not None for one in sessions for run in one.runs.values())
            rows.append(Found(self.name, project, mine, "; ".join(reasons), agents))
        return rows

    def keep(self, path: str, words: str, at: float, offset: int) -> Message:
        return self.texts.message(words, at, path, offset, key=self.name)

    def directories(self) -> list[str]:
        """The directories in the root."""
        return sorted(entry.path for entry in self.scan(self.root) if entry.is_dir(follow_symlinks=False))

    def scan(self, directory: str) -> list[os.DirEntry[str]]:
        """The names in a directory, none where it cannot be listed."""
        self.refused.discard(directory)
        try:
            with os.scandir(directory) as entries:
                found = list(entries)
            self._listed += len(found)
            return found
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError:
            self.refused.add(directory)
            return []

    def find(self) -> list[FoundFile]:
        """The files that are there now and may be of the workspace."""
        found: list[FoundFile] = []
        self._projects = self.projects()
        pending: list[tuple[str, str, str, str | None]] = [(project, project, "", None) for project in self._projects]
        while pending:
            directory, project, within, session = pending.pop()
            for entry in self.scan(directory):
                name = within + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if (match := self._is_directory(name)) is not None:
                        pending.append((entry.path, project, f"{name}/", session or match["session"]))
                elif (match := self._is_file(name)) is not None and (status := self.status(entry)) is not None:
                    its = match.groupdict()
                    owner = its.get("own") or its.get("session") or session or self._owner(entry.path, status)
                    if owner is not None:
                        agent, is_meta = its.get("agent") or SESSION, bool(its.get("meta"))
                        found.append(FoundFile(entry.path, project, owner, agent, is_meta, status))
        return found

    def status(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """That of a regular file, None for anything else."""
        self.refused.discard(entry.path)
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError:
            self.refused.add(entry.path)
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _owner(self, path: str, status: os.stat_result) -> str | None:
        """The session of a transcript whose name does not say it; it may be that of an agent, among the sessions'."""
        key = path, status.st_ino
        if key not in self._owners:
            line = line_at(Path(path), 0, _CHUNK)
            owner = text(record(line) or {}, "sessionId") if line is not None else None
            if owner is None:
                # With more behind it, a first line is whole.
                is_damaged = self.all_belong and line is not None and status.st_size > len(line) + 1
                self.refused |= {path} if is_damaged or refusal_of(Path(path)) else set()
                return None
            self._owners[key] = owner
        return self._owners[key]

    def _look(self) -> bool:
        """Take notice of what lies in the store now; True where something of it has changed."""
        self.processes.look()
        now, moved = time.monotonic(), False
        if self._listed > _MANY and now < self._walk_at:
            warm = time.time() - _COLD
            for session in self.sessions.values():
                for path, file in session.files.items() if session.newest > warm else ():
                    try:
                        moved |= self._notice(session, file, os.stat(path, follow_symlinks=False))  # noqa: PTH116
                    except OSError:
                        self._walk_at = now
            return moved
        self._walk_at, self._sweep, refused = now + _WALK_SECONDS, self._sweep + 1, set(self.refused)
        self.refused = {path for path in refused if os.path.lexists(path)}
        self._listed = 0
        for found in sorted(self.find()):
            key = found.project, found.session
            if key not in self.sessions:
                self.sessions[key] = Session(found.session, found.project, self.all_belong or None)
            moved |= self._see(self.sessions[key], found)
        for session in self.sessions.values() if not self.refused else ():
            moved |= self._forget(session)
        return moved or refused != self.refused

    def _see(self, session: Session[F], found: FoundFile) -> bool:
        """Take notice of a file as it is now; True where it has changed."""
        path, status = found.path, found.status
        if found.is_meta:
            return self._describe(session, found)
        file = session.files.get(path)
        if file is None:
            fold = self.begin(partial(self.keep, path), found.agent, path)
            session.files[path] = StoredFile(found.agent, self.open_tail(path), fold, status, self._sweep)
            session.newest, session.is_changed = max(session.newest, status.st_mtime), True
            session.has_unread = True
            return True
        file.sweep = self._sweep
        return self._notice(session, file, status)

    def _notice(self, session: Session[F], file: StoredFile[F], status: os.stat_result) -> bool:
        before, file.status = file.status, status
        # The ctime changes also when reading is allowed again.
        if before.st_ctime_ns == status.st_ctime_ns and before[:7] == status[:7]:
            return False
        if session.belongs is False and status.st_ino != before.st_ino:
            session.belongs = None
        file.unread, file.refusal, session.has_unread = True, None, True
        session.newest = max([one.status.st_mtime for one in session.files.values()])
        return True

    def _describe(self, session: Session[F], found: FoundFile) -> bool:
        known = session.metas.get(found.path)
        if known is None:
            known = session.metas[found.path] = _Description(found.agent, found.status, self._sweep)
        elif (known.status.st_ctime_ns, known.status.st_size) == (found.status.st_ctime_ns, found.status.st_size):
            known.sweep = self._sweep
            return False
        try:
            meta = record(Path(found.path).read_bytes()) if found.status.st_size <= _LARGEST_META else None
        except OSError:
            meta = None
        known.status, known.sweep, known.is_bad = found.status, self._sweep, meta is None
        # A half-written one says nothing: what the file said before still holds.
        if meta is not None:
            session.is_changed |= known.fields != meta
            known.fields = meta
        return True

    def _forget(self, session: Session[F]) -> bool:
        """Drop the files that are not there any more; True where there were any."""
        gone = [path for path, file in session.files.items() if file.sweep != self._sweep]
        lost = [path for path, meta in session.metas.items() if meta.sweep != self._sweep]
        for path in gone:
            del session.files[path]
        for path in lost:
            del session.metas[path]
        session.is_changed |= bool(gone or lost)
        return bool(gone or lost)

    def _wanted(self) -> list[Session[F]]:
        return [session for session in self.sessions.values() if session.newest >= self._since]

    def _read_on(self, until: float) -> bool:
        """Read what is recent and the newest first, but what is large last. True where the time was over before all was
        read."""
        waiting = [(session, files) for session in self._wanted() if (files := session.unread())]
        recent = time.time() - _RECENT if waiting else 0.0

        def order(one: tuple[Session[F], list[StoredFile[F]]]) -> tuple[bool, bool, float]:
            session, files = one
            return session.newest < recent, sum(file.left for file in files) > LARGE, -session.newest

        if len(waiting) > 1:
            waiting.sort(key=order)
        is_large_left = True
        for takes_large in (False, True):
            is_large_left, goes_on = False, is_large_left
            for session, files in waiting if goes_on else ():
                belongs = session.belongs
                while True:
                    for file in files:
                        is_wanted = takes_large or belongs is None or file.left <= LARGE
                        is_large_left |= not is_wanted
                        while is_wanted and file.unread and session.belongs is belongs:
                            self._read_file(session, file)
                            if time.monotonic() >= until:
                                return True
                    if session.belongs is belongs:
                        break
                    # Whether it is known whose it is tells which files matter.
                    belongs, files = session.belongs, session.unread()  # noqa: PLW2901
        return False

    def _read_file(self, session: Session[F], file: StoredFile[F]) -> None:
        """Read on in a file, about as much as may be read at a stretch."""
        try:
            lines, restarted = file.tail.read(_CHUNK if session.belongs else _HEAD)
        except OSError as error:
            file.unread, file.refusal = False, reason_of(error)
            return
        if restarted:
            path = os.fspath(file.tail.path)
            file.fold = self.begin(partial(self.keep, path), file.agent, path)
        fold, cwd, is_skipped = file.fold, file.fold.cwd, self.is_skipped
        for offset, data in lines:
            if is_skipped(data):
                continue
            found = records(data)
            if not found or not (data.isascii() or is_utf8(data)):
                fold.not_understood += 1
            for fields in found:
                fold.add(fields, offset)
        let_others_work()
        file.unread = file.tail.behind
        session.is_changed |= restarted or bool(lines)
        if restarted or fold.cwd != cwd or session.belongs is None:
            directory = session.find_directory()
            if directory is not None and (session.belongs is None or directory != session.cwd):
                session.cwd, session.belongs = directory, holds(self.workspace, directory)

    def _refold(self, session: Session[F]) -> bool:
        """Make the runs of a session anew where something has changed; nothing before all was read to its end once.

        A session that is large is told one time before: what its agents' files say stands, but for what it heard.
        """
        about = self.about(session)
        if not session.is_whole:
            unread = session.unread()
            if unread and (session.is_sketched or not session.belongs or unread[0].left <= LARGE):
                return False
            session.is_sketched, session.is_whole = True, not unread
            about = UNKNOWN if unread else about
        if not session.is_changed and about == session.about:
            return False
        session.is_changed, session.about = False, about
        session.runs = self.runs_of(session, about) if session.belongs else {}
        return True

    def _take_stock(self) -> None:
        total = left = unreadable = 0
        wanted = self._wanted()
        for session in wanted:
            left += sum([file.left for file in session.unread()]) if session.has_unread else 0
            for file in session.files.values():
                total += file.status.st_size
                unreadable += file.refusal is not None and session.belongs is not False
        self.progress = Progress(total - left, total)
        refused = sorted(self.refused)
        parts = [f"{place} cannot be read" for place in refused[:1]]
        if count := unreadable + len(refused[1:]):
            parts.append(f"{several(count, 'file')} cannot be read")
        parts += _left_out(
            [session for session in wanted if session.belongs is not False], "not understood and left out"
        )
        self.trouble = " and ".join(parts) or None

    def _texts_at(self, path: str, offset: int) -> Iterator[str]:
        for fields in records(self.line_at(path, offset) or b""):
            yield from self.texts_in(fields)


def _left_out(sessions: Iterable[Session[F]], why: str) -> list[str]:
    lines = metas = 0
    for session in sessions:
        for file in session.files.values():
            lines += file.fold.not_understood + file.tail.passed_over
        for meta in session.metas.values():
            metas += meta.is_bad
    said = [f"{several(lines, 'line')} {why}"] if lines else []
    return said + ([f"{several(metas, 'description')} of agents not understood"] if metas else [])
