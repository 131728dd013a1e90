"""Claimed paths: the words of a text that are some, where they lead by their letters, and what the disk says of them.

Nothing is expanded, opened or followed out of the workspace.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Sequence
from enum import Enum, StrEnum
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.files.read import kind_of
from agentwatch.sources.files.walk import to_name

LONGEST: Final = 4_096  # characters of a text that are looked at; no path is longer

# Words that are paths

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:(?://|\S*@)")
_SUFFIX: Final = re.compile(r"\.(?=[A-Za-z0-9_]*[A-Za-z])[A-Za-z0-9_]{1,12}\Z")
_PATH_CHARACTERS: Final = re.compile(r"[\w.@+~#%=,()\[\]{}$!&'\\/-]+\Z")
_BARE_SUFFIX: Final = re.compile(
    r"\.(?:bash|c|cc|cfg|cpp|cs|css|csv|dart|ex|go|gradle|h|hpp|html|ini|java|json|jsonl|kt|lean|lock|lua|md|mdx|mjs"
    r"|php|png|proto|py|pyi|rb|rs|rst|scala|sh|sql|svg|swift|tex|toml|ts|tsx|txt|vue|xml|yaml|yml|zig)\Z",
    re.IGNORECASE,
)
_BARE_NAME: Final = re.compile(r"(?:\.[A-Za-z].*|Makefile|Dockerfile|LICENSE|README|CHANGELOG|Justfile|Procfile)\Z")
_LETTER: Final = re.compile(r"[^\W_]")
_MARKED: Final = re.compile(
    r"`([^`\n]{1,4096})`(:\d{1,9}(?:\s?[-\u2013]\s?\d{1,9})?)?|\[[^\]\n]{0,400}\]\(([^()\s]{1,4096})\)"
)
"""A word in ticks, with its lines perhaps behind them, or a link."""
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|\u00a7)\s|[:;]\s|\s\(")
_LIST: Final = re.compile(r",\s+|\s+and\s+|\s+\+\s+")
_LINES: Final = re.compile(
    r"(?P<path>.+?)(?::(?P<a>\d{1,9})(?:\s?[-\u2013]\s?(?P<b>\d{1,9}))?(?::\d{1,9})?"
    r"|#L(?P<c>\d{1,9})(?:-L?(?P<d>\d{1,9}))?)\Z"
)
_SPELLED_LINES: Final = re.compile(
    r":\s+lines?\s+(?=\d{1,9}(?:\s?[-\u2013]\s?\d{1,9})?[`*_]*\s*(?:\Z|[;,(\u2014\u2013\u2192]|--?\s))"
)
"""`a.py: line 5` and `a.py: lines 5-9`: as `a.py:5`."""


class Likeness(Enum):
    """How much a word looks like a path."""

    PATH = "path"
    DOUBTFUL = "doubtful"
    NONE = "none"


class Pointer(NamedTuple):
    """A path that a text points to, and the lines of it. `stated`: the text goes on to say something about it, behind
    a colon or around it; what a dash or a bracket adds only describes it."""

    path: str
    lines: tuple[int, int] | None
    doubtful: bool
    stated: bool = False


def likeness(word: str) -> Likeness:
    """Whether a word is a path, judged by its letters."""
    if len(word) > LONGEST or _URL.match(word) or set("<>|`") & set(word) or not _LETTER.search(word):
        return Likeness.NONE
    name = word.rstrip("/").rpartition("/")[2]
    is_deep, has_suffix, is_file = "/" in word or "\\" in word, _SUFFIX.search(name), _BARE_SUFFIX.search(name)
    if len(word.split()) > 1:
        # A command takes paths too, so a path with blanks in it has to end like a file.
        return Likeness.DOUBTFUL if " -" not in word and (has_suffix if is_deep else is_file) else Likeness.NONE
    is_dotted = word.startswith(("./", "../", "~/")) or (word.endswith("/") and len(word) > 2)
    if is_file or (is_deep and (has_suffix or is_dotted)):
        return Likeness.PATH
    may_be = _PATH_CHARACTERS.match(word) if is_deep else has_suffix or _BARE_NAME.match(name)
    return Likeness.DOUBTFUL if may_be else Likeness.NONE


def pointers(text: str) -> tuple[Pointer, ...]:
    """The paths that a bullet of evidence points to; none where it is a command, a result or a reference."""
    text = _SPELLED_LINES.sub(":", text.strip()[:LONGEST])
    marked = ["".join(words) for words in _MARKED.findall(text)]
    if (leading := _MARKED.match(text)) is not None:
        rest = text[leading.end() :].lstrip("*_ ")
        return _of_words(marked[:1], stated=rest.startswith((":", ";")))
    separator = _SEPARATOR.search(text)
    head = (text[: separator.start()] if separator else text).strip().strip("*_").rstrip(".,;:")
    words = [word.strip("`*\"'") for word in _LIST.split(head)]
    named = _of_words(words, stated=separator is not None and separator[0].startswith((":", ";")))
    if len(named) == len(words):
        return named
    return tuple(one for one in _of_words(marked, stated=True) if not one.doubtful)


def _of_words(words: list[str], *, stated: bool) -> tuple[Pointer, ...]:
    split = (_split_lines(word.strip()) for word in words)
    likely = ((path, lines, likeness(path)) for path, lines in split)
    return tuple(
        Pointer(path, lines, like is Likeness.DOUBTFUL, stated)
        for path, lines, like in likely
        if like is not Likeness.NONE
    )


def _split_lines(word: str) -> tuple[str, tuple[int, int] | None]:
    """A word without its `:12-40` or `#L12`, and those lines."""
    match = _LINES.match(word) if ":" in word or "#L" in word else None
    if match is None:
        return word, None
    first = int(match["a"] or match["c"])
    return match["path"], (first, int(match["b"] or match["d"] or first))


_DOCUMENTS: Final = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst)|\.(?:handoff|return|report)\.json|return-meta[\w.-]*\.json)\Z", re.IGNORECASE
)


def is_document(path: str) -> bool:
    """Whether a file is one that no test is about: an agent writes of its work last."""
    return _DOCUMENTS.search(path) is not None


# Places

_ELSEWHERE: Final = re.compile(r"~(?:[^/]*/|\Z)|[A-Za-z][A-Za-z0-9+.-]{1,31}://|[A-Za-z]:[\\/]|\\\\")


class Fault(StrEnum):
    """Why a claimed path is not a file of the workspace; the value is the reason in words."""

    EMPTY = "it is empty: it names no file"
    OUTSIDE = "outside the workspace"
    ABSOLUTE = "absolute: a claimed path has to be relative to the workspace"
    WORKSPACE = "it is the workspace itself, not a file in it"


class ClaimedPlace(NamedTuple):
    """Where a claimed path leads. `relative` is it below the workspace, with `/`, None where it is not inside.

    An absolute path inside the workspace has both: a fault and where it leads.
    """

    relative: str | None
    fault: Fault | None = None


def place_of(path: str, workspace: str) -> ClaimedPlace:
    """Judge a claimed path. `workspace` is absolute and resolved. Nothing is expanded."""
    path = path.strip()
    if not path:
        return ClaimedPlace(None, Fault.EMPTY)
    there = posixpath.normpath(posixpath.join(workspace, path))
    if there == workspace:
        return ClaimedPlace(None, Fault.WORKSPACE)
    base = f"{workspace.rstrip('/')}/"
    if _ELSEWHERE.match(path) or not there.startswith(base):
        return ClaimedPlace(None, Fault.OUTSIDE)
    fault = Fault.ABSOLUTE if path[0] == "/" and workspace != "/" else None
    return ClaimedPlace(there.removeprefix(base), fault)


def beside(path: str, returned: str, former: Iterable[str] = ()) -> list[str]:
    """The places where a file may be that was claimed as `path`, the likeliest first.

    `returned` is where its return lies now, `former` where it lay before. Without those, the return lies in a directory
    that the path names, too, and which has got deeper or less deep since: `specs/7/x.md` in `specs/archive/7/`.
    """
    parts, into = path.split("/"), returned.split("/")[:-1]
    places: list[list[str]] = []
    for name in former:
        old, new = to_name(name).split("/")[:-1], list(into)
        # What stands at the end of both was inside of what was moved.
        while old and new and old[-1] == new[-1]:
            old.pop()
            new.pop()
        if parts[: len(old)] == old:
            places.append([*new, *parts[len(old) :]])
    for end, start in product(range(len(into), 0, -1), range(len(parts) - 1, 0, -1)):
        old, new = parts[:start], into[:end]
        if old[-1] == new[-1] and (_is_within(old, new) or _is_within(new, old)):
            places.append([*new, *parts[start:]])
    return [place for place in dict.fromkeys(map("/".join, places)) if place != path]


def _is_within(some: Sequence[str], all_of_them: Sequence[str]) -> bool:
    """The names stand among the others, in their order."""
    rest = iter(all_of_them)
    return all(name in rest for name in some)


# The disk

_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


class FileKind(StrEnum):
    """Kind of file; OUTSIDE: a symbolic link leads out of the workspace. REFUSED: nobody may look."""

    MISSING = "missing"
    REGULAR = "regular"
    DIRECTORY = "directory"
    OTHER = "other"
    OUTSIDE = "outside"
    REFUSED = "refused"


class DiskFacts(NamedTuple):
    """One path as it was found. `mtime_ns` is in nanoseconds since the epoch.

    `words` name an OTHER's kind or why it was REFUSED. `linked`: a symbolic link inside the workspace leads there.
    `names` is how many hard links it has, and `trace` what `trace` gives of it.
    """

    kind: FileKind
    mtime_ns: int = 0
    ctime_ns: int = 0
    empty: bool = False
    words: str = ""
    linked: bool = False
    names: int = 1
    trace: object = "gone"

    @property
    def is_there(self) -> bool:
        return self.kind in (FileKind.REGULAR, FileKind.DIRECTORY)


MISSING: Final = DiskFacts(FileKind.MISSING)


def look(root: str, path: str) -> DiskFacts:
    """The facts of a path below a real directory, given with `/`, without `.` and `..`."""
    place = f"{root}/{path}"
    try:
        real = os.path.realpath(place)
        if not f"{real}/".startswith(f"{root}/"):
            return DiskFacts(FileKind.OUTSIDE, trace=trace(place))
        status = os.lstat(real)
        is_directory, is_regular = stat.S_ISDIR(status.st_mode), stat.S_ISREG(status.st_mode)
        is_empty = next(Path(real).iterdir(), None) is None if is_directory else is_regular and status.st_size == 0
    except ValueError:
        return MISSING
    except OSError as error:
        is_gone = error.errno in _GONE and os.path.isdir(root)
        missing = MISSING if is_gone else DiskFacts(FileKind.REFUSED, words=os.strerror(error.errno or 0))
        return missing._replace(trace=trace(place))
    if stat.S_ISLNK(status.st_mode):
        words = "its symbolic link leads in a circle or is changing"
        return DiskFacts(FileKind.REFUSED, words=words, trace=trace(place))
    linked = real != place.rstrip("/")
    # Of the same look as the facts: a file that changes meanwhile looks different the next time.
    seen = trace(place) if linked else _trace_of(status)
    kind = FileKind.DIRECTORY if is_directory else FileKind.REGULAR if is_regular else FileKind.OTHER
    words = "" if is_directory or is_regular else kind_of(status.st_mode)
    names = status.st_nlink if is_regular else 1
    return DiskFacts(kind, status.st_mtime_ns, status.st_ctime_ns, is_empty, words, linked, names, seen)


def trace(path: str) -> object:
    """Something that is equal as long as a file is not written, replaced or removed. Blocks for one look."""
    try:
        return _trace_of(os.lstat(path))
    except (OSError, ValueError):
        return "gone"


def _trace_of(status: os.stat_result) -> object:
    return status.st_mtime_ns, status.st_size, status.st_ino
