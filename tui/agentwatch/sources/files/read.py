"""Reading a file that an agent wrote: bounded, never blocking, never outside the workspace, never half a change."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.sources.files.walk import MAX_BYTES, Fingerprint, fingerprint

_TABLE: Final = """
SRC001 error not a regular file
This is {kind}, not a file, and is not opened; write the document as an ordinary file.
Opening a pipe waits for ever, a device may act on being opened, and none of them has a content that stays.
cp result.md job.return.md ≠ mkfifo job.return.md

SRC002 warning a symbolic link
This is a symbolic link, which is not followed; write the file itself here.
What a link shows can be changed without touching it. A file inside the workspace is read where it lies.
cp run-3.return.md job.return.md ≠ ln -s run-3.return.md job.return.md

SRC003 error outside the workspace
This leads out of the workspace and is not read; copy the file into the workspace.
An agent must not be able to bring other files of this machine on screen by linking to them.
cp ../other/return.md job.return.md ≠ ln -s ../other/return.md job.return.md

SRC004 error too large
This holds {size:,} bytes, and at most {limit:,} are read; shorten it and name large results as files.
A return is read by an orchestrator with little room. What is larger belongs in an artifact.
a return of 3 KiB that names logs/build.log ≠ a return that contains the build log

SRC005 error not readable
This cannot be read ({reason}); give the user who runs agentwatch the permission, or check the disk.
What cannot be read cannot be shown or judged, so the task's state may be older than the file.
-rw-r--r-- job.return.md ≠ ---------- job.return.md

SRC006 warning not UTF-8
Some bytes are not UTF-8 and are shown as U+FFFD; save the file as UTF-8.
The contracts are exchanged as UTF-8. What the other bytes meant is lost.
café as c3 a9 ≠ café as e9

SRC007 warning never at rest
This changed each time it was read; write it under another name and rename it when it is whole.
A file that changes while it is read gives a mixture of two contents, which nobody wrote.
write job.return.md.tmp, then rename it to job.return.md ≠ append to job.return.md for minutes

SRC008 error breaks agentwatch
agentwatch itself failed on this file ({fault}); report it together with the file.
No content may end the watching. The file is left out until it changes, so that the others are still seen.
any file ≠ the file that this finding is about
"""
"""Of each rule: id, severity and title; the message, after the semicolon what to do; why; right and wrong."""


def _rule(block: str) -> Rule:
    heading, message, why, example = block.strip().split("\n")
    rule_id, severity, title = heading.split(maxsplit=2)
    right, wrong = example.split(" ≠ ")
    return Rule(rule_id, None, Severity(severity), "Files", title, message, why, right, wrong)


RULES: Final = tuple(map(_rule, _TABLE.split("\n\n")))
NOT_REGULAR, SYMBOLIC_LINK, OUTSIDE, TOO_LARGE, NOT_READABLE, NOT_UTF8, CHANGING, NOT_UNDERSTOOD = RULES

_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe would wait for a writer for ever. O_NOCTTY: a terminal must not become ours.
_OPEN_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

_ATTEMPTS: Final = 3
_CHUNK: Final = 64 * 1024
_MORE_READS: Final = 64
"""Reads after the first, for a file that holds more than it says."""

_NO_NAMES: Final = frozenset({"", ".", ".."})
_BOM: Final = b"\xef\xbb\xbf"

_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class FileRefusedError(Exception):
    """A file is not read, by `rule`: `reason` says what is wrong, `message` also what to do; both are our own words.
    `facts` are what the rule's message names. `lasting`: only a change of the file's attributes can help."""

    def __init__(self, rule: Rule, *, lasting: bool = True, **facts: object) -> None:
        self.rule = rule
        self.message = rule.message.format(**facts)
        self.reason = self.message.partition("; ")[0]
        self.lasting = lasting
        super().__init__(self.message)

    @property
    def finding(self) -> Finding:
        return Finding(self.rule.id, self.rule.severity, self.message)


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
        # Swapped for a link (ELOOP) or a socket (ENXIO) since it was asked above: the next attempt says which.
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
    findings: tuple[Finding, ...] = ()
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        text = payload.decode("utf-8", "replace")
        rule, line = NOT_UTF8, payload.count(b"\n", 0, error.start) + 1
        findings = (Finding(rule.id, rule.severity, rule.message, line),)
    digest = hashlib.sha256(data).hexdigest()
    return FileText(text, digest, read_as, findings)


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
    raise FileRefusedError(NOT_REGULAR, kind=kind_of(mode))
