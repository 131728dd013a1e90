"""The process that reads files beside this one begins. What this one reads itself loads more; see `beside`."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

_MAIN: Final = "import sys; sys.path[:] = sys.argv[2:]; from agentwatch.evidence.read_beside import main; main()"
_NAME: Final = "agentwatch reading files"
"""What lists of processes show."""


def begin() -> subprocess.Popen[bytes]:
    """It waits for its job, and ends without one when this process does. Raises OSError."""
    words = [sys.executable, "-I", "-S", "-c", _MAIN, _NAME, *filter(None, sys.path)]
    return subprocess.Popen(  # noqa: S603  our own program
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
