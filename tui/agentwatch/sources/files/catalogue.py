"""The directories and files of a workspace as they were last seen, and what is to be looked at again.

The caller decides when: it marks paths, sweeps, and drains in slices.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import accumulate, chain, islice
from posixpath import basename, dirname
from typing import Final

from agentwatch.delegation.events import Event
from agentwatch.sources import FILES, Problem
from agentwatch.sources.files.directories import Directories, Directory, names_of, paths_in
from agentwatch.sources.files.documents import TICK_NS, Documents, KnownFile
from agentwatch.sources.files.names import is_candidate, pruning, to_path
from agentwatch.sources.files.read import BehindLinkError
from agentwatch.sources.files.scan import FolderListing, fingerprint, inode_in, list_directory, mtime_in, walk
from agentwatch.sources.worktrees import is_another

_STEP: Final = 128
"""Entries compared in one step of a sweep: a fraction of a millisecond."""

_MOST_PROBLEMS: Final = 100

_NO_DIRECTORY: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class Catalogue:
    """One workspace. Paths here are names of the system relative to the root, "" is the root. `watch` and `unwatch` are
    called with each directory that comes and goes, `watch` before it is listed.
    For who `looks_once` a file is as it was when the workspace was walked, a moment before."""

    def __init__(
        self,
        root: str,
        pruned: frozenset[str],
        documents: Documents,
        *,
        watch: Callable[[str], None] = lambda _: None,
        unwatch: Callable[[str], None] = lambda _: None,
        looks_once: bool = False,
    ) -> None:
        self._root = root
        self._prefix = root if root.endswith("/") else root + "/"
        self._is_pruned = pruning(pruned)
        self._is_another = partial(is_another, root)
        self._documents = documents
        self._watch = watch
        self._unwatch = unwatch
        self._directories = Directories()
        self._looks_once = looks_once
        self._walked: dict[str, os.stat_result] = {}
        """What the walk saw of files, until they are looked at."""
        self._queue: OrderedDict[str, bool] = OrderedDict()
        """What is to be looked at, in this order, and whether it has stood back already."""
        self.unlisted: dict[str, str] = {}
        """Directories that cannot be listed, with what the system says."""

    @property
    def problems(self) -> list[Problem]:
        """What of the workspace cannot be seen, the first of it: there may be as much as there is workspace."""
        listed = ((path, f"cannot be listed: {why}") for path, why in self.unlisted.items())
        unseen = islice(chain(listed, self._documents.unread.items()), _MOST_PROBLEMS)
        problems = [
            Problem(FILES, to_path(self._absolute(path)), f"{to_path(path) or 'the workspace'}: {why}")
            for path, why in unseen
        ]
        if (more := len(self.unlisted) + len(self._documents.unread) - len(problems)) > 0:
            problems.append(Problem(FILES, self._root, f"{more:,} more files and directories"))
        return problems

    @property
    def directories(self) -> int:
        return len(self._directories)

    @property
    def files(self) -> int:
        return len(self._documents.files)

    @property
    def waiting(self) -> Collection[str]:
        """The paths to drain, in their order."""
        return self._queue

    def is_root(self, status: os.stat_result) -> bool:
        """The directory with this status is the root as it was last listed."""
        known = self._directories.get("")
        return known is not None and inode_in(known.fingerprint) == status.st_ino

    # What is to be looked at

    def mark(self, path: str, *, first: bool = False) -> None:
        """Something may have happened to this path: look at it with the next drain, `first` or after all others."""
        if path not in self._queue:
            self._queue[path] = False
            if first:
                self._queue.move_to_end(path, last=False)

    def mark_changed(self, paths: Iterable[str], *, first: bool = True) -> None:
        """Mark the paths of one burst of events as the first: what is gone, then the rest as it was last changed.

        Or after all others, in a storm: then files are looked at in the order in which they were last changed, though
        one that changes again and again stands back only once.
        """
        changed = sorted(((mtime_in(self._fingerprint(path)), path) for path in paths), reverse=first)
        for _, path in changed:
            if not first and self._queue.get(path) is False:
                self._queue[path] = True
                self._queue.move_to_end(path)
            self.mark(path, first=first)

    def mark_around(self, paths: set[str]) -> None:
        """Mark the directories of these paths, and the files in them that may have changed unseen since."""
        for directory in {dirname(path) for path in paths} | (paths & self._directories.keys()):
            if directory in self._directories:
                self.mark(directory)
                for path in paths_in(directory, self._directories[directory].files):
                    if path in self._documents.files and self._documents.files[path].racy:
                        self.mark(path)

    def mark_due(self, now: float) -> None:
        """Mark the withheld files that are to be looked at by `now`, on the monotonic clock."""
        for path in self._documents.due(now):
            self.mark(path)

    def sweeping(self) -> Iterator[None]:
        """Compare every known directory and file with the disk and mark what differs, in steps."""
        for known in (self._directories, self._documents.files):
            for count, path in enumerate(list(known)):
                entry = known.get(path)
                if entry is not None and (entry.racy or entry.fingerprint != self._fingerprint(path)):
                    self.mark(path)
                if count % _STEP == _STEP - 1:
                    yield

    def scan(self, below: str = "") -> None:
        """Walk the tree from one directory on, and mark its files in the order they were last changed.
        What was known and is no longer there is gone."""
        for _ in self.scanning(below):
            pass

    def scanning(self, below: str = "") -> Iterator[None]:
        """`scan` in steps of one directory."""
        old_directories, old_files = self._subtree(below)
        changed: list[tuple[int, str]] = []
        for path, listing in self._walk(below):
            old_directories.discard(path)
            if isinstance(listing, FolderListing):
                files = list(paths_in(path, listing.candidates))
            elif path in self.unlisted:
                # What was known in it may still be there: a look at each file says whether it can be reached.
                files = [file for file in old_files if not path or file.startswith(f"{path}/")]
            else:
                continue
            old_files.difference_update(files)
            changed += self._to_look_at(files)
            yield
        for directory in old_directories:
            self._drop_directory(directory)
        for file in sorted(old_files):
            self._drop_file(file)
        for _, file in sorted(changed):
            self._documents.files.setdefault(file, KnownFile())
            self.mark(file)

    def _to_look_at(self, files: list[str]) -> Iterator[tuple[int, str]]:
        """Those of the files that may have changed since they were read, with their mtime."""
        for path in files:
            status = self._status(path)
            now = None if status is None else fingerprint(status)
            if status is not None and self._looks_once:
                self._walked[path] = status
            known = self._documents.files.get(path)
            is_known = known is not None and known.fingerprint is not None and known.fingerprint == now
            if known is None or not is_known or known.racy or known.due is not None:
                yield mtime_in(now), path

    # Looking

    def drain(self, deadline: float) -> list[Event]:
        """Look at marked paths until none is left or the deadline, on the monotonic clock, has passed."""
        while self._queue:
            path, _ = self._queue.popitem(last=False)
            self._look(path)
            if time.monotonic() >= deadline:
                break
        else:
            # What is emptied one by one keeps the room that it once took.
            self._queue.clear()
        return self._documents.made()

    def forget_all(self) -> list[Event]:
        """The root is gone: so is everything."""
        self._queue.clear()
        self._drop_tree("")
        return self._documents.made()

    def _look(self, path: str) -> None:
        try:
            status = self._walked.pop(path, None) or os.lstat(self._absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            self._drop_tree(path)
            return
        except OSError as error:
            self._documents.unreachable(path, error)
            return
        if stat.S_ISDIR(status.st_mode):
            self._drop_file(path)
            self._look_at_directory(path, status)
            return
        if path in self._directories:
            self._drop_tree(path)
        directory, _, name = path.rpartition("/")
        parent = self._directories.get(directory)
        if parent is not None and is_candidate(name):
            if path not in self._documents.files and self._is_beyond(directory):
                self._relist(directory, parent)
                return
            if name not in parent.files:
                self._directories.add_file(path)
            self._look_at_file(path, status)

    def _look_at_file(self, path: str, status: os.stat_result) -> None:
        try:
            self._documents.look(path, status)
        except FileNotFoundError:
            self._drop_file(path)
        except BehindLinkError:
            # A directory was swapped for a link. The parents are looked at from the top, so that what lies behind
            # the link is forgotten and not listed.
            self._drop_file(path)
            for parent in accumulate(dirname(path).split("/"), "{}/{}".format):
                self.mark(parent)

    def _look_at_directory(self, path: str, status: os.stat_result) -> None:
        known = self._directories.get(path)
        if known is None:
            parent = self._directories.get(dirname(path))
            if parent is not None and self._is_beyond(dirname(path)):
                self._relist(dirname(path), parent)
            elif parent is not None and not self._is_pruned(basename(path)):
                self._directories.add_directory(path)
                self.scan(path)
            return
        # It may be another directory by now, even one with the same inode: then the watch died with the first one.
        self._watch(path)
        if known.racy or known.fingerprint != fingerprint(status):
            self._relist(path, known)

    def _is_beyond(self, directory: str) -> bool:
        """Whether a directory has become another workspace since it was listed."""
        return bool(directory) and self._is_another(self._absolute(directory))

    def _relist(self, path: str, known: Directory) -> None:
        try:
            listing = list_directory(self._absolute(path), self._is_pruned, self._is_another if path else None)
        except OSError as error:
            self._remember_failure(path, error)
            for file in paths_in(path, known.files):
                self.mark(file)
            return
        self._remember(path, listing)
        for directory in paths_in(path, set(known.directories) - listing.directories.keys()):
            self._drop_tree(directory)
        for file in paths_in(path, set(known.files) - listing.candidates.keys()):
            self._drop_file(file)
        for directory, inode in zip(paths_in(path, listing.directories), listing.directories.values(), strict=True):
            if directory not in self._directories:
                self.scan(directory)
            elif inode_in(self._directories[directory].fingerprint) != inode:
                self.mark(directory)
        for file, inode in zip(paths_in(path, listing.candidates), listing.candidates.values(), strict=True):
            if file not in self._documents.files or inode_in(self._documents.files[file].fingerprint) != inode:
                self.mark(file)

    def _walk(self, below: str) -> Iterator[tuple[str, FolderListing | OSError]]:
        self._watch(below)
        for path, listing in walk(self._root, self._is_pruned, below, self._is_another):
            if isinstance(listing, FolderListing):
                self._remember(path, listing)
                # Before the walk lists them: what appears in them from now on is an event or is listed.
                for directory in paths_in(path, listing.directories):
                    self._watch(directory)
            else:
                self._remember_failure(path, listing)
            yield path, listing

    def _remember(self, path: str, listing: FolderListing) -> None:
        self.unlisted.pop(path, None)
        racy = time.time_ns() - listing.changed_ns < TICK_NS
        directories, files = names_of(listing.directories), names_of(listing.candidates)
        self._directories[path] = Directory(listing.fingerprint, racy, directories, files)

    def _remember_failure(self, path: str, error: OSError) -> None:
        now = self._fingerprint(path)
        if now is None or error.errno in _NO_DIRECTORY:
            self._drop_tree(path)
            return
        self.unlisted[path] = os.strerror(error.errno or 0)
        known = self._directories.setdefault(path, Directory(now, racy=True))
        known.fingerprint, known.racy = now, True

    # Forgetting

    def _drop_file(self, path: str) -> None:
        self._directories.discard_file(path)
        self._documents.drop(path)

    def _drop_directory(self, path: str) -> None:
        if self._directories.discard(path):
            self.unlisted.pop(path, None)
            self._unwatch(path)

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
        if not below:
            return set(self._directories), set(self._documents.files)
        return self._directories.subtree(below)

    # The disk

    def _absolute(self, path: str) -> str:
        # Not the root with a slash at its end: that would follow it where it is a link by now.
        return self._prefix + path if path else self._root

    def _fingerprint(self, path: str) -> int | None:
        status = self._status(path)
        return None if status is None else fingerprint(status)

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self._absolute(path))
        except OSError:
            return None
