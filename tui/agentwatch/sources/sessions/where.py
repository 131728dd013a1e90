"""Whether processes and locks that are written down were those of this system, or of another machine or container."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Final

_FIRST_NAMESPACE: Final = 0xEFFFFFFC
"""The number of the first process namespace of Linux: only from there all processes are seen."""

_SHARED: Final = re.compile(
    r"9p|afs|beegfs|ceph|cifs|fakeowner|fuse\.(?:grpcfuse|osxfs|rclone|sshfs|vmhgfs-fuse)|gpfs|lustre|nfs\d?|prl_fs|smb\d?"
    r"|vboxsf|virtiofs|vmhgfs"
)
"""File systems that other machines may write to, of which neither processes nor locks are seen here."""

_MACHINE: Final = re.compile(r"[0-9a-f]{32}")


def is_ours(domain: str) -> bool:
    """Whether process ids that count in a domain count here.

    A domain is the name of the system, or holds the number of a process namespace of Linux and perhaps the id of the
    machine.
    """
    if domain == sys.platform:
        return True
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  it is no path
    except OSError:
        return False
    machine = _MACHINE.search(domain)
    # The first namespace has the same number on every machine.
    is_elsewhere = machine is not None and _machine() not in ("", machine[0])
    return not is_elsewhere and "".join(filter(str.isdigit, namespace)) in domain


def sees_all() -> bool:
    """Whether all processes of this system are seen from here: from within a container they are not."""
    if sys.platform != "linux":
        return True
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == _FIRST_NAMESPACE
    except OSError:
        return False


def is_of_this_system(path: Path) -> bool:
    """Whether only this system writes what lies there, as far as its file system says."""
    if sys.platform != "linux":
        return True
    try:
        return _is_of_this_system(path.stat().st_dev)
    except OSError:
        return True


@cache
def _is_of_this_system(device: int) -> bool:
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return True
    rows = (row.partition(" - ") for row in mounts if row.split(" ", 3)[2:3] == [number])
    return not any(_SHARED.fullmatch(kind.partition(" ")[0]) for _, _, kind in rows)


@cache
def _machine() -> str:
    """The id of this machine, "" where it has none."""
    try:
        return Path("/etc/machine-id").read_text("ascii", "replace").strip()
    except OSError:
        return ""
