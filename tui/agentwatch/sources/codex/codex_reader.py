"""The reader of Codex: the rollouts of one workspace, tailed, and made into runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import MOST_PERMITS, Message, Run, RunState
from agentwatch.sources.codex.beside import Database, Writers
from agentwatch.sources.codex.catalogue import (
    TO_DECOMPRESS,
    Catalogue,
    StoredRollout,
    can_decompress,
    header_of,
    line_at,
    tail_of,
)
from agentwatch.sources.codex.entries import entries
from agentwatch.sources.codex.records import Refused, SpawnCall, every_text_in
from agentwatch.sources.codex.rollout import ENCRYPTED, OwnEntries, Rollout
from agentwatch.sources.sessions.following import LinesTranscript, Look, RunTranscript
from agentwatch.sources.sessions.growing import Growing
from agentwatch.sources.sessions.reader import (
    Change,
    Found,
    Progress,
    StoreReader,
    Texts,
    changes_between,
    in_lines,
    several,
    spellings,
)
from agentwatch.sources.sessions.runs import OPEN
from agentwatch.sources.sessions.tail import Tail, record
from agentwatch.state import is_there

NAME: Final = "codex"
LEFT_BEHIND: Final = "left behind when Codex was stopped"

_CHUNK: Final = 1024 * 1024
_HEADER_BYTES: Final = 24 * 1024
"""What the header of a rollout takes, about: most of it is the system prompt."""

_STATES: Final = {
    "inProgress": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "failed": RunState.FAILED,
}


class CodexReader(StoreReader):
    """Implements SessionReader. `home` is `$CODEX_HOME`, else `~/.codex`. All sessions are read, however old."""

    def __init__(self, workspace: Path, home: Path, _since: float | None = None) -> None:
        super().__init__(NAME, Texts(in_lines(every_text_in, line_at)))
        self._home = home
        self._places = spellings(workspace)
        self._catalogue = Catalogue(home, workspace)
        self._database = Database(home)
        self._writers = Writers(home)
        self._parts: dict[str, Growing[Rollout]] = {}
        """By the names of their files."""
        self._threads: dict[str, list[str]] = {}
        """The names of the files of a session, in their order."""
        self._shown: dict[str, dict[str, Run]] = {}
        """By session: the runs it showed when they were last given, by key."""

    @property
    def trouble(self) -> str | None:
        """What keeps rollouts from being read."""
        if self._catalogue.trouble is not None:
            return self._catalogue.trouble
        refused = self._catalogue.refused | {name: why for name, part in self._parts.items() if (why := part.refusal)}
        if refused:
            return f"{len(refused)} sessions cannot be read: {next(iter(refused.values()))}."
        if self._catalogue.closed:
            return _compressed(len(self._catalogue.closed))
        # Of those of the past it is no news; of the youngest it is.
        return _strange(len(self._catalogue.strange)) if self._catalogue.is_drifting else None

    @property
    def progress(self) -> Progress:
        """In bytes; a rollout that was not looked at yet counts as much as a header."""
        parts = self._parts.values()
        done = sum(part.tail.position for part in parts)
        left = sum(part.tail.size - part.tail.position for part in parts if not part.is_stuck)
        return Progress(done, done + left + self._catalogue.waiting * _HEADER_BYTES)

    def read(self, seconds: float) -> Sequence[Change]:
        """The runs that have changed. At least one piece is read, however short the time."""
        begun = time.monotonic()
        self._catalogue.look()
        self._catalogue.read_headers(begun + seconds / 2)
        ours = self._catalogue.ours()
        changed = self._keep_only(ours)
        for stored in ours:
            if self._read_part(stored.name, begun + seconds):
                changed.add(self._parts[stored.name].fold.header.thread)
            if time.monotonic() > begun + seconds:
                break
        changed |= self._database.refresh(list(self._threads))
        return self._changes(changed)

    def found(self) -> Sequence[Found]:
        """The home, and the databases in it that are left alone."""
        if not is_there(self._home):
            return ()
        children = sum(self._parent(thread) is not None for thread in self._threads)
        skipped = (self.trouble, _strange(len(self._catalogue.strange)), _compressed(len(self._catalogue.closed)))
        said = " ".join(dict.fromkeys(filter(None, skipped)))
        rows = [Found(NAME, str(self._home), len(self._threads) - children, said, children)]
        return rows + [Found(NAME, str(path), 0, reason) for path, reason in self._database.skipped.items()]

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the last rollout of a session."""
        path = Path(run.place)
        if run.session_id not in path.name or not path.is_relative_to(self._home):
            return None
        kind = LinesTranscript if path.suffix == ".jsonl" else _CompressedTranscript
        return kind(path, entries, own_entries=OwnEntries)

    def _keep_only(self, ours: Sequence[StoredRollout]) -> set[str]:
        """Have a part for each rollout there is, and none for those that are gone; the sessions that changed."""
        paths = {stored.name: stored.path for stored in ours}
        changed: set[str] = set()
        for name in [name for name, part in self._parts.items() if part.tail.path != paths.get(name)]:
            changed |= self._drop(name)
        for stored in ours:
            if stored.name not in self._parts:
                self._add(stored)
                changed.add(stored.header.thread)
        return changed

    def _add(self, stored: StoredRollout) -> None:
        name, path, header = stored
        known = iter([header])

        def begin() -> Rollout:
            """At first with the header that is known, then with that of the file that took its place."""
            now = next(known, None) or header_of(record(line_at(path, 0) or b"") or {}) or header
            return Rollout(path, now, partial(self._told, header.thread, path), self._places)

        self._parts[name] = Growing(tail_of(path), begin)
        names = self._threads.setdefault(header.thread, [])
        names.append(name)
        names.sort(key=lambda name: (self._parts[name].fold.header.ordinal, name))

    def _drop(self, name: str) -> set[str]:
        """Forget a rollout; its session, and the parent, which may show that it asked for it."""
        header = self._parts.pop(name).fold.header
        self._threads[header.thread].remove(name)
        if not self._threads[header.thread]:
            del self._threads[header.thread]
        return {header.thread, header.parent or header.thread}

    def _read_part(self, name: str, deadline: float) -> bool:
        """Read on in a rollout; whether there was anything new."""
        part = self._parts[name]
        before, news = part.fold, part.read(_CHUNK)
        while part.tail.behind and not part.is_stuck and time.monotonic() <= deadline:
            news |= part.read(_CHUNK)
        if part.fold is not before:
            self._catalogue.forget(name)
        return news

    def _told(self, thread: str, path: Path, text: str, at: float, offset: int) -> Message:
        return self._texts.message(text, at, path, offset, key=thread)

    def _changes(self, changed: set[str]) -> Sequence[Change]:
        affected = set(changed)
        for spawns in (part.spawns for thread in changed for part in self._rollouts(thread)):
            affected |= spawns.spawned.keys() | spawns.closed
            if spawns.lost:
                # Those below them are lost as well.
                affected |= self._open().keys()
        if self._writers.is_due:
            # A writer may have gone since: nothing is written when that happens.
            working = {name: run for name, run in self._open().items() if run.state is RunState.WORKING}
            affected |= {name for name, run in working.items() if not run.process_gone}
        before: dict[str, Run] = {}
        after: dict[str, Run] = {}
        for thread in affected:
            before |= self._shown.pop(thread, {})
        for thread in affected & self._threads.keys():
            self._shown[thread] = dict(self._runs(thread))
            after |= self._shown[thread]
        changes = changes_between(before, after)
        changes.sort(key=lambda change: change.run.started_at if change.run is not None else -1.0)
        return changes

    def _open(self) -> dict[str, Run]:
        """The runs of sessions that were not over when they were last given."""
        runs = {name: runs[name] for name, runs in self._shown.items() if name in runs}
        return {name: run for name, run in runs.items() if run.state in OPEN}

    def _runs(self, thread: str) -> Iterator[tuple[str, Run]]:
        """The run of a session, and those of agents that it asked for and that have no rollout: not yet, or never."""
        run = _left_behind(self._run(thread), self._lost_at(thread))
        if run.state is RunState.WORKING:
            version = self._rollouts(thread)[0].header.version
            run = replace(run, process_gone=self._writers.gone(thread, version, run.updated_at))
        yield thread, run
        for part in self._rollouts(thread):
            for child, asked in part.spawns.spawned.items():
                if child not in self._threads and child not in self._catalogue.closed:
                    yield child, _left_behind(_asked_run(part, asked, child), part.spawns.lost.get(child))
            for call, refused in part.spawns.refused.items():
                yield f"{thread}:{call}", _refused_run(part, refused)

    def _run(self, thread: str) -> Run:
        """The run of a session from the rollouts it was written to, in their order; usually there is one."""
        parts = self._rollouts(thread)
        header, edge = parts[0].header, self._database.parents.get(thread)
        parent = header.parent or edge
        last = next((part for part in reversed(parts) if part.state is not RunState.SUBMITTED), parts[-1])
        rounds = [one for part in parts for one in part.all_rounds()]
        status = self._database.statuses.get(thread)
        state = _STATES.get(status or "", last.state) if last.state is RunState.SUBMITTED else last.state
        above = [part.spawns for part in self._rollouts(parent or "")]
        asked = next((spawns.spawned[thread] for spawns in above if thread in spawns.spawned), None)
        was_closed = state is RunState.CANCELED and any(thread in spawns.closed for spawns in above)
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
            place=str(last.path),
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
            tokens=next((part.tokens for part in reversed(parts) if part.tokens is not None), None),
            doing=last.pulse.doing,
            waiting=last.waiting if state is RunState.WORKING else "",
            asked_at=asked.asked_at if asked is not None else None,
            permits=tuple(permit for part in parts for permit in part.permits)[-MOST_PERMITS:],
        )

    def _lost_at(self, thread: str) -> float | None:
        """When Codex last said that a session, or one above it, is not found: one process runs them all."""
        said: list[float] = []
        seen: set[str] = set()
        above = self._parent(thread)
        while above is not None and above not in seen:
            said += [part.spawns.lost[thread] for part in self._rollouts(above) if thread in part.spawns.lost]
            seen.add(above)
            thread, above = above, self._parent(above) if above in self._threads else None
        return max(said, default=None)

    def _parent(self, thread: str) -> str | None:
        return self._rollouts(thread)[0].header.parent or self._database.parents.get(thread)

    def _rollouts(self, thread: str) -> Sequence[Rollout]:
        return [self._parts[name].fold for name in self._threads.get(thread, ())]


class _CompressedTranscript(LinesTranscript):
    """It can only be read from its beginning, and never changes."""

    def _look(self) -> Look:
        return super()._look()._replace(has_older=False)

    def _open(self) -> Tail:
        return self._from_beginning()

    def _from_beginning(self) -> Tail:
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
        place=str(parent.path),
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


def _strange(count: int) -> str:
    if not count:
        return ""
    rollouts = several(count, "rollout") + (" does" if count == 1 else " do")
    return f"{rollouts} not say whose session it is, and in which directory: not read."


def _compressed(count: int) -> str:
    """Which workspace a compressed session is of stands inside of it."""
    why = "damaged" if can_decompress() else TO_DECOMPRESS
    return f"{several(count, 'session')} of any workspace, compressed (.jsonl.zst): not read ({why})." if count else ""
