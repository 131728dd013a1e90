"""The files source: the handoffs and returns in a workspace, read once or watched from now on."""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from posixpath import basename, dirname

from agentwatch.background import Background, Pace
from agentwatch.config import Settings
from agentwatch.errors import WorkspaceError
from agentwatch.sources import FILES, Batch, Health, Mode, Problem, Source, health_of
from agentwatch.sources.files.documents import Committed, Documents, KnownFile, Reader
from agentwatch.sources.files.read import is_candidate, join, pruning, to_path, walk
from agentwatch.sources.files.watcher import Changes, Watcher
from agentwatch.sources.worktrees import is_another
from agentwatch.text import words_of

_SLICE_SECONDS = 0.02
"""Reading between two batches, and two looks at the events, so that they do not pile up behind a backlog."""
_RECHECK_SECONDS = 0.1  # Between two reads of what is withheld, for who looks once
_RESTART_SECONDS = 2.0
_ROOT_SECONDS = 1.0  # How often the root is looked at: no event tells of the loss of a directory above it

_SWEEP_SECONDS = 300.0
"""Between two sweeps: the system says when it has lost events, and they find only what others write over a network."""
_POLL_SHARE = 0.02
_LOSS_SHARE = 0.05
"""The share of one core that sweeps may take where there are no events, and where events were lost."""

_STORM = (0.18, 1.5, 0.4)
"""The share of one core that a storm of changes may take, with all that the process does because of them, the seconds
of it that a burst has at once, and how long the rest between two turns is at most. A file that is written again
meanwhile is read once, as it is then."""

_ONE_LOOK_BYTES = 64 * 1024 * 1024
"""Of texts, for who reads everything once and ends: then each is needed once more, for its evidence."""
_MOST_PROBLEMS = 20
_NO_DIRECTORY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

Emit = Callable[[Batch], None]


class FilesSource(Background[Batch], Documents, Source):
    """Watches the files of one workspace in a thread of its own, from `start` to `stop`.

    Events say what to read again; a sweep compares everything with the disk. `read_document` is by default that of the
    contracts; `committed` tells when the first files were committed. Paths are relative to the root, which is ""."""

    thread_name = "agentwatch-files"
    join_seconds = 1.0

    def __init__(
        self,
        root: Path,
        settings: Settings | None = None,
        *,
        read_document: Reader | None = None,
        committed: Committed | None = None,
    ) -> None:
        super().__init__()
        Documents.__init__(self, os.path.realpath(root), settings or Settings(), read_document, committed)
        self._is_pruned = pruning(self._settings.pruned)
        self._is_another = partial(is_another, self._root)
        self._directories: set[str] = set()
        self._queue: dict[str, None] = {}  # Files to read, in this order
        self._watcher: Watcher
        self._root_inode: int | None = None  # None: sweep as soon as there is a root
        self._root_at = self._sweep_at = self._lost_at = 0.0
        """When to look at the root, when to sweep, and when to sweep at the earliest if events are lost."""
        self._is_starting = True
        self._problem = ""
        self._pace, self._spent = Pace(*_STORM), 0.0
        self._emitted: Health | None = None

    def start(self, emit: Emit) -> None:
        """Begin. `emit` gets every batch in the source's thread, the first one right away and empty.
        Once it raises RuntimeError, as a closed event loop does, nobody listens any more and the source ends."""
        self._watcher = Watcher(self._root, polling="Polling, as configured" if self._settings.poll else "")
        super().start(emit)

    def stop(self) -> None:
        if self._thread is not None:
            self._stopped = True
            self._watcher.wake()
            super().stop()

    def scan(self) -> Batch:
        """The files of the workspace now, in the order in which they were written; half-written files are waited for.
        Raises WorkspaceError where there is no workspace."""
        if not os.path.isdir(self._root):
            raise WorkspaceError(f"{self._root} is no directory. Give the directory in which the agents work.")
        self.most_text_bytes = _ONE_LOOK_BYTES
        self._watcher = Watcher(self._root, polling="Looked once")
        self._watcher.close()
        self._sweep({""})
        while self._queue or self.withheld:
            if not self._queue:
                time.sleep(_RECHECK_SECONDS)
                self._queue = dict.fromkeys(self.withheld)
            self._read_next()
        events, self.events = tuple(self.events), []
        return Batch(events, health_of("live", "Looked once", self._problems()))

    # The thread

    def _run(self, emit: Emit) -> None:
        """Watch until stopped. Whatever fails is told in the health, and watching begins again."""
        self._emit = emit
        while not self._stopped:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001  a thread that dies in silence leaves an old screen that looks live
                self._problem = f"Watching failed and is tried again ({words_of(error)})"
                self._tell()
                self._rest(_RESTART_SECONDS)
                self._root_inode, self._root_at = None, 0.0
        self._watcher.close()

    def _turn(self) -> None:
        """Wait for events, not longer than until something else is due, and do what there is to do."""
        if time.monotonic() >= self._root_at:
            self._check_root()
        if time.monotonic() >= self._sweep_at and not self._queue and not self._problem:
            self._sweep_all()
        sweep_at = self._root_at if self._problem else self._sweep_at
        next_at = min([self._root_at, sweep_at, *self.withheld.values()])
        changes = self._watcher.wait(0.0 if self._queue else max(0.0, next_at - time.monotonic()))
        now, is_starting = time.monotonic(), self._is_starting
        self._queue_changes(changes)
        self._queue = dict.fromkeys(path for path, at in self.withheld.items() if at <= now) | self._queue
        while self._queue and not self._stopped and time.monotonic() < now + _SLICE_SECONDS:
            self._read_next()
        if not self._queue and not self._problem:
            self.is_watching, self._is_starting = True, False
        self._tell()
        spent, self._spent = time.process_time() - self._spent, time.process_time()
        if changes.paths and not is_starting:
            # All that the process does counts: in other threads it is because of this.
            self._pace.spend(spent)
            self._rest(self._pace.rest)

    def _queue_changes(self, changes: Changes) -> None:
        """Sweep the directories that events name, and queue the files: what is gone, then the rest as it was last
        changed. In a storm a return that is read before its handoff would be taken for an earlier one, so a file that
        changed again stands back."""
        if changes.lost:
            self._sweep_at = min(self._sweep_at, self._lost_at)
        if "" in changes.paths:
            self._root_at = 0.0
        directories, files = set[str](), list[tuple[int, str]]()
        for path in changes.paths:
            status, parent = self.status(path), dirname(path)
            is_directory = status is not None and stat.S_ISDIR(status.st_mode)
            if path not in self._directories and path not in self.files:
                if parent not in self._directories or (is_directory and self._is_pruned(basename(path))):
                    continue
                if parent and self._is_another(self.absolute(parent)):
                    directories.add(parent)
                    continue
            if is_directory or path in self._directories:
                directories.add(path)
            if not is_directory and is_candidate(path):
                files.append((0 if status is None else status.st_mtime_ns, path))
        if directories:
            self._sweep(directories)
        for _, path in sorted(files):
            self._queue.pop(path, None)
            self._queue[path] = None

    def _read_next(self) -> None:
        path = next(iter(self._queue))
        del self._queue[path]
        (self.read if dirname(path) in self._directories else self.drop)(path)

    # Comparing with the disk

    def _check_root(self) -> None:
        self._root_at = time.monotonic() + _ROOT_SECONDS
        status = self.status("")
        inode = status.st_ino if status is not None and stat.S_ISDIR(status.st_mode) else None
        self._problem = "" if inode else "The workspace is no directory any more: waiting for it to return"
        self._tell()
        if inode is None:
            self._is_starting = True
            self._queue.clear()
            self._forget(self._directories, self.files)
        elif self._root_inode != inode or not self._directories or self._watcher.watch(""):
            # A directory that is made anew may get the inode of the one before: its watch tells.
            self._sweep_all()
        self._root_inode = inode

    def _sweep_all(self) -> None:
        began = time.thread_time()
        self._sweep({""})
        now, cost = time.monotonic(), time.thread_time() - began
        self._lost_at = now + cost / _LOSS_SHARE
        rest = min(max(0.5, cost / _POLL_SHARE), 30.0) if self._watcher.polling else _SWEEP_SECONDS
        self._sweep_at = now + rest

    def _sweep(self, tops: set[str]) -> None:
        """Walk from these directories on, and queue the files that may have changed since they were read, as they were
        last written. What was known there and is there no longer is gone."""
        walked, found = set[str](), set[str]()
        for top in sorted(tops):
            if top in walked:
                continue
            self._watcher.watch(top)
            for path, listing in walk(self._root, self._is_pruned, top, self._is_another):
                if self._stopped:
                    return
                if not isinstance(listing, OSError):
                    self.unread.pop(path, None)
                    found.update(join(path, name) for name in listing[1])
                    # Before the walk lists them: what appears in them from now on is an event or is listed.
                    for name in listing[0]:
                        self._watcher.watch(join(path, name))
                elif listing.errno in _NO_DIRECTORY:
                    continue
                else:
                    self.unread[path] = f"cannot be listed: {os.strerror(listing.errno or 0)}"
                    # What was known in it may still be there: to read each file says whether it can be reached.
                    found |= _below(self.files, {path})
                walked.add(path)
        self._forget(_below(self._directories, tops) - walked, _below(self.files, tops) - found)
        self._directories |= walked
        changed: list[tuple[int, str]] = []
        for file in found:
            status = self.status(file)
            if self.may_differ(file, status):
                changed.append((0 if status is None else status.st_mtime_ns, file))
        for _, file in sorted(changed):
            self.files.setdefault(file, KnownFile())
            self._queue.setdefault(file)

    def _forget(self, directories: Iterable[str], files: Iterable[str]) -> None:
        for directory in [*directories]:
            self._directories.discard(directory)
            self.unread.pop(directory, None)
            self._watcher.unwatch(directory)
        for file in sorted(files):
            self.drop(file)

    # Telling

    def _tell(self) -> None:
        """Emit the events since the last batch, and the health, unless there is nothing new."""
        events, self.events = tuple(self.events), []
        health = self._health()
        if not events and health == self._emitted:
            return
        # Also at the end: what was read counts as known.
        self._emitted = health
        try:
            self._emit(Batch(events, health))
        except RuntimeError:  # the receiver's event loop is closed: nobody listens any more
            self._stopped = True

    def _health(self) -> Health:
        if self._problem:
            return health_of("degraded", self._problem, [Problem(FILES, to_path(self._root), self._problem)])
        if self._is_starting:
            return health_of("starting", "Looking through the workspace", self._problems())
        mode: Mode = "polling" if self._watcher.polling else "live"
        return health_of(mode, self._watcher.polling or "Changes are seen as they happen", self._problems())

    def _problems(self) -> list[Problem]:
        """The first places that cannot be read: there may be as much as there is workspace."""
        return [
            Problem(FILES, to_path(self.absolute(path)), f"{to_path(path) or 'the workspace'}: {why}")
            for path, why in islice(self.unread.items(), _MOST_PROBLEMS)
        ]


def _below(paths: Iterable[str], tops: set[str]) -> set[str]:
    """Those of the paths that are one of these directories, or lie below one."""
    prefixes = tuple(f"{top}/" if top else "" for top in tops)
    return {path for path in paths if path in tops or path.startswith(prefixes)}
