"""Reads the files that running programs write about themselves: does a session's program run, and does it wait?"""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentwatch.sources.sessions.fields import Fields, as_object, int_at, number, read_json, string, text

_MAX_BYTES = 64 * 1024
_MOST = 1000
_START = 19  # the index of the start time among the fields of `/proc/<pid>/stat` after the process's name
_PATIENCE = 0.5  # a shorter wait, in seconds, is not shown, because hooks answer some requests at once
_FIRST_NAMESPACE = 0xEFFFFFFC  # Linux's first process namespace: only in this namespace all processes are visible
_SHARED = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "fakeowner", "fuse.grpcfuse", "fuse.osxfs", "fuse.rclone", "fuse.sshfs"),
    *("fuse.vmhgfs-fuse", "gpfs", "lustre", "nfs", "prl_fs", "smb", "vboxsf", "virtiofs", "vmhgfs"),
)  # beginnings of the names of shared file systems: programs on other machines, which we cannot see, may write to them


class Wait(NamedTuple):
    """A program waits for a human at its terminal. It needs `what`, and waits `since` this time (epoch seconds)."""

    what: str
    since: float


class Program(NamedTuple):
    """The state of the programs that have run a session. `gone` tells whether all these programs have ended; None if
    unknown. `began` and `wait` are about the running program: its start in epoch seconds, and its wait."""

    gone: bool | None = None
    began: float = 0.0
    wait: Wait | None = None


UNKNOWN = Program()


class Registered(NamedTuple):
    """A process that a program has registered in a file. `began` is its start in epoch seconds, `start` its start as in
    `/proc`. The pid is valid only in the `domain`: a system's name, a text with a namespace's number, or None."""

    pid: int
    began: float
    start: str | None = None
    domain: str | None = None
    wait: Wait | None = None


class Processes:
    """Reads files `<pid>.json`, each about one process of a program. A program writes its file when it starts, and
    removes the file at a normal end. A killed program leaves its file behind.

    A file may be from another machine or a container. The process is then missing on this system, but may run. So a
    missing process counts as ended only if it was seen on this system, or if its file must be from this system."""

    def __init__(self, directory: Path, read_wait: Callable[[Fields], Wait | None] = lambda _: None):
        self._directory = directory
        self._read_wait = read_wait
        self._registered: dict[str, list[Registered]] = {}  # by session: the latest processes that named the session
        self._seen: set[tuple[int, str | None]] = set()  # processes that were seen on this machine

    def refresh(self) -> None:
        """Read all files again."""
        found = defaultdict(list)
        with suppress(OSError):
            for path in islice(self._directory.glob("*.json"), _MOST):
                with suppress(OSError, ValueError):
                    fields = as_object(read_json(path, _MAX_BYTES))
                    session, pid, namespace = text(fields, "sessionId"), int_at(fields, "pid"), int_at(fields, "pidNs")
                    if session is not None and pid is not None and pid > 1:
                        # Qwen Code writes `<boot id>:<start time>`, and for a namespace only its number.
                        start = string(fields, "procStart").rpartition(":")[2] or None
                        domain = text(fields, "pidDomain") or (str(namespace) if namespace is not None else None)
                        began = (number(fields, "startedAt") or 0.0) / 1000
                        found[session].append(Registered(pid, began, start, domain, self._read_wait(fields)))
        # If a process's file now names another session, the process may still run agents of the earlier session.
        before = {name: [one._replace(wait=None) for one in known] for name, known in self._registered.items()}
        self._registered = before | found

    def program_of(self, session_id: str, others: Sequence[Registered] = ()) -> Program:
        """Return the state of a session's programs. `others` are processes that the files do not name."""
        answers = {one: self._has_ended(one) for one in (*others, *self._registered.get(session_id, ()))}
        running = [one for one, gone in answers.items() if gone is False]
        if not running:
            return Program(gone=True) if answers and all(answers.values()) else UNKNOWN
        # If the clock was set back, the wait lies in the future. It is shown all the same.
        now = time.time()
        waits = [one.wait for one in running if one.wait and not 0 <= now - one.wait.since < _PATIENCE]
        return Program(False, min(one.began for one in running), next(iter(waits), None))

    def _has_ended(self, registered: Registered) -> bool | None:
        """Tell whether a process has ended. None if unknown."""
        pid, _, start, domain, _ = registered
        if domain is not None and not _is_valid_here(domain):
            return None
        gone = _is_process_gone(pid, start)
        if gone is False:
            self._seen.add((pid, start))
        is_known = is_on_local_disk(self._directory) and (domain is not None or sees_all_processes())
        return gone if not gone or is_known or (pid, start) in self._seen else None


def _is_process_gone(pid: int, start: str | None) -> bool | None:
    try:
        os.kill(pid, 0)
        if start is None or not start.isdigit() or sys.platform != "linux":
            return False
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return None
    return len(fields) > _START and fields[_START].decode("ascii", "replace") != start


def _is_valid_here(domain: str) -> bool:
    """Tell whether pids of a domain are valid for us: the domain names this system or our process namespace."""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  it is no path
        if "".join(filter(str.isdigit, namespace)) in domain:
            return True
    return domain == sys.platform


def sees_all_processes() -> bool:
    """Tell whether all processes of this system are visible to us. In a container, they are not."""
    try:
        return sys.platform != "linux" or Path("/proc/self/ns/pid").stat().st_ino == _FIRST_NAMESPACE
    except OSError:
        return False


@cache
def is_on_local_disk(path: Path) -> bool:
    """Tell whether a path is on a file system that is not shared with other machines. If unknown, return True."""
    try:
        device = path.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return True
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [row.partition(" - ")[2] for row in mounts if row.split(" ", 3)[2:3] == [number]]
    return not any(kind.startswith(_SHARED) for kind in kinds)
