"""Waiting for changes by Linux inotify: directories are added one by one, and an overflow of the queue is known.

The three system calls by ctypes. Against a general inotify package: no subprocess at import to find the C library, a
tenth of the time per event, and names that are not UTF-8 do no harm.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import threading
from collections.abc import Callable
from typing import Final

from agentwatch.sources.files.names import is_candidate
from agentwatch.sources.files.watch import NOTHING, Backend, Changes, WatchError, why_polling

# From <sys/inotify.h>; the numbers are part of the kernel's interface and the same on every architecture.
_MODIFY: Final = 0x0000_0002
_ATTRIB: Final = 0x0000_0004
_CLOSE_WRITE: Final = 0x0000_0008
_MOVED_FROM: Final = 0x0000_0040
_MOVED_TO: Final = 0x0000_0080
_CREATE: Final = 0x0000_0100
_DELETE: Final = 0x0000_0200
_DELETE_SELF: Final = 0x0000_0400
_MOVE_SELF: Final = 0x0000_0800
_Q_OVERFLOW: Final = 0x0000_4000
_ONLYDIR: Final = 0x0100_0000
_DONT_FOLLOW: Final = 0x0200_0000
_EXCL_UNLINK: Final = 0x0400_0000
_ISDIR: Final = 0x4000_0000

WHOLE: Final = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
"""Without what is still being written."""
# Nothing that reading causes: our own look must not be an event.
_CHANGES: Final = WHOLE | _MODIFY | _ATTRIB
_MASK: Final = _DELETE_SELF | _MOVE_SELF | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK

_HEADER: Final = struct.Struct("iIII")
"""wd, mask, cookie, length of the name; the name follows, padded with NUL."""

_BUFFER: Final = 256 * 1024
_READS: Final = 16
"""Reads in one wait, so that a stream of events cannot keep it for ever."""

_NOISE: Final = Changes(others=True)
_NOISE_MS: Final = 5
"""Rest after events that concern nobody: a log file that grows next to the handoffs must not cost a core."""

_COMPANIONS_MS: Final = 1
"""Rest after the mere creation of a file: its first bytes nearly always follow at once."""

_LIMITS: Final = frozenset({errno.ENOSPC, errno.ENOMEM, errno.EMFILE, errno.ENFILE})

_libc = ctypes.CDLL(None, use_errno=True)
_libc.inotify_init1.argtypes = (ctypes.c_int,)
_libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
_libc.inotify_rm_watch.argtypes = (ctypes.c_int, ctypes.c_int)


class InotifyBackend(Backend):
    """inotify on exactly the given directories. `concerns` tells of a file's name whether it is of interest, `changes`
    what may happen to it."""

    exact = True

    def __init__(self, root: str, concerns: Callable[[str], bool] = is_candidate, changes: int = _CHANGES) -> None:
        self._mask = _MASK | changes
        self._concerns = concerns
        self._root = os.fsencode(root)
        self._prefix = self._root if self._root.endswith(b"/") else self._root + b"/"
        self._descriptor: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise WatchError(why_polling(_last_error(), "fs.inotify.max_user_instances"))
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._events = select.poll()
        self._events.register(self._descriptor, select.POLLIN)
        self._events.register(self._wake, select.POLLIN)
        self._woken = select.poll()
        self._woken.register(self._wake, select.POLLIN)
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._open = True
        self._lock = threading.Lock()

    def watch(self, path: str) -> None:
        # Not the root with a slash at its end: that would follow it where it is a link by now.
        name = self._prefix + os.fsencode(path) if path else self._root
        watch: int = _libc.inotify_add_watch(self._descriptor, name, self._mask)
        if watch < 0:
            error = _last_error()
            if error.errno in _LIMITS:
                raise WatchError(why_polling(error, "fs.inotify.max_user_watches"))
            # Gone, no directory any more, or not ours to read: the next listing finds out.
            return
        # The kernel knows directories, not names: one that was moved keeps its watch and brings it along.
        if watch in self._paths:
            del self._watches[self._paths[watch]]
        old_watch = self._watches.get(path)
        if old_watch is not None and old_watch != watch:
            self._remove(old_watch)
        self._paths[watch] = path
        self._watches[path] = watch

    def unwatch(self, path: str) -> None:
        watch = self._watches.pop(path, None)
        if watch is not None:
            self._remove(watch)

    def wait(self, timeout: float) -> Changes:
        milliseconds = int(timeout * 1000 + 0.999)
        if not self._events.poll(milliseconds) or self._woken.poll(0):
            return NOTHING
        paths: set[str] = set()
        created: set[str] = set()
        lost = self._read(paths, created)
        if created and not paths:
            self._events.poll(_COMPANIONS_MS)
            lost |= self._read(paths, created)
        paths |= created
        if paths or lost:
            return Changes(frozenset(paths), lost)
        self._woken.poll(_NOISE_MS)
        return _NOISE

    def wake(self) -> None:
        # Once closed, the number may be another file's.
        with self._lock:
            if self._open:
                os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                os.close(self._descriptor)
                os.close(self._wake)

    def _remove(self, watch: int) -> None:
        # It is unknown here, and fails there, where the directory is gone and its watch with it.
        self._paths.pop(watch, None)
        _libc.inotify_rm_watch(self._descriptor, watch)

    def _read(self, paths: set[str], created: set[str]) -> bool:
        """Take what the kernel has into `paths`, merely created files into `created`. True: some was lost."""
        lost = False
        for _ in range(_READS):
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                break
            offset = 0
            while offset < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, offset)
                offset += _HEADER.size + length
                if mask & _Q_OVERFLOW:
                    lost = True
                    continue
                directory = self._paths.get(watch)
                name = os.fsdecode(data[offset - length : offset].rstrip(b"\0"))
                if directory is None or (name and not mask & _ISDIR and not self._concerns(name)):
                    continue
                path = f"{directory}/{name}" if directory and name else directory or name
                (created if mask & (_CREATE | _ISDIR) == _CREATE else paths).add(path)
        created -= paths
        return lost


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
