"""Whether a Codex that writes a session is running: it holds a lock on a file named after it for as long as it does.

Codex 0.169 keeps `thread-writer-locks/<thread>.lock` in its home, locked with flock; a clean end removes the file,
a killed one leaves it without its lock.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from agentwatch.sources.codex.header import THREAD_ID

FIRST_VERSION: Final = (0, 169)
_DIRECTORY: Final = "thread-writer-locks"
_FIRST_NAMESPACE: Final = 0xEFFFFFFC
"""The number of the first process namespace of Linux: only from there are the locks of all processes seen."""


_SECONDS: Final = 2.0
"""Between two looks: the kernel takes its time to list all locks."""


_SETTLED: Final = 1.0
"""Seconds of silence before a lock that is not held tells anything: a session takes it as it begins."""


class Writers:
    """The locks that are held, as of a moment ago. Linux tells them without touching them; elsewhere none are known."""

    def __init__(self, home: Path) -> None:
        self._directory = home / _DIRECTORY
        self._held: frozenset[int] | None = None
        self._sees_all = False
        self._looked_at = 0.0
        self._next = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() >= self._next

    def gone(self, thread: str, version: tuple[int, ...], updated_at: float) -> bool | None:
        """Whether the writer of a thread, last heard of at `updated_at`, is gone; None where that cannot be told."""
        if version < FIRST_VERSION or THREAD_ID.fullmatch(thread) is None:
            return None
        if self.is_due:
            self._next = time.monotonic() + _SECONDS
            self._looked_at = time.time()
            self._held = _held()
            self._sees_all = _sees_all() and os.path.isdir(self._directory)
        if self._held is None:
            return None
        try:
            # The device is not compared: on some file systems the kernel names another one for the lock.
            if (self._directory / f"{thread}.lock").stat(follow_symlinks=False).st_ino in self._held:
                return False
        except FileNotFoundError:
            pass
        except OSError:
            return None
        return True if self._sees_all and self._looked_at - updated_at > _SETTLED else None


def _held() -> frozenset[int] | None:
    """The inodes of all files that are locked by flock."""
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    rows = (line.split() for line in lines if "FLOCK" in line)
    places = (field.rpartition(":")[2] for row in rows for field in row if field.count(":") == 2)
    return frozenset(int(inode) for inode in places if inode.isdecimal())


def _sees_all() -> bool:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == _FIRST_NAMESPACE
    except OSError:
        return False
