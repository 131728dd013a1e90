"""File names as text: which names are read, which look like handoffs, and how a name that is no text is written."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from os import fsdecode
from posixpath import basename, dirname
from typing import Final

_SUFFIXES: Final = (".json", ".md", ".markdown")

_HANDOFF_LIKE: Final = re.compile(
    r"(?:handoff|return).*\.(?:json|md|markdown)$|\.report\.json$|todos\.md$", re.IGNORECASE | re.DOTALL
)
_FOLDERS: Final = frozenset({"handoffs", "returns"})

_UNDECODED: Final = re.compile("[\udc80-\udcff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|x([89a-f][0-9a-f]))")


def is_candidate(name: str) -> bool:
    """The file is worth reading, judged by its name alone. `name` may be a whole path."""
    return name.lower().endswith(_SUFFIXES)


def looks_like_ours(path: str) -> bool:
    """The name says handoff, return, report or todos: the operator must hear of it when it cannot be read."""
    is_in_folder = is_candidate(path) and basename(dirname(path)) in _FOLDERS
    return is_in_folder or _HANDOFF_LIKE.search(basename(path)) is not None


def pruning(names: frozenset[str]) -> Callable[[str], bool]:
    """A test for directory names: equal to one of `names`, or matched by one that is a pattern (`*`, `?`, `[`)."""
    patterns = [name for name in names if any(character in name for character in "*?[")]
    exact = names.difference(patterns)
    if not patterns:
        return exact.__contains__
    matches = re.compile("|".join(fnmatch.translate(pattern) for pattern in sorted(patterns))).match
    return lambda name: name in exact or matches(name) is not None


def to_path(name: str) -> str:
    r"""The path of an observation for a file name of the operating system.

    Nearly always the name itself. A name that is not UTF-8 holds lone surrogates here, which can be neither hashed
    nor encoded: its bytes are written as `\xff`, and a backslash as `\\` so that no two names become one path.

    >>> to_path("a.json"), to_path("a\udcff.json")
    ('a.json', 'a\\xff.json')
    """
    if "\\" not in name and (name.isascii() or not _UNDECODED.search(name)):
        return name
    return _UNDECODED.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", name.replace("\\", "\\\\"))


def to_name(path: str) -> str:
    """The file name of the operating system for the path of an observation: `to_path` undone."""
    if "\\" not in path:
        return path
    return _ESCAPED.sub(lambda match: fsdecode(bytes([int(match[1], 16)])) if match[1] else "\\", path)
