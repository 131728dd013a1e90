"""Writes files atomically: to a temporary file that is synced before it gets its name."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC
_INERT = os.O_NONBLOCK | os.O_NOCTTY | _SAFE
OPEN_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC
OPEN_HELD = os.O_RDWR | _INERT  # for a lock: some file systems lock only files open for writing
_CHUNK = 64 * 1024

DOT = ".agentwatch"  # our directory in a workspace

TEMPORARY = ".writing-"
# The coarsest timestamp of a file system: two changes within one tick get the same time.
_TICK_NANOSECONDS = 2_000_000_000

LOCK_SECONDS = 10.0  # a lock is held for milliseconds; only a suspended process holds it for longer

_ABANDONED = 60.0  # seconds after which a temporary file belongs to nobody: its writer needed milliseconds

Fingerprint = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size and inode


class Disk:
    """The system calls used here, so that a test can make each call fail or lose unsynced data."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read = staticmethod(os.read)
    write = staticmethod(os.write)
    fsync = staticmethod(os.fsync)
    link = staticmethod(os.link)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    mkdir = staticmethod(os.mkdir)
    stat = staticmethod(os.stat)
    fstat = staticmethod(os.fstat)
    flock = staticmethod(fcntl.flock)

    @staticmethod
    def listdir(descriptor: int) -> list[str]:
        return os.listdir(descriptor)


class _Unsynced(Disk):
    @staticmethod
    def fsync(fd: object) -> None:
        """Do nothing."""


DISK = Disk()
UNSYNCED = _Unsynced()  # for files that are worthless after a power failure: not worth waiting for the disk


class LockedError(OSError):
    """Another process or thread held the lock for longer than LOCK_SECONDS."""


class NotRegularError(OSError):
    """The name belongs to a link, a pipe, a directory or another non-regular file, or the file is too large."""


class NotADirectoryOfOursError(OSError):
    """A link or a file is in the place of a directory of ours; the message says what to do."""


class Directory:
    """An open directory, to be closed; names are looked up only in it. Every method raises OSError."""

    def __init__(self, descriptor: int, disk: Disk = DISK):
        self.descriptor = descriptor
        self._disk = disk

    @classmethod
    def open(cls, path: Path, disk: Disk = DISK) -> Directory:
        """Open a directory of the user. Follows links, which are the user's as well."""
        return cls(disk.open(path, OPEN_DIRECTORY), disk)

    @classmethod
    def make(cls, path: Path, disk: Disk = DISK) -> Directory:
        """Open a directory; if it is missing, make it so that only the user can enter it and it survives a crash."""
        with suppress(FileNotFoundError):
            return cls.open(path, disk)
        with cls.make(path.parent, disk) as parent:
            child = parent.child(path.name, make=0o700)
            parent.sync()
            return child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor. Nothing was written through it, so an error does not matter."""
        self._close(self.descriptor)

    def child(self, name: str, *, make: int | None = None) -> Directory:
        """Open a directory inside this one, never through a link. `make`: the mode to create it with if missing."""
        if make is not None:
            with suppress(FileExistsError):
                self._disk.mkdir(name, make, dir_fd=self.descriptor)
        return Directory(self._open(name, OPEN_DIRECTORY | os.O_NOFOLLOW), self._disk)

    def names(self) -> list[str]:
        return self._disk.listdir(self.descriptor)

    def status(self, name: str) -> os.stat_result:
        """Return the attributes of a name, without following a link."""
        return self._disk.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of a file. Raises NotRegularError if it is not regular or has more than `limit` bytes."""
        return self.read_with_status(name, limit)[0]

    def read_with_status(self, name: str, limit: int) -> tuple[bytes, os.stat_result, os.stat_result]:
        """Return the bytes as `read` does, and the attributes of the file before and after reading."""
        # Checked before opening, because opening a device may have an effect.
        _require_regular(self.status(name))
        try:
            descriptor = self._open(name, _INERT)
        except OSError as error:
            # It was replaced by a link or a socket after its status was read.
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                raise NotRegularError(errno.EINVAL, "not a regular file") from None
            raise
        try:
            before = self._disk.fstat(descriptor)
            _require_regular(before)
            size, data = before.st_size, b""
            missing = (size or limit + 1) if size <= limit else 0
            # Read at most the size that the file had: otherwise this would not end while somebody appends.
            while missing > 0 and (chunk := self._disk.read(descriptor, min(missing, size or _CHUNK))):
                data += chunk
                missing -= len(chunk)
            after = self._disk.fstat(descriptor)
        finally:
            self._close(descriptor)
        if size > limit or len(data) > limit:
            raise NotRegularError(errno.EFBIG, f"larger than {limit} bytes")
        return data, before, after

    def publish(self, name: str, data: bytes, mode: int = 0o600) -> None:
        """Create a file atomically, synced. Raises FileExistsError; after any other error the file may exist."""
        here = self.descriptor
        with self._written(data, mode) as (temporary, _):
            self._disk.link(temporary, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
            self.sync()

    def replace(self, name: str, data: bytes, mode: int = 0o600) -> None:
        """Write a file atomically, synced, in place of any file or link of that name."""
        with self._written(data, mode) as (temporary, _):
            self.move(temporary, self, name)

    def replace_held(self, name: str, data: bytes) -> int:
        """Do as `replace`, and return a descriptor that has held a shared lock since before the file had its name."""
        with self._written(data, 0o600) as (temporary, descriptor):
            self._disk.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self.move(temporary, self, name)
            return os.dup(descriptor)

    def move(self, name: str, directory: Directory, new: str) -> None:
        """Move a file into a directory under a new name, and sync both directories."""
        self._disk.rename(name, new, src_dir_fd=self.descriptor, dst_dir_fd=directory.descriptor)
        for one in dict.fromkeys((directory, self)):
            one.sync()

    def remove(self, name: str) -> None:
        self._disk.unlink(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Sync the names in this directory to disk."""
        try:
            self._disk.fsync(self.descriptor)
        except OSError as error:
            # File systems that cannot sync a directory answer EINVAL; they order name changes themselves.
            if error.errno != errno.EINVAL:
                raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock out other processes and threads. Raises LockedError. Not for a workspace: agents could lock there."""
        descriptor, end = self._open(".lock", os.O_RDWR | os.O_CREAT | _SAFE, 0o600), time.monotonic() + LOCK_SECONDS
        try:
            while True:
                with suppress(BlockingIOError):
                    self._disk.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() >= end:
                    raise LockedError(errno.EWOULDBLOCK, "another process holds the lock")
                time.sleep(0.001)
            yield
        finally:
            self._close(descriptor)

    def sweep(self, older_than: float = _ABANDONED) -> None:
        """Remove temporary files older than so many seconds; if you hold the lock, 0 will do. Ignores failures."""
        # Ages are differences of the disk's own times: with a fast local clock, fresh files would look abandoned.
        changed_at = self._disk.fstat(self.descriptor).st_mtime
        for name in self.names():
            if name.startswith(TEMPORARY):
                with suppress(OSError):
                    if max(changed_at - self.status(name).st_mtime, 0.0) >= older_than:
                        self.remove(name)

    @contextmanager
    def _written(self, data: bytes, mode: int) -> Iterator[tuple[str, int]]:
        """Yield the name and descriptor of a temporary file with the synced data; remove the name at the end."""
        temporary = f"{TEMPORARY}{os.urandom(8).hex()}"
        descriptor = self._open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, mode)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._disk.write(descriptor, rest) :]
            self._disk.fsync(descriptor)
            yield temporary, descriptor
        finally:
            self._close(descriptor)
            with suppress(OSError):
                self.remove(temporary)

    def _open(self, name: str, flags: int, mode: int = 0) -> int:
        return self._disk.open(name, flags, mode, dir_fd=self.descriptor)

    def _close(self, descriptor: int) -> None:
        with suppress(OSError):
            self._disk.close(descriptor)


def open_dot_directory(workspace: Path, *inner: str, make: bool = False, disk: Disk = DISK) -> Directory:
    """Open `.agentwatch`, or a directory in it; with `make`, create it and have git ignore it. Raises OSError."""
    directory, path = Directory.open(workspace, disk), ""
    for name in (DOT, *inner):
        path = f"{path}/{name}".removeprefix("/")
        with directory as parent:
            try:
                directory = parent.child(name, make=0o755 if make else None)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                    raise NotADirectoryOfOursError(
                        error.errno, f"{path} is a link or no directory, so that files could land anywhere; remove it"
                    ) from None
                raise
        if make and name == DOT:
            try:
                if ".gitignore" not in directory.names():
                    directory.replace(".gitignore", b"*\n", 0o644)
            except OSError:
                directory.close()
                raise
    return directory


def is_open_to_others(status: os.stat_result, mode: int = 0o077) -> bool:
    """Whether other users have any of the permissions in `mode`, or own the file."""
    return bool(status.st_mode & mode) or status.st_uid != os.geteuid()


def spellings(workspace: Path) -> list[str]:
    """Return the paths under which a store may name a workspace: resolved, as programs do, and as given."""
    names = dict.fromkeys((os.path.realpath(workspace), str(workspace.absolute())))
    return [os.fsencode(name).decode("utf-8", "replace") for name in names]


def fingerprint(status: os.stat_result) -> Fingerprint:
    """Return a fingerprint that changes with the file, without reading it. Nobody can set the ctime, so it also shows
    a rewrite of the same size with a restored mtime, and a change of permissions."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def fingerprint_at(path: Path | str) -> Fingerprint | None:
    """Return the fingerprint of a file as it is now; None if its status cannot be read."""
    try:
        return fingerprint(os.lstat(path))
    except (OSError, ValueError):
        return None


def change_stamp(directory: Path) -> tuple[int, int, int] | None:
    """Return a stamp that differs after a name in the directory was added or removed; it also differs at each call
    just after such a change, as two changes may share an mtime. None without a directory."""
    try:
        status = directory.stat()
    except OSError:
        return None
    now = time.time_ns()
    is_settled = now - status.st_mtime_ns > _TICK_NANOSECONDS
    return status.st_mtime_ns, status.st_ino, 0 if is_settled else now


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(errno.EINVAL, "not a regular file")
