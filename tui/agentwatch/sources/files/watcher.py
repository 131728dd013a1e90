"""The work of the source's thread: events, sweeps, withheld files, and the root that comes and goes. A sweep compares
everything known with the disk: soon after events, seldom while nothing happens, never too dear."""

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from agentwatch.background import Pace, in_step
from agentwatch.delegation.events import Event
from agentwatch.sources import FILES, Batch, Health, Mode, Problem, Stirred, health_of
from agentwatch.sources.files.catalogue import Catalogue
from agentwatch.sources.files.documents import Documents
from agentwatch.sources.files.names import to_path
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.watch import NOTHING, Backend, Changes, OpenBackend, PollingBackend, WatchError
from agentwatch.text import words_of

_SLICE_SECONDS: Final = 0.006
_FIRST_SLICE_SECONDS: Final = 0.05
"""Work between two batches. At first fewer and larger ones, but for the first of all, cost the receiver less."""

_TURN_SECONDS: Final = 0.02
"""Work between two looks at the events, so that they do not pile up behind a backlog."""

_ROOT_SECONDS: Final = (1.0, 5.0)
"""How often the root is looked at: where no event tells that it has gone, and where only the loss of a directory above
tells none."""

_COUNTS_SECONDS: Final = 1.0
"""How often it is told how many files and directories there are."""

_SOON_SECONDS: Final = 0.3
_ACTIVE_SECONDS: Final = 1.0
"""After an event its directory, and then everything, is compared with the disk: in a burst, events get lost, and not
every backend knows of it."""

_BURST: Final = 1_000
_STALL_SECONDS: Final = 1.0
"""So many paths at once, or not to have looked at the events for so long: the queue may have run over."""

_RESTART_SECONDS: Final = 2.0

_ACTIVE_SHARE: Final = 0.05
_IDLE_SHARE: Final = 0.001
_EXACT_IDLE_SHARE: Final = 0.000_05
_POLL_SHARE: Final = 0.02
"""The share of one core that sweeps may take: after events, while nothing happens, the same of a backend that knows
what it lost, and where there are no events."""

_STORM_SHARE: Final = 0.18
_STORM_CREDIT: Final = 1.5
_STORM_REST_SECONDS: Final = 0.4
_STORM_OVER_SECONDS: Final = 1.0
"""The share of one core that a storm of changes may take, with all that the process does because of them, the seconds
of it that a burst has at once, how long the rest between two turns of a storm is at most, and how long nothing has
changed when it is over. A file that is written again meanwhile is read once, as it is then."""

_IDLE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 30.0
_EXACT_SECONDS: Final = (30.0, 300.0)
"""Between two sweeps: at least while nothing happens, at least where there are no events, and at most; and both of a
backend that knows what it lost, for it finds only what others write over a network."""

Emit = Callable[[Batch], None]


class _Sweeps:
    """Sweeps over one catalogue. Times are those of the monotonic clock."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._running: Iterator[None] | None = None
        self._spent = 0.0
        self._cost = 0.0
        self._ended_at = 0.0
        self.next_at = 0.0
        """When the next one begins, if nothing happens until then."""

    @property
    def running(self) -> bool:
        return self._running is not None

    def ask(self, at: float) -> None:
        """Something happened: sweep then, or as soon as the cost of the last sweep allows."""
        self.next_at = min(self.next_at, max(at, self._ended_at + self._cost / _ACTIVE_SHARE))

    def advance(self, *, polls: bool, exact: bool = False) -> None:
        """Begin a sweep that is due, and do a slice of it. `polls`: nothing else finds changes; `exact`: there are
        events, and it would be known if some were lost."""
        idle, longest = _EXACT_SECONDS if exact else (_IDLE_SECONDS, _LONGEST_SECONDS)
        now = time.monotonic()
        if self._running is None:
            if now < self.next_at or self._catalogue.waiting:
                return
            self._running = self._catalogue.sweeping()
            self._spent = 0.0
            self.next_at = now + longest
        began = time.thread_time()
        for _ in self._running:
            if time.monotonic() >= now + _SLICE_SECONDS:
                self._spent += time.thread_time() - began
                return
        self._running = None
        self._cost = self._spent + time.thread_time() - began
        self._ended_at = time.monotonic()
        idle_share = _EXACT_IDLE_SHARE if exact else _IDLE_SHARE
        shortest, share = (_POLL_SECONDS, _POLL_SHARE) if polls else (idle, idle_share)
        pause = min(max(shortest, self._cost / share), longest)
        self.next_at = min(self.next_at, self._ended_at + pause)


class Watcher:
    """Watches one workspace while `run` runs. Only `wake` may be called from another thread."""

    def __init__(
        self, root: str, settings: FilesSettings, documents: Documents, *, emit: Emit, open_backend: OpenBackend
    ) -> None:
        self._root = root
        self._settings = settings
        self._emit = emit
        self._open_backend = open_backend
        self._stopping = threading.Event()
        self._ended = False
        self._backend: Backend = PollingBackend()
        self._opened = False
        self._documents = documents
        self._catalogue = Catalogue(root, settings.pruned, documents, watch=self._watch, unwatch=self._unwatch)
        self._sweeps = _Sweeps(self._catalogue)
        self._touched: set[str] = set()
        self._touched_at = 0.0
        self._root_at = 0.0
        self._events_at = time.monotonic()
        self._changed_at = -math.inf
        self._scan_all = True
        self._starting = True
        self._polling = ""
        self._trouble = ""
        self._pace = Pace(_STORM_SHARE, _STORM_CREDIT, _STORM_REST_SECONDS)
        self._has_observed = False
        self._told: Health | None = None
        self._told_at = 0.0
        self.stirred: Stirred = lambda _: None

    def wake(self) -> None:
        """End `run` soon."""
        self._stopping.set()
        self._backend.wake()

    @property
    def is_stuck(self) -> bool:
        """Whether it was woken, and has not ended yet."""
        return self._stopping.is_set() and not self._ended

    def run(self) -> None:
        """Watch until woken. Whatever fails is told in the health, and watching begins again."""
        while not self._stopping.is_set():
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001  a thread that dies in silence leaves an old screen that looks live
                self._trouble = f"Watching failed and is tried again ({words_of(error)})"
                self._tell([])
                self._stopping.wait(_RESTART_SECONDS)
                self._scan_all, self._root_at = True, 0.0
        self._backend.close()
        self._ended = True

    def _turn(self) -> None:
        """Wait for events, not longer than until something else is due, and do what there is to do."""
        if not self._opened:
            try:
                self._backend = self._open_backend(self._root, self._settings)
            except WatchError as error:
                self._poll_because(error)
            self._opened = True
        now = time.monotonic()
        if now >= self._root_at:
            self._check_root(now)
        backend = self._backend
        timeout = self._timeout()
        try:
            changes = backend.wait(timeout)
        except WatchError as error:
            self._poll_because(error)
            return
        now, is_starting, began = time.monotonic(), self._starting, time.process_time()
        stalled = now - self._events_at > timeout + _STALL_SECONDS
        self._events_at = now
        self._note(changes, now, lost=changes.lost or stalled, exact=backend.exact)
        self._sweeps.advance(polls=backend.polls, exact=backend.exact)
        self._catalogue.mark_due(now)
        has_news = changes != NOTHING or is_starting or bool(self._catalogue.waiting) or not backend.exact
        self._drain()
        if has_news:
            # Behind all that: what was made in a new directory is there by now, or will be told.
            self.stirred(backend.exact)
        if now < self._changed_at + _STORM_OVER_SECONDS and not is_starting:
            self._rest(began)

    def _rest(self, began: float) -> None:
        """Rest while a storm lasts. What the process has done since `began` counts, and what it does meanwhile because
        of that, in other threads."""
        for rests in (True, False):
            ended = time.process_time()
            self._pace.spend(ended - began)
            if rests and (rest := self._pace.rest):
                self._stopping.wait(rest)
            began = ended

    def _timeout(self) -> float:
        if self._catalogue.waiting or self._sweeps.running:
            return 0.0
        touched_at = self._touched_at if self._touched else math.inf
        next_at = min(self._root_at, self._sweeps.next_at, touched_at, self._documents.next_due)
        return max(0.0, next_at - time.monotonic())

    def _note(self, changes: Changes, now: float, *, lost: bool, exact: bool) -> None:
        if changes.paths:
            self._changed_at = now
            if "" in changes.paths:
                self._root_at = now
            # What there was at first is not waited for; in a storm, a return that is read before its handoff would be
            # taken for an earlier one.
            self._catalogue.mark_changed(changes.paths, first=self._starting)
            if not exact:
                self._sweeps.ask(now + _ACTIVE_SECONDS)
                if not self._touched:
                    self._touched_at = now + _SOON_SECONDS
                self._touched.update(changes.paths)
                lost = lost or len(changes.paths) >= _BURST
        if lost:
            self._sweeps.ask(now)
        if self._touched and now >= self._touched_at:
            self._catalogue.mark_around(self._touched)
            self._touched = set()

    def _drain(self) -> None:
        """Look at what is marked, a slice after the other, for one turn at most."""
        turn_ends = time.monotonic() + (_FIRST_SLICE_SECONDS if self._starting else _TURN_SECONDS)
        while self._catalogue.waiting and not self._stopping.is_set():
            now = time.monotonic()
            if now >= turn_ends:
                break
            length = _FIRST_SLICE_SECONDS if self._starting and self._has_observed else _SLICE_SECONDS
            self._tell(self._catalogue.drain(now + length))
        if self._catalogue.directories == 0:  # the root is gone: say so now, not with the next look at it
            self._check_root(time.monotonic())
        if not self._catalogue.waiting and not self._trouble:
            if self._starting:
                self._documents.dating.watching()
            self._starting = False
        self._tell([])

    # The root

    def _check_root(self, now: float) -> None:
        self._root_at = in_step(now, _ROOT_SECONDS[self._backend.exact])
        try:
            status = os.lstat(self._root)
        except OSError as error:
            self._lose_root(f"The workspace is gone ({os.strerror(error.errno or 0)}): waiting for it to return")
            return
        if not stat.S_ISDIR(status.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "a file"
            self._lose_root(f"The workspace was replaced by {kind}: waiting for the directory to return")
            return
        self._trouble = ""
        if self._scan_all or not self._catalogue.is_root(status):
            self._tell([])
            for _ in self._catalogue.scanning():
                if self._stopping.is_set():
                    return
            # What was remembered from the last time and is not there any more.
            self._tell(self._documents.made())
            self._scan_all = False
            self._sweeps.ask(now + _ACTIVE_SECONDS)

    def _lose_root(self, trouble: str) -> None:
        self._trouble = trouble
        self._root_at = time.monotonic() + _ROOT_SECONDS[0]
        self._scan_all = self._starting = True
        self._touched.clear()
        self._tell(self._catalogue.forget_all())

    # The backend

    def _poll_because(self, error: WatchError) -> None:
        self._backend.close()
        self._polling = str(error)
        self._backend = PollingBackend()
        self._sweeps.ask(time.monotonic())
        if self._stopping.is_set():
            self._backend.wake()

    def _watch(self, path: str) -> None:
        try:
            self._backend.watch(path)
        except WatchError as error:
            self._poll_because(error)

    def _unwatch(self, path: str) -> None:
        self._backend.unwatch(path)

    # What is told

    def _tell(self, events: list[Event]) -> None:
        """Emit a batch, unless it would tell nothing new."""
        health = self._health()
        now = time.monotonic()
        if not events and self._told is not None:
            same = (health.mode, health.detail) == (self._told.mode, self._told.detail)
            if health == self._told or (same and now < self._told_at + _COUNTS_SECONDS):
                return
        # Also at the end: what was looked at counts as known.
        self._told, self._told_at = health, now
        self._has_observed = self._has_observed or bool(events)
        try:
            self._emit(Batch(tuple(events), health))
        except RuntimeError:  # the receiver's event loop is closed: nobody listens any more
            self._stopping.set()

    def _health(self) -> Health:
        mode: Mode = "polling" if self._polling else "live"
        detail = self._polling or "Changes are seen as they happen"
        problems = self._catalogue.problems
        if self._trouble:
            mode, detail, problems = "degraded", self._trouble, [Problem(FILES, to_path(self._root), self._trouble)]
        elif self._starting:
            mode, detail = "starting", "Looking through the workspace"
        return health_of(mode, detail, problems, self._catalogue.directories, self._catalogue.files)
