"""Finds the files of a workspace that may be handoffs or returns, and reads them safely: links are not followed."""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import basename, dirname
from typing import NamedTuple

from agentwatch.contracts.rules import read_rules
from agentwatch.contracts.shapes import Finding
from agentwatch.disk import DISK, OPEN_DIRECTORY, Directory, Disk, Fingerprint, NotRegularError, fingerprint

# Handoffs and returns have a few KiB. A larger file is neither a handoff nor a return.
MAX_BYTES = 1024 * 1024

# Names of directories that are never entered: version stores, installed packages, environments, caches. `.agentwatch`
# is never entered, so that a decision is never read as a handoff. All other directories are entered, because agents may
# write in them: `build`, `out`, dot directories, and directories that git ignores.
_PRUNED = """.git .hg .jj .svn node_modules site-packages .pnpm-store .yarn .venv venv .tox .nox .direnv .lake
__pycache__ .mypy_cache .ruff_cache .pytest_cache .hypothesis .gradle .terraform .agentwatch"""
DEFAULT_PRUNED = frozenset(_PRUNED.split())

_SUFFIXES = (".json", ".md", ".markdown")

_HANDOFF_LIKE = re.compile(
    r"(?:handoff|return).*\.(?:json|md|markdown)$|\.report\.json$|todos\.md$", re.IGNORECASE | re.DOTALL
)

_UNDECODED = re.compile("[\udc80-\udcff]")
_ESCAPED = re.compile(r"\\(?:\\|x([89a-f][0-9a-f]))")


def is_candidate(name: str) -> bool:
    """Tell whether a file's name or path ends like a JSON or Markdown file. Only these files are read."""
    return name.lower().endswith(_SUFFIXES)


def is_named_like_document(path: str) -> bool:
    """Tell whether a file is named like a handoff, return, report or todo list. An unreadable file with this kind of
    name is reported to the operator."""
    is_in_folder = is_candidate(path) and basename(dirname(path)) in {"handoffs", "returns"}
    return is_in_folder or _HANDOFF_LIKE.search(basename(path)) is not None


def make_prune_test(names: frozenset[str] | None) -> Callable[[str], bool]:
    """Return a function that takes a directory's name, and tells whether to leave the directory out. `names` has the
    names to leave out, and patterns with `*`, `?` or `[`. None stands for the default names."""
    names = DEFAULT_PRUNED if names is None else names
    patterns = [name for name in names if not {*name}.isdisjoint("*?[")]
    return lambda name: name in names or any(fnmatchcase(name, pattern) for pattern in patterns)


def event_path(name: str) -> str:
    r"""Return the form of a path that events use. `name` is the path as the operating system gives it.

    The result is nearly always equal to `name`. A byte that is not UTF-8 becomes text such as `\xff`, because Python
    cannot encode the byte. A backslash becomes `\\`, so that two different names never become the same path."""
    return _UNDECODED.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", name.replace("\\", "\\\\"))


def system_name(path: str) -> str:
    """Return the operating system's path for an event's path. This is the reverse of `event_path`."""
    return _ESCAPED.sub(lambda match: os.fsdecode(bytes([int(match[1], 16)])) if match[1] else "\\", path)


def join(directory: str, name: str) -> str:
    """Return the path of a file in a directory. The directory and the result are relative to the root."""
    return f"{directory}/{name}" if directory else name


def absolute_path(root: str, path: str) -> str:
    """Return the absolute path for a path relative to the root; "" is the root itself. The result has no final slash:
    with a slash, the system would follow a symbolic link at the path."""
    return f"{root.rstrip('/')}/{path}" if path else root


def walk(
    root: str, is_pruned: Callable[[str], bool], below: str = "", is_other_worktree: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, tuple[list[str], list[str]] | OSError]]:
    """Yield (path, content) for the directory `below` and for all directories inside it. Parents come first.

    Paths are relative to `root`. The content is two lists: the names of directories to enter, and of files to read. If
    a directory cannot be listed, the content is the error. The error for a symbolic link is NotADirectoryError. If
    `is_other_worktree` is true for a directory, both lists are empty."""
    pending = [below]
    while pending:
        path = pending.pop()
        directory, has_mark = absolute_path(root, path), False
        directories, candidates = list[str](), list[str]()
        try:
            descriptor = os.open(directory, OPEN_DIRECTORY | os.O_NOFOLLOW)
            try:
                with os.scandir(descriptor) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if not is_pruned(entry.name):
                                directories.append(entry.name)
                        elif is_candidate(entry.name):
                            candidates.append(entry.name)
                        elif entry.name == ".git":
                            has_mark = True
            finally:
                os.close(descriptor)
        except OSError as error:
            yield path, error
            continue
        if has_mark and path and is_other_worktree is not None and is_other_worktree(directory):
            directories, candidates = [], []
        yield path, (directories, candidates)
        pending.extend(join(path, name) for name in directories)


NOT_REGULAR, SYMBOLIC_LINK, OUTSIDE, TOO_LARGE, NOT_READABLE, NOT_UTF8, CHANGING, NOT_UNDERSTOOD = (
    f"SRC00{number}" for number in range(1, 9)
)

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class FileRefusedError(Exception):
    """A file that may not or cannot be read. `message` gives the fault and the remedy, `reason` only the fault. `facts`
    are values for the message. If `lasting`, each new try fails until the file or its attributes change."""

    def __init__(self, rule: str, *, lasting: bool = True, **facts: object):
        self.rule, self.lasting = rule, lasting
        self.message = read_rules()[rule].message.format(**facts)
        self.reason = self.message.partition("; ")[0]
        super().__init__(self.message)

    @property
    def finding(self) -> Finding:
        return Finding(self.rule, read_rules()[self.rule].severity, self.message)


class BehindLinkError(FileRefusedError):
    """A directory on the file's path is a symbolic link, so the path leads to another place."""


class FileText(NamedTuple):
    """The content of a file. `digest` is the sha256 of its bytes, in hex. `text` is decoded as UTF-8, without a BOM.
    Bytes that are not UTF-8 become U+FFFD. `findings` then has a finding of the rule SRC006."""

    text: str
    digest: str
    fingerprint: Fingerprint
    findings: tuple[Finding, ...] = ()


def read_file(root: Path | str, relative: str, max_bytes: int = MAX_BYTES, disk: Disk = DISK) -> FileText:
    """Read the file at the path `relative` below `root`. Neither path may contain a symbolic link. Raise
    FileNotFoundError if there is no file. Raise FileRefusedError if the file may not or cannot be read."""
    *directories, name = relative.split("/")
    if "\0" in relative or not {*directories, name}.isdisjoint({"", ".", ".."}):
        raise FileRefusedError(OUTSIDE)
    try:
        with _open_directory(root, directories, disk) as directory:
            for _ in range(3):
                text = _read_once(directory, name, max_bytes, root, relative)
                if text:
                    return text
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            raise FileNotFoundError(error.errno, os.strerror(error.errno)) from None
        denied = error.errno in (errno.EACCES, errno.EPERM)
        raise FileRefusedError(NOT_READABLE, reason=os.strerror(error.errno or 0), lasting=denied) from None
    raise FileRefusedError(CHANGING, lasting=False)


def _open_directory(root: Path | str, directories: list[str], disk: Disk) -> Directory:
    """Open the directory `root/directories[0]/directories[1]/…`. Raise BehindLinkError if a part is a symbolic link."""
    directory = Directory(disk.open(root, OPEN_DIRECTORY | os.O_NOFOLLOW), disk)
    for name in directories:
        with directory as parent:
            try:
                directory = parent.open_child(name)
            except OSError as error:
                # Operating systems report a link with different errors: ELOOP, EMLINK or ENOTDIR.
                if error.errno != errno.ENOENT and stat.S_ISLNK(parent.status(name).st_mode):
                    raise BehindLinkError(OUTSIDE) from None
                raise
    return directory


def _read_once(directory: Directory, name: str, max_bytes: int, root: Path | str, relative: str) -> FileText | None:
    """Read a file. Return None if the file changed during the read."""
    try:
        data, before, after = directory.read_with_status(name, max_bytes)
    except NotRegularError as error:
        status = directory.status(name)
        if error.errno == errno.EFBIG:
            raise FileRefusedError(TOO_LARGE, size=max(status.st_size, max_bytes + 1), limit=max_bytes) from None
        if stat.S_ISLNK(status.st_mode):
            # `realpath` resolves the link without opening its target.
            base = os.path.realpath(root)
            target = os.path.realpath(os.path.join(base, relative))  # noqa: PTH118  file names may not be valid UTF-8
            is_inside = os.path.commonpath([base, target]) == base
            raise FileRefusedError(SYMBOLIC_LINK if is_inside else OUTSIDE) from None
        if not stat.S_ISREG(status.st_mode):
            raise FileRefusedError(NOT_REGULAR, kind=kind_in_words(status.st_mode)) from None
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


def kind_in_words(mode: int) -> str:
    """Describe the kind of a file that is not a regular file. An example is "a directory"."""
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")
