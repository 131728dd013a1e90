"""The source of a workspace's handoffs and returns. It reads their files once, or watches the files for changes."""

import errno
import math
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from posixpath import basename, dirname
from threading import Lock
from typing import NamedTuple

from agentwatch.background import BackgroundThread, Pace
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Document, Fields, Finding, OpenDocument, Return, TodoList
from agentwatch.delegation import links
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.disk import DISK, Fingerprint, fingerprint
from agentwatch.errors import WorkspaceError
from agentwatch.sources import FILES, Batch, Health, Mode, Problem, Source, health_of
from agentwatch.sources.files.read import (
    CHANGING,
    NOT_READABLE,
    NOT_UNDERSTOOD,
    BehindLinkError,
    FileRefusedError,
    FileText,
    absolute_path,
    event_path,
    is_candidate,
    is_named_like_document,
    join,
    make_prune_test,
    read_file,
    system_name,
    walk,
)
from agentwatch.sources.files.watcher import Changes, Watcher
from agentwatch.sources.worktrees import is_other_worktree
from agentwatch.text import describe_error

Reader = Callable[[str, str], Document | None]  # takes a file's text and path, returns the document in the file
# Takes a file's path and its mtime. Returns the time of the first commit with the file's content, or None.
Committed = Callable[[str, float], float | None]

# The kernel's file times move in steps of up to 10 ms. A change right after a read may leave the times as they are.
_TICK_NS = 20_000_000
_FIRST = 1_577_836_800.0  # the beginning of 2020: no agent wrote a return before this time
_LATE_SECONDS = 60.0  # if a file appears during watching and its mtime is older than this, the mtime is not used


@dataclass(slots=True)
class KnownFile:
    """The state of one file. If `fingerprint` is None, the file is read again at the next check.

    `digest` is the digest of the content that was last read. The file has this content since `at` (epoch seconds).
    `shown` stands for the file's last event: the content's digest, or the finding for an unreadable file. If
    `incomplete`, the content ended in the middle of a document."""

    digest: str | None = None
    shown: str | Finding | None = None
    at: float | None = None
    fingerprint: Fingerprint | None = None
    incomplete: bool = False


class HistorySnapshot(NamedTuple):
    """The state that was stored when agentwatch last ran. `files` are by path; a file that was gone has no `shown`.
    agentwatch then watched the files until `watched_at` (epoch seconds).

    If the state covers only one task, `limited_to` has the task's directories and a time. Files in other directories
    are read only if they have changed since this time."""

    events: Sequence[Event] = ()
    files: Mapping[str, KnownFile] = {}
    watched_at: float | None = None
    limited_to: tuple[Set[str], float] | None = None


class ParsedDocuments:
    """Parses documents and keeps the last `most` results. So the tree and the evidence need not parse a text twice."""

    def __init__(self, most: int):
        self._most, self._lock = most, Lock()
        self._known: dict[str, tuple[str, OpenDocument | None]] = {}

    def open(self, text: str, name: str) -> OpenDocument | None:
        """Return the document in a text. If the same text was parsed before under this name, do not parse it again."""
        from agentwatch.contracts.reading import read_document

        with self._lock:
            known = self._known.pop(name, None)
            if known is None or known[0] != text:
                known = text, read_document(text, name)
            self._known[name] = known
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
            return known[1]


class WorkspaceFiles:
    """Reads the files of one workspace and makes events. Only `content` may be called by several threads."""

    settle_seconds = 2.0  # a half-written file is shown as broken if it does not change for so long
    # The latest texts are kept in memory up to this total size. Older texts are read from their files again.
    most_text_bytes = 1024 * 1024
    disk = DISK

    _recalled = HistorySnapshot()
    watched_until: float | None = None  # the time until which agentwatch watched when it last ran; None if unknown
    is_watching = False  # whether all files were read once, so that each later change is seen at once
    _text_bytes = 0

    def __init__(self, root: str, settings: Settings, read_document: Reader | None, committed: Committed | None):
        self._root, self._settings = root, settings
        self._read_document, self._committed = read_document, committed
        self._places: dict[str, tuple[str, float]] = {}  # by digest: the file with this content, and since when
        # By file: its last digest, since when it has this content, and a time until which it was not written again.
        self._last: dict[str, tuple[str, float, float]] = {}
        self.events: list[Event] = []
        self._seq = count(1)
        self._texts: dict[str, str] = {}
        self.files: dict[str, KnownFile] = {}
        # By half-written file: if the content is still the same at this time (monotonic clock), it is shown.
        self.withheld: dict[str, float] = {}
        # By file or directory that cannot be read, but should be readable: the reason.
        self.unread: dict[str, str] = {}

    def remember(self, recalled: HistorySnapshot) -> None:
        """Take over the files' state, as stored when agentwatch last ran. This is called before any file is read."""
        self._recalled = recalled
        # If agentwatch then knew no file, it may have been stopped before it had read the files.
        if recalled.files:
            self.watched_until = recalled.watched_at
        for path, file in recalled.files.items():
            name = system_name(path)
            if file.digest and file.at is not None:
                self._last[name] = file.digest, file.at, max(file.at, recalled.watched_at or 0.0)
                if file.shown is not None:
                    self._places[file.digest] = name, file.at
            if not file.digest or file.shown is not None:
                self.files[name] = file

    def content(self, digest: str) -> str | None:
        """Return the text with this digest from memory, or else from its file. Return None if neither has the text. Any
        thread may call this."""
        text = self._texts.get(digest)
        if text is None and digest in self._places:
            with suppress(FileRefusedError, FileNotFoundError):
                read = read_file(self._root, self._places[digest][0])
                return read.text if read.digest == digest else None
        return text

    def status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(absolute_path(self._root, path))
        except OSError:
            return None

    def may_have_changed(self, path: str, status: os.stat_result | None) -> bool:
        """Tell whether a file may have changed since it was read. `status` is its current lstat."""
        file = self.files.get(path)
        if file is None or path in self.withheld or status is None:
            return True
        directories, before = self._recalled.limited_to or (set(), 0.0)
        if file.shown is not None and status.st_ctime < before:
            return links.slot_of(event_path(path))[0] in directories
        return file.fingerprint != fingerprint(status)

    def read(self, path: str) -> None:
        """Read a file if it may have changed, and add an event if needed. If there is no file, call `drop`."""
        file, status = self.files.setdefault(path, KnownFile()), self.status(path)
        if not self.may_have_changed(path, status):
            return
        began_ns = time.time_ns()
        try:
            text = read_file(self._root, path, self._settings.max_bytes, self.disk)
            self.unread.pop(path, None)
            # If the file changed just before the read, another change may leave its fingerprint the same.
            is_racy = began_ns - text.fingerprint[1] < _TICK_NS
            file.fingerprint = None if is_racy else text.fingerprint
            self._apply_text(path, file, text)
        except (FileNotFoundError, BehindLinkError):
            self.drop(path)
        except FileRefusedError as error:
            now = time.monotonic()
            due = self.withheld.setdefault(path, now + self.settle_seconds)
            if error.rule != CHANGING or due <= now:
                self._refuse_file(path, file, error, status)

    def drop(self, path: str) -> None:
        """Forget a file that is gone, and add an event for this."""
        file = self.files.pop(path, None)
        if file:
            self.unread.pop(path, None)
            self.withheld.pop(path, None)
            self._emit_missing(path, file, None, time.time())

    def _apply_text(self, path: str, file: KnownFile, text: FileText) -> None:
        """Add an event for the content of a file, if the event is new."""
        written, same = text.fingerprint[0] / 1e9, text.digest == file.digest
        # If a file is written again with the same content, a child may have failed in the same way again.
        is_again = file.shown == text.digest and written > self._last.get(path, ("", 0.0, math.inf))[2]
        due, now = self.withheld.get(path), time.monotonic()
        if same and (not is_again if due is None else due > now):
            return
        if self._read_document is None:
            # The import is slow, so it is done late, in the source's thread.
            from agentwatch.contracts.reading import read_document

            self._read_document = read_document
        try:
            reading = self._read_document(text.text, event_path(path))
        except Exception as error:  # a bad file of one agent must not hide the work of other agents
            raise FileRefusedError(NOT_UNDERSTOOD, fault=type(error).__name__) from error
        # A file is half-written if it holds half a document, or no document any more. The program that writes the file
        # gets time to finish. A file that is new to us may have been unchanged for part of this time already.
        is_half = isinstance(file.shown, str) if reading is None else not reading.complete
        rest = self.settle_seconds
        if file.digest is None:
            rest -= max(time.time() - max(text.fingerprint[:2]) / 1e9, 0.0)
        file.digest = text.digest
        if is_half and not same and rest > 0:
            self.withheld[path] = now + rest
            return
        self.withheld.pop(path, None)
        if reading is None:
            self._emit_missing(path, file, None, time.time())
            return
        is_return = isinstance(reading.document, Return)
        if not reading.document.recognised and not is_return:
            # The text looks like a document but holds no packet or checklist. Only its first finding is reported.
            self._emit_missing(path, file, reading.findings[0], min(written, time.time()))
        elif file.shown != text.digest or file.incomplete == reading.complete or (is_return and is_again):
            if text.digest not in self._texts:
                self._texts[text.digest] = text.text
                self._text_bytes += len(text.text)
                while self._text_bytes > self.most_text_bytes and len(self._texts) > 1:
                    self._text_bytes -= len(self._texts.pop(next(iter(self._texts))))
            # The event and `shown` share one string object, to save memory.
            file.shown, file.incomplete = text.digest, not reading.complete
            at = self._date_content(path, text.digest, written, reading.document, is_again=is_return and is_again)
            findings, seq = (*text.findings, *reading.findings), next(self._seq)
            self.events.append(
                Seen(seq, at, event_path(path), text.digest, reading.document, findings, file.incomplete)
            )

    def _refuse_file(self, path: str, file: KnownFile, error: FileRefusedError, status: os.stat_result | None) -> None:
        """Record that a file cannot be read. Add an event if the file was shown before, or is named like a document."""
        file.fingerprint = fingerprint(status) if status is not None and error.lasting else None
        file.digest = None
        self.withheld.pop(path, None)
        self.unread.pop(path, None)
        is_ours = file.shown is not None or is_named_like_document(path)
        is_wanted = links.must_be_readable(path) or isinstance(file.shown, str)
        # A file that changes all the time, and is not named like a document, is probably a log. It is not reported.
        if is_wanted or error.rule == NOT_READABLE or (is_ours and error.rule in (CHANGING, NOT_UNDERSTOOD)):
            self.unread[path] = error.message
        if is_ours:
            now = time.time()
            self._emit_missing(path, file, error.finding, now if status is None else min(status.st_mtime, now))

    def _emit_missing(self, path: str, file: KnownFile, finding: Finding | None, at: float) -> None:
        """Add an event: the file cannot be read because of `finding`. If `finding` is None, the file is gone."""
        if file.shown != finding:
            file.shown, seq, path = finding, next(self._seq), event_path(path)
            self.events.append(Gone(seq, at, path) if finding is None else Unreadable(seq, at, path, finding))

    def _date_content(self, name: str, digest: str, written: float, document: Fields, *, is_again: bool) -> float:
        """Return since when a file has a content. `written` is the mtime. If `is_again`, it was rewritten unchanged."""
        # When files are read for the first time, a file may be a copy with a new mtime. So the time in the document is
        # used if there is one, or else git's time. Later reads do not use an old mtime. A moved file keeps its date.
        now = time.time()
        written = min(written, now)
        held, at, until = self._last.get(name, ("", 0.0, 0.0))
        if held != digest or written > until or is_again:
            place, at = self._places.get(digest, (name, 0.0))
            there, _, kept_until = self._last.get(place, ("", 0.0, 0.0))
            # Many tasks may have the same checklist. If this file's mtime is later, it was not moved: date it anew.
            is_own = isinstance(document, TodoList) and (there != digest or written > kept_until)
            if place == name or held == digest or is_own:
                since = now - _LATE_SECONDS if self.is_watching else self.watched_until
                stated = document.stated_at if isinstance(document, Return) else None
                if since is not None:
                    at = written if written >= since else now
                elif stated is not None and _FIRST <= stated <= written:
                    at = stated
                else:
                    committed = self._committed(name, written) if self._committed is not None else None
                    at = written if committed is None else min(committed, written)
            self._last[name] = digest, at, max(at, written)
        self._places[digest] = name, at
        return at


# Files are read for at most this time before the system's events are fetched again, so that events do not pile up.
_SLICE_SECONDS = 0.02
_RECHECK_SECONDS = 0.1  # seconds between two reads of half-written files in a scan
_ROOT_SECONDS = 1.0  # seconds between two checks that the root exists: no event reports that a directory above is gone

# The time between two sweeps. A sweep finds changes without an event: writes from another machine over the network.
_SWEEP_SECONDS = 300.0
_POLL_SHARE = 0.02  # the share of one core that sweeps take if the system reports no events
_LOSS_SHARE = 0.05  # the share of one core that sweeps take after lost events

# The total size of texts that a scan keeps in memory, because the check of claims needs each text again.
_ONE_LOOK_BYTES = 64 * 1024 * 1024
_MOST_PROBLEMS = 20
_NO_DIRECTORY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}

Emit = Callable[[Batch], None]


class FilesSource(BackgroundThread[Batch], WorkspaceFiles, Source):
    """Watches the files of one workspace in a thread of its own, from `start` to `stop`.

    The system's events say which files to read again. A sweep lists the directories to find all changed files.
    `read_document` parses a file; by default, the contracts' parser is used. `committed` returns when the content of a
    file was first committed. Paths are relative to the root, and "" is the root itself."""

    thread_name = "agentwatch-files"
    join_seconds = 1.0

    _root_inode: int | None = None  # None until the root is found
    _is_starting = True
    _problem = ""
    _emitted: Health | None = None

    def __init__(
        self,
        root: Path,
        settings: Settings | None = None,
        *,
        read_document: Reader | None = None,
        committed: Committed | None = None,
    ):
        super().__init__()
        WorkspaceFiles.__init__(self, os.path.realpath(root), settings or Settings(), read_document, committed)
        self._is_pruned = make_prune_test(self._settings.pruned)
        self._is_other_worktree = partial(is_other_worktree, self._root)
        self._directories: set[str] = set()
        self._queue: dict[str, None] = {}  # files to read, in this order
        self._watcher: Watcher
        # Monotonic times: of the next root check, of the next sweep, and of the earliest sweep after lost events.
        self._root_at = self._sweep_at = self._lost_at = 0.0
        # For very many changes: the share of one core that the process may use, the seconds of a first burst, and the
        # longest rest in seconds. A file that changes twice during a rest is read once.
        self._pace, self._spent = Pace(0.18, 1.5, 0.4), 0.0

    def start(self, emit: Emit) -> None:
        """Start to watch. The source's thread calls `emit` with each batch. The first batch is empty and comes at once.
        If `emit` raises RuntimeError, the receiver has closed, and the source stops."""
        self._watcher = Watcher(self._root, polling="Polling, as configured" if self._settings.poll else "")
        super().start(emit)

    def stop(self) -> None:
        if self._thread:
            self._stopped = True
            self._watcher.wake()
            super().stop()

    def scan(self) -> Batch:
        """Read all files, also half-written files. Return their events in the order in which the files were
        written. Raise WorkspaceError if the workspace is no directory."""
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
        """Watch until the source is stopped. After an error, report it in the health and start again."""
        self._emit = emit
        while not self._stopped:
            try:
                self._work_once()
            except Exception as error:  # noqa: BLE001  without this thread, the screen would show old data as live
                self._problem = f"Watching failed and is tried again ({describe_error(error)})"
                self._emit_news()
                self._rest(2.0)
                self._root_inode, self._root_at = None, 0.0
        self._watcher.close()

    def _work_once(self) -> None:
        """Do the checks that are due, wait for changes, and read the changed files."""
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
        self._emit_news()
        spent, self._spent = time.process_time() - self._spent, time.process_time()
        if changes.paths and not is_starting:
            # Measure the processor time of the whole process, because its other threads also work on these changes.
            self._pace.spend(spent)
            self._rest(self._pace.rest)

    def _queue_changes(self, changes: Changes) -> None:
        """Sweep the changed directories, and queue the changed files: missing files first, existing files by mtime.

        A file that changes again moves to the end of the queue. Otherwise a return could be read before its handoff,
        and would be taken for the return to an earlier handoff."""
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
                if parent and self._is_other_worktree(absolute_path(self._root, parent)):
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
        self._emit_news()
        if inode is None:
            self._is_starting = True
            self._queue.clear()
            self._forget_paths(self._directories, self.files)
        elif self._root_inode != inode or not self._directories or self._watcher.watch(""):
            # A new directory may have the inode of the old directory. A missing watch shows that it is new.
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
        """Walk these directories. Queue files that may have changed, the oldest mtime first. Drop missing files."""
        walked, found = set[str](), set[str]()
        for top in sorted(tops):
            if top in walked:
                continue
            self._watcher.watch(top)
            for path, listing in walk(self._root, self._is_pruned, top, self._is_other_worktree):
                if self._stopped:
                    return
                if not isinstance(listing, OSError):
                    self.unread.pop(path, None)
                    found.update(join(path, name) for name in listing[1])
                    # Watch the subdirectories before the walk lists them, so that no new file is missed.
                    for name in listing[0]:
                        self._watcher.watch(join(path, name))
                elif listing.errno in _NO_DIRECTORY:
                    continue
                else:
                    self.unread[path] = f"cannot be listed: {os.strerror(listing.errno or 0)}"
                    # The known files in this directory may still exist. They are kept, and `read` shows which are gone.
                    found |= _paths_below(self.files, {path})
                walked.add(path)
        self._forget_paths(_paths_below(self._directories, tops) - walked, _paths_below(self.files, tops) - found)
        self._directories |= walked
        changed: list[tuple[int, str]] = []
        for file in found:
            status = self.status(file)
            if self.may_have_changed(file, status):
                changed.append((0 if status is None else status.st_mtime_ns, file))
        for _, file in sorted(changed):
            self.files.setdefault(file, KnownFile())
            self._queue.setdefault(file)

    def _forget_paths(self, directories: Iterable[str], files: Iterable[str]) -> None:
        for directory in [*directories]:
            self._directories.discard(directory)
            self.unread.pop(directory, None)
            self._watcher.unwatch(directory)
        for file in sorted(files):
            self.drop(file)

    # Events and health

    def _emit_news(self) -> None:
        events, self.events = tuple(self.events), []
        health = self._health()
        if not events and health == self._emitted:
            return
        # Emit even while the source stops, because the files of these events are not read again.
        self._emitted = health
        try:
            self._emit(Batch(events, health))
        except RuntimeError:  # the receiver's event loop is closed, so nobody receives events any more
            self._stopped = True

    def _health(self) -> Health:
        if self._problem:
            return health_of("degraded", self._problem, [Problem(FILES, event_path(self._root), self._problem)])
        if self._is_starting:
            return health_of("starting", "Looking through the workspace", self._problems())
        mode: Mode = "polling" if self._watcher.polling else "live"
        return health_of(mode, self._watcher.polling or "Changes are seen as they happen", self._problems())

    def _problems(self) -> list[Problem]:
        """Return a problem for each unreadable place, but at most `_MOST_PROBLEMS` problems."""
        return [
            Problem(FILES, event_path(absolute_path(self._root, path)), f"{event_path(path) or 'the workspace'}: {why}")
            for path, why in islice(self.unread.items(), _MOST_PROBLEMS)
        ]


def _paths_below(paths: Iterable[str], tops: set[str]) -> set[str]:
    prefixes = tuple(f"{top}/" if top else "" for top in tops)
    return {path for path in paths if path in tops or path.startswith(prefixes)}
