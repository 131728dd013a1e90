"""The reader of Codex: the rollouts of one workspace, those of an agent with those of the session that asked for it."""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.codex.rollout import ENCRYPTED, Header, OwnEntries, Rollout, header_of
from agentwatch.sources.sessions.following import EntriesIn
from agentwatch.sources.sessions.processes import Program, is_of_this_system, sees_all
from agentwatch.sources.sessions.runs import NO_ACCOUNT, NO_CALL, AgentCall, run_of
from agentwatch.sources.sessions.store import FilesReader, FoundFile, Layout, Session, holds
from agentwatch.sources.sessions.tail import Tail

NAME = "codex"

_DAMAGED = "damaged"
_STRANGE = "it does not say whose it is, and in which directory"
_SECONDS = 2.0  # between two looks at all locks: the kernel takes its time to list them
_FIRST_VERSION = (0, 169)  # the first with locks
_SETTLED = 1.0  # seconds of silence before a lock that is not held tells: it is taken as a session begins


class CodexReader(FilesReader[Rollout]):
    """`home` is `$CODEX_HOME`, else `~/.codex`. All sessions are read, however old, but not those that are compressed.
    A session of the store is a family: a session that a human began, and all that came of it, wherever it works."""

    name = NAME
    layout = Layout(
        r"(?:.*/)?(?P<own>rollout-[^/]*\.jsonl)", r"(?P<session>(?!))?[^/]+(?:/[^/]+){0,2}", root="sessions"
    )
    all_belong = True
    is_shared = True

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self._writers = Writers(home)
        self._looked_again = False
        self._known: dict[str, tuple[int, Header | str]] = {}
        """By the name of a rollout, for archiving moves it: when it was looked into, and its header, or why not."""
        self._headers: dict[str, Header] = {}
        self._here: set[str] = set()  # the threads that were begun in the workspace
        self._parents: dict[str, str | None] = {}  # by thread

    def begin(self, agent: str, path: str) -> Rollout:
        return Rollout(path, self._headers[agent], self.message, self.places)

    def entries_of(self, run: Run) -> EntriesIn:  # noqa: ARG002
        return OwnEntries()

    def program_of(self, session: Session[Rollout]) -> Program:
        """Each look for writers may tell of those that work."""
        if self._looked_again:
            runs = session.runs.values()
            session.is_changed |= any(run.state is RunState.WORKING and not run.process_gone for run in runs)
        return super().program_of(session)

    def find(self) -> Iterable[FoundFile]:
        """The rollouts that were begun in the workspace, and those of all their agents, wherever they work."""
        self._looked_again = self._writers.look()
        present = {found.session: found for found in super().find()}
        for name, found in present.items():
            stamp, header = self._known.get(name, (0, ""))
            if not isinstance(header, Header) and found.status.st_ctime_ns != stamp:
                header = _read_header(found)
                self._known[name] = found.status.st_ctime_ns, header
                if isinstance(header, Header) and any(holds(place, header.directory) for place in self.places):
                    self._here.add(header.thread)
        known = {name: self._known[name][1] for name in present}
        self._headers = {name: one for name, one in known.items() if isinstance(one, Header)}
        # That older ones are strange is no news: Codex wrote them so once.
        youngest = max(known, default="")
        strange = {name for name, one in known.items() if one == _DAMAGED or (one == _STRANGE and name == youngest)}
        self.refused |= {present[name].path for name in strange}
        self._parents = {header.thread: header.parent for header in self._headers.values()}
        return [
            present[name]._replace(project=self.root, session=line[-1], agent=name)
            for name, header in self._headers.items()
            if not header.own_work and not self._here.isdisjoint(line := self._line(header.thread))
        ]

    def projects(self) -> list[str]:
        return [self.root, os.fspath(self.home / "archived_sessions")]

    def _line(self, thread: str) -> list[str]:
        """A session and those above it that are known; a circle ends where it closes."""
        line = [thread]
        while (parent := self._parents.get(line[-1]) or "") in self._parents and parent not in line:
            line.append(parent)
        return line

    def runs_of(self, session: Session[Rollout]) -> dict[str, Run]:
        parts: dict[str, list[Rollout]] = {}  # by session, its rollouts in their order: usually one
        for fold in sorted(session.folds.values(), key=lambda one: (one.header.ordinal, one.path)):
            parts.setdefault(fold.header.thread, []).append(fold)
        asked: dict[str, tuple[Rollout, AgentCall]] = {}
        runs: dict[str, Run] = {}
        for part in (part for rollouts in parts.values() for part in rollouts):
            for call in part.calls.values():
                if call.child is not None:
                    asked.setdefault(call.child, (part, call))
                elif call.id in part.news:
                    runs[f"{part.header.thread}:{call.id}"] = _asked_run(part, call, call.id)
        # Without a rollout: not yet, or never.
        runs |= {child: _asked_run(part, call, child) for child, (part, call) in asked.items() if child not in parts}
        for thread, rollouts in parts.items():
            runs[thread] = self._run(rollouts, asked[thread][1] if thread in asked else NO_CALL)
        return dict(sorted(runs.items(), key=lambda one: one[1].started_at))

    def settle(self, session: Session[Rollout], runs: dict[str, Run], program: Program) -> None:
        """One process runs them all: nothing of a session tells how its agents stand."""

    def _run(self, parts: list[Rollout], asked: AgentCall) -> Run:
        header = parts[0].header
        last = next((part for part in reversed(parts) if part.state is not RunState.SUBMITTED), parts[-1])
        prompt = next((part.prompt for part in parts if part.prompt), None) or asked.prompt
        rounds = tuple(one for part in parts for one in part.all_rounds())
        run = run_of(
            last,
            asked,
            last,
            source=NAME,
            session_id=header.thread,
            parent=header.parent,
            place=last.path,
            seen_at=max(part.updated_at for part in parts),
            title=_short(header.task_name),
            name=header.agent,
            prompt=prompt,
        )
        is_encrypted = prompt is None and (parts[0].is_encrypted or asked.is_encrypted)
        may_run = run.state is RunState.WORKING or (run.state is RunState.ENDED and run.parent_session is None)
        return replace(
            run,
            started_at=header.began_at,
            one_shot=header.one_shot,
            rounds=rounds if len(rounds) > 1 else (),
            prompt_missing=ENCRYPTED if is_encrypted else run.prompt_missing,
            process_gone=self._writers.is_gone(header, run.updated_at) if may_run else None,
        )


class Writers:
    """`thread-writer-locks/<thread>.lock`: locked by flock as long as Codex (0.169 and later) writes a session. A clean
    end removes the file, a killed one leaves it without its lock."""

    def __init__(self, home: Path) -> None:
        self.looked_at = 0.0
        self._directory = home / "thread-writer-locks"
        self._held: frozenset[int] | None = None  # the inodes of all locked files, None where the system does not tell

    def look(self) -> bool:
        """Look, if it is time to; whether it was."""
        if 0 <= time.time() - self.looked_at < _SECONDS:
            return False
        self.looked_at = time.time()
        try:
            # Linux tells them without touching the files.
            lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            self._held = None
            return True
        words = (word for line in lines if "FLOCK" in line for word in line.split() if word.count(":") == 2)
        self._held = frozenset(int(inode) for word in words if (inode := word.rpartition(":")[2]).isdecimal())
        return True

    def is_gone(self, header: Header, updated_at: float) -> bool | None:
        """Whether the writer of a session, last heard of at `updated_at`, is gone; None where that cannot be told."""
        if header.version < _FIRST_VERSION or self._held is None:
            return None
        try:
            # The device is not compared: on some file systems the kernel names another one for the lock.
            if (self._directory / f"{header.thread}.lock").stat(follow_symlinks=False).st_ino in self._held:
                return False
        except FileNotFoundError:
            pass
        except (OSError, ValueError):
            return None
        is_seen = sees_all() and self._directory.is_dir() and is_of_this_system(self._directory)
        return True if is_seen and self.looked_at - updated_at > _SETTLED else None


def _asked_run(parent: Rollout, asked: AgentCall, thread: str) -> Run:
    """The run of a session that has no rollout, or of a call that came to nothing."""
    run = run_of(
        NO_ACCOUNT,
        asked,
        parent.news.get(asked.id, NO_ACCOUNT),
        source=NAME,
        session_id=thread,
        parent=parent.header.thread,
        place=parent.path,
        title=_short(asked.title),
    )
    return replace(run, prompt_missing=ENCRYPTED) if asked.is_encrypted else run


def _short(task_name: str | None) -> str | None:
    """The last part of a task name; the parts before it are the agents above."""
    return (task_name or "").rpartition("/")[2] or None


def _read_header(found: FoundFile) -> Header | str:
    try:
        tail = Tail(Path(found.path))
        first = next(iter(tail.read(1).lines), None)
    except OSError:
        return _DAMAGED
    if first is None or first.record is None:
        return _DAMAGED if first is not None or tail.behind else ""
    header = header_of(first.record)
    return header if header is not None and (header.directory or header.parent) else _STRANGE
