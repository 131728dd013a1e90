"""Tells whether a session's program is gone, and what it waits for, by the files in which running programs register."""

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

from agentwatch.sources.sessions.fields import Fields, as_object, integer, number, read_json, string, text

_MAX_BYTES = 64 * 1024
_MOST = 1000
_START = 19  # index of a process's start time in `/proc/<pid>/stat`, counted after its name
_PATIENCE = 0.5  # seconds that a wait has to last: hooks answer some at once
_FIRST_NAMESPACE = 0xEFFFFFFC  # number of Linux's first process namespace: only from there all processes are seen
_SHARED = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "fakeowner", "fuse.grpcfuse", "fuse.osxfs", "fuse.rclone", "fuse.sshfs"),
    *("fuse.vmhgfs-fuse", "gpfs", "lustre", "nfs", "prl_fs", "smb", "vboxsf", "virtiofs", "vmhgfs"),
)  # beginnings of names of file systems that other machines may write to, whose processes and locks are not seen here


class Wait(NamedTuple):
    """A program waits for something from the person at its terminal, since a time in epoch seconds."""

    what: str
    since: float


class Program(NamedTuple):
    """The programs that have run a session: `gone` if they have ended or were killed, None if unknown. The running one
    `began` at a time in epoch seconds, and may wait for somebody."""

    gone: bool | None = None
    began: float = 0.0
    wait: Wait | None = None


UNKNOWN = Program()


class Registered(NamedTuple):
    """A process as a program registers it: its pid, and when it began, by our clock and by `/proc`. `domain` is where
    its pid is valid: the system's name, or a text with the namespace's number; None if not stated."""

    pid: int
    began: float
    start: str | None = None
    domain: str | None = None
    wait: Wait | None = None


class Processes:
    """Files `<pid>.json`: written when a program starts, removed when it ends well, left behind when it is killed. The
    file of another machine's or container's process shows nothing. A file without a domain counts if the process was
    seen to run, or if all processes that can have written it are seen from here."""

    def __init__(self, directory: Path, read_wait: Callable[[Fields], Wait | None] = lambda _: None):
        self._directory = directory
        self._read_wait = read_wait
        self._registered: dict[str, list[Registered]] = {}  # by session: the processes of the last files that named it
        self._seen: set[tuple[int, str | None]] = set()  # processes that ran here

    def refresh(self) -> None:
        """Read the current files."""
        found = defaultdict(list)
        with suppress(OSError):
            for path in islice(self._directory.glob("*.json"), _MOST):
                with suppress(OSError, ValueError):
                    fields = as_object(read_json(path, _MAX_BYTES))
                    session, pid, namespace = (
                        text(fields, "sessionId"),
                        integer(fields, "pid"),
                        integer(fields, "pidNs"),
                    )
                    if session is not None and pid is not None and pid > 1:
                        # Qwen Code writes the id of the boot before it, and identifies a namespace by its number.
                        start = string(fields, "procStart").rpartition(":")[2] or None
                        domain = text(fields, "pidDomain") or (str(namespace) if namespace is not None else None)
                        began = (number(fields, "startedAt") or 0.0) / 1000
                        found[session].append(Registered(pid, began, start, domain, self._read_wait(fields)))
        # A process that is no longer named has ended, or runs another session, and perhaps still agents of this one.
        before = {name: [one._replace(wait=None) for one in known] for name, known in self._registered.items()}
        self._registered = before | found

    def program_of(self, session_id: str, others: Sequence[Registered] = ()) -> Program:
        """Return the program of a session, by the last look and by `others`, which are known otherwise."""
        answers = {one: self._has_ended(one) for one in (*others, *self._registered.get(session_id, ()))}
        running = [one for one, gone in answers.items() if gone is False]
        if not running:
            return Program(gone=True) if answers and all(answers.values()) else UNKNOWN
        # A clock that was set back must not hide anything.
        now = time.time()
        waits = [one.wait for one in running if one.wait and not 0 <= now - one.wait.since < _PATIENCE]
        return Program(False, min(one.began for one in running), next(iter(waits), None))

    def _has_ended(self, registered: Registered) -> bool | None:
        """Tell whether no such process, of any user, runs here; None if unknown."""
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
    """Tell whether pids of a domain are valid here: it is the system's name, or holds our Linux namespace's number."""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  it is no path
        if "".join(filter(str.isdigit, namespace)) in domain:
            return True
    return domain == sys.platform


def sees_all_processes() -> bool:
    """Tell whether all processes of this system are seen from here, which is not so inside a container."""
    try:
        return sys.platform != "linux" or Path("/proc/self/ns/pid").stat().st_ino == _FIRST_NAMESPACE
    except OSError:
        return False


@cache
def is_on_local_disk(path: Path) -> bool:
    """Tell whether only this system writes there, as far as its file system shows."""
    try:
        device = path.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return True
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [row.partition(" - ")[2] for row in mounts if row.split(" ", 3)[2:3] == [number]]
    return not any(kind.startswith(_SHARED) for kind in kinds)
