"""Which files of a workspace are read, by their names, and how: bounded, never blocking, never outside, never half a
change."""

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

# Handoffs and returns are a few KiB; whatever is larger was not written to be read by an orchestrator.
MAX_BYTES = 1024 * 1024

# Directories that are never entered, by name: version stores, installed packages, environments, caches; and our own
# mirror: a decision is never taken for a handoff. Words that people give to directories of their own (`build`, `out`)
# are not in it, nor other dot directories, nor what git ignores: agents write there.
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
    """The file is worth reading, judged by its name alone. `name` may be a whole path."""
    return name.lower().endswith(_SUFFIXES)


def looks_like_ours(path: str) -> bool:
    """The name says handoff, return, report or todos: the operator must hear of it when it cannot be read."""
    is_in_folder = is_candidate(path) and basename(dirname(path)) in {"handoffs", "returns"}
    return is_in_folder or _HANDOFF_LIKE.search(basename(path)) is not None


def pruning(names: frozenset[str] | None) -> Callable[[str], bool]:
    """A test for directory names: equal to one of `names`, or matched by one that is a pattern (`*`, `?`, `[`). None:
    those that are never entered unless the operator has a list."""
    names = DEFAULT_PRUNED if names is None else names
    patterns = [name for name in names if not {*name}.isdisjoint("*?[")]
    return lambda name: name in names or any(fnmatchcase(name, pattern) for pattern in patterns)


def to_path(name: str) -> str:
    r"""The path of an observation for a file name of the operating system.

    Nearly always the name itself. A name that is not UTF-8 holds lone surrogates here, which can be neither hashed
    nor encoded: its bytes are written as `\xff`, and a backslash as `\\` so that no two names become one path."""
    return _UNDECODED.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", name.replace("\\", "\\\\"))


def to_name(path: str) -> str:
    """The file name of the operating system for the path of an observation: `to_path` undone."""
    return _ESCAPED.sub(lambda match: os.fsdecode(bytes([int(match[1], 16)])) if match[1] else "\\", path)


def join(directory: str, name: str) -> str:
    """The path of a name in a directory, both relative to the root."""
    return f"{directory}/{name}" if directory else name


def place_in(root: str, path: str) -> str:
    """The absolute path of one relative to the root, "" for the root: with a slash at its end that would be followed
    where it is a link by now."""
    return f"{root.rstrip('/')}/{path}" if path else root


def walk(
    root: str, is_pruned: Callable[[str], bool], below: str = "", is_another: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, tuple[list[str], list[str]] | OSError]]:
    """Every directory of a workspace from `below` on, its path relative to `root` ("" is the root), before those in it,
    with the names of the directories to enter and of the files worth reading (links and pipes, too).

    One that cannot be listed comes with its error; a symbolic link is NotADirectoryError. One below the root with a
    `.git` file is empty where `is_another` says so of its absolute path."""
    pending = [below]
    while pending:
        path = pending.pop()
        directory, has_mark = place_in(root, path), False
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
        if has_mark and path and is_another is not None and is_another(directory):
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
    """A file is not read, by a rule: `reason` says what is wrong, `message` also what to do, both in our own words.
    `facts` are what the rule's message names. `lasting`: only a change of the file's attributes can help."""

    def __init__(self, rule: str, *, lasting: bool = True, **facts: object):
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


def read_file(root: Path | str, relative: str, max_bytes: int = MAX_BYTES, disk: Disk = DISK) -> FileText:
    """Read one file of a workspace. `relative` is its name below `root`, with `/`; neither may contain a symbolic link.
    Raises FileRefusedError where it must not or cannot be read, FileNotFoundError where there is none."""
    *directories, name = relative.split("/")
    if "\0" in relative or not {*directories, name}.isdisjoint({"", ".", ".."}):
        raise FileRefusedError(OUTSIDE)
    try:
        with _enter(root, directories, disk) as directory:
            for _ in range(3):
                text = _read(directory, name, max_bytes, root, relative)
                if text:
                    return text
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            raise FileNotFoundError(error.errno, os.strerror(error.errno)) from None
        denied = error.errno in (errno.EACCES, errno.EPERM)
        raise FileRefusedError(NOT_READABLE, reason=os.strerror(error.errno or 0), lasting=denied) from None
    raise FileRefusedError(CHANGING, lasting=False)


def _enter(root: Path | str, directories: list[str], disk: Disk) -> Directory:
    """The directory that holds the file; no component may be a link."""
    directory = Directory(disk.open(root, OPEN_DIRECTORY | os.O_NOFOLLOW), disk)
    for name in directories:
        with directory as parent:
            try:
                directory = parent.child(name)
            except OSError as error:
                # Systems differ in their error for a link: ELOOP, EMLINK, or ENOTDIR with O_DIRECTORY.
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
