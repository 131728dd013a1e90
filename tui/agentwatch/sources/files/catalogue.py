"""What is known of a workspace's directories and files, and what a look at one of them gives: observations.

No thread and no clock of its own decides here when to look: the caller marks paths, sweeps, and drains in slices.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from posixpath import basename, dirname
from typing import Final

from agentwatch.contracts.shapes import Finding, Reading
from agentwatch.delegation.observation import Gone, Observation, Seen, Unreadable
from agentwatch.sources.files.content import ContentStore
from agentwatch.sources.files.names import is_candidate, looks_like_ours, pruning, to_path
from agentwatch.sources.files.read import (
    BehindLinkError,
    ChangingError,
    FileRefusedError,
    FileText,
    NotReadableError,
    NotUnderstoodError,
    read_file,
)
from agentwatch.sources.files.scan import Fingerprint, Listing, fingerprint, list_directory, walk
from agentwatch.sources.files.settings import FilesSettings

Reader = Callable[[str, str], Reading | None]
"""Text and path of a file to what is recognised in it."""

_TICK_NS: Final = 20_000_000
"""The kernel stamps times in steps of up to 10 ms: a change right after a look may leave every stamp as it was."""

_STEP: Final = 128
"""Entries compared in one step of a sweep: a fraction of a millisecond."""

_NO_DIRECTORY: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

_RETRY_SECONDS: Final = 0.1
"""When a file that changed during each attempt to read it is looked at again."""


@dataclass(slots=True)
class _Directory:
    fingerprint: Fingerprint
    racy: bool
    """It changed so shortly before it was listed that the next change may not show in its fingerprint."""
    directories: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _File:
    fingerprint: Fingerprint | None = None
    """None: look at it whenever there is an occasion."""
    racy: bool = False
    digest: str | None = None
    """Of what was read last, whatever it was."""
    shown: Seen | Unreadable | None = None
    """The last observation, None where there was none or it was Gone."""
    due: float | None = None
    """While what was read last is withheld: when it is emitted if it stays so, on the monotonic clock."""


class Catalogue:
    """The files of one workspace. Paths here are names of the system relative to the root, "" is the root.

    `watch` and `unwatch` are called with each directory that comes and goes, `watch` before it is listed.
    """

    def __init__(
        self,
        root: str,
        settings: FilesSettings,
        read_document: Reader,
        *,
        watch: Callable[[str], None],
        unwatch: Callable[[str], None],
        contents: ContentStore,
    ) -> None:
        self._root = root
        self._prefix = root if root.endswith("/") else root + "/"
        self._settings = settings
        self._read_document = read_document
        self._watch = watch
        self._unwatch = unwatch
        self._contents = contents
        self._is_pruned = pruning(settings.pruned)
        self._directories: dict[str, _Directory] = {}
        self._files: dict[str, _File] = {}
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._due: dict[str, float] = {}
        self._out: list[Observation] = []
        self._looking_at: str | None = None
        self._seq = 0
        self.unlisted: dict[str, str] = {}
        """Directories that cannot be listed, with what the system says."""

    @property
    def directories(self) -> int:
        return len(self._directories)

    @property
    def files(self) -> int:
        return len(self._files)

    @property
    def waiting(self) -> bool:
        """There are paths to drain."""
        return bool(self._queue)

    @property
    def withheld(self) -> int:
        """How many files wait to be whole, or to be given up."""
        return len(self._due)

    @property
    def next_due(self) -> float | None:
        """When the first withheld file is to be looked at, on the monotonic clock."""
        return min(self._due.values(), default=None)

    def is_root(self, status: os.stat_result) -> bool:
        """The directory with this status is the root as it was last listed."""
        known = self._directories.get("")
        return known is not None and known.fingerprint[3:] == (status.st_ino, status.st_dev)

    def mark(self, path: str) -> None:
        """Something may have happened to this path: look at it with the next drain."""
        if path not in self._queued:
            self._queued.add(path)
            self._queue.append(path)

    def mark_changed(self, paths: Iterable[str]) -> None:
        """Mark the paths of one burst of events, before everything that is marked already: first what is gone, then
        the rest in the order it was last changed."""
        for _, path in sorted(((self._mtime_ns(path), path) for path in paths), reverse=True):
            if path not in self._queued:
                self._queued.add(path)
                self._queue.appendleft(path)

    def mark_due(self, now: float) -> None:
        """Mark the withheld files whose time has come."""
        for path in [path for path, due in self._due.items() if due <= now]:
            self.mark(path)

    def mark_withheld(self) -> None:
        """Mark all withheld files: they may be whole by now."""
        for path in self._due:
            self.mark(path)

    def drain(self, deadline: float) -> list[Observation]:
        """Look at marked paths until none is left or the deadline, on the monotonic clock, has passed."""
        while self._queue:
            path = self._queue.popleft()
            self._queued.discard(path)
            self._looking_at = path
            self._look(path)
            self._looking_at = None
            if time.monotonic() >= deadline:
                break
        observations, self._out = self._out, []
        return observations

    def scan(self, below: str = "") -> None:
        """Walk the tree from one directory on, whatever was known of it, and mark its files in the order they were
        last changed. What was known and is no longer there is gone."""
        for _ in self.scanning(below):
            pass

    def scanning(self, below: str = "") -> Iterator[None]:
        """`scan` in steps of one directory."""
        old_directories, old_files = self._subtree(below)
        found: list[tuple[int, str]] = []
        for path, listing in self._walk(below):
            old_directories.discard(path)
            if isinstance(listing, Listing):
                for name in listing.candidates:
                    file = f"{path}/{name}" if path else name
                    old_files.discard(file)
                    found.append((self._mtime_ns(file), file))
            yield
        for directory in old_directories:
            self._drop_directory(directory)
        for file in sorted(old_files):
            self._drop_file(file)
        found.sort()
        for _, file in found:
            self._files.setdefault(file, _File())
            self.mark(file)

    def _walk(self, below: str) -> Iterator[tuple[str, Listing | OSError]]:
        self._watch(below)
        for path, listing in walk(self._root, self._is_pruned, below):
            self._remember_listing(path, listing)
            if isinstance(listing, Listing):
                # Before the walk lists them: what appears in them from now on is an event or is listed.
                for name in listing.directories:
                    self._watch(f"{path}/{name}" if path else name)
            yield path, listing

    def sweeping(self) -> Iterator[None]:
        """Compare every known directory and file with the disk and mark what differs, in steps."""
        for known in (self._directories, self._files):
            for count, path in enumerate(list(known)):
                entry = known.get(path)
                if entry is not None and (entry.racy or entry.fingerprint != self._fingerprint(path)):
                    self.mark(path)
                if count % _STEP == _STEP - 1:
                    yield

    def mark_around(self, paths: set[str]) -> None:
        """Mark the directories of these paths, and the files in them that may have changed unseen since."""
        for directory in {dirname(path) for path in paths} | (paths & self._directories.keys()):
            known = self._directories.get(directory)
            if known is not None:
                self.mark(directory)
                at = f"{directory}/" if directory else ""
                for name in known.files:
                    file = self._files.get(at + name)
                    if file is not None and file.racy:
                        self.mark(at + name)

    def set_aside(self, error: Exception) -> bool:
        """The last drain ended with `error`: leave out the file it was at until that changes. False: it was at none."""
        path, self._looking_at = self._looking_at, None
        if path is None or path not in self._files:
            return False
        refusal = NotUnderstoodError(fault=type(error).__name__)
        self._refuse(path, refusal, time.time(), self._fingerprint(path))
        return True

    def forget_all(self) -> list[Observation]:
        """The root is gone: so is everything."""
        self._queue.clear()
        self._queued.clear()
        self._drop_tree("")
        observations, self._out = self._out, []
        return observations

    def _look(self, path: str) -> None:
        try:
            status = os.lstat(self._prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            self._drop_tree(path)
            return
        except OSError as error:
            if path in self._files:
                refusal = NotReadableError(reason=os.strerror(error.errno or 0), lasting=False)
                self._refuse(path, refusal, time.time(), None)
            return
        if stat.S_ISDIR(status.st_mode):
            self._drop_file(path)
            self._look_directory(path, status)
            return
        if path in self._directories:
            self._drop_tree(path)
        if is_candidate(path) and dirname(path) in self._directories:
            self._look_file(path, status)

    def _look_directory(self, path: str, status: os.stat_result) -> None:
        known = self._directories.get(path)
        if known is None:
            parent = dirname(path)
            if parent in self._directories and not self._is_pruned(basename(path)):
                self._directories[parent].directories.add(basename(path))
                self.scan(path)
            return
        if known.fingerprint[3:] != (status.st_ino, status.st_dev):
            self.scan(path)
            return
        # It may have been deleted and made again with the same inode: then the watch died with the first one.
        self._watch(path)
        if known.racy or known.fingerprint != fingerprint(status):
            self._relist(path, known)

    def _relist(self, path: str, known: _Directory) -> None:
        try:
            listing = list_directory(self._prefix + path, self._is_pruned)
        except OSError as error:
            self._remember_listing(path, error)
            for name in known.files:
                self.mark(f"{path}/{name}" if path else name)
            return
        old_directories, old_files = known.directories, known.files
        self._remember_listing(path, listing)
        at = f"{path}/" if path else ""
        for name in sorted(old_directories - listing.directories.keys()):
            self._drop_tree(at + name)
        for name in sorted(old_files - listing.candidates.keys()):
            self._drop_file(at + name)
        for name, inode in sorted(listing.directories.items()):
            below = self._directories.get(at + name)
            if below is None:
                self.scan(at + name)
            elif below.fingerprint[3] != inode:
                self.mark(at + name)
        for name, inode in sorted(listing.candidates.items()):
            file = self._files.get(at + name)
            if file is None or file.fingerprint is None or file.fingerprint[3] != inode:
                self.mark(at + name)

    def _remember_listing(self, path: str, listing: Listing | OSError) -> None:
        known = self._directories.get(path)
        if isinstance(listing, Listing):
            self.unlisted.pop(path, None)
            racy = time.time_ns() - listing.fingerprint[1] < _TICK_NS
            self._directories[path] = _Directory(
                listing.fingerprint, racy, set(listing.directories), set(listing.candidates)
            )
            return
        now = self._fingerprint(path)
        if now is None or listing.errno in _NO_DIRECTORY:
            self._drop_tree(path)
            return
        self.unlisted[path] = os.strerror(listing.errno or 0)
        if known is None:
            known = self._directories[path] = _Directory(now, racy=True)
        known.fingerprint, known.racy = now, True

    def _look_file(self, path: str, status: os.stat_result) -> None:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _File()
            self._directories[dirname(path)].files.add(basename(path))
        now = time.monotonic()
        expired = file.due is not None and file.due <= now
        if file.fingerprint == fingerprint(status) and not file.racy and not expired:
            return
        looked_at = time.time_ns()
        try:
            text = read_file(self._root, path, self._settings.max_bytes)
        except FileNotFoundError:
            self._drop_file(path)
        except ChangingError as error:
            file.fingerprint = None
            if file.due is None:
                file.due = now + self._settings.settle_seconds
            if expired:
                self._refuse(path, error, status.st_mtime, fingerprint(status))
            else:
                self._due[path] = min(now + _RETRY_SECONDS, file.due)
        except BehindLinkError:
            # A directory was swapped for a link: none of what is behind it is in the workspace. Its parents are
            # looked at from the top, so that what lies behind the link is forgotten and not listed.
            self._drop_file(path)
            for parent in reversed(_parents(path)):
                self.mark(parent)
        except FileRefusedError as error:
            self._refuse(path, error, status.st_mtime, fingerprint(status))
        else:
            file.fingerprint = text.fingerprint
            file.racy = looked_at - text.fingerprint[1] < _TICK_NS
            self._take(path, file, text, expired=expired)

    def _take(self, path: str, file: _File, text: FileText, *, expired: bool) -> None:
        same = text.digest == file.digest
        if same and not expired:
            if file.due is not None:
                self._due[path] = file.due
            return
        reading = self._read_document(text.text, to_path(path))
        shown = file.shown
        if reading is not None and reading.complete:
            self._settled(path, file, text.digest)
            self._show(path, file, text, reading)
        elif same:
            self._settled(path, file, text.digest)
            if reading is not None:
                self._show(path, file, text, reading)
            else:
                self._hide(path, file)
        elif reading is None and not isinstance(shown, Seen):
            self._settled(path, file, text.digest)
            self._hide(path, file)
        else:
            known = file.digest is not None
            file.digest = text.digest
            file.due = self._due[path] = time.monotonic() + self._rest(text, known=known)
            if file.due <= time.monotonic():
                self._take(path, file, text, expired=True)

    def _rest(self, text: FileText, *, known: bool) -> float:
        """Seconds until what was read may be taken as it is. A file first seen may have rested long before."""
        if known:
            return self._settings.settle_seconds
        age = time.time() - max(text.fingerprint[0], text.fingerprint[1]) / 1e9
        return self._settings.settle_seconds - max(age, 0.0)

    def _settled(self, path: str, file: _File, digest: str) -> None:
        file.digest = digest
        file.due = None
        self._due.pop(path, None)

    def _show(self, path: str, file: _File, text: FileText, reading: Reading) -> None:
        incomplete = not reading.complete
        shown = file.shown
        if isinstance(shown, Seen) and shown.digest == text.digest and shown.incomplete == incomplete:
            return
        self._contents.put(text.digest, text.text)
        file.shown = Seen(
            self._next_seq(),
            min(text.mtime_ns / 1e9, time.time()),
            to_path(path),
            text.digest,
            reading.document,
            _findings(text, reading),
            incomplete,
        )
        self._out.append(file.shown)

    def _refuse(self, path: str, error: FileRefusedError, at: float, seen: Fingerprint | None) -> None:
        file = self._files[path]
        file.fingerprint = seen if error.lasting else None
        file.racy = False
        file.digest = None
        file.due = None
        self._due.pop(path, None)
        if file.shown is None and not looks_like_ours(path):
            return
        finding: Finding = error.finding
        if isinstance(file.shown, Unreadable) and file.shown.finding == finding:
            return
        file.shown = Unreadable(self._next_seq(), min(at, time.time()), to_path(path), finding)
        self._out.append(file.shown)

    def _hide(self, path: str, file: _File) -> None:
        if file.shown is not None:
            file.shown = None
            self._out.append(Gone(self._next_seq(), time.time(), to_path(path)))

    def _drop_file(self, path: str) -> None:
        file = self._files.pop(path, None)
        if file is None:
            return
        self._due.pop(path, None)
        parent = self._directories.get(dirname(path))
        if parent is not None:
            parent.files.discard(basename(path))
        self._hide(path, file)

    def _drop_directory(self, path: str) -> None:
        if self._directories.pop(path, None) is None:
            return
        self.unlisted.pop(path, None)
        self._unwatch(path)
        parent = self._directories.get(dirname(path)) if path else None
        if parent is not None:
            parent.directories.discard(basename(path))

    def _drop_tree(self, path: str) -> None:
        """The path is no longer there, nor anything below it."""
        directories, files = self._subtree(path)
        for directory in directories:
            self._drop_directory(directory)
        for file in sorted(files):
            self._drop_file(file)
        self._drop_file(path)

    def _subtree(self, below: str) -> tuple[set[str], set[str]]:
        """The known directories from one on, and the known files in them."""
        directories: set[str] = set()
        files: set[str] = set()
        pending = [below] if below in self._directories else []
        while pending:
            path = pending.pop()
            known = self._directories.get(path)
            if known is None:
                continue
            directories.add(path)
            at = f"{path}/" if path else ""
            files.update(at + name for name in known.files)
            pending.extend(at + name for name in known.directories)
        return directories, files & self._files.keys()

    def _fingerprint(self, path: str) -> Fingerprint | None:
        try:
            return fingerprint(os.lstat(self._prefix + path))
        except OSError:
            return None

    def _mtime_ns(self, path: str) -> int:
        try:
            return os.lstat(self._prefix + path).st_mtime_ns
        except OSError:
            return 0

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq


def _parents(path: str) -> list[str]:
    """The directories around a path, nearest first, the root excluded."""
    parents = []
    while path := dirname(path):
        parents.append(path)
    return parents


def _findings(text: FileText, reading: Reading) -> tuple[Finding, ...]:
    """Bytes that are no UTF-8 are told once: some contracts have a rule against the U+FFFD that replaces them."""
    if any(finding.rule == "DOC003" for finding in reading.findings):
        return reading.findings
    return (*text.findings, *reading.findings)
