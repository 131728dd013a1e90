"""What lies in the directories of a store: listed anew only where their time tells that something came or went."""

from __future__ import annotations

import os
import time
from typing import Final, NamedTuple

_SETTLED_NS: Final = 2_000_000_000
"""A directory that changed less than this before it was listed may change again without its time telling."""


class Listing(NamedTuple):
    """Names in a directory, sorted; links are neither. `changed` and `at` are its time and that of listing, in ns."""

    changed: int
    at: int
    directories: tuple[str, ...]
    files: tuple[str, ...]


class Listings:
    """The listings of directories, by their paths."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        """Directories that cannot be listed, and why; what was known of them may still be so."""
        self.changes = 0
        """How often another listing than before was found."""
        self._known: dict[str, Listing] = {}

    def of(self, directory: str) -> Listing | None:
        """What lies there: the same object as before where nothing has changed, None where there is no such place."""
        known = self._known.get(directory)
        try:
            changed = os.stat(directory).st_mtime_ns  # noqa: PTH116  hundreds of them, again and again
            if known is not None and known.changed == changed and known.at - changed > _SETTLED_NS:
                self.refused.pop(directory, None)
                return known
            listing = _listed(directory, changed)
        except (FileNotFoundError, NotADirectoryError):
            self.refused.pop(directory, None)
            self.changes += self._known.pop(directory, None) is not None
            return None
        except OSError as error:
            self.refused[directory] = os.strerror(error.errno or 0)
            return known
        for path in [path for path in self.refused if directory in (path, os.path.dirname(path))]:  # noqa: PTH120
            del self.refused[path]
        if known is not None and known[2:] == listing[2:]:
            listing = known._replace(changed=changed, at=listing.at)
        else:
            self.changes += 1
        self._known[directory] = listing
        return listing


def _listed(directory: str, changed: int) -> Listing:
    at = time.time_ns()
    directories, files = [], []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
    return Listing(changed, at, tuple(sorted(directories)), tuple(sorted(files)))
