"""Reading a file that an agent wrote: bounded, never blocking, never outside the workspace, never half a change."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.contracts.catalogue.rule import Rule
from agentwatch.contracts.shapes import Finding
from agentwatch.sources.files.rules import (
    CHANGING,
    NOT_READABLE,
    NOT_REGULAR,
    NOT_UTF8,
    OUTSIDE,
    SYMBOLIC_LINK,
    TOO_LARGE,
)
from agentwatch.sources.files.scan import fingerprint
from agentwatch.sources.files.settings import MAX_BYTES

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe would wait for a writer for ever. O_NOCTTY: a terminal must not become ours.
_OPEN_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

_ATTEMPTS: Final = 3
_CHUNK: Final = 64 * 1024
_MORE_READS: Final = 64
"""Reads after the first, for a file that holds more than it says; whoever writes faster than that is not done."""

_NO_NAMES: Final = frozenset({"", ".", ".."})
_BOM: Final = b"\xef\xbb\xbf"

_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


class FileRefusedError(Exception):
    """A file is not read. `reason` is the sentence for people: what is wrong and what to do; it quotes no foreign text.

    `rule` is the one that it breaks, `facts` what its sentence names. `lasting`: it stays so until the attributes of
    the file change; otherwise trying again may help at any time.
    """

    def __init__(self, rule: Rule, *, lasting: bool = True, **facts: object) -> None:
        self.rule = rule
        self.reason = rule.message.format(**facts)
        self.lasting = lasting
        super().__init__(self.reason)

    @property
    def finding(self) -> Finding:
        return Finding(self.rule.id, self.rule.severity, self.reason)


class BehindLinkError(FileRefusedError):
    """A directory on the path is a symbolic link: the file is not where its path says."""


class FileText(NamedTuple):
    """A file as it was read. `digest` is the sha256, in hex, of its bytes; `text` is those bytes as UTF-8 without BOM.

    `mtime_ns`, `size` and `inode` are those of the file as it was read, `changed_ns` is its ctime. `replaced_line` is
    the 1-based line of the first bytes that are not UTF-8 and were replaced by U+FFFD, None where there are none.
    """

    text: str
    digest: str
    size: int
    mtime_ns: int
    changed_ns: int
    inode: int
    fingerprint: int
    replaced_line: int | None = None

    @property
    def replaced(self) -> bool:
        return self.replaced_line is not None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """SRC006 where bytes were replaced."""
        if self.replaced_line is None:
            return ()
        return (Finding(NOT_UTF8.id, NOT_UTF8.severity, NOT_UTF8.message, self.replaced_line),)


def read_file(root: Path | str, relative: str, max_bytes: int = MAX_BYTES) -> FileText:
    """Read one file of a workspace. `relative` is its name below `root`, with `/`, as the system gives it.

    Raises FileRefusedError where it must not or cannot be read, FileNotFoundError where there is none. No component
    of `relative` may be a symbolic link, nor may `root`: resolve it first.
    """
    components = relative.split("/")
    if "\0" in relative or not _NO_NAMES.isdisjoint(components):
        raise FileRefusedError(OUTSIDE)
    try:
        directory = _enter(root, components[:-1])
        try:
            for _ in range(_ATTEMPTS):
                text = _read(directory, components[-1], max_bytes, root, relative)
                if text is not None:
                    return text
        finally:
            os.close(directory)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            raise FileNotFoundError(error.errno, os.strerror(error.errno)) from None
        denied = error.errno in (errno.EACCES, errno.EPERM)
        raise FileRefusedError(NOT_READABLE, reason=os.strerror(error.errno or 0), lasting=denied) from None
    raise FileRefusedError(CHANGING, lasting=False)


def _enter(root: Path | str, directories: list[str]) -> int:
    """A descriptor of the directory that holds the file; no component may be a link."""
    descriptor = os.open(root, _OPEN_DIRECTORY)
    for name in directories:
        parent = descriptor
        try:
            descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
        except OSError as error:
            # What the system says of a link differs: ELOOP, EMLINK, or ENOTDIR with O_DIRECTORY.
            if error.errno != errno.ENOENT and _is_link(name, parent):
                raise BehindLinkError(OUTSIDE) from None
            raise
        finally:
            os.close(parent)
    return descriptor


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _read(directory: int, name: str, max_bytes: int, root: Path | str, relative: str) -> FileText | None:
    """One attempt; None where the file changed under it."""
    # Before it is opened: opening a device may already do something.
    _refuse_by_kind(os.stat(name, dir_fd=directory, follow_symlinks=False), root, relative)
    try:
        descriptor = os.open(name, _OPEN_FILE, dir_fd=directory)
    except OSError as error:
        # Swapped for a link (ELOOP) or a socket (ENXIO) since the look above: the next attempt says which.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        before = os.fstat(descriptor)
        _refuse_by_kind(before, root, relative)
        if before.st_size > max_bytes:
            raise FileRefusedError(TOO_LARGE, size=before.st_size, limit=max_bytes)
        data = _read_bytes(descriptor, before.st_size, max_bytes)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    read_as = fingerprint(after)
    if data is None or fingerprint(before) != read_as:
        return None
    if len(data) > max_bytes:
        raise FileRefusedError(TOO_LARGE, size=len(data), limit=max_bytes)
    payload = data.removeprefix(_BOM)
    replaced_line = None
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        text = payload.decode("utf-8", "replace")
        replaced_line = payload.count(b"\n", 0, error.start) + 1
    return FileText(
        text,
        hashlib.sha256(data).hexdigest(),
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_ino,
        read_as,
        replaced_line,
    )


def _read_bytes(descriptor: int, size: int, max_bytes: int) -> bytes | None:
    """The bytes of a file that says it holds `size`, at most `max_bytes` + 1: one more tells that there are too many.

    None where it does not come to an end: somebody writes as fast as it is read.
    """
    data = os.read(descriptor, min(max(size, _CHUNK), max_bytes + 1))
    if size and len(data) >= size:
        return data
    chunks = [data]
    missing = max_bytes + 1 - len(data)
    for _ in range(_MORE_READS):
        data = os.read(descriptor, min(missing, _CHUNK))
        chunks.append(data)
        missing -= len(data)
        if not data or missing == 0:
            return b"".join(chunks)
    return None


def _refuse_by_kind(status: os.stat_result, root: Path | str, relative: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        # Resolving looks at names only; nothing at the other end is opened.
        base = os.path.realpath(root)
        target = os.path.realpath(os.path.join(base, relative))  # noqa: PTH118  names may be no text
        if os.path.commonpath([base, target]) != base:
            raise FileRefusedError(OUTSIDE)
        raise FileRefusedError(SYMBOLIC_LINK)
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "no regular file")
    raise FileRefusedError(NOT_REGULAR, kind=kind)
