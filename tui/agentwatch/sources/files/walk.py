"""Which files of a workspace are read, by their names, and the walk that finds them."""

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from posixpath import basename, dirname

from agentwatch.disk import OPEN_DIRECTORY

MAX_BYTES = 1024 * 1024
"""Handoffs and returns are a few KiB; whatever is larger was not written to be read by an orchestrator."""

_PRUNED = """.git .hg .jj .svn node_modules site-packages .pnpm-store .yarn .venv venv .tox .nox .direnv .lake
__pycache__ .mypy_cache .ruff_cache .pytest_cache .hypothesis .gradle .terraform .agentwatch"""
DEFAULT_PRUNED = frozenset(_PRUNED.split())
"""Directories that are never entered, by name: version stores, installed packages, environments, caches; and our own
mirror: a decision is never taken for a handoff. Words that people give to directories of their own (`build`, `out`)
are not in it, nor other dot directories, nor what git ignores: agents write there."""

_SUFFIXES = (".json", ".md", ".markdown")

_HANDOFF_LIKE = re.compile(
    r"(?:handoff|return).*\.(?:json|md|markdown)$|\.report\.json$|todos\.md$", re.IGNORECASE | re.DOTALL
)
_FOLDERS = frozenset({"handoffs", "returns"})

_UNDECODED = re.compile("[\udc80-\udcff]")
_ESCAPED = re.compile(r"\\(?:\\|x([89a-f][0-9a-f]))")


def is_candidate(name: str) -> bool:
    """The file is worth reading, judged by its name alone. `name` may be a whole path."""
    return name.lower().endswith(_SUFFIXES)


def looks_like_ours(path: str) -> bool:
    """The name says handoff, return, report or todos: the operator must hear of it when it cannot be read."""
    is_in_folder = is_candidate(path) and basename(dirname(path)) in _FOLDERS
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


Fingerprint = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size and inode


def fingerprint(status: os.stat_result) -> Fingerprint:
    """A fingerprint that changes with the file, without reading it. Nobody can set the ctime, so a rewrite of the same
    size that restores the mtime is noticed."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def join(directory: str, name: str) -> str:
    """The path of a name in a directory, both relative to the root."""
    return f"{directory}/{name}" if directory else name


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
        # Not the root with a slash at its end: that would follow it where it is a link by now.
        directory, has_mark = f"{root.rstrip('/')}/{path}" if path else root, False
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
