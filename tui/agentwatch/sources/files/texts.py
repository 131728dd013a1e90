"""The texts of files, for those who look in all of them for a few tasks: one that is as it was is not opened again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.contracts.signatures import is_json, may_follow
from agentwatch.kept.index import Index
from agentwatch.kept.keeping import is_young
from agentwatch.sources.files.names import to_path
from agentwatch.sources.files.read import FileText
from agentwatch.sources.files.readings import save

_LONGEST: Final = 16 * 1024
"""Characters of a text that is kept: most handoffs and returns have a tenth. Few are longer, and are read each time."""
_SECOND: Final = 1e9


class Texts:
    """Those of the files below one `root`; these directories are left out (`pruned`), and no larger files read.

    What can be no document is not kept, as far as that can be told at a glance: it is somebody's data.
    """

    def __init__(self, root: str, pruned: Collection[str], max_bytes: int) -> None:
        self._root = root
        kinds = (FileText, Finding, Severity)
        self._index = Index[str, FileText]("texts", (root, sorted(pruned), max_bytes), kinds)

    def load(self, paths: Sequence[str]) -> None:
        """Take in what is known. These files are to be looked at."""
        self._index.load(len(paths))

    def find(self, path: str, fingerprint: int) -> FileText | None:
        """What a file holds that has this fingerprint now, None where it has to be read."""
        known = self._index.get(path)
        return known if known is not None and known.fingerprint == fingerprint else None

    def note(self, path: str, text: FileText, looked_ns: int) -> None:
        """A file was read, after `looked_ns` (since the epoch)."""
        name = to_path(path)
        if len(text.text) > _LONGEST or (is_json(name) and not may_follow(text.text, name)):
            return
        if not is_young(text.changed_ns, text.mtime_ns, looked_ns / _SECOND):
            self._index.put(path, text)

    def save(self) -> None:
        """All has been looked at: leave it for the next one."""
        save(self._index, self._root)
