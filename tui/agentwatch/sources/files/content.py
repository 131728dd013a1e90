"""The texts of documents that were emitted, by digest: what is on screen stays readable after its file changed."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from typing import Final

LIMIT_BYTES: Final = 16 * 1024 * 1024

# A window and tables for documents of a few KiB: a tenth of the time of zlib's defaults, and the same size.
_WINDOW: Final = 12
_MEMORY: Final = 5
# What an entry costs beside its bytes: key, bytes object, links of the dictionary.
_OVERHEAD: Final = 256


class ContentStore:
    """Compressed texts, the least recently used dropped above `limit` bytes. Any thread may call it."""

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._packed: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, digest: str, text: str) -> None:
        """Keep a text; `digest` is that of the bytes it was read from."""
        compressor = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY)
        packed = compressor.compress(text.encode()) + compressor.flush()
        with self._lock:
            known = self._packed.pop(digest, None)
            if known is not None:
                self._bytes -= len(known) + _OVERHEAD
            self._packed[digest] = packed
            self._bytes += len(packed) + _OVERHEAD
            while self._bytes > self._limit and len(self._packed) > 1:
                _, dropped = self._packed.popitem(last=False)
                self._bytes -= len(dropped) + _OVERHEAD

    def get(self, digest: str) -> str | None:
        """The text of a digest, None where it is not kept (any more)."""
        with self._lock:
            packed = self._packed.get(digest)
            if packed is not None:
                self._packed.move_to_end(digest)
        return None if packed is None else zlib.decompress(packed).decode()
