"""The reader of Codex: the rollouts of one workspace, tailed, and made into runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.place import is_there
from agentwatch.sources.codex.catalogue import Catalogue, Place
from agentwatch.sources.codex.database import Database
from agentwatch.sources.codex.files import TO_DECOMPRESS, can_decompress, line_at, tail_of
from agentwatch.sources.codex.header import Header, header_of
from agentwatch.sources.codex.rollout import Rollout
from agentwatch.sources.codex.runs import NAME, Beside, left_behind, only_asked_for, run_of
from agentwatch.sources.codex.texts import every_text_in
from agentwatch.sources.codex.writers import Writers
from agentwatch.sources.sessions.group import OPEN
from agentwatch.sources.sessions.growing import Growing
from agentwatch.sources.sessions.reader import Change, Found, Progress
from agentwatch.sources.sessions.store import StoreReader, changes_between, several
from agentwatch.sources.sessions.tail import record
from agentwatch.sources.sessions.texts import Texts

_CHUNK: Final = 1024 * 1024
_HEADER_BYTES: Final = 24 * 1024
"""What the header of a rollout takes, about: most of it is the system prompt."""


class CodexReader(StoreReader):
    """Implements SessionReader. `home` is `$CODEX_HOME`, else `~/.codex`. All sessions are read, however old."""

    def __init__(self, workspace: Path, home: Path, _since: float | None = None) -> None:
        super().__init__(NAME, Texts(_texts_in))
        self._home = home
        self._catalogue = Catalogue(self._home, workspace)
        self._database = Database(self._home)
        self._writers = Writers(self._home)
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
        read = [part.progress for part in self._parts.values()]
        unknown = self._catalogue.waiting * _HEADER_BYTES
        return Progress(sum(one.done for one in read), sum(one.total for one in read) + unknown)

    def read(self, seconds: float) -> Sequence[Change]:
        """The runs that have changed. At least one piece is read, however short the time."""
        begun = time.monotonic()
        self._catalogue.look()
        self._catalogue.read_headers(begun + seconds / 2)
        ours = self._catalogue.ours()
        changed = self._keep_only(ours)
        for place, _ in ours:
            if self._read_part(place.name, begun + seconds):
                changed.add(self._parts[place.name].fold.header.thread)
            if time.monotonic() > begun + seconds:
                break
        changed |= self._database.refresh(list(self._threads))
        return self._changes(changed)

    def found(self) -> Sequence[Found]:
        """The home, and the databases in it that are left alone."""
        if not is_there(self._home):
            return ()
        skipped = _compressed(len(self._catalogue.closed))
        children = sum(self._parent(thread) is not None for thread in self._threads)
        strange = _strange(len(self._catalogue.strange))
        said = " ".join(dict.fromkeys(filter(None, (self.trouble, strange, skipped))))
        rows = [Found(NAME, str(self._home), len(self._threads) - children, said, children)]
        rows += [Found(NAME, str(path), 0, reason) for path, reason in self._database.skipped.items()]
        return rows

    def _keep_only(self, ours: Sequence[tuple[Place, Header]]) -> set[str]:
        """Have a part for each rollout there is, and none for those that are gone; the sessions that changed."""
        changed: set[str] = set()
        for name in self._parts.keys() - {place.name for place, _ in ours}:
            changed |= self._drop(name)
        for place, header in ours:
            part = self._parts.get(place.name)
            if part is not None and part.path != place.path:
                self._drop(place.name)
                part = None
            if part is None:
                self._add(place, header)
                changed.add(header.thread)
        return changed

    def _add(self, place: Place, header: Header) -> None:
        known = iter([header])

        def begin() -> Rollout:
            """At first with the header that is known, then with that of the file that took its place."""
            now = next(known, None) or header_of(record(line_at(place.path, 0) or b"") or {}) or header
            return Rollout(place.path, now, partial(self._told, header.thread, place.path))

        self._parts[place.name] = Growing(tail_of(place.path), begin)
        names = self._threads.setdefault(header.thread, [])
        names.append(place.name)
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
        for thread in changed:
            for part in self._rollouts(thread):
                affected |= part.spawns.spawned.keys() | part.spawns.closed
                if part.spawns.lost:
                    # Those below them are lost as well.
                    affected |= {name for name, runs in self._shown.items() if _is_open(runs.get(name))}
        if self._writers.is_due:
            affected |= set(self._perhaps_alive())
        if not affected:
            return ()
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

    def _perhaps_alive(self) -> Iterator[str]:
        """Sessions that work, by a writer that may have gone since: nothing is written when that happens."""
        for thread, runs in self._shown.items():
            run = runs.get(thread)
            if run is not None and run.state is RunState.WORKING and not run.process_gone:
                yield thread

    def _runs(self, thread: str) -> Iterator[tuple[str, Run]]:
        parts = self._rollouts(thread)
        header = parts[0].header
        parent = self._parent(thread)
        above = [part.spawns for part in self._rollouts(parent or "")]
        beside = Beside(
            next((spawns.spawned[thread] for spawns in above if thread in spawns.spawned), None),
            any(thread in spawns.closed for spawns in above),
            self._database.parents.get(thread),
            self._database.names.get(thread),
            self._database.statuses.get(thread),
        )
        run = left_behind(run_of(parts, beside), self._lost_at(thread))
        if run.state is RunState.WORKING:
            run = replace(run, process_gone=self._writers.gone(thread, header.version, run.updated_at))
        yield thread, run
        yield from only_asked_for(parts, self._is_stored)

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

    def _is_stored(self, thread: str) -> bool:
        return thread in self._threads or thread in self._catalogue.closed

    def _rollouts(self, thread: str) -> Sequence[Rollout]:
        return [self._parts[name].fold for name in self._threads.get(thread, ())]


def _is_open(run: Run | None) -> bool:
    return run is not None and run.state in OPEN


def _texts_in(path: Path, offset: int) -> Iterator[str]:
    return every_text_in(record(line_at(path, offset) or b"") or {})


def _strange(count: int) -> str:
    if not count:
        return ""
    rollouts = several(count, "rollout") + (" does" if count == 1 else " do")
    return f"{rollouts} not say whose session it is, and in which directory: not read."


def _compressed(count: int) -> str:
    """Which workspace a compressed session is of stands inside of it."""
    why = "damaged" if can_decompress() else TO_DECOMPRESS
    return f"{several(count, 'session')} of any workspace, compressed (.jsonl.zst): not read ({why})." if count else ""
