"""What was read in each file of a workspace when it was last as it is now: such a file is not read again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import (
    Contract,
    Finding,
    Handoff,
    Outcome,
    Reading,
    Return,
    Severity,
    Todo,
    TodoList,
    TodoStatus,
)
from agentwatch.kept.index import Index
from agentwatch.kept.keeping import is_young
from agentwatch.sources.files.read import FileText
from agentwatch.sources.files.scan import numbers_in

KINDS: Final = (Contract, Finding, Handoff, Outcome, Reading, Return, Severity, Todo, TodoList, TodoStatus)
"""All that a reading is made of."""
_SECOND: Final = 1e9


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


class Readings:
    """Those of the files below one `root`, read by the same settings: these directories were left out (`pruned`), and
    no larger files read. Readers were told the names of the files with `beginning` before them."""

    def __init__(self, root: str, pruned: Collection[str], max_bytes: int, beginning: str = "") -> None:
        self._index = Index[str, Known]("files", (root, sorted(pruned), max_bytes, beginning), (Known, *KINDS))

    def load(self, files: int) -> None:
        """Take in what is known. So many files are to be looked at."""
        self._index.load(files)

    def find(self, path: str, fingerprint: int) -> Known | None:
        """What a file holds that has this fingerprint now, None where it has to be read."""
        known = self._index.get(path)
        return known if known is not None and known.fingerprint == fingerprint else None

    def note(self, path: str, text: FileText, reading: Reading | None, looked_ns: int) -> None:
        """A file was read, after `looked_ns` (since the epoch)."""
        if not is_young(text.changed_ns, text.mtime_ns, looked_ns / _SECOND):
            self._index.put(path, Known(text.fingerprint, text.digest, text.findings, reading))

    def save(self) -> None:
        """Leave it for the next one."""
        self._index.save()
