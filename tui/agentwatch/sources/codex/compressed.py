"""Rollouts that Codex has compressed, read like those that it has not: line by line, in pieces, bounded.

Tried with 0.169 and its feature `local_thread_store_compression`. A file that nobody wrote to for a week is replaced by
`<its name>.zst`, one frame that never changes. A session that is resumed becomes a plain file again. While either is
done both are there. Importing this needs Python 3.14, or the package `backports.zstd`.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final

from agentwatch.sources.sessions.tail import LINE_LIMIT, Line, Tail, open_regular, stamp_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BYTES: Final = 1024 * 1024 * 1024
"""Of one rollout: a few kilobytes can be made to yield as much as one likes."""

_DAMAGED: Final = "cannot be decompressed"
_CHUNK: Final = 64 * 1024
_PIECE: Final = 256 * 1024
_OPTIONS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
"""8 MB of memory, which RFC 8878 recommends to support. Codex needs 2."""


class CompressedTail(Tail):
    """The lines of a compressed file, in order and each once. Their offsets are those that they have in the plain file.

    What cannot be decompressed, or comes to more than `most` bytes, raises OSError once the lines before it were read.
    """

    def __init__(self, path: Path, most: int = MOST_BYTES) -> None:
        self._most = most
        super().__init__(path)

    @property
    def behind(self) -> bool:
        return bool(self._fault) or self.position < self.size

    def _begin(self, position: int) -> None:
        super()._begin(position)
        self._frame = zstd.ZstdDecompressor(options=_OPTIONS)
        self._given = 0
        """Bytes after those that the frame has and that are not all used yet."""
        self._fault = ""

    def _is_another(self, descriptor: int, status: os.stat_result) -> bool:  # noqa: ARG002
        # Nobody adds to it: read was called because it is unfinished, or because it is another file.
        return self._seen is not None and self._seen != stamp_of(status)

    def _read_lines(self, descriptor: int, budget: int) -> list[Line]:
        if self._fault:
            raise OSError(errno.EIO, self._fault)
        return super()._read_lines(descriptor, budget)

    def _next_bytes(self, descriptor: int, most: int) -> bytes:  # noqa: ARG002
        """The next bytes, decompressed; none at the end."""
        try:
            while not self._frame.eof:
                data = b""
                if self._frame.needs_input:
                    self.position += self._given
                    data = os.pread(descriptor, _CHUNK, self.position)
                    self._given = len(data)
                    if not data:
                        # Cut off.
                        self._fault = _DAMAGED
                        return b""
                if piece := self._frame.decompress(data, _PIECE):
                    if self._offset + len(piece) > self._most:
                        self._fault = f"more than {self._most >> 20} MB when decompressed"
                    return piece
            self.position = self.size
        except zstd.ZstdError:
            self._fault = _DAMAGED
        return b""


def line_at(path: Path, offset: int) -> bytes | None:
    """As `tail.line_at`, in a compressed file: all before the line is decompressed once more."""
    try:
        with os.fdopen(open_regular(path), "rb") as raw, zstd.open(raw, options=_OPTIONS) as file:
            file.seek(offset)
            line = file.readline(LINE_LIMIT + 1)
    except (OSError, EOFError, zstd.ZstdError):
        return None
    return line.removesuffix(b"\n") or None if len(line) <= LINE_LIMIT else None
