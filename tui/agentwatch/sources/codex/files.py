"""Opens rollouts, plain or compressed; what decompresses is loaded when the first compressed one is met."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from agentwatch.sources.sessions import tail

PLAIN: Final = ".jsonl"
COMPRESSED: Final = ".zst"
"""Behind the name of the plain file."""

TO_DECOMPRESS: Final = (
    "this Python was built without zstd" if sys.version_info >= (3, 14) else "install the package backports.zstd"
)
"""What is to be done, or said, where `can_decompress` is false."""


def can_decompress() -> bool:
    """Whether compressed rollouts can be read here."""
    try:
        import agentwatch.sources.codex.compressed  # noqa: F401
    except ImportError:
        return False
    return True


def tail_of(path: Path) -> tail.Tail:
    """A reader of the lines of a rollout."""
    if path.suffix != COMPRESSED:
        return tail.Tail(path)
    from agentwatch.sources.codex.compressed import CompressedTail

    return CompressedTail(path)


def line_at(path: Path, offset: int) -> bytes | None:
    """The line of a rollout that begins at a byte offset of the plain file; None where there is none."""
    if path.suffix != COMPRESSED:
        return tail.line_at(path, offset)
    from agentwatch.sources.codex import compressed

    return compressed.line_at(path, offset)
