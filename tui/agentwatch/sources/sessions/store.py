"""The base class of readers for programs that keep files of JSON lines. A record is the JSON object in one line."""

import os
import re
import stat
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from agentwatch.background import let_others_work
from agentwatch.delegation.events import Run, RunState
from agentwatch.disk import fingerprint, spellings
from agentwatch.sources.sessions.entries import EntriesIn, LinesTranscript, RunTranscript
from agentwatch.sources.sessions.fields import Fields, Tail, as_object, directory_in, read_json, text, time_at
from agentwatch.sources.sessions.processes import UNKNOWN, Processes, Program, Wait
from agentwatch.sources.sessions.reader import Change, Progress, StoreReader, count_noun
from agentwatch.sources.sessions.runs import (
    LEFT_BEHIND,
    NO_ACCOUNT,
    OPEN,
    SESSION,
    Account,
    AgentLink,
    RunStatus,
    link_agents,
    run_of,
)
from agentwatch.sources.worktrees import lies_in_other_worktree

_CHUNK = 1024 * 1024
_HEAD = 64 * 1024  # bytes of one read, as long as it is unknown whether the session belongs to the workspace
_META = ".meta.json"  # the ending of the name of a file that describes an agent
_LARGEST_META = 256 * 1024
_QUIET = 15.0  # a missing process counts as ended if the session's files have not changed for so many seconds
_CUT = 200
_OTHER = re.compile(r"[^a-zA-Z0-9]")


class FoundFile(NamedTuple):
    """One file of the store. `agent` is the agent's id, or SESSION if the file is the session's own."""

    path: str
    project: str
    session: str
    agent: str
    status: os.stat_result


@dataclass(slots=True)
class StoredFile:
    """A file of JSON lines and its `fold`. The fold is an object that gets all records of the file. It holds the state
    of one agent or of a whole session."""

    agent: str
    tail: Tail
    fold: Any
    status: os.stat_result
    unread: bool = True
    is_refused: bool = False


class AgentDescription(NamedTuple):
    """A file that describes an agent. `fields` is its JSON object, or empty as long as the file is not valid."""

    agent: str
    status: os.stat_result
    fields: Fields


@dataclass(slots=True)
class Session:
    """One session in the store. `files` and `descriptions` are by path.

    `belongs` tells whether the session began in the workspace; None as long as this is unknown. A session of another
    workspace is read only up to the record that names the working directory."""

    id: str
    project: str
    belongs: bool | None
    files: dict[str, StoredFile] = field(default_factory=dict)
    descriptions: dict[str, AgentDescription] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    is_changed: bool = False
    is_whole: bool = False  # whether all files have been read to their end once
    program: object = UNKNOWN

    @property
    def newest(self) -> float:
        """The time of the last change to a file of the session, in epoch seconds."""
        return max((file.status.st_mtime for file in self.files.values()), default=0.0)

    @property
    def folds(self) -> dict[str, Any]:
        """The folds of the files, by agent."""
        return {file.agent: file.fold for file in self.files.values()}

    def place(self, agent: str) -> str:
        """Return the path of the agent's file. If it has none, return the session's own file, or else any file."""
        places = {file.agent: path for path, file in self.files.items()}
        return places.get(agent) or places.get(SESSION) or min(places.values(), default="")

    @property
    def unread(self) -> list[StoredFile]:
        """The files that have not been read to their end. Files of another workspace are left out."""
        return [file for file in self.files.values() if file.unread and self.belongs is not False]


def slug(directory: str) -> str:
    """Return the name of the store's directory for a working directory. Programs cut the name if it is long."""
    return _OTHER.sub("-", unicodedata.normalize("NFC", directory))


def contains(workspace: str, directory: str) -> bool:
    """Tell whether a directory is the workspace, or is below it and not in another work tree of the repository."""
    above, below = unicodedata.normalize("NFC", workspace), unicodedata.normalize("NFC", directory)
    if below == above:
        return True
    return below.startswith(above.rstrip(os.sep) + os.sep) and not lies_in_other_worktree(workspace, directory)


class FilesReader(StoreReader, ABC):
    """Reads the sessions that began in `workspace` or below it. The program's store is in the directory `home`."""

    # A pattern for the paths of files in a project's directory (a directory of the store for one working directory). In
    # the path of a session's own file, the group `own` matches the session's id. In the path of an agent's file, the
    # groups `agent` and `session` match their ids. A path without the session's id has no group `session`.
    files: ClassVar[str]
    directories: ClassVar[str]  # a pattern for the paths of subdirectories to enter
    projects_in: ClassVar[str] = "projects"  # the directory in `home` that holds the directories of all projects
    fold: Callable[..., Any]
    entries: EntriesIn
    all_belong: ClassVar[bool] = False  # whether all sessions that are found belong to the workspace
    is_shared: ClassVar[bool] = False  # whether a file may hold the records of several runs

    trouble: str | None = None

    def __init__(self, workspace: Path, home: Path):
        super().__init__()
        self.workspace = os.path.realpath(workspace)
        self.places = spellings(workspace)
        self.home = home
        self.root = os.fspath(home / self.projects_in)
        self.progress = Progress(0, 0)
        self.sessions: dict[tuple[str, str], Session] = {}
        self.processes = Processes(home / "sessions")
        self.refused: set[str] = set()  # directories and files that cannot be read
        self._slug = f"{slug(self.workspace)[:_CUT].removesuffix('-')}-"
        self._owners: dict[tuple[str, int], str] = {}
        self._projects: list[str] = []

    # Methods that subclasses override

    def make_fold(self, agent: str, path: str) -> Any:  # noqa: ARG002
        """Make the fold (the object that gets the records) for a new or replaced file."""
        return self.fold(self.keep_message, self.places, is_agent=agent != SESSION)

    @abstractmethod
    def runs_of(self, session: Session) -> dict[str, Run]:
        """Make all runs of a session from its folds. Return them by key."""

    def entries_of(self, run: Run) -> EntriesIn:  # noqa: ARG002
        """Return a function that takes a record of the run's file and returns the entries of this run in the record."""
        return self.entries

    def program_of(self, session: Session) -> Program:
        """Return the state of a session's program. If it changes, the runs of the session are made again."""
        return self.processes.program_of(session.id)

    def reconcile_runs(self, session: Session, runs: dict[str, Run], program: Program) -> None:
        """Correct the states of a session's runs, from the state of the program and the states of the parents' runs."""
        keys = {run.session_id: key for key, run in runs.items()}
        for key in sorted(runs, key=lambda one: runs[one].started_at):
            run = runs[key]
            if run.state is RunState.ENDED and run.parent_session is None:
                # Even for an ended session, record whether its program still runs.
                runs[key] = replace(run, process_gone=program.gone)
            if run.state not in OPEN:
                continue
            above = runs.get(keys.get(run.parent_session or "", ""))
            cut_off = above is not None and above.state in (RunState.FAILED, RunState.CANCELED) and not run.background
            if above and (cut_off or above.reason == LEFT_BEHIND):
                # A foreground agent ends when its parent ends. If the program is killed, all agents end.
                at = max(run.started_at, above.ended_at or above.updated_at)
                runs[key] = replace(run, state=above.state, reason=above.reason, ended_at=at, waiting="")
                continue
            # A run from before the program's start belongs to an earlier process, which is gone and takes no answer.
            gone = True if run.updated_at < program.began else program.gone
            waiting = "" if gone else run.waiting
            if (gone, waiting) != (run.process_gone, run.waiting):
                runs[key] = replace(run, process_gone=gone, waiting=waiting)
        if program.wait:
            self.set_waiting(session, runs, program.wait)
        # A parent that waits for an agent writes nothing. So an agent's sign of life also counts for its parent.
        for run in list(runs.values()):
            parent = run.parent_session
            while parent in keys:
                above = runs[keys[parent]]
                if above.state is not RunState.WORKING or above.updated_at >= run.updated_at:
                    break
                runs[keys[parent]] = replace(above, updated_at=run.updated_at)
                parent = above.parent_session

    def set_waiting(self, session: Session, runs: dict[str, Run], wait: Wait) -> None:
        """Set `waiting` in the run that waits for a human."""

    def find_projects(self) -> list[str]:
        """Return the store's directories that may have sessions of the workspace, or of directories below it."""
        return [
            one.path for one, _ in self.listing(self.root) if one.is_dir() and f"{one.name}-".startswith(self._slug)
        ]

    def record_id(self, fields: Fields) -> str | None:
        """Return the id of a record, or None. A record that is repeated has the same id again."""
        return text(fields, "uuid")

    # Methods for all programs

    def read(self, seconds: float) -> Sequence[Change]:
        moved = self._find_changes()
        self._read_unread(time.monotonic() + seconds)
        changed = [session for session in self.sessions.values() if self._refold_session(session)]
        if moved or self.progress.done < self.progress.total:
            self._update_progress()
        if not changed:
            return []
        self.sessions = {key: one for key, one in self.sessions.items() if one.files or one.descriptions}
        return self.update_runs({key: run for session in self.sessions.values() for key, run in session.runs.items()})

    def transcript(self, run: Run) -> RunTranscript | None:
        for session in self.sessions.values():
            file = session.files.get(run.place)
            if file and (self.is_shared or run.session_id in (file.agent, session.id)):
                return LinesTranscript(Path(run.place), partial(self.entries_of, run), self.record_id)
        return None

    @property
    def skipped(self) -> str:  # type: ignore[override]
        other = sum(session.belongs is False for session in self.sessions.values())
        return f"{count_noun(other, 'session')} of other directories" if other else ""

    def stores(self) -> Sequence[str]:
        """Return the project's directory if only one was searched, otherwise the directory of all projects."""
        return [*(self._projects if len(self._projects) == 1 else filter(os.path.isdir, [self.root]))]

    def listing(self, directory: str) -> list[tuple[os.DirEntry[str], os.stat_result]]:
        """Return the files in a directory with their status, or [] if the directory cannot be listed."""
        found: list[tuple[os.DirEntry[str], os.stat_result]] = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        found.append((entry, entry.stat(follow_symlinks=False)))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            self.refused.add(directory)
        return found

    def find_files(self) -> Iterable[FoundFile]:
        """Yield the files in the store that may belong to the workspace."""
        self._projects = self.find_projects()
        pending = [(project, project, "") for project in self._projects]
        while pending:
            directory, project, within = pending.pop()
            for entry, status in self.listing(directory):
                name = within + entry.name
                if stat.S_ISDIR(status.st_mode):
                    if re.fullmatch(self.directories, name, re.DOTALL):
                        pending.append((entry.path, project, f"{name}/"))
                elif stat.S_ISREG(status.st_mode) and (match := re.fullmatch(self.files, name, re.DOTALL)):
                    its = match.groupdict()
                    owner = its.get("own") or its.get("session") or self._session_of(entry.path, status)
                    if owner is not None:
                        yield FoundFile(entry.path, project, owner, its.get("agent") or SESSION, status)

    def _session_of(self, path: str, status: os.stat_result) -> str | None:
        """Return the session that the first record of a file names, or None."""
        key = path, status.st_ino
        if key not in self._owners:
            try:
                first = next(iter(Tail(Path(path)).read(1).lines), None)
                is_bad = first is not None and self.all_belong
            except OSError:
                first, is_bad = None, True
            owner = text((first and first.record) or {}, "sessionId")
            if owner is None:
                self.refused |= {path} if is_bad else set()
                return None
            self._owners[key] = owner
        return self._owners[key]

    def _find_changes(self) -> bool:
        """Add new files and remove missing files. Tell whether any file is new, changed or missing."""
        self.processes.refresh()
        refused, self.refused = self.refused, set()
        found = {(one.project, one.session, one.path): one for one in sorted(self.find_files())}
        moved = refused != self.refused
        for (project, name, path), one in found.items():
            session = self.sessions.setdefault((project, name), Session(name, project, self.all_belong or None))
            is_meta = path.endswith(_META)
            known: StoredFile | AgentDescription | None = (session.descriptions if is_meta else session.files).get(path)
            if known is not None and fingerprint(known.status) == fingerprint(one.status):
                continue
            moved = True
            if isinstance(known, StoredFile):
                known.status, known.unread, known.is_refused = one.status, True, False
            elif is_meta:
                self._read_description(session, one)
            else:
                fold = self.make_fold(one.agent, path)
                session.files[path] = StoredFile(one.agent, Tail(Path(path)), fold, one.status)
                session.is_changed = True
        for key, session in self.sessions.items() if not self.refused else ():
            for held in (session.files, session.descriptions):
                for path in [path for path in held if (*key, path) not in found]:
                    del held[path]
                    moved = session.is_changed = True
        return moved

    def _read_description(self, session: Session, found: FoundFile) -> None:
        known = session.descriptions.get(found.path)
        fields = before = known.fields if known is not None else {}
        # If the file is half-written, keep its earlier fields.
        with suppress(OSError, ValueError):
            fields = as_object(read_json(Path(found.path), _LARGEST_META)) or before
        session.is_changed |= known is None or before != fields
        session.descriptions[found.path] = AgentDescription(found.agent, found.status, fields)

    def _read_unread(self, until: float) -> None:
        """Read unread files until the given time. Begin with the newest session, and there with its own file."""
        for session in sorted(self.sessions.values(), key=lambda one: -one.newest):
            for file in sorted(session.unread, key=lambda one: (one.agent != SESSION, -one.status.st_mtime)):
                while file.unread and session.belongs is not False:
                    self._read_file(session, file)
                    if time.monotonic() >= until:
                        return

    def _read_file(self, session: Session, file: StoredFile) -> None:
        try:
            lines, restarted = file.tail.read(_CHUNK if session.belongs else _HEAD)
        except OSError:
            file.unread, file.is_refused = False, True
            return
        if restarted:
            file.fold = self.make_fold(file.agent, os.fspath(file.tail.path))
        for _, record in lines:
            if record is None:
                file.fold.not_understood += 1
                continue
            file.fold.add(record)
            if session.belongs is None and (place := directory_in(record)) is not None:
                session.belongs = contains(self.workspace, place)
        let_others_work()
        file.unread = file.tail.behind
        session.is_changed |= restarted or bool(lines)

    def _refold_session(self, session: Session) -> bool:
        """If a session has changed and all its files were read, make its runs again. Tell whether this was done."""
        if not session.is_whole and session.unread:
            return False
        session.is_whole = True
        program = self.program_of(session) if session.belongs else UNKNOWN
        if program.gone and time.time() - session.newest <= _QUIET:
            program = UNKNOWN
        if not session.is_changed and program == session.program:
            return False
        session.is_changed, session.program = False, program
        session.runs = self.runs_of(session) if session.belongs else {}
        self.reconcile_runs(session, session.runs, program)
        return True

    def _update_progress(self) -> None:
        sessions = [session for session in self.sessions.values() if session.belongs is not False]
        files = [file for session in sessions for file in session.files.values()]
        total = sum(file.status.st_size for file in files)
        unread = (file for session in sessions for file in session.unread)
        left = sum(max(file.status.st_size - file.tail.position, 0) for file in unread)
        self.progress = Progress(total - left, total)
        refused = sorted({*self.refused, *(os.fspath(file.tail.path) for file in files if file.is_refused)})
        parts = [f"{count_noun(len(refused), 'place')} cannot be read: {refused[0]}"] if refused else []
        lines = sum(file.fold.not_understood + file.tail.passed_over for file in files)
        lines += sum(not meta.fields for session in sessions for meta in session.descriptions.values())
        parts += [f"{count_noun(lines, 'line')} not understood and left out"] if lines else []
        self.trouble = " and ".join(parts) or None


class AgentsReader(FilesReader):
    """A reader for programs that write a file of lines for each agent. Some also write a description of each agent."""

    @abstractmethod
    def status_of(self, account: Account, link: AgentLink) -> RunStatus | Account:
        """Return the status of an agent, from its own account and from the reports about it in `link`."""

    def run_key(self, session: Session, agent: str, link: AgentLink) -> str:
        return link.claim or f"{session.id}/{agent}"

    def runs_of(self, session: Session) -> dict[str, Run]:
        accounts = session.folds
        runs: dict[str, Run] = {}
        descriptions = {meta.agent: meta.fields for meta in session.descriptions.values() if meta.fields}
        # The session's own run must come first. If it came later, all its agents would have to move in the tree.
        for agent, link in {SESSION: AgentLink(), **link_agents(accounts, descriptions)}.items():
            account = accounts.get(agent, NO_ACCOUNT)
            times = (account.started_at, link.call.at, *(one.ended_at for one in link.reports))
            seen_at = next((at for at in times if at is not None), None)
            # Leave out an agent that has only a description, and a session that has no prompt.
            if seen_at is None or (agent == SESSION and account.state is RunState.SUBMITTED):
                continue
            runs[self.run_key(session, agent, link) if agent else session.id] = run_of(
                account,
                link.call,
                self.status_of(account, link),
                source=self.name,
                session_id=agent or session.id,
                parent=(link.parent or session.id) if agent else None,
                place=session.place(agent if agent in accounts else link.parent),
                seen_at=time_at(link.meta, "lastUpdatedAt") or seen_at,
                title=text(link.meta, "description") if agent else account.title,
                agent=text(link.meta, "agentType"),
                name=text(link.meta, "name"),
                model=text(link.meta, "model"),
                prompt=link.call.prompt,
            )
        return runs
