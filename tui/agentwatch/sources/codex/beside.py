"""What a home of Codex tells beside its rollouts: its databases, and the locks of those who write a session.

`state_<n>.sqlite` and `thread_history_<n>.sqlite` have links, the state of turns, and the names that people gave to
sessions; n grows with the schema. Only the columns below are used, and a database without them is left alone.

Codex 0.169 keeps `thread-writer-locks/<thread>.lock`, locked with flock as long as it writes the session; a clean end
removes the file, a killed one leaves it without its lock.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentwatch.sources.codex.rollout import THREAD_ID
from agentwatch.sources.sessions.where import is_of_this_system, sees_all

_STATE: Final = re.compile(r"state_(\d{1,6})\.sqlite")
_HISTORY: Final = re.compile(r"thread_history_(\d{1,6})\.sqlite")
_SECONDS: Final = 2.0
"""Between two looks: Codex writes all the time while it works, and the kernel takes its time to list all locks."""
_WAIT_SECONDS: Final = 0.2
_AT_ONCE: Final = 500

_FIRST_VERSION: Final = (0, 169)
"""The first with locks."""
_SETTLED: Final = 1.0
"""Seconds of silence before a lock that is not held tells anything: a session takes it as it begins."""

_EDGES: Final = "SELECT child_thread_id, parent_thread_id FROM thread_spawn_edges WHERE child_thread_id IN"
_NAMES: Final = "SELECT id, name FROM threads WHERE name <> '' AND id IN"
_TURNS: Final = "SELECT thread_id, status, max(rollout_ordinal) FROM thread_turns WHERE thread_id IN"


class Database:
    """Looks at the newest databases of a home from time to time."""

    def __init__(self, home: Path) -> None:
        self.parents: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.statuses: dict[str, str] = {}
        """The status of the last turn of a thread: `inProgress`, `completed`, `interrupted`, `failed`."""
        self.skipped: dict[Path, str] = {}
        """Databases that are there and not read, and why."""
        self._home = home
        self._next = 0.0

    def refresh(self, threads: Sequence[str]) -> None:
        """Look what is said of some threads, if it is time to."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS
        self.skipped.clear()
        state, history = _newest(self._home, _STATE), _newest(self._home, _HISTORY)
        if state is not None:
            self.parents |= self._pairs(state, _EDGES, threads)
            self.names |= self._pairs(state, _NAMES, threads)
        if history is not None:
            self.statuses |= self._pairs(history, _TURNS, threads, " GROUP BY thread_id")

    def _pairs(self, path: Path, query: str, threads: Sequence[str], behind: str = "") -> Mapping[str, str]:
        # Without its log no Codex writes it, and SQLite would make one, in a place where nothing of ours belongs.
        if not os.path.exists(f"{path}-wal"):
            return {}
        pairs: dict[str, str] = {}
        # An id that is no text would be refused by SQLite as a mistake of ours.
        threads = [thread for thread in threads if THREAD_ID.fullmatch(thread)]
        try:
            uri = f"file:{quote(os.fsencode(path))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS)) as connection:
                for first in range(0, len(threads), _AT_ONCE):
                    some = threads[first : first + _AT_ONCE]
                    marks = ", ".join("?" * len(some))
                    rows = connection.execute(f"{query} ({marks}){behind}", some)
                    pairs |= {row[0]: row[1] for row in rows if isinstance(row[0], str) and isinstance(row[1], str)}
        except sqlite3.Error as error:
            self.skipped[path] = f"It is not read ({error}); the rollouts are."
        return pairs


def _newest(home: Path, pattern: re.Pattern[str]) -> Path | None:
    try:
        names = [entry.name for entry in home.iterdir()]
    except OSError:
        return None
    numbered = [(int(match[1]), match[0]) for name in names if (match := pattern.fullmatch(name))]
    return home / max(numbered)[1] if numbered else None


class Writers:
    """The locks that are held, as of a moment ago. Linux tells them without touching them; elsewhere none are known."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "thread-writer-locks"
        self._held: frozenset[int] | None = None
        self._sees_all = False
        self._looked_at = 0.0
        self._next = 0.0

    def look(self) -> float:
        """See who writes, if it is time to; when that was done last, in seconds since the epoch."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS
            self._looked_at = time.time()
            self._held = _held()
            self._sees_all = sees_all() and os.path.isdir(self._directory) and is_of_this_system(self._directory)
        return self._looked_at

    def gone(self, thread: str, version: tuple[int, ...], updated_at: float) -> bool | None:
        """Whether the writer of a thread, last heard of at `updated_at`, is gone; None where that cannot be told."""
        if version < _FIRST_VERSION or THREAD_ID.fullmatch(thread) is None:
            return None
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
