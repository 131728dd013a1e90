"""Looking into another program's SQLite database without leaving a trace: no lock that lasts, no file, no byte.

SQLite's `mode=ro` alone is not enough. To read a file whose journal is a write-ahead log it makes `-wal` and `-shm`
beside it where they are missing, and a connection that stays open keeps the program from removing them when it ends.
So a connection is opened for one look and closed again, and `stat` tells whether there is anything to look at:

log and shared memory       `mode=ro` with `readonly_shm=1`, which makes nothing and works in read-only directories.
rollback journal            `mode=ro`, which makes no file then.
anything else               a copy in a scratch directory: a log that was cleanly closed or copied away from its
                            shared memory, and a journal that a crash left. Nobody has such a database open.
the same, but too large     `mode=ro`; with a log SQLite then makes the two files, as the program's own start would.

`immutable=1` would need no copy, but reads past a program that starts meanwhile. A database that is a link is read
where the link leads, as its program does it: it lies in the user's own data directory, where no agent works.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from agentwatch.sources.sessions.where import is_of_this_system
from agentwatch.state import scratch_directory

LARGEST_COPY: Final = 128 * 1024 * 1024
_BUSY_SECONDS: Final = 0.1
LONGEST_LOOK: Final = 5.0
"""Seconds after which a look is broken off: a crafted database can keep a query busy for ever."""
_STEPS: Final = 100_000
"""Of SQLite's machine between two looks at the clock: a few milliseconds."""
_LARGEST_TEXT: Final = 64 * 1024 * 1024

_LOG_FORMAT: Final = 2
"""Byte 18 of a file whose journal is a write-ahead log."""
_USERS_LOCK: Final = 128
"""The byte of `-shm` on which every process that has the database open holds a lock, SQLite's UNIX_SHM_DMS."""
_ASK_FOR_LOCK: Final[int | None] = getattr(fcntl, "F_OFD_GETLK", None)
"""Asks for the locks of all processes, this one included. Only Linux has it."""
_LOCK: Final = "hhqqi"
"""struct flock: kind, origin, first byte, length, process."""

Signature = tuple[tuple[int, int, int, int] | None, ...]


class _ChangedError(OSError):
    """Somebody wrote while a copy was made."""


class _Copy(NamedTuple):
    signature: Signature
    directory: ExitStack
    path: Path


class ForeignDatabase:
    """A database of another program. One thread at a time."""

    def __init__(self, path: Path, largest_copy: int = LARGEST_COPY, longest_look: float = LONGEST_LOOK) -> None:
        self.path = path
        self._largest_copy = largest_copy
        self._longest_look = longest_look
        self._copy: _Copy | None = None
        self._descriptors: dict[str, tuple[tuple[int, int], int]] = {}

    def signature(self) -> Signature:
        """(device, inode, size, mtime) of the database, its log and its journal; None for each that is not there.
        It changes with each write of another process, unless it comes in the same tick of the clock as another."""
        return tuple(_attributes(self._beside(suffix)) for suffix in ("", "-wal", "-journal"))

    @contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """One consistent look: a read transaction that ends with the block. Raises OSError and sqlite3.Error."""
        connection = self._connect()
        try:
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_TEXT)
            end = time.monotonic() + self._longest_look
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            # Not `trusted_schema = OFF`: Kilo has an index on json_extract, and its schema would be called malformed.
            connection.execute("PRAGMA mmap_size = 0")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("BEGIN")
            yield connection
        finally:
            connection.close()

    def has_users(self) -> bool | None:
        """Whether some process has the database open; None where that cannot be told."""
        try:
            if _ASK_FOR_LOCK is None or not self._has_log_format():
                return None
            descriptor = self._descriptor("-shm")
            asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _USERS_LOCK, 1, 0)
            kind: int = struct.unpack(_LOCK, fcntl.fcntl(descriptor, _ASK_FOR_LOCK, asked))[0]
        except FileNotFoundError:
            # The last one who closes it removes what belongs to the log.
            return False
        except OSError:
            return None
        # Who opened it on another machine has locks there.
        return True if kind != fcntl.F_UNLCK else False if is_of_this_system(self.path) else None

    def close(self) -> None:
        """Remove the copy and close what is open."""
        self._remove_copy()
        for _, descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _remove_copy(self) -> None:
        if self._copy is not None:
            self._copy.directory.close()
            self._copy = None

    def _connect(self) -> sqlite3.Connection:
        if not stat.S_ISREG(os.stat(self.path).st_mode):  # noqa: PTH116
            raise OSError("it is no regular file")
        if not self._has_log_format():
            if not _size(self._beside("-journal")):
                return _open(self.path, "mode=ro")
            connection = _open(self.path, "mode=ro")
            try:
                # Whether what the journal says of the database allows to read it.
                connection.execute("PRAGMA schema_version").fetchone()
            except sqlite3.Error as error:
                connection.close()
                if is_passing(error) or not isinstance(error, sqlite3.OperationalError):
                    raise
            else:
                return connection
        elif os.path.exists(self._beside("-wal")) and os.path.exists(self._beside("-shm")):
            return _open(self.path, "mode=ro&readonly_shm=1")
        if _size(self.path) + _size(self._beside("-wal")) > self._largest_copy:
            return _open(self.path, "mode=ro")
        return _open(self._copied(), "mode=rw")

    def _copied(self) -> Path:
        signature = self.signature()
        if self._copy is None or self._copy.signature != signature:
            self._remove_copy()
            with ExitStack() as stack:
                path = stack.enter_context(scratch_directory()) / "copy.db"
                for suffix in ("", "-wal", "-journal"):
                    with suppress(FileNotFoundError):
                        shutil.copyfile(self._beside(suffix), f"{path}{suffix}")
                if self.signature() != signature:
                    raise _ChangedError("it changed while it was copied")
                self._copy = _Copy(signature, stack.pop_all(), path)
        return self._copy.path

    def _has_log_format(self) -> bool:
        return os.pread(self._descriptor(""), 1, 18) == bytes((_LOG_FORMAT,))

    def _descriptor(self, suffix: str) -> int:
        """A descriptor that stays open: closing it would drop what locks this process has on the file."""
        path = self._beside(suffix)
        there = os.stat(path)  # noqa: PTH116
        known = self._descriptors.get(suffix)
        if known is not None and known[0] == (there.st_dev, there.st_ino):
            return known[1]
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        opened = os.fstat(descriptor)
        self._descriptors[suffix] = (opened.st_dev, opened.st_ino), descriptor
        if known is not None:
            os.close(known[1])
        return descriptor

    def _beside(self, suffix: str) -> Path:
        return Path(os.path.realpath(self.path) + suffix)


def is_passing(error: Exception) -> bool:
    """Whether a look failed only because somebody writes just now."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, _ChangedError) or code & 0xFF == sqlite3.SQLITE_BUSY


def _open(path: Path, options: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?{options}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False)


def _attributes(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _size(path: Path) -> int:
    attributes = _attributes(path)
    return attributes[2] if attributes is not None else 0
