"""What was read in each file of a workspace when it was last as it is now: such a file is not read again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from agentwatch.contracts.shapes import READING_KINDS, Finding, Reading
from agentwatch.cores import has_two_cores
from agentwatch.kept import looks
from agentwatch.kept.index import Index
from agentwatch.kept.keeping import is_young
from agentwatch.sources.files.names import to_path
from agentwatch.sources.files.read import FileText
from agentwatch.sources.files.scan import numbers_in

KINDS: Final = READING_KINDS
_SECOND: Final = 1e9

MANY: Final = 1_000
"""Files that take longer to read than another process to begin."""
_MISSES: Final = 50
"""Files that had to be read, after which the others probably have to be, too."""
FIRST: Final = 1_000
"""Files that a process which has begun already reads first."""


class Known(NamedTuple):
    """What was read in a file, as `FileText` has it, and recognised in that: None where it is nothing of ours."""

    fingerprint: int
    digest: str
    findings: tuple[Finding, ...]
    reading: Reading | None

    @property
    def file(self) -> FileText:
        """The file without its text."""
        mtime_ns, ctime_ns, *_ = numbers_in(self.fingerprint)
        return FileText("", self.digest, mtime_ns, ctime_ns, self.fingerprint, self.findings)


class ReadBeside(NamedTuple):
    """What another process read in the file of this path: also its text, where it is ours, and perhaps what evidence
    needs of that."""

    path: str
    known: Known
    text: str = ""
    told: Any = None


class Other(Protocol):
    """Another process that reads files, from the last one on."""

    def arrived(self, *, waits: bool) -> Sequence[ReadBeside]:
        """What has been read since the last call. `waits`: not nothing, if it comes soon."""

    def end(self) -> None:
        """No more is wanted."""


Begin = Callable[[str, int, str, Sequence[str]], Other]
"""Begins to read these files below a root, at most so large, whose names have this beginning. Raises OSError."""


class Readings:
    """Those of the files below one `root`, read by the same settings: these directories were left out (`pruned`), and
    no larger files read. Readers were told the names of the files with `beginning` before them.

    Where many files have to be read, another process that `begin` gives does so, too; one that `is_ready` does so where
    any has to be, and the first of them alone. `take` is told of each document that it read: the name and the text, and
    what it told of it. Who does not keep what is read leaves nothing.
    """

    def __init__(
        self,
        root: str,
        pruned: Collection[str],
        max_bytes: int,
        beginning: str = "",
        *,
        begin: Begin | None = None,
        take: Callable[[str, str, Any], None] = lambda *_: None,
        keeps: bool = True,
        is_ready: bool = False,
    ) -> None:
        self._index = Index[str, Known]("files", (root, sorted(pruned), max_bytes, beginning), (Known, *KINDS))
        self._begin = None if begin is None else partial(begin, root, max_bytes, beginning)
        self._take = take
        self._root = root
        self._keeps = keeps
        self._is_ready = is_ready
        self._meets_at = 0
        """Where no more is read by the other process alone."""
        self._paths: Sequence[str] = ()
        self._looks = self._misses = 0
        self._other: Other | None = None
        self._beside: dict[str, ReadBeside] = {}

    def load(self, paths: Sequence[str]) -> None:
        """Take in what is known. These files are to be looked at, in this order."""
        self._index.load(len(paths))
        self._paths = paths

    def find(self, path: str, fingerprint: int) -> Known | None:
        """What a file holds that has this fingerprint now, None where it has to be read."""
        known = self._index.get(path)
        self._looks += 1
        if known is not None and known.fingerprint == fingerprint:
            return known
        self._misses += 1
        if self._is_ready or self._misses == _MISSES:
            self._read_beside()
        return self._read_by_other(path, fingerprint) if self._other is not None else None

    def text_of(self, path: str) -> str | None:
        """The text of a file that was just found, where the other process has read it."""
        read = self._beside.pop(path, None)
        return None if read is None else read.text

    def note(self, path: str, text: FileText, reading: Reading | None, looked_ns: int) -> None:
        """A file was read, after `looked_ns` (since the epoch)."""
        if self._keeps and not is_young(text.changed_ns, text.mtime_ns, looked_ns / _SECOND):
            self._index.put(path, Known(text.fingerprint, text.digest, text.findings, reading))

    def save(self) -> None:
        """All has been looked at: leave it for the next one."""
        self.end()
        if self._keeps:
            save(self._index, self._root)

    def end(self) -> None:
        """No more files have to be read."""
        if self._is_ready:
            # It waits for what to do.
            self._read_beside()
        if self._other is not None:
            self._other.end()

    def _read_beside(self) -> None:
        """Have the other process read what is left, if that is much. It is begun once, or not at all."""
        is_ready, self._is_ready = self._is_ready, False
        begin, self._begin = self._begin, None
        left = self._paths[max(self._looks - is_ready, 0) :]
        if begin is None:
            return
        if is_ready:
            self._meets_at = self._looks + FIRST
        elif len(left) < MANY or not has_two_cores():
            return
        with suppress(OSError):
            self._other = begin(left)

    def _read_by_other(self, path: str, fingerprint: int) -> Known | None:
        if self._other is None:
            return None
        # Of the first, where the other one reads them, each has come, or is waited for.
        waits = self._looks < self._meets_at and path not in self._beside
        for read in self._other.arrived(waits=waits):
            self._beside[read.path] = read
        found = self._beside.get(path)
        if found is None or found.known.fingerprint != fingerprint:
            return None
        if self._looks >= self._meets_at:
            # All behind it has been read by now.
            self._other.end()
        if self._keeps:
            self._index.put(path, found.known)
        if found.told is not None:
            self._take(to_path(path), found.text, found.told)
        return found.known


def save(index: Index[str, Any], root: str) -> None:
    """Leave what is known of files below a root for the next one."""
    from agentwatch.sources.sessions.where import is_of_this_system  # a first frame needs nothing of it

    with looks.unnoted():
        # What another machine has written there may show in the attributes of a file only a minute later.
        if is_of_this_system(Path(root)):
            index.save()
