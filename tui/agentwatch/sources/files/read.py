"""Reading a file that an agent wrote: bounded, never blocking, never outside the workspace, never half a change."""

import errno
import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from agentwatch.contracts.rules import read_rules
from agentwatch.contracts.shapes import Finding
from agentwatch.disk import DISK, OPEN_DIRECTORY, Directory, NotRegularError
from agentwatch.sources.files.walk import MAX_BYTES, Fingerprint, fingerprint

NOT_REGULAR, SYMBOLIC_LINK, OUTSIDE, TOO_LARGE, NOT_READABLE, NOT_UTF8, CHANGING, NOT_UNDERSTOOD = (
    f"SRC00{number}" for number in range(1, 9)
)

_ATTEMPTS = 3
_KINDS = {
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
        with _enter(root, directories) as directory:
            for _ in range(_ATTEMPTS):
                text = _read(directory, name, max_bytes, root, relative)
                if text is not None:
                    return text
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            raise FileNotFoundError(error.errno, os.strerror(error.errno)) from None
        denied = error.errno in (errno.EACCES, errno.EPERM)
        raise FileRefusedError(NOT_READABLE, reason=os.strerror(error.errno or 0), lasting=denied) from None
    raise FileRefusedError(CHANGING, lasting=False)


def _enter(root: Path | str, directories: list[str]) -> Directory:
    """The directory that holds the file; no component may be a link."""
    directory = Directory(DISK.open(root, OPEN_DIRECTORY | os.O_NOFOLLOW))
    for name in directories:
        with directory as parent:
            try:
                directory = parent.child(name)
            except OSError as error:
                # What the system says of a link differs: ELOOP, EMLINK, or ENOTDIR with O_DIRECTORY.
                if error.errno != errno.ENOENT and stat.S_ISLNK(parent.status(name).st_mode):
                    raise BehindLinkError(OUTSIDE) from None
                raise
    return directory


def _read(directory: Directory, name: str, max_bytes: int, root: Path | str, relative: str) -> FileText | None:
    """One attempt; None where the file changed under it."""
    try:
        data, before, after = directory.read_with_status(name, max_bytes)
    except NotRegularError as error:
        status = directory.status(name)
        if error.errno == errno.EFBIG:
            raise FileRefusedError(TOO_LARGE, size=max(status.st_size, max_bytes + 1), limit=max_bytes) from None
        if stat.S_ISLNK(status.st_mode):
            # Resolving looks at names only; nothing at the other end is opened.
            base = os.path.realpath(root)
            target = os.path.realpath(os.path.join(base, relative))  # noqa: PTH118  names may be no text
            is_inside = os.path.commonpath([base, target]) == base
            raise FileRefusedError(SYMBOLIC_LINK if is_inside else OUTSIDE) from None
        if not stat.S_ISREG(status.st_mode):
            raise FileRefusedError(NOT_REGULAR, kind=kind_of(status.st_mode)) from None
        return None
    if fingerprint(before) != fingerprint(after):
        return None
    payload = data.removeprefix(b"\xef\xbb\xbf")
    findings: tuple[Finding, ...] = ()
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        text = payload.decode("utf-8", "replace")
        line = payload.count(b"\n", 0, error.start) + 1
        findings = (replace(FileRefusedError(NOT_UTF8).finding, line=line),)
    return FileText(text, hashlib.sha256(data).hexdigest(), fingerprint(after), findings)


def kind_of(mode: int) -> str:
    """The kind of something that is no regular file, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")
