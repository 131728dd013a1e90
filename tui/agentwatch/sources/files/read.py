"""Reading a file that an agent wrote: bounded, never blocking, never outside the workspace, never half a change."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.contracts.rules import read_rules
from agentwatch.contracts.shapes import Finding
from agentwatch.sources.files.walk import MAX_BYTES, OPEN_DIRECTORY, Fingerprint, fingerprint

NOT_REGULAR, SYMBOLIC_LINK, OUTSIDE, TOO_LARGE, NOT_READABLE, NOT_UTF8, CHANGING, NOT_UNDERSTOOD = (
    f"SRC00{number}" for number in range(1, 9)
)

# O_NONBLOCK: opening a pipe would wait for a writer for ever. O_NOCTTY: a terminal must not become ours.
_OPEN_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_ATTEMPTS: Final = 3
_CHUNK: Final = 64 * 1024
_MORE_READS: Final = 64
"""Reads after the first, for a file that holds more than it says."""
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class FileRefusedError(Exception):
    """A file is not read, by a rule: `reason` says what is wrong, `message` also what to do, both in our own words.
    `facts` are what the rule's message names. `lasting`: only a change of the file's attributes can help."""

    def __init__(self, rule: str, *, lasting: bool = True, **facts: object) -> None:
        self.rule, self.lasting = rule, lasting
        self.message = read_rules()[rule].message.format(**facts)
        self.reason = self.message.partition("; ")[0]
        super().__init__(self.message)

    @property
    def finding(self) -> Finding:
        return Finding(self.rule, read_rules()[self.rule].severity, self.message)


class BehindLinkError(FileRefusedError):
    """A directory on the path is a symbolic link: the file is not where its path says."""


class FileText(NamedTuple):
    """A file as it was read. `digest` is the sha256, in hex, of its bytes; `text` is those bytes as UTF-8 without BOM.
    `findings` has SRC006 where bytes are not UTF-8 and were replaced by U+FFFD."""

    text: str
    digest: str
    fingerprint: Fingerprint
    findings: tuple[Finding, ...] = ()


def read_file(root: Path | str, relative: str, max_bytes: int = MAX_BYTES) -> FileText:
    """Read one file of a workspace. `relative` is its name below `root`, with `/`; neither may contain a symbolic link.
    Raises FileRefusedError where it must not or cannot be read, FileNotFoundError where there is none."""
    *directories, name = relative.split("/")
    if "\0" in relative or not {*directories, name}.isdisjoint({"", ".", ".."}):
        raise FileRefusedError(OUTSIDE)
    try:
        directory = _enter(root, directories)
        try:
            for _ in range(_ATTEMPTS):
                text = _read(directory, name, max_bytes, root, relative)
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
    descriptor = os.open(root, OPEN_DIRECTORY)
    for name in directories:
        parent = descriptor
        try:
            descriptor = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
        except OSError as error:
            # What the system says of a link differs: ELOOP, EMLINK, or ENOTDIR with O_DIRECTORY.
            if error.errno != errno.ENOENT and stat.S_ISLNK(_status(name, parent).st_mode):
                raise BehindLinkError(OUTSIDE) from None
            raise
        finally:
            os.close(parent)
    return descriptor


def _status(name: str, directory: int) -> os.stat_result:
    return os.stat(name, dir_fd=directory, follow_symlinks=False)


def _read(directory: int, name: str, max_bytes: int, root: Path | str, relative: str) -> FileText | None:
    """One attempt; None where the file changed under it."""
    # Before it is opened: opening a device may already do something.
    _require_regular(_status(name, directory), root, relative)
    try:
        descriptor = os.open(name, _OPEN_FILE, dir_fd=directory)
    except OSError as error:
        # Swapped for a link (ELOOP) or a socket (ENXIO) since it was asked above: the next attempt says which.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        before = os.fstat(descriptor)
        _require_regular(before, root, relative)
        if before.st_size > max_bytes:
            raise FileRefusedError(TOO_LARGE, size=before.st_size, limit=max_bytes)
        data = _read_bytes(descriptor, before.st_size, max_bytes)
        after = fingerprint(os.fstat(descriptor))
    finally:
        os.close(descriptor)
    if data is None or fingerprint(before) != after:
        return None
    if len(data) > max_bytes:
        raise FileRefusedError(TOO_LARGE, size=len(data), limit=max_bytes)
    payload = data.removeprefix(b"\xef\xbb\xbf")
    findings: tuple[Finding, ...] = ()
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        text = payload.decode("utf-8", "replace")
        line = payload.count(b"\n", 0, error.start) + 1
        findings = (replace(FileRefusedError(NOT_UTF8).finding, line=line),)
    return FileText(text, hashlib.sha256(data).hexdigest(), after, findings)


def _read_bytes(descriptor: int, size: int, max_bytes: int) -> bytes | None:
    """The bytes of a file that says it holds `size`, at most `max_bytes` + 1; None where it does not come to an end."""
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


def kind_of(mode: int) -> str:
    """What it is that is no regular file, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")


def _require_regular(status: os.stat_result, root: Path | str, relative: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        # Resolving looks at names only; nothing at the other end is opened.
        base = os.path.realpath(root)
        target = os.path.realpath(os.path.join(base, relative))  # noqa: PTH118  names may be no text
        raise FileRefusedError(SYMBOLIC_LINK if os.path.commonpath([base, target]) == base else OUTSIDE)
    raise FileRefusedError(NOT_REGULAR, kind=kind_of(mode))
