"""The reader of Codex: the rollouts of one workspace, those of an agent with those of the session that asked for it."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final

from agentwatch.delegation.run import MOST_PERMITS, Message, Run, RunState
from agentwatch.sources.codex.beside import Database, Writers
from agentwatch.sources.codex.entries import entries, prompt_in
from agentwatch.sources.codex.rollout import (
    ENCRYPTED,
    THREAD_ID,
    Header,
    OwnEntries,
    Refused,
    Rollout,
    SpawnCall,
    header_of,
)
from agentwatch.sources.sessions import tail
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import Fields, mapping
from agentwatch.sources.sessions.following import LinesTranscript, Look, RunTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, Workspace, several, texts_in
from agentwatch.sources.sessions.runs import OPEN, Keep
from agentwatch.sources.sessions.store import FilesReader, FoundFile, Layout, Session
from agentwatch.sources.sessions.tail import Tail, record
from agentwatch.state import is_there

NAME: Final = "codex"
LEFT_BEHIND: Final = "left behind when Codex was stopped"

_ROOTS: Final = ("sessions", "archived_sessions")
_DEPTH: Final = 3
"""Year, month, day; the archive is flat."""
_COMPRESSED: Final = ".zst"
"""Behind the name of the plain file."""
_NAME: Final = re.compile(r"(rollout-.*\.jsonl)(?:\.zst)?", re.DOTALL)
_HEADER_BYTES: Final = 24 * 1024
"""What the header of a rollout takes, about: most of it is the system prompt."""
_TO_DECOMPRESS: Final = (
    "this Python was built without zstd" if sys.version_info >= (3, 14) else "install the package backports.zstd"
)
_STATES: Final = {
    "inProgress": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "failed": RunState.FAILED,
}


class CodexReader(FilesReader[Rollout]):
    """`home` is `$CODEX_HOME`, else `~/.codex`. All sessions are read, however old.

    A session of the store is a family: a session that a human began, and all that came of it, wherever it works.
    """

    name = NAME
    layout: ClassVar = Layout("", "", root="sessions")
    all_belong = True

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self._workspace = Workspace(workspace)
        self._database = Database(home)
        self._writers = Writers(home)
        self._until = 0.0
        self._parents: dict[str, str | None] = {}
        """By thread: the one that its own rollout names."""
        self._headers: dict[str, Header] = {}
        """By the names of the plain files; archiving moves a file, compressing replaces it."""
        self._headerless: dict[str, int] = {}
        """Rollouts without a whole header yet, and how long they were then."""
        self._damaged: dict[str, str] = {}
        """Rollouts whose beginning cannot be read, and why: they may be of any workspace."""
        self._strange: set[str] = set()
        """Rollouts that do not say whose they are, or in which directory they work."""
        self._closed: set[str] = set()
        """Threads that are there only compressed, and cannot be read so."""
        self._waiting = 0
        """Rollouts whose header has not been looked for yet."""
        self._is_drifting = False
        """The youngest rollout does not say whose it is: that of a newer Codex, as it seems."""

    def begin(self, keep: Keep, agent: str, path: str) -> Rollout:
        header = header_of(record(self.line_at(path, 0) or b"") or {}) or self._headers[agent]
        self._headers[agent] = header
        return Rollout(path, header, keep, self.places)

    def entries(self, fields: Fields) -> Iterable[Entry]:
        return entries(fields)

    def texts_in(self, fields: Fields) -> Iterator[str]:
        yield from texts_in(fields)
        yield prompt_in(mapping(fields.get("payload"))) or ""

    def keep(self, path: str, words: str, at: float, offset: int) -> Message:
        thread = self._headers[_plain(path)].thread
        return self.texts.message(words, at, path, offset, key=thread)

    def open_tail(self, path: str) -> Tail:
        return tail_of(Path(path))

    def line_at(self, path: str, offset: int) -> bytes | None:
        return line_at(Path(path), offset)

    def about(self, session: Session[Rollout]) -> object:
        """The state of the databases, and the time of the last look for writers."""
        known = self._database
        threads = tuple(file.fold.header.thread for file in session.files.values())
        told = [(known.parents.get(one), known.names.get(one), known.statuses.get(one)) for one in threads]
        is_working = any(run.state is RunState.WORKING and not run.process_gone for run in session.runs.values())
        return told, len(self._closed), self._writers.look() if is_working else 0

    def read(self, seconds: float) -> Sequence[Change]:
        self._until = time.monotonic() + seconds / 2
        changes = super().read(seconds)
        self._take_stock()
        return sorted(changes, key=lambda change: change.run.started_at if change.run is not None else -1.0)

    def found(self) -> Sequence[Found]:
        """The home, and the databases in it that are left alone."""
        if not is_there(self.home):
            return ()
        threads = {file.fold.header.thread for one in self.sessions.values() for file in one.files.values()}
        children = sum(self._parent(thread) is not None for thread in threads)
        skipped = (self.trouble, _say_strange(len(self._strange)), _say_closed(len(self._closed)))
        said = " ".join(dict.fromkeys(filter(None, skipped)))
        rows = [Found(NAME, str(self.home), len(threads) - children, said, children)]
        return rows + [Found(NAME, str(path), 0, reason) for path, reason in self._database.skipped.items()]

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the last rollout of a session."""
        path = Path(run.place)
        if run.session_id not in path.name or not path.is_relative_to(self.home):
            return None
        kind = LinesTranscript if path.suffix == ".jsonl" else _CompressedTranscript
        return kind(path, entries, own_entries=OwnEntries)

    def find(self) -> list[FoundFile]:
        """The rollouts that were begun in the workspace, and those of all their agents, wherever they work."""
        plain: dict[str, os.DirEntry[str]] = {}
        compressed: dict[str, os.DirEntry[str]] = {}
        for entry in self._rollouts():
            if (match := _NAME.fullmatch(entry.name)) is not None:
                (plain if match[1] == entry.name else compressed).setdefault(match[1], entry)
        closed = set[str]()
        if compressed and not can_decompress():
            closed.update(_threads_in(compressed.keys() - plain.keys()))
            compressed.clear()
        # Where both are there, Codex is about to remove the compressed one.
        present = compressed | plain
        for known in (self._headers, self._headerless, self._damaged):
            for name in known.keys() - present.keys():
                del known[name]
        self._strange &= present.keys()
        # Their names begin with the time they were begun: the youngest are wanted first.
        waiting = sorted(present.keys() - self._headers.keys())
        while waiting:
            name = waiting.pop()
            self._read_header(name, present[name])
            if time.monotonic() > self._until:
                break
        self._waiting = len(waiting)
        damaged = (name for name in self._headerless if present[name].name.endswith(_COMPRESSED))
        self._closed = closed.union(_threads_in(damaged))
        self._is_drifting = bool(self._strange) and max(self._strange) == max(present)
        threads = self._threads()
        self._parents = {header.thread: header.parent for _, header in sorted(self._headers.items(), reverse=True)}
        self._database.refresh(list(threads))
        found: list[FoundFile] = []
        for name, header in self._headers.items():
            if header.thread in threads and not header.own_work and (status := self.status(present[name])) is not None:
                root = self._root(header.thread)
                found.append(FoundFile(present[name].path, NAME, root, name, False, status))
        return found

    def _rollouts(self) -> Iterator[os.DirEntry[str]]:
        pending = [(os.fspath(self.home / root), _DEPTH) for root in _ROOTS]
        while pending:
            directory, depth = pending.pop()
            for entry in sorted(self.scan(directory), key=lambda one: one.name):
                if entry.is_file(follow_symlinks=False):
                    yield entry
                elif depth and entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, depth - 1))

    def _read_header(self, name: str, entry: os.DirEntry[str]) -> None:
        path = Path(entry.path)
        size = tail.size_of(path)
        if self._headerless.get(name) == size:
            return
        # What is still being written is no record yet.
        line = line_at(path, 0)
        first = record(line) if line is not None else None
        self._damaged.pop(name, None)
        if first is None:
            # With more behind it, a first line is whole. What is compressed is told apart elsewhere.
            is_damaged = line is not None and path.suffix != _COMPRESSED and size > len(line)
            if why := tail.refusal_of(path) or ("damaged" if is_damaged else ""):
                self._damaged[name] = why
                return
        header = header_of(first) if first is not None else None
        if header is not None and (header.directory or header.parent):
            self._strange.discard(name)
        elif first is not None:
            self._strange.add(name)
        if header is None:
            self._headerless[name] = size
        else:
            self._headerless.pop(name, None)
            self._headers[name] = header

    def _threads(self) -> set[str]:
        threads = {header.thread for header in self._headers.values() if self._workspace.is_at(header.directory)}
        strangers = [header for header in self._headers.values() if header.parent and header.thread not in threads]
        grown = True
        while grown:
            children = {header.thread for header in strangers if header.parent in threads} - threads
            threads |= children
            grown = bool(children)
        return threads

    def _parent(self, thread: str) -> str | None:
        return self._parents.get(thread) or self._database.parents.get(thread)

    def _above(self, thread: str) -> list[str]:
        """A session and those above it that are known; a circle ends where it closes."""
        line = [thread]
        while (parent := self._parent(line[-1])) is not None and parent not in line:
            line.append(parent)
            if parent not in self._parents:
                break
        return line

    def _root(self, thread: str) -> str:
        return next(one for one in reversed(self._above(thread)) if one in self._parents)

    def runs_of(self, session: Session[Rollout], about: object) -> dict[str, Run]:  # noqa: ARG002
        parts: dict[str, list[Rollout]] = {}
        """The rollouts that a session was written to, in their order; usually there is one."""
        for _, fold in sorted(session.folds.items(), key=lambda one: (one[1].header.ordinal, one[0])):
            parts.setdefault(fold.header.thread, []).append(fold)
        self._writers.look()
        runs: dict[str, Run] = {}
        for thread, rollouts in parts.items():
            run = _left_behind(self._run(thread, parts), self._lost_at(thread, parts))
            if run.state is RunState.WORKING:
                version = rollouts[0].header.version
                run = replace(run, process_gone=self._writers.gone(thread, version, run.updated_at))
            runs[thread] = run
            for part in rollouts:
                for child, asked in part.spawned.items():
                    # It has no rollout: not yet, or never.
                    if child not in parts and child not in self._closed:
                        runs[child] = _left_behind(_asked_run(part, asked, child), part.lost.get(child))
                for call, refused in part.refused.items():
                    runs[f"{thread}:{call}"] = _refused_run(part, refused)
        return runs

    def _lost_at(self, thread: str, parts: dict[str, list[Rollout]]) -> float | None:
        """When Codex last said that a session, or one above it, is not found: one process runs them all."""
        line = self._above(thread)
        pairs = pairwise(line)
        said = [part.lost[below] for below, above in pairs for part in parts.get(above, ()) if below in part.lost]
        return max(said, default=None)

    def _run(self, thread: str, all_parts: dict[str, list[Rollout]]) -> Run:
        parts = all_parts[thread]
        header, edge = parts[0].header, self._database.parents.get(thread)
        parent = header.parent or edge
        last = next((part for part in reversed(parts) if part.state is not RunState.SUBMITTED), parts[-1])
        rounds = [one for part in parts for one in part.all_rounds()]
        status = self._database.statuses.get(thread)
        state = _STATES.get(status or "", last.state) if last.state is RunState.SUBMITTED else last.state
        above = all_parts.get(parent or "", [])
        asked = next((part.spawned[thread] for part in above if thread in part.spawned), None)
        was_closed = state is RunState.CANCELED and any(thread in part.closed for part in above)
        prompt = next((part.prompt for part in parts if part.prompt is not None), None)
        missing = parts[0].prompt_missing
        if prompt is None and asked is not None:
            prompt = asked.prompt
            missing = missing or (ENCRYPTED if asked.encrypted else "")
        link = "Codex's table of spawned agents" if edge is not None else ""
        return Run(
            source=NAME,
            session_id=thread,
            parent_session=parent,
            state=state,
            place=last.path,
            started_at=header.began_at,
            updated_at=max(part.updated_at for part in parts),
            ended_at=last.ended_at if state is not RunState.WORKING else None,
            link="named by its own session" if header.parent is not None else link,
            reason="closed by its parent" if was_closed else last.reason,
            title=self._database.names.get(thread) or _short(header.task_name),
            agent=header.agent,
            model=next((part.model for part in reversed(parts) if part.model is not None), None),
            prompt=prompt,
            prompt_missing=missing if prompt is None else "",
            said=last.said,
            rounds=tuple(rounds) if len(rounds) > 1 else (),
            todos=next((part.todos for part in reversed(parts) if part.todos is not None), None),
            tokens=next((part.tokens for part in reversed(parts) if part.tokens), None),
            doing=last.activity.doing,
            waiting=last.waiting if state is RunState.WORKING else "",
            asked_at=asked.asked_at if asked is not None else None,
            permits=tuple(permit for part in parts for permit in part.permits)[-MOST_PERMITS:],
        )

    def _take_stock(self) -> None:
        super()._take_stock()
        done, total = self.progress
        self.progress = Progress(done, total + self._waiting * _HEADER_BYTES)
        refused = self._damaged | {
            file.agent: file.refusal for one in self.sessions.values() for file in one.files.values() if file.refusal
        }
        if self.refused:
            self.trouble = f"{min(self.refused)} cannot be read."
        elif refused:
            self.trouble = f"{len(refused)} sessions cannot be read: {next(iter(refused.values()))}."
        else:
            # Of strange ones of the past it is no news; of the youngest it is.
            strange = _say_strange(len(self._strange)) if self._is_drifting else ""
            self.trouble = _say_closed(len(self._closed)) or strange or None


class _CompressedTranscript(LinesTranscript):
    """It can only be read from its beginning, and never changes."""

    def _look(self) -> Look:
        return super()._look()._replace(has_older=False)

    def _find_end(self) -> int:
        return 0

    def _open_tail(self, position: int) -> Tail:  # noqa: ARG002
        return tail_of(self._path)

    def _line_at(self, offset: int) -> bytes | None:
        return line_at(self._path, offset)


def _left_behind(run: Run, lost_at: float | None) -> Run:
    """The run of an agent that Codex did not find: it ended with its process, unless it has shown life since."""
    if lost_at is None or lost_at < run.updated_at or run.state not in OPEN:
        return run
    return replace(run, state=RunState.FAILED, reason=LEFT_BEHIND, ended_at=run.updated_at, waiting="")


def _asked_run(parent: Rollout, asked: SpawnCall, thread: str) -> Run:
    return Run(
        source=NAME,
        session_id=thread,
        parent_session=parent.header.thread,
        state=RunState.SUBMITTED,
        place=parent.path,
        started_at=asked.at,
        updated_at=asked.at,
        link="the call of its parent",
        title=_short(asked.title),
        agent=asked.agent_type,
        prompt=asked.prompt,
        prompt_missing=ENCRYPTED if asked.encrypted else "",
        asked_at=asked.asked_at,
    )


def _refused_run(parent: Rollout, refused: Refused) -> Run:
    # What a tool returns when a human stops the turn that waits for it.
    state = RunState.CANCELED if refused.reason.startswith("aborted by user") else RunState.FAILED
    run = _asked_run(parent, refused.asked, refused.asked.id)
    return replace(run, state=state, updated_at=refused.at, ended_at=refused.at, reason=refused.reason)


def _short(task_name: str | None) -> str | None:
    """The last part of a task name; the parts before it are the agents above."""
    return task_name.rpartition("/")[2] or task_name if task_name is not None else None


def _say_strange(count: int) -> str:
    if not count:
        return ""
    rollouts = several(count, "rollout") + (" does" if count == 1 else " do")
    return f"{rollouts} not say whose session it is, and in which directory: not read."


def _say_closed(count: int) -> str:
    """Which workspace a compressed session is of stands inside of it."""
    if not count:
        return ""
    why = "damaged" if can_decompress() else _TO_DECOMPRESS
    return f"{several(count, 'session')} of any workspace, compressed (.jsonl.zst): not read ({why})."


def can_decompress() -> bool:
    """Whether compressed rollouts can be read here. What decompresses is loaded when the first one is met."""
    try:
        import agentwatch.sources.codex.compressed  # noqa: F401
    except ImportError:
        return False
    return True


def tail_of(path: Path) -> Tail:
    """A reader of the lines of a rollout, plain or compressed."""
    if path.suffix != _COMPRESSED:
        return Tail(path)
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


def _plain(path: str) -> str:
    """The name of the plain file."""
    return os.path.basename(path).removesuffix(_COMPRESSED)  # noqa: PTH119
