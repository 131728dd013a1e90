"""The texts of documents that were observed, by digest: what is on screen stays readable after its file changed."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Final

from agentwatch.sources.files.read import FileRefusedError, read_file

LIMIT_BYTES: Final = 4 * 1024 * 1024
"""What a file does not hold any more is in the history, too: this is for what is looked at now."""
PLACES: Final = 200_000

# What an entry costs beside its text: key and links of the dictionary.
_OVERHEAD: Final = 280


class ContentStore:
    """Texts of the files below `root`. Any thread may call it.

    Above `limit` bytes the least recently used are dropped. What a file still holds is then read from it again: most
    files never change.
    """

    def __init__(self, root: str, limit: int = LIMIT_BYTES, places: int = PLACES) -> None:
        self._root = root
        self._limit = limit
        self._limit_of_places = places
        self._bytes = 0
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._held: dict[str, str] = {}
        """By path, the digest of what the file holds."""
        self._places: dict[str, str] = {}
        """By digest, a file that holds it."""
        self._lock = threading.Lock()

    def put(self, digest: str, text: str, path: str) -> None:
        """Keep a text; `digest` is that of the bytes it was read from, `path` the file's name relative to the root."""
        with self._lock:
            self._drop(digest)
            self._texts[digest] = text
            self._bytes += sys.getsizeof(text) + _OVERHEAD
            while self._bytes > self._limit and len(self._texts) > 1:
                self._drop(next(iter(self._texts)))
            self._place(digest, path)

    def place(self, digest: str, path: str) -> None:
        """Remember where a text is, of a file that was not read; `path` is the file's name relative to the root."""
        with self._lock:
            self._place(digest, path)

    def get(self, digest: str) -> str | None:
        """The text of a digest, None where it is neither kept nor in its file any more. It may read that file."""
        with self._lock:
            kept = self._texts.get(digest)
            if kept is not None:
                self._texts.move_to_end(digest)
            place = self._places.get(digest)
        if kept is not None or place is None:
            return kept
        try:
            read = read_file(self._root, place)
        except (FileRefusedError, FileNotFoundError):
            return None
        return read.text if read.digest == digest else None

    def _place(self, digest: str, path: str) -> None:
        self._leave(path)
        self._held[path] = digest
        self._places[digest] = path
        if len(self._held) > self._limit_of_places:
            self._leave(next(iter(self._held)))

    def _leave(self, path: str) -> None:
        before = self._held.pop(path, None)
        if before is not None and self._places.get(before) == path:
            del self._places[before]

    def _drop(self, digest: str) -> None:
        dropped = self._texts.pop(digest, None)
        if dropped is not None:
            self._bytes -= sys.getsizeof(dropped) + _OVERHEAD
