"""A directory of the user's own that is made when something is put into it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.disk import DISK, Directory, Disk


class PrivateDirectory:
    """A directory that only the user can enter, not there until something is put into it."""

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self.path: Final = path
        self._disk = disk
        self._is_made = False

    def open(self) -> Directory:
        """Raises FileNotFoundError where it was never made, OSError for the rest."""
        return Directory.open(self.path, self._disk)

    def make(self) -> Directory:
        """Open it, made where it is missing, and kept by a power failure. Raises OSError."""
        if self._is_made:
            with suppress(FileNotFoundError):
                return self.open()
        directory = Directory.make(self.path, self._disk)
        self._is_made = True
        return directory
