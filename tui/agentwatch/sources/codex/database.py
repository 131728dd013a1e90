"""What Codex's databases add to the rollouts: links, the state of turns, and the names that people gave to sessions.

`state_<n>.sqlite` and `thread_history_<n>.sqlite` in its home; n grows with the schema. Only the columns below are
used, and a database without them is left alone. The rollouts have everything that is needed.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentwatch.sources.codex.header import THREAD_ID

_STATE: Final = re.compile(r"state_(\d{1,6})\.sqlite")
_HISTORY: Final = re.compile(r"thread_history_(\d{1,6})\.sqlite")
_SECONDS: Final = 2.0
"""Between two looks: while Codex works, it writes there all the time."""
_WAIT_SECONDS: Final = 0.2
_AT_ONCE: Final = 500

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

    def refresh(self, threads: Sequence[str]) -> set[str]:
        """Look what is said of some threads, if it is time to; those of which something new is said."""
        if time.monotonic() < self._next:
            return set()
        self._next = time.monotonic() + _SECONDS
        self.skipped.clear()
        before = self.parents.items() | self.names.items() | self.statuses.items()
        state, history = _newest(self._home, _STATE), _newest(self._home, _HISTORY)
        if state is not None:
            self.parents |= self._pairs(state, _EDGES, threads)
            self.names |= self._pairs(state, _NAMES, threads)
        if history is not None:
            self.statuses |= self._pairs(history, _TURNS, threads, " GROUP BY thread_id")
        after = self.parents.items() | self.names.items() | self.statuses.items()
        return {thread for thread, _ in after - before}

    def _pairs(self, path: Path, query: str, threads: Sequence[str], behind: str = "") -> Mapping[str, str]:
        # Without its log no Codex writes it, and SQLite would make one, in a place where nothing of ours belongs.
        if not os.path.exists(f"{path}-wal"):
            return {}
        found: dict[str, str] = {}
        # An id that is no text would be refused by SQLite as a mistake of ours.
        threads = [thread for thread in threads if THREAD_ID.fullmatch(thread)]
        try:
            connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
            try:
                for first in range(0, len(threads), _AT_ONCE):
                    some = threads[first : first + _AT_ONCE]
                    marks = ", ".join("?" * len(some))
                    for row in connection.execute(f"{query} ({marks}){behind}", some):
                        if isinstance(row[0], str) and isinstance(row[1], str):
                            found[row[0]] = row[1]
            finally:
                connection.close()
        except sqlite3.Error as error:
            self.skipped[path] = f"It is not read ({error}); the rollouts are."
        return found


def _newest(home: Path, pattern: re.Pattern[str]) -> Path | None:
    try:
        names = [entry.name for entry in home.iterdir()]
    except OSError:
        return None
    numbered = [(int(found[1]), found[0]) for name in names if (found := pattern.fullmatch(name))]
    return home / max(numbered)[1] if numbered else None
