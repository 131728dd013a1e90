"""`inuse.<pid>.lock` in the directory of a session: made when a program opens it, left behind by one that is killed."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.sources.sessions.processes import Processes, Program, Registered
from agentwatch.sources.sessions.projects import Projects

_LOCK: Final = re.compile(r"inuse\.([1-9]\d{0,9})\.lock")
_SLACK: Final = 2.0
"""Seconds by which a process may seem to have begun after its lock: the clocks of both are no finer than that."""


class Locks(Processes):
    """A process that has begun later than a lock with its number was made is another one."""

    def __init__(self, projects: Projects) -> None:
        super().__init__(projects.root)
        self.directory = projects.root
        self._listings = projects.listings

    def look(self) -> None:
        """A lock is looked for when somebody asks about its session: the listing tells whether one came or went."""

    def of(self, session_id: str) -> Program:
        """The program of a session, as of now."""
        directory = os.path.join(self.directory, session_id)  # noqa: PTH118  paths are strings for speed
        listing = self._listings.of(directory)
        found: list[Registered] = []
        for name in listing.files if listing is not None else ():
            if (match := _LOCK.fullmatch(name)) is not None:
                with suppress(OSError):
                    made = os.stat(os.path.join(directory, name)).st_mtime  # noqa: PTH116, PTH118
                    found.append(Registered(session_id, int(match[1]), None, None, made, None))
        self._register(session_id, found)
        return super().of(session_id)

    def _gone(self, registered: Registered) -> bool | None:
        began = _began(registered.pid)
        if began is not None and began > registered.began + _SLACK:
            return self._not_seen_here()
        return super()._gone(registered)


def _began(pid: int) -> float | None:
    """When a process began, in seconds since the epoch; None where the system does not say."""
    if sys.platform != "linux":
        return None
    try:
        ticks = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
        boot = next(line for line in Path("/proc/stat").read_text("ascii").splitlines() if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
