"""Opening the file of the history: it is made, brought up to date, or set aside where it is damaged, under a lock."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.history.schema import APPLICATION_ID, MIGRATIONS, NAME, SCHEMA_VERSION

_OWN_NAME: Final = f"history.v{SCHEMA_VERSION}.db"
"""Used while `history.db` belongs to a newer agentwatch: that one must not lose its history to an older."""

_LOCK: Final = "history.lock"
_SIDECARS: Final = ("-journal", "-wal", "-shm")
_MOST_ASIDE: Final = 20
_SMALLEST: Final = 512
"""Bytes of the smallest page of a database."""
_MAGIC: Final = b"SQLite format 3\0"

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}
)

_BUSY_MS: Final = 5_000
_READER_BUSY_MS: Final = 1_000
_CACHE_KIB: Final = 256
"""Of pages, for each connection, in place of 2 MB: what is read again is in the system's cache, too."""

_DAMAGE: Final = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_TOOBIG,
        # Our statements do not change: one that is wrong meets tables that are not ours.
        sqlite3.SQLITE_ERROR,
    }
)


class UnusableError(Exception):
    """There is no history to be had here; the message says why and what to do."""


class _DamagedError(UnusableError):
    """The file is no history, or a broken one."""


class _NewerError(Exception):
    """The file was written by a newer agentwatch."""


@dataclass(slots=True)
class Database:
    """Two connections to one history: one thread can read while another waits for the disk."""

    path: Path
    identity: tuple[int, int]
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    notice: str | None

    @property
    def is_in_place(self) -> bool:
        """False once another file, or none, has the name."""
        return identity_of(self.path) == self.identity

    def close(self) -> None:
        for connection in (self.reader, self.writer):
            with suppress(sqlite3.Error):
                connection.close()


def open_database(directory: Path, damage: tuple[tuple[int, int], str] | None = None) -> Database:
    """Open the history of a state directory, which is made where it is missing. Raises UnusableError.

    `damage` is the identity of a file that was found damaged while in use, and how: it is set aside if it is still
    there.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        with _locked(directory):
            return _open(directory, damage)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnusableError(f"{directory}: {reason}; make it a directory that you may write to") from error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is broken, and not that the disk is full, busy or gone."""
    code = getattr(error, "sqlite_errorcode", None)
    # Errors of the Python module, such as text that is no UTF-8, have no code.
    return isinstance(error, sqlite3.DatabaseError) and (code is None or code & 0xFF in _DAMAGE)


def identity_of(path: Path) -> tuple[int, int] | None:
    """(device, inode) of a file, None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def last_written(directory: Path) -> float | None:
    """When the history of a state directory was last written, in seconds since the epoch; None where there is none."""
    times = []
    for name in (NAME, f"{NAME}-wal", _OWN_NAME, f"{_OWN_NAME}-wal"):
        with suppress(OSError):
            times.append((directory / name).stat().st_mtime)
    return max(times, default=None)


def configure(connection: sqlite3.Connection, busy_ms: int) -> None:
    """What holds for every connection. Raises sqlite3.Error."""
    connection.text_factory = _text
    connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
    # The file may be damaged, or have been swapped: nothing in its schema may run, its cells are checked.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    # Else SQLite would make files in a directory that is shared.
    connection.execute("PRAGMA temp_store = MEMORY")


def examine(connection: sqlite3.Connection) -> int:
    """The schema version of a history that is sound. 0: an empty file.

    Raises sqlite3.Error or UnusableError, with the reason in words.
    """
    application = _number(connection, "application_id")
    version = _number(connection, "user_version")
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except UnicodeDecodeError as error:
        # SQLite quotes what it found in place of the schema.
        raise _DamagedError("its structure is broken") from error
    if not application and not version and not tables:
        return 0
    if application != APPLICATION_ID:
        raise _DamagedError("it is not a history of agentwatch")
    if version < 1:
        raise _DamagedError("it has no version")
    if version <= SCHEMA_VERSION and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise _DamagedError("its structure is broken")
    return version


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """What is done meanwhile is written as a whole or not at all. Raises sqlite3.Error."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def has_safe_log(directory: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether a write-ahead log is safe here: the file system is known to be local. `mounts`: as mountinfo.

    All users of the log share memory, so they must be on one machine. SQLite cannot tell: on a network file system it
    switches to the log and says `wal`. Linux names the type in mountinfo; `os.statvfs` does not have it. Whatever is
    not known to be local gets a rollback journal, which is safe everywhere and only slower.
    """
    try:
        table = mounts.read_bytes()
    except OSError:
        return False
    return kind_of(os.fsencode(os.path.realpath(directory)), table) in _LOCAL


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


def _open(directory: Path, damage: tuple[tuple[int, int], str] | None) -> Database:
    name, notice = NAME, None
    for _ in range(4):
        path = directory / name
        try:
            if damage is not None and identity_of(path) == damage[0]:
                raise _DamagedError(damage[1])  # noqa: TRY301  one place sets aside
            return _open_file(path, notice)
        except _NewerError:
            notice = f"{path} is of a newer agentwatch and is left alone; this one keeps {_OWN_NAME}: update it"
            name = _OWN_NAME
        except _DamagedError as error:
            aside = _set_aside(path)
            notice = f"the history was damaged ({error}) and set aside as {aside}; a new one was begun"
        except sqlite3.Error as error:
            raise UnusableError(f"{path}: {error}; free space or permissions, then start again") from error
    raise UnusableError(f"{directory}: a new history is damaged at once; check the disk")


def _open_file(path: Path, notice: str | None) -> Database:
    # Made here, so that its mode, which the files beside it take over, does not depend on the umask.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    identity = identity_of(path)
    if identity is None:
        raise UnusableError(f"{path}: was removed while it was opened; start again")
    with path.open("rb") as file:
        # Before SQLite sees it: that would take a short one for a new one, and delete the log beside it.
        if (header := file.read(_SMALLEST)) and (len(header) < _SMALLEST or not header.startswith(_MAGIC)):
            raise _DamagedError("it is cut off or something else")
    writer = _connect(path, _BUSY_MS)
    try:
        version = examine(writer)
        if version > SCHEMA_VERSION:
            raise _NewerError  # noqa: TRY301  the connection must be closed for both
        _choose_journal(writer, path.parent)
        writer.execute("PRAGMA synchronous = FULL")
        _migrate(writer, version)
        reader = _connect(path, _READER_BUSY_MS)
        reader.execute("PRAGMA query_only = ON")
        for one in (writer, reader):
            one.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    except sqlite3.Error as error:
        writer.close()
        if is_damage(error):
            raise _DamagedError(str(error)) from error
        raise
    except (_DamagedError, _NewerError):
        writer.close()
        raise
    return Database(path, identity, writer, reader, notice)


def _connect(path: Path, busy_ms: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        configure(connection, busy_ms)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _choose_journal(connection: sqlite3.Connection, directory: Path) -> None:
    wanted = "WAL" if has_safe_log(directory) else "DELETE"
    try:
        connection.execute(f"PRAGMA journal_mode = {wanted}")
    except sqlite3.OperationalError as error:
        # Another agentwatch has it open in the other mode: both keep to that one.
        if is_damage(error):
            raise


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    if version == SCHEMA_VERSION:
        return
    with transaction(connection, "EXCLUSIVE"):
        for migration in MIGRATIONS[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _set_aside(path: Path) -> str:
    """Rename the file and those beside it. Returns the new name."""
    for number in range(1, _MOST_ASIDE + 1):
        aside = path.with_name(f"{path.stem}.corrupt-{number}.db")
        if not any(os.path.lexists(f"{aside}{suffix}") for suffix in ("", *_SIDECARS)):
            break
    else:
        raise UnusableError(f"{path}: damaged, and {_MOST_ASIDE} damaged ones are set aside already; delete those")
    # Those beside it go first: a log that stays would be played into the new file.
    for suffix in (*_SIDECARS, ""):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")  # noqa: PTH104
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return aside.name


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Two processes must not find the same damage at once: the second would set the first one's new file aside."""
    descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Some network file systems have no locks; then this is as good as it gets.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    value = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return value if isinstance(value, int) else 0


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
