"""The process that reads files beside this one begins. What this one reads itself loads more; see `beside`."""

from __future__ import annotations

import atexit
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentwatch.forked import Forked

_MAIN: Final = "import sys; sys.path[:] = sys.argv[2:]; from agentwatch.evidence.read_beside import main; main()"
_NAME: Final = "agentwatch reading files"
"""What lists of processes show."""
_ENDED_SECONDS: Final = 1.0


def begin() -> subprocess.Popen[bytes]:
    """It waits for its job, and ends without one when this process does. Raises OSError."""
    words = [sys.executable, "-I", "-S", "-c", _MAIN, _NAME, *filter(None, sys.path)]
    process = subprocess.Popen(  # noqa: S603  our own program
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    atexit.register(end, process)
    return process


def end(process: Forked | subprocess.Popen[bytes]) -> None:
    """Whatever it is at, or held up by."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_ENDED_SECONDS)
