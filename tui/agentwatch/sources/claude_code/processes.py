"""Whether the program that ran a session is known to be gone, from the file that each running one keeps."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.sources.sessions.fields import mapping, text, whole

_MAX_BYTES: Final = 64 * 1024
_MOST: Final = 1000
_START: Final = 19
"""Index of a process's start time in `/proc/<pid>/stat`, counted behind its name."""


@dataclass(frozen=True, slots=True)
class _Registered:
    pid: int
    start: str | None
    domain: str | None


class Processes:
    """`sessions/<pid>.json`: written when the program starts, removed when it ends well, left behind when it is killed.

    A file that names no process of this system, of another machine's or container's, says nothing.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "sessions"
        self._read: dict[str, tuple[tuple[int, int], str, _Registered]] = {}
        self._known: set[str] = set()

    def look(self) -> None:
        """Read what has changed since the last look."""
        found: dict[str, tuple[tuple[int, int], str, _Registered]] = {}
        try:
            with os.scandir(self.directory) as entries:
                for entry in list(entries)[:_MOST]:
                    if entry.name.endswith(".json") and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        mark = (status.st_mtime_ns, status.st_size)
                        known = self._read.get(entry.name)
                        read = known if known is not None and known[0] == mark else _read(Path(entry.path), mark)
                        if read is not None:
                            found[entry.name] = read
        except OSError:
            found = {}
        self._read = found
        self._known |= {session for _, session, _ in found.values()}

    def gone(self, session_id: str) -> bool | None:
        """True if it ended or was killed, False if it runs, None where it is not known."""
        mine = [registered for _, session, registered in self._read.values() if session == session_id]
        if not mine:
            return True if session_id in self._known else None
        answers = [_gone(registered) for registered in mine]
        if False in answers:
            return False
        return None if None in answers else True


def _read(path: Path, mark: tuple[int, int]) -> tuple[tuple[int, int], str, _Registered] | None:
    if mark[1] > _MAX_BYTES:
        return None
    try:
        found: Mapping[str, object] = mapping(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None
    session, pid = text(found, "sessionId"), (whole(found, "pid") or 0)
    if session is None or pid < 2:
        return None
    start = found.get("procStart")
    return (
        mark,
        session,
        _Registered(pid, start if isinstance(start, str) else None, text(found, "pidDomain")),
    )


def _gone(registered: _Registered) -> bool | None:
    if registered.domain is not None and not _is_ours(registered.domain):
        return None
    try:
        os.kill(registered.pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return None
    if registered.start is None or not registered.start.isdigit() or sys.platform != "linux":
        return False
    try:
        status = Path(f"/proc/{registered.pid}/stat").read_bytes()
    except OSError:
        return None
    fields = status.rpartition(b")")[2].split()
    return len(fields) > _START and fields[_START].decode("ascii", "replace") != registered.start


def _is_ours(domain: str) -> bool:
    if domain == sys.platform:
        return True
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  it is no path
    except OSError:
        return False
    return "".join(filter(str.isdigit, namespace)) in domain
