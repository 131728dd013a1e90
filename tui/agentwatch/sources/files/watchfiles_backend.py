"""Waiting for changes by watchfiles: wherever it runs, Linux without inotify, macOS and the BSDs."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Generator
from typing import Final

from watchfiles import Change, watch
from watchfiles.main import FileChange

from agentwatch.sources.files.watch import NOTHING, Backend, Changes, WatchError, why_polling

_STEP_MS: Final = 10
_DEBOUNCE_MS: Final = 20
_TIMEOUT_MS: Final = 20
"""Together a latency of 17 ms, for just under one percent of a core while nothing happens: it looks every step."""


class WatchfilesBackend(Backend):
    """watchfiles on exactly the given directories, not recursive: so pruned directories cost the kernel nothing.

    A watch cannot be changed, only built anew: that happens with the next wait, not too often, and is reported as
    `lost`, because what happened before the new one stood is not known.
    """

    def __init__(self, root: str) -> None:
        self._prefix = root if root.endswith("/") else root + "/"
        self._directories: set[str] = set()
        self._stale = False
        self._build_at = 0.0
        self._watching: Generator[set[FileChange]] | None = None
        self._woken = threading.Event()

    def watch(self, path: str) -> None:
        if path not in self._directories:
            self._directories.add(path)
            self._stale = True

    def unwatch(self, path: str) -> None:
        # What is still watched in vain does no harm until the next building.
        self._directories.discard(path)

    def wait(self, timeout: float) -> Changes:
        deadline = time.monotonic() + timeout
        while not self._woken.is_set():
            if self._stale and time.monotonic() >= self._build_at:
                self._build()
                return Changes(lost=True)
            remaining = deadline - time.monotonic()
            if self._watching is None:
                self._woken.wait(min(max(remaining, 0.0), 0.1))
            else:
                changes = self._next(self._watching)
                if changes.paths or changes.lost:
                    return changes
            if remaining <= 0:
                break
        return NOTHING

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._watching = None

    def _next(self, watching: Generator[set[FileChange]]) -> Changes:
        try:
            changes = next(watching)
        except (StopIteration, RuntimeError):
            # A file name that is not UTF-8 ends the watch with a RuntimeError: any agent can write one.
            self.close()
            self._stale = True
            return Changes(lost=True)
        except OSError as error:
            raise WatchError(why_polling(error, "fs.inotify.max_user_watches")) from error
        paths = set()
        for change, path in changes:
            relative = path.removeprefix(self._prefix) if path.startswith(self._prefix) else ""
            if relative in self._directories and change != Change.modified:
                # Deleted, moved away or made again: the old watch died with the old directory.
                self._stale = True
            paths.add(relative)
        return Changes(frozenset(paths))

    def _build(self) -> None:
        """The new watch stands before the old one is dropped."""
        started = time.monotonic()
        paths = [path for path in (self._prefix + name for name in self._directories) if _is_directory(path)]
        self._stale = False
        if paths:
            watching = watch(
                *paths,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=self._woken,
                rust_timeout=_TIMEOUT_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                force_polling=False,
                recursive=False,
                ignore_permission_denied=True,
            )
            try:
                # The watch is set up by the first step; what it reports is covered by `lost`.
                next(watching, None)
            except (FileNotFoundError, NotADirectoryError, RuntimeError):
                # A directory went between the look and the building.
                watching.close()
                self._stale = True
            except OSError as error:
                raise WatchError(why_polling(error, "fs.inotify.max_user_watches")) from error
            else:
                self.close()
                self._watching = watching
        now = time.monotonic()
        self._build_at = now + max(0.1, 5 * (now - started))


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
