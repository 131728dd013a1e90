"""Reads files safely, and writes files atomically: a new file gets its name only after its data is on the disk."""

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
OPEN_HELD = os.O_RDWR | _INERT  # for a file to lock: some file systems lock a file only if it is open for writing
_CHUNK = 64 * 1024

DOT = ".agentwatch"  # the directory of agentwatch in a workspace

TEMPORARY = ".writing-"
# The longest tick that a file system's clock has. Two changes within one tick get the same time.
_TICK_NANOSECONDS = 2_000_000_000

LOCK_SECONDS = 10.0  # the longest wait for a lock; a running process holds a lock only for milliseconds

_ABANDONED = 60.0  # a temporary file older than these seconds is abandoned, because writing takes milliseconds

Fingerprint = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size and inode


class Disk:
    """The system calls of this module. A test can replace a call, to make it fail or to lose unsynced data."""

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
        """Skip the sync."""


DISK = Disk()
UNSYNCED = _Unsynced()  # for files that nobody needs after a power failure


class LockedError(OSError):
    """Another process or thread has held the lock for longer than LOCK_SECONDS."""


class NotRegularError(OSError):
    """The name does not belong to a regular file, or the file is too large."""


class NotADirectoryOfOursError(OSError):
    """A link or a file has the name of a directory of agentwatch. The message gives the remedy."""


class Directory:
    """An open directory. Names of files are looked up only in this directory. Every method may raise OSError."""

    def __init__(self, descriptor: int, disk: Disk = DISK):
        self.descriptor = descriptor
        self._disk = disk

    @classmethod
    def open(cls, path: Path, disk: Disk = DISK) -> Directory:
        """Open a directory. Links in the path are followed, so use only paths that no agent can change."""
        return cls(disk.open(path, OPEN_DIRECTORY), disk)

    @classmethod
    def open_or_make(cls, path: Path, disk: Disk = DISK) -> Directory:
        """Open a directory. If it is missing, create and sync it. Only the user can enter a created directory."""
        with suppress(FileNotFoundError):
            return cls.open(path, disk)
        with cls.open_or_make(path.parent, disk) as parent:
            child = parent.open_child(path.name, make=0o700)
            parent.sync()
            return child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor. Ignore errors, because nothing was written through the descriptor."""
        self._close(self.descriptor)

    def open_child(self, name: str, *, make: int | None = None) -> Directory:
        """Open a subdirectory, but never a link. If `make` is a mode, create a missing subdirectory with this mode."""
        if make is not None:
            with suppress(FileExistsError):
                self._disk.mkdir(name, make, dir_fd=self.descriptor)
        return Directory(self._open(name, OPEN_DIRECTORY | os.O_NOFOLLOW), self._disk)

    def names(self) -> list[str]:
        return self._disk.listdir(self.descriptor)

    def status(self, name: str) -> os.stat_result:
        """Return the attributes of a file, or of the link itself if the name is a link."""
        return self._disk.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of a file. Raise NotRegularError if it is not regular or has more than `limit` bytes."""
        return self.read_with_status(name, limit)[0]

    def read_with_status(self, name: str, limit: int) -> tuple[bytes, os.stat_result, os.stat_result]:
        """Read a file as `read` does. Return the bytes, and the file's attributes before and after reading."""
        # Check before opening, because opening a device may have an effect.
        _require_regular(self.status(name))
        try:
            descriptor = self._open(name, _INERT)
        except OSError as error:
            # A link or a socket has replaced the file since its status was read.
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                raise NotRegularError(errno.EINVAL, "not a regular file") from None
            raise
        try:
            before = self._disk.fstat(descriptor)
            _require_regular(before)
            size, data = before.st_size, b""
            missing = (size or limit + 1) if size <= limit else 0
            # Read at most the size that the file had. Otherwise the loop might never end while another process appends.
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
        """Create a file atomically. Raise FileExistsError if it exists. After any other error, it may exist or not."""
        here = self.descriptor
        with self._temporary_file(data, mode) as (temporary, _):
            self._disk.link(temporary, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
            self.sync()

    def replace(self, name: str, data: bytes, mode: int = 0o600) -> None:
        """Write a file atomically. It replaces any file or link of the same name."""
        with self._temporary_file(data, mode) as (temporary, _):
            self.move(temporary, self, name)

    def replace_and_lock(self, name: str, data: bytes) -> int:
        """Write a file as `replace` does, but locked (shared) from the beginning. Return the locked descriptor."""
        with self._temporary_file(data, 0o600) as (temporary, descriptor):
            self._disk.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self.move(temporary, self, name)
            return os.dup(descriptor)

    def move(self, name: str, directory: Directory, new: str) -> None:
        """Move a file to another directory under a new name, and sync both directories."""
        self._disk.rename(name, new, src_dir_fd=self.descriptor, dst_dir_fd=directory.descriptor)
        for one in dict.fromkeys((directory, self)):
            one.sync()

    def remove(self, name: str) -> None:
        self._disk.unlink(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Write the names of the files in this directory to the disk."""
        try:
            self._disk.fsync(self.descriptor)
        except OSError as error:
            # EINVAL: the file system cannot sync a directory. It then keeps the order of name changes by itself.
            if error.errno != errno.EINVAL:
                raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes and threads during the block. Raise LockedError if they hold the lock too long.

        Never lock a directory in a workspace, because an agent could hold the lock for ever."""
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

    def remove_abandoned(self, older_than: float = _ABANDONED) -> None:
        """Remove temporary files that are at least `older_than` seconds old. Ignore failures."""
        # Compute the age from two times of the file system, because the local clock may be wrong.
        changed_at = self._disk.fstat(self.descriptor).st_mtime
        for name in self.names():
            if name.startswith(TEMPORARY):
                with suppress(OSError):
                    if max(changed_at - self.status(name).st_mtime, 0.0) >= older_than:
                        self.remove(name)

    @contextmanager
    def _temporary_file(self, data: bytes, mode: int) -> Iterator[tuple[str, int]]:
        """Write `data` into a temporary file and sync it. Yield its name and descriptor, then remove the file."""
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
    """Open `.agentwatch` in a workspace, or the directory `inner` below it. May raise OSError.

    With `make`, create the directory, and a `.gitignore` that hides it from git."""
    directory, path = Directory.open(workspace, disk), ""
    for name in (DOT, *inner):
        path = f"{path}/{name}".removeprefix("/")
        with directory as parent:
            try:
                directory = parent.open_child(name, make=0o755 if make else None)
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
    """Tell whether other users have one of the permissions in `mode`, or another user owns the file."""
    return bool(status.st_mode & mode) or status.st_uid != os.geteuid()


def spellings(workspace: Path) -> list[str]:
    """Return the paths that an agent program may use for a workspace: the real path, and the path as given."""
    names = dict.fromkeys((os.path.realpath(workspace), str(workspace.absolute())))
    return [os.fsencode(name).decode("utf-8", "replace") for name in names]


def fingerprint(status: os.stat_result) -> Fingerprint:
    """Return a fingerprint that changes whenever the file changes.

    It contains the ctime, which no program can set. So it changes even if a program resets the mtime."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def fingerprint_at(path: Path | str) -> Fingerprint | None:
    """Return the current fingerprint of a file. Return None if the file is missing or its attributes cannot be read."""
    try:
        return fingerprint(os.lstat(path))
    except (OSError, ValueError):
        return None


def change_stamp(directory: Path) -> tuple[int, int, int] | None:
    """Return a stamp that changes when a name is added to the directory or removed. Return None if it cannot be read.

    For two seconds after a change, each call returns a new stamp, because another change may have the same time."""
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
