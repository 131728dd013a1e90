"""Waits for changes in a set of directories, by inotify on Linux and by the library watchfiles on other systems."""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from ctypes import CDLL
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.sources.files.read import absolute_path, is_candidate, join
from agentwatch.text import describe_error

if TYPE_CHECKING:
    from inotify_simple import INotify

# Copied from <sys/inotify.h>, because the library is imported only when a directory is watched. A file causes an event
# when it is created, written, closed, moved or deleted, and when its attributes change. The directory causes an event
# when it is moved or deleted. A read causes no event. Nor does a file that is deleted but still open.
_MASK = 0x0700_0FCE
NAMES = 0x0700_0FC0  # events only if a file or directory is created, deleted or moved
_Q_OVERFLOW = 0x0000_4000
_ISDIR = 0x4000_0000

_LIMITS = {errno.ENOSPC, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
# The pause after irrelevant events. Otherwise a log file that grows beside the handoffs would keep a core busy.
_NOISE_SECONDS = 0.005


class Changes(NamedTuple):
    """Changed files and directories. `paths` are relative to the root. If `lost`, other paths may have changed too."""

    paths: frozenset[str] = frozenset()
    lost: bool = False


class Watcher:
    """Waits for changes directly inside given directories below `root`. The path "" is the root itself.

    `matters` takes a file's name, and tells whether changes of the file are reported. If the system reports no changes,
    `polling` tells the operator the reason, and `wait` returns only after its timeout. Any thread may call
    `wake`. Only one thread may call the other methods."""

    has_inotify = sys.platform == "linux"
    _inotify: INotify | None = None
    _stop: threading.Event | None = None  # ends the thread that watches all below the root, if there is no inotify
    _has_lost = False

    def __init__(self, root: str, matters: Callable[[str], bool] = is_candidate, polling: str = "", mask: int = _MASK):
        self.polling = polling
        self._mask = mask
        self._root, self._matters = root, matters
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._woken, self._waker = socket.socketpair()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)

    def watch(self, path: str) -> bool:
        """Watch a directory. Return whether a new watch was made. A second call replaces a watch that has ended."""
        if self.polling:
            return False
        if not self.has_inotify:
            if self._stop is None:
                self._stop = threading.Event()
                threading.Thread(target=self._watch_recursively, args=[self._stop], daemon=True).start()
            return False
        try:
            if self._inotify is None:
                import inotify_simple

                # Without this, inotify_simple would start programs to find the C library.
                inotify_simple._libc = CDLL(None, use_errno=True)  # noqa: SLF001
                self._inotify = inotify_simple.INotify(nonblocking=True)
                self._poll.register(self._inotify, select.POLLIN)
            watch = self._inotify.add_watch(absolute_path(self._root, path), self._mask)
        except OSError as error:
            # Any other error means that the directory is gone, replaced or unreadable. The next sweep reports this.
            if error.errno in _LIMITS:
                cure = "Raise fs.inotify.max_user_watches and max_user_instances, or prune directories"
                self._give_up(f"the system gives no more file watches ({os.strerror(error.errno)}). {cure}")
                self._close_watches()
            return False
        # The kernel watches the directory and not its name. A directory that was moved keeps its watch.
        if watch in self._paths:
            del self._watches[self._paths[watch]]
        is_new = self._paths.get(watch) != path
        if self._watches.get(path, watch) != watch:
            self.unwatch(path)
        self._paths[watch], self._watches[path] = path, watch
        return is_new

    def unwatch(self, path: str) -> None:
        """Stop watching a directory."""
        watch = self._watches.pop(path, None)
        if watch is not None and self._inotify is not None:
            # If the directory is gone, the kernel has removed the watch already, and `rm_watch` fails.
            self._paths.pop(watch, None)
            with suppress(OSError):
                self._inotify.rm_watch(watch)

    def wait(self, timeout: float) -> Changes:
        """Return the changes since the last call. Wait for changes for at most `timeout` seconds."""
        if self._has_lost:
            self._has_lost = False
            return Changes(lost=True)
        ready = [descriptor for descriptor, _ in self._poll.poll(timeout * 1_000)]
        if self._woken.fileno() in ready:
            self._woken.recv(4096)
        if self._inotify is None or self._inotify.fileno() not in ready:
            return Changes()
        paths, lost = set[str](), False
        for watch, mask, _, name in self._inotify.read(0):
            directory = self._paths.get(watch)
            lost = lost or bool(mask & _Q_OVERFLOW)
            if directory is not None and (not name or mask & _ISDIR or self._matters(name)):
                paths.add(join(directory, name) if name else directory)
        if not (paths or lost):
            time.sleep(_NOISE_SECONDS)
        return Changes(frozenset(paths), lost)

    def _watch_recursively(self, stop: threading.Event) -> None:
        """Set `_has_lost` whenever something changes below the root. This runs in a thread of its own."""
        import watchfiles

        def matters(_: object, path: str) -> bool:
            return self._matters(path) or os.path.isdir(path)

        try:
            for _ in watchfiles.watch(self._root, watch_filter=matters, debounce=100, step=10, stop_event=stop):
                self._has_lost = True
                self.wake()
        except (OSError, RuntimeError) as error:
            self._give_up(f"the system tells of no changes ({describe_error(error)})")
            self.wake()

    def _give_up(self, why: str) -> None:
        self.polling = f"Polling, because {why}"
        self._has_lost = True

    def wake(self) -> None:
        """End the current `wait`, or the next `wait` if none is running. Any thread may call this."""
        with suppress(OSError):
            self._waker.send(b".")

    def close(self) -> None:
        """Stop watching all directories, and close the sockets."""
        self.polling = "Polling, because nothing is watched any more"
        self._woken.close()
        self._waker.close()
        self._close_watches()

    def _close_watches(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = None
        if self._inotify is not None:
            self._poll.unregister(self._inotify)
            self._inotify.close()
            self._inotify = None
