"""Rollouts that Codex has compressed, read like those that it has not: line by line, in stretches, bounded.

Tried with 0.169 and its feature `local_thread_store_compression`. A file that nobody wrote to for a week is replaced by
`<its name>.zst`, one frame that never changes. A session that is resumed becomes a plain file again. While either is
done both are there. Importing this needs Python 3.14, or the package `backports.zstd`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentwatch.sources.sessions.tail import LINE_LIMIT, Line, Tail, open_regular

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BYTES: Final = 512 * 1024 * 1024
"""Of one rollout: a few kilobytes can be made to yield as much as one likes."""

_STRETCH: Final = 32 * 1024 * 1024
"""Bytes that are read at once: all before them is decompressed once more."""
_OPTIONS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
"""8 MB of memory, which RFC 8878 recommends to support. Codex needs 2."""


class CompressedTail(Tail):
    """The lines of a compressed file, in order and each once. Their offsets are those that they have in the plain file.

    What cannot be decompressed, or comes to too many bytes, raises OSError once the stretches before it were read.
    """

    def _read_lines(self, descriptor: int, budget: int) -> list[Line]:
        lines: list[Line] = []
        end = self._offset + max(budget, _STRETCH)
        try:
            with _decompressed(os.dup(descriptor)) as file:
                file.seek(self._offset)
                while self._offset < end:
                    line = file.readline(LINE_LIMIT)
                    if len(line) == LINE_LIMIT or self._offset > MOST_BYTES:
                        raise OSError(errno.EFBIG, f"more than {MOST_BYTES >> 20} MB when decompressed")  # noqa: TRY301
                    if not line.endswith(b"\n"):
                        self.position = self.size
                        break
                    if not line.isspace():
                        lines.append(Line(self._offset, line[:-1]))
                    self._offset += len(line)
        except OSError:
            # Of what is whole before the damage something may be known.
            if not lines:
                raise
        return lines


def line_at(path: Path, offset: int) -> bytes | None:
    """As `tail.line_at`, in a compressed file: all before the line is decompressed once more."""
    try:
        with _decompressed(open_regular(path)) as file:
            file.seek(offset)
            line = file.readline(LINE_LIMIT)
    except OSError:
        return None
    return line[:-1] if line.endswith(b"\n") else None


@contextmanager
def _decompressed(descriptor: int) -> Iterator[zstd.ZstdFile]:
    """What cannot be decompressed raises OSError."""
    try:
        with os.fdopen(descriptor, "rb") as raw, zstd.ZstdFile(raw, options=_OPTIONS) as file:
            yield file
    except (EOFError, zstd.ZstdError) as error:
        raise OSError(errno.EIO, "cannot be decompressed") from error
