"""Reading a history without writing a byte beside it: for `agentwatch tree`, which may run at any time.

SQLite's `mode=ro` alone is not enough: to read a file with a write-ahead log it makes `-wal` and `-shm`. So:

no log beside it            `immutable=1`: no lock, no file. A reader checks afterwards that nothing was written
                            meanwhile, and reads again if so.
log and shared memory       `mode=ro` with `readonly_shm=1`: the shared memory of the program that runs is used, or
                            private memory where its program has died; none is made.
rollback journal, unused    `mode=ro`, which makes no file then.
anything left by a crash    a copy in a scratch directory: nobody has it open.

Which of these holds changes when the last program that has it open ends: it removes the log and the memory, maybe
between the look at them and the opening, which fails then. So what cannot be opened is looked at again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentwatch.history.database import UnusableError, configure, examine, is_damage
from agentwatch.history.schema import NAME, SCHEMA_VERSION
from agentwatch.state import scratch_directory

_BUSY_MS: Final = 1_000
_ATTEMPTS: Final = 5
_WAL_FORMAT: Final = 2
"""Bytes 18 and 19 of a file whose journal is a write-ahead log."""

Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(slots=True)
class Snapshot:
    """A connection that only reads. `signature` is that of the files if they are read without a lock, else None."""

    path: Path
    connection: sqlite3.Connection
    signature: Signature | None
    copy: ExitStack = field(default_factory=ExitStack)

    @property
    def is_torn(self) -> bool:
        """Somebody wrote while it was read without a lock: what was read may not fit together."""
        return self.signature is not None and self.signature != _signature(self.path)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.connection.close()
        self.copy.close()


def open_snapshot(directory: Path) -> Snapshot | None:
    """Open the history of a state directory for reading, None where there is none. Raises UnusableError."""
    path = directory / NAME
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnusableError(f"the history cannot be read: {path} is no regular file")
        return _opened(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (sqlite3.Error, OSError) as error:
        raise UnusableError(f"the history cannot be read: {path}: {error}") from error


def _opened(path: Path) -> Snapshot:
    for _ in range(_ATTEMPTS - 1):
        try:
            return _open(path)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CANTOPEN:
                raise
    return _open(path)


def _open(path: Path) -> Snapshot:
    signature = _signature(path)
    with path.open("rb") as file:
        header = file.read(20)
    has_log = header[18:20] == bytes((_WAL_FORMAT, _WAL_FORMAT))
    log, memory, journal = (os.path.exists(f"{path}{suffix}") for suffix in ("-wal", "-shm", "-journal"))
    if not has_log:
        try:
            return _checked(Snapshot(path, _connect(path, "mode=ro"), None))
        except sqlite3.Error as error:
            if not journal or is_damage(error):
                raise
    elif not log:
        return _checked(Snapshot(path, _connect(path, "mode=ro&immutable=1"), signature))
    elif memory:
        return _checked(Snapshot(path, _connect(path, "mode=ro&readonly_shm=1"), None))
    return _copied(path)


def _copied(path: Path) -> Snapshot:
    with ExitStack() as stack:
        copy = stack.enter_context(scratch_directory()) / NAME
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        snapshot = _checked(Snapshot(path, sqlite3.connect(copy, check_same_thread=False), None))
        snapshot.copy = stack.pop_all()
        return snapshot


def _checked(snapshot: Snapshot) -> Snapshot:
    try:
        configure(snapshot.connection, _BUSY_MS)
        if examine(snapshot.connection) > SCHEMA_VERSION:
            raise UnusableError(f"{snapshot.path} was written by a newer agentwatch; update this one")  # noqa: TRY301
    except (sqlite3.Error, UnusableError):
        snapshot.close()
        raise
    return snapshot


def _connect(path: Path, options: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?{options}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


def _signature(path: Path) -> Signature:
    """Size, mtime and inode of the file and its log. Only a checkpoint changes the file while there is a log."""
    signature: list[tuple[int, int, int] | None] = [None, None]
    for number, suffix in enumerate(("", "-wal")):
        with suppress(OSError):
            status = os.stat(f"{path}{suffix}")  # noqa: PTH116
            signature[number] = status.st_size, status.st_mtime_ns, status.st_ino
    return tuple(signature)
