"""The reader of Codex: the rollouts of one workspace, those of an agent with those of the session that asked for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from agentwatch.delegation.run import MOST_PERMITS, Run, RunState
from agentwatch.sources.codex.beside import Beside
from agentwatch.sources.codex.entries import entries, kind_of, prompt_in
from agentwatch.sources.codex.rollout import ENCRYPTED, Header, OwnEntries, Rollout, SpawnCall, header_of
from agentwatch.sources.sessions import tail
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import Fields
from agentwatch.sources.sessions.following import LinesTranscript, RunTranscript
from agentwatch.sources.sessions.reader import Change, Found, Workspace, several, texts_in
from agentwatch.sources.sessions.runs import OPEN, Keep
from agentwatch.sources.sessions.store import FilesReader, FoundFile, Layout, Session
from agentwatch.sources.sessions.tail import Tail, record
from agentwatch.state import is_there

NAME: Final = "codex"
LEFT_BEHIND: Final = "left behind when Codex was stopped"

_COMPRESSED: Final = ".zst"
"""Behind the name of the plain file."""
_TO_DECOMPRESS: Final = (
    "this Python was built without zstd" if sys.version_info >= (3, 14) else "install the package backports.zstd"
)
_DAMAGED: Final = "damaged"
_STRANGE: Final = "it does not say whose it is, and in which directory"


class CodexReader(FilesReader[Rollout]):
    """`home` is `$CODEX_HOME`, else `~/.codex`. All sessions are read, however old.

    A session of the store is a family: a session that a human began, and all that came of it, wherever it works.
    """

    name = NAME
    layout: ClassVar = Layout(
        r"(?:.*/)?(?P<own>rollout-[^/]*\.jsonl)(?:\.zst)?", r"(?P<session>(?!))?[^/]+(?:/[^/]+){0,2}", root="sessions"
    )
    all_belong = True

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self._workspace = Workspace(workspace)
        self._beside = Beside(home)
        self._known: dict[str, tuple[int, Header | str]] = {}
        """By the names of the plain files, for archiving moves a file, and compressing replaces it: its header, or why
        it has none as it is; "" for one that is still being written."""
        self._headers: dict[str, Header] = {}
        self._unread: dict[str, str] = {}
        """The rollouts that cannot be read, and why: they may be of any workspace."""
        self._parents: dict[str, str | None] = {}
        """By thread."""

    def begin(self, keep: Keep, agent: str, path: str) -> Rollout:
        return Rollout(path, self._headers[agent], keep, self.places)

    def entries(self, fields: Fields) -> Iterable[Entry]:
        return entries(fields)

    def texts_in(self, fields: Fields) -> Iterator[str]:
        yield from texts_in(fields)
        yield prompt_in(*kind_of(fields)) or ""

    def open_tail(self, path: str) -> Tail:
        return tail_of(Path(path))

    def line_at(self, path: str, offset: int) -> bytes | None:
        return line_at(Path(path), offset)

    def about(self, session: Session[Rollout]) -> object:
        """The names, and the time of the last look for writers."""
        self._beside.look()
        is_working = any(run.state is RunState.WORKING and not run.process_gone for run in session.runs.values())
        return self._beside.names, self._beside.looked_at if is_working else 0

    def read(self, seconds: float) -> Sequence[Change]:
        changes = super().read(seconds)
        self._take_stock()
        return changes

    def found(self) -> Sequence[Found]:
        if not is_there(self.home):
            return ()
        children = sum(run.parent_session is not None for run in self.given.values())
        told = Found(NAME, str(self.home), len(self.given) - children, self._say(self._unread) or "", children)
        return [told]

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the last rollout of a session."""
        path = Path(run.place)
        if run.session_id not in path.name or not path.is_relative_to(self.home):
            return None
        kind = LinesTranscript if path.suffix == ".jsonl" else _CompressedTranscript
        return kind(path, entries, own_entries=OwnEntries)

    def find(self) -> list[FoundFile]:
        """The rollouts that were begun in the workspace, and those of all their agents, wherever they work."""
        present: dict[str, FoundFile] = {}
        for found in super().find():
            # Where both are there, Codex is about to remove the compressed one.
            if found.session not in present or not found.path.endswith(_COMPRESSED):
                present[found.session] = found
        known, self._known = self._known, {}
        for name, found in present.items():
            stamp, header = known.get(name, (0, ""))
            if not isinstance(header, Header) and found.status.st_ctime_ns != stamp:
                stamp, header = found.status.st_ctime_ns, _read_header(Path(found.path), found.status.st_size)
            self._known[name] = stamp, header
        self._headers = {name: header for name, (_, header) in self._known.items() if isinstance(header, Header)}
        self._unread = {name: why for name, (_, why) in self._known.items() if why and isinstance(why, str)}
        self._parents = {header.thread: header.parent for header in self._headers.values()}
        here = {header.thread for header in self._headers.values() if self._workspace.is_at(header.directory)}
        return [
            present[name]._replace(project=self.root, session=line[-1], agent=name)
            for name, header in self._headers.items()
            if not header.own_work and not here.isdisjoint(line := self._line(header.thread))
        ]

    def projects(self) -> list[str]:
        return [self.root, os.fspath(self.home / "archived_sessions")]

    def _line(self, thread: str) -> list[str]:
        """A session and those above it that are known; a circle ends where it closes."""
        line = [thread]
        while (parent := self._parents.get(line[-1]) or "") in self._parents and parent not in line:
            line.append(parent)
        return line

    def runs_of(self, session: Session[Rollout], about: object) -> dict[str, Run]:  # noqa: ARG002
        self._beside.look()
        parts: dict[str, list[Rollout]] = {}
        """The rollouts that a session was written to, in their order; usually there is one."""
        for _, fold in sorted(session.folds.items(), key=lambda one: (one[1].header.ordinal, one[0])):
            parts.setdefault(fold.header.thread, []).append(fold)
        asked: dict[str, tuple[Rollout, SpawnCall]] = {}
        lost: dict[str, float] = {}
        runs: dict[str, Run] = {}
        for thread, rollouts in parts.items():
            for part in rollouts:
                for child, call in part.spawned.items():
                    asked.setdefault(child, (part, call))
                for child, at in part.lost.items():
                    lost[child] = max(at, lost.get(child, at))
                for name, call in part.refused.items():
                    runs[f"{thread}:{name}"] = _asked_run(part, call, name)
        for child, (part, call) in asked.items():
            # It has no rollout: not yet, or never.
            if child not in parts:
                runs[child] = _asked_run(part, call, child)
        for thread, rollouts in parts.items():
            runs[thread] = self._run(rollouts, asked[thread][1] if thread in asked else None)
        for key, run in runs.items():
            # When Codex last said that it, or one above it, is not found: one process runs them all.
            line = (run.session_id, *self._line(run.parent_session or ""))
            runs[key] = _left_behind(run, max(lost.get(one, -1.0) for one in line))
        return dict(sorted(runs.items(), key=lambda one: one[1].started_at))

    def _run(self, parts: list[Rollout], asked: SpawnCall | None) -> Run:
        def latest(name: str) -> Any:
            return next((value for part in reversed(parts) if (value := getattr(part, name))), None)

        header = parts[0].header
        last = next((part for part in reversed(parts) if part.state is not RunState.SUBMITTED), parts[-1])
        rounds = [one for part in parts for one in part.all_rounds()]
        prompt, missing = next((part.prompt for part in parts if part.prompt), None), parts[0].prompt_missing
        if prompt is None and asked is not None:
            prompt, missing = asked.prompt, missing or (ENCRYPTED if asked.encrypted else "")
        updated_at = max(part.updated_at for part in parts)
        is_working = last.state is RunState.WORKING
        return Run(
            source=NAME,
            session_id=header.thread,
            parent_session=header.parent,
            state=last.state,
            place=last.path,
            started_at=header.began_at,
            updated_at=updated_at,
            ended_at=last.ended_at if not is_working else None,
            link="named by its own session" if header.parent is not None else "",
            reason=last.reason,
            title=self._beside.names.get(header.thread) or _short(header.task_name),
            agent=header.agent,
            model=latest("model"),
            prompt=prompt,
            prompt_missing=missing if prompt is None else "",
            said=last.said,
            rounds=tuple(rounds) if len(rounds) > 1 else (),
            todos=latest("todos"),
            tokens=latest("tokens"),
            doing=last.activity.doing,
            process_gone=self._beside.is_gone(header.thread, header.version, updated_at) if is_working else None,
            waiting=last.waiting if is_working else "",
            asked_at=asked.asked_at if asked is not None else None,
            permits=tuple(permit for part in parts for permit in part.permits)[-MOST_PERMITS:],
        )

    def _take_stock(self) -> None:
        super()._take_stock()
        files = [file for one in self.sessions.values() for file in one.files.values()]
        # That older ones are strange is no news: Codex wrote them so once.
        youngest = max(self._known, default="")
        unread = {name: why for name, why in self._unread.items() if why != _STRANGE or name == youngest}
        self.trouble = self._say(unread | {file.agent: file.refusal for file in files if file.refusal})

    def _say(self, unread: Mapping[str, str]) -> str | None:
        if self.refused:
            return f"{min(self.refused)} cannot be read."
        return f"{several(len(unread), 'session')} cannot be read: {next(iter(unread.values()))}." if unread else None


class _CompressedTranscript(LinesTranscript):
    """It can only be read from its beginning, and never changes."""

    def _find_start(self) -> int:
        return 0

    def _open_tail(self, position: int) -> Tail:  # noqa: ARG002
        return tail_of(self._path)

    def _line_at(self, offset: int) -> bytes | None:
        return line_at(self._path, offset)


def _left_behind(run: Run, lost_at: float) -> Run:
    """The run of an agent that Codex did not find: it ended with its process, unless it has shown life since."""
    if lost_at < run.updated_at or run.state not in OPEN:
        return run
    return replace(run, state=RunState.FAILED, reason=LEFT_BEHIND, ended_at=run.updated_at, waiting="")


def _asked_run(parent: Rollout, asked: SpawnCall, thread: str) -> Run:
    """The run of a session that has no rollout, or of a call that came to nothing."""
    state, came = RunState.SUBMITTED, asked.answer
    if came is not None:
        # What a tool returns when a human stops the turn that waits for it.
        is_stopped = (came.error or "").startswith("aborted by user")
        state = RunState.CANCELED if is_stopped else RunState.FAILED
    began_at = asked.at or 0.0
    return Run(
        source=NAME,
        session_id=thread,
        parent_session=parent.header.thread,
        state=state,
        place=parent.path,
        started_at=began_at,
        updated_at=came.at if came is not None else began_at,
        ended_at=came.at if came is not None else None,
        link="the call of its parent",
        reason=(came.error or "") if came is not None else "",
        title=_short(asked.title),
        agent=asked.agent_type,
        prompt=asked.prompt,
        prompt_missing=ENCRYPTED if asked.encrypted else "",
        asked_at=asked.asked_at,
    )


def _short(task_name: str | None) -> str | None:
    """The last part of a task name; the parts before it are the agents above."""
    return task_name.rpartition("/")[2] or task_name if task_name is not None else None


def _read_header(path: Path, size: int) -> Header | str:
    """The header of a rollout, or why there is none; "" where it is still being written."""
    is_compressed = path.suffix == _COMPRESSED
    if is_compressed and not can_decompress():
        return f"compressed (.jsonl.zst): {_TO_DECOMPRESS}"
    line = line_at(path, 0)
    first = record(line) if line is not None else None
    if first is None:
        # With more behind it, a first line is whole.
        is_whole = is_compressed or (line is not None and size > len(line))
        return tail.refusal_of(path) or (_DAMAGED if is_whole else "")
    header = header_of(first)
    return header if header is not None and (header.directory or header.parent) else _STRANGE


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
