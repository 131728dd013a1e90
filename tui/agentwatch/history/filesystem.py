"""Whether a write-ahead log is safe where the history lies.

A write-ahead log needs memory that all its users share, so all of them must be on one machine. SQLite cannot tell:
on a network file system it switches to the log and says `wal`. The type of the file system can, and Linux names it in
`/proc/self/mountinfo`; `os.statvfs` does not have it. Whatever is not known to be local gets a rollback journal, which
is safe everywhere and only slower.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}
)

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


def has_safe_log(directory: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether the file system of a directory is known to be local. `mounts` is a file in the form of mountinfo."""
    try:
        table = mounts.read_bytes()
    except OSError:
        return False
    return kind_of(os.fsencode(os.path.realpath(directory)), table) in LOCAL


def kind_of(path: bytes, table: bytes) -> str | None:
    """The type of the file system that holds an absolute path, None where the table does not say."""
    longest, kind = b"", None
    for line in table.splitlines():
        mount, separator, source = line.partition(b" - ")
        fields = mount.split(b" ")
        if not separator or len(fields) < 5:
            continue
        point = _ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), fields[4])
        inside = path == point or path.startswith(point.rstrip(b"/") + b"/")
        # The later of two mounts on one place hides the other.
        if inside and len(point) >= len(longest):
            longest, kind = point, source.split(b" ")[0].decode("ascii", "replace")
    return kind
