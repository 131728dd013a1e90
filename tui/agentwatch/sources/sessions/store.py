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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from agentwatch.background import let_others_work
from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import Fields, mapping, text
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
    Stamp,
    Tail,
    document,
    line_at,
    reason_of,
    record,
    refusal_of,
    stamp_of,
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
_QUIET: Final = 15.0
"""Seconds without a change after which a missing process is believed to be gone."""
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
    """The layout of a project's directory, by paths from there on: patterns for `fullmatch`.

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
    unread: bool = True
    refusal: str | None = None

    @property
    def left(self) -> int:
        return max(self.status.st_size - self.tail.position, 0)


class _Description(NamedTuple):
    agent: str
    stamp: Stamp
    fields: Fields
    is_bad: bool


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
    is_changed: bool = False
    is_sketched: bool = False
    is_whole: bool = False
    """All was read to its end once."""
    about: object = UNKNOWN

    @property
    def folds(self) -> dict[str, F]:
        """By agent."""
        return {file.agent: file.fold for file in self.files.values()}

    @property
    def descriptions(self) -> dict[str, Fields]:
        """The JSON objects that describe agents, by agent."""
        return {meta.agent: meta.fields for meta in self.metas.values() if meta.fields}

    @property
    def places(self) -> dict[str, str]:
        """The paths of the files, by agent."""
        return {file.agent: path for path, file in self.files.items()}

    @staticmethod
    def place(places: Mapping[str, str], agent: str) -> str:
        """The file that shows an agent, else the session, else any of its agents."""
        return places.get(agent) or places.get(SESSION) or min(places.values(), default="")

    def next_unread(self, *, takes_large: bool) -> StoredFile[F] | None:
        """The file to be read now: its own until that says whether the others matter, then the newest first."""
        files = [file for file in self.files.values() if file.unread]
        if not files or self.belongs is False:
            return None
        if self.belongs is None:
            has_own = any(file.agent == SESSION for file in self.files.values())
            return next((file for file in files if file.agent == SESSION or not has_own), None)
        files = files if takes_large else [file for file in files if file.left <= LARGE]
        return min(
            files, key=lambda file: (file.left > LARGE, file.agent != SESSION, -file.status.st_mtime), default=None
        )

    def find_directory(self) -> str | None:
        """Where it began: its own file says so, or where it has none, those of its agents."""
        folds = self.folds
        if (own := folds.get(SESSION)) is not None:
            return own.cwd
        return next((folds[agent].cwd for agent in sorted(folds) if folds[agent].cwd is not None), None)


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

    Implements SessionReader.
    """

    layout: ClassVar[Layout]
    all_belong: ClassVar[bool] = False
    """Whether all sessions that are found are the workspace's: their records need not say so."""

    def __init__(self, workspace: Path, home: Path) -> None:
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
        self._is_file = re.compile(self.layout.files, re.DOTALL).fullmatch
        self._is_directory = re.compile(self.layout.directories, re.DOTALL).fullmatch
        self._owners: dict[tuple[str, int], str] = {}
        self._slug = slug(self.workspace)
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
        below = f"{self._slug[:_CUT].removesuffix('-')}-"
        return [path for path in self.directories() if f"{os.path.basename(path)}-".startswith(below)]  # noqa: PTH119

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
        moved = self._find_changes()
        self._read_on(until)
        changed = [session for session in self.sessions.values() if self._refold(session)]
        for key, session in list(self.sessions.items()):
            if not (session.files or session.metas):
                del self.sessions[key]
        if moved or self.progress.done < self.progress.total:
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
            sessions = [session for session in self.sessions.values() if session.project == project]
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
                return list(entries)
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

    def _find_changes(self) -> bool:
        """Take notice of the files that are there now; True where something of them has changed."""
        self.processes.look()
        refused, self.refused = self.refused, {path for path in self.refused if os.path.lexists(path)}
        moved = False
        there: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for found in sorted(self.find()):
            key = found.project, found.session
            if key not in self.sessions:
                self.sessions[key] = Session(found.session, found.project, self.all_belong or None)
            there[key].add(found.path)
            moved |= (self._describe if found.is_meta else self._notice)(self.sessions[key], found)
        for key, session in self.sessions.items() if not self.refused else ():
            for known in (session.files, session.metas):
                for path in known.keys() - there[key]:
                    del known[path]
                    moved = session.is_changed = True
        return moved or refused != self.refused

    def _notice(self, session: Session[F], found: FoundFile) -> bool:
        file, status = session.files.get(found.path), found.status
        if file is None:
            fold = self.begin(partial(self.keep, found.path), found.agent, found.path)
            session.files[found.path] = StoredFile(found.agent, self.open_tail(found.path), fold, status)
            session.is_changed = True
        elif stamp_of(file.status) == stamp_of(status):
            return False
        else:
            file.status, file.unread, file.refusal = status, True, None
        session.newest = max(file.status.st_mtime for file in session.files.values())
        return True

    def _describe(self, session: Session[F], found: FoundFile) -> bool:
        known, stamp = session.metas.get(found.path), stamp_of(found.status)
        if known is not None and known.stamp == stamp:
            return False
        meta: object = None
        with suppress(OSError, ValueError):
            meta = document(Path(found.path), _LARGEST_META)
        is_bad = not isinstance(meta, dict)
        # A half-written one says nothing: what the file said before still holds.
        fields = mapping(meta) if not is_bad or known is None else known.fields
        session.is_changed |= known is None or known.fields != fields
        session.metas[found.path] = _Description(found.agent, stamp, fields, is_bad)
        return True

    def _read_on(self, until: float) -> None:
        """Read the newest sessions first, but what is large last."""
        sessions = [session for session in self.sessions.values() if session.next_unread(takes_large=True) is not None]
        sessions.sort(key=lambda session: -session.newest)
        for takes_large in (False, True):
            for session in sessions:
                while (file := session.next_unread(takes_large=takes_large)) is not None:
                    self._read_file(session, file)
                    if time.monotonic() >= until:
                        return

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
        for offset, data in lines:
            if (fields := record(data)) is not None:
                file.fold.add(fields, offset)
            else:
                file.fold.not_understood += 1
        let_others_work()
        file.unread = file.tail.behind
        session.is_changed |= restarted or bool(lines)
        if session.belongs is None and (directory := session.find_directory()) is not None:
            session.belongs = holds(self.workspace, directory)

    def _refold(self, session: Session[F]) -> bool:
        """Make the runs of a session anew where something has changed; nothing before all was read to its end once.

        A session that is large is told one time before: what its agents' files say stands, but for what it heard.
        """
        about = self.about(session)
        if not session.is_whole:
            if session.next_unread(takes_large=False) is not None:
                return False
            session.is_whole = session.next_unread(takes_large=True) is None
            if session.is_sketched and not session.is_whole:
                return False
            session.is_sketched, about = True, about if session.is_whole else UNKNOWN
        if not session.is_changed and about == session.about:
            return False
        session.is_changed, session.about = False, about
        session.runs = self.runs_of(session, about) if session.belongs else {}
        return True

    def _take_stock(self) -> None:
        sessions = [session for session in self.sessions.values() if session.belongs is not False]
        files = [file for session in sessions for file in session.files.values()]
        total = sum(file.status.st_size for file in files)
        waiting = [session for session in sessions if session.next_unread(takes_large=True) is not None]
        left = sum(file.left for session in waiting for file in session.files.values() if file.unread)
        self.progress = Progress(total - left, total)
        refused = sorted(self.refused)
        parts = [f"{place} cannot be read" for place in refused[:1]]
        if count := sum(file.refusal is not None for file in files) + len(refused[1:]):
            parts.append(f"{several(count, 'file')} cannot be read")
        parts += _left_out(sessions, "not understood and left out")
        self.trouble = " and ".join(parts) or None

    def _texts_at(self, path: str, offset: int) -> Iterator[str]:
        return self.texts_in(record(self.line_at(path, offset) or b"") or {})


def _left_out(sessions: Iterable[Session[F]], why: str) -> list[str]:
    files = [file for session in sessions for file in session.files.values()]
    lines = sum(file.fold.not_understood + file.tail.passed_over for file in files)
    metas = sum(meta.is_bad for session in sessions for meta in session.metas.values())
    said = [f"{several(lines, 'line')} {why}"] if lines else []
    return said + ([f"{several(metas, 'description')} of agents not understood"] if metas else [])
