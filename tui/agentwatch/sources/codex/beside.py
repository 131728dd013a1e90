"""Facts in a home of Codex beside its rollouts: the names of its sessions, and the locks of those who write one.

`state_<n>.sqlite` has the names that people gave to sessions; n grows with the schema.

Codex 0.169 keeps `thread-writer-locks/<thread>.lock`, locked with flock as long as it writes the session; a clean end
removes the file, a killed one leaves it without its lock.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentwatch.sources.sessions.where import is_of_this_system, sees_all

_NUMBER: Final = re.compile(r"\D")
_SECONDS: Final = 2.0
"""Between two looks: Codex writes all the time while it works, and the kernel takes its time to list all locks."""
_WAIT_SECONDS: Final = 0.2

_FIRST_VERSION: Final = (0, 169)
"""The first with locks."""
_SETTLED: Final = 1.0
"""Seconds of silence before a lock that is not held tells anything: a session takes it as it begins."""

_NAMES: Final = "SELECT id, name FROM threads WHERE name <> ''"


class Beside:
    """Facts beside the rollouts of a home, as of a moment ago."""

    def __init__(self, home: Path) -> None:
        self.names: dict[object, str] = {}
        """By thread, its name."""
        self.looked_at = 0.0
        self._home = home
        self._locks = home / "thread-writer-locks"
        self._held: frozenset[int] | None = None
        self._sees_all = False
        self._next = 0.0

    def look(self) -> None:
        """Look, if it is time to."""
        if time.monotonic() < self._next:
            return
        self._next, self.looked_at = time.monotonic() + _SECONDS, time.time()
        self._held = _held()
        self._sees_all = sees_all() and os.path.isdir(self._locks) and is_of_this_system(self._locks)
        states = self._home.glob("state_*.sqlite")
        path = max(states, key=lambda state: int(_NUMBER.sub("", state.name) or 0), default=None)
        # Without its log no Codex writes it, and SQLite would make one, in a place where nothing of ours belongs.
        if path is not None and os.path.exists(f"{path}-wal"):
            uri = f"file:{quote(os.fsencode(path))}?mode=ro"
            # Nothing else is missing where it has another schema.
            with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS)) as connection:
                self.names = {thread: str(name) for thread, name in connection.execute(_NAMES)}

    def is_gone(self, thread: str, version: tuple[int, ...], updated_at: float) -> bool | None:
        """Whether the writer of a thread, last heard of at `updated_at`, is gone; None where that cannot be told."""
        if version < _FIRST_VERSION or self._held is None:
            return None
        try:
            # The device is not compared: on some file systems the kernel names another one for the lock.
            if (self._locks / f"{thread}.lock").stat(follow_symlinks=False).st_ino in self._held:
                return False
        except FileNotFoundError:
            pass
        except (OSError, ValueError):
            return None
        return True if self._sees_all and self.looked_at - updated_at > _SETTLED else None


def _held() -> frozenset[int] | None:
    """The inodes of all files that are locked by flock. Linux tells them without touching them; elsewhere none are
    known."""
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    rows = (line.split() for line in lines if "FLOCK" in line)
    places = (field.rpartition(":")[2] for row in rows for field in row if field.count(":") == 2)
    return frozenset(int(inode) for inode in places if inode.isdecimal())
