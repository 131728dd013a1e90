"""Runs a command line of the operator's to its end, within bounds of time and of what is kept of its words."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KEPT: Final = 1 << 20
"""Bytes kept of each stream, the last ones: there are wrappers that print without end."""

_PAUSE_SECONDS: Final = 0.02
_REST_SECONDS: Final = 1.0
_END_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, by itself, and the last of what it printed."""

    code: int
    out: str
    err: str


def run(command: Sequence[str], directory: Path, seconds: float) -> Ran | None:
    """Run a command; None if it did not end in time. Raises OSError if it cannot be started.

    Nobody waits for what it leaves running: that may hold the streams open for ever.
    """
    process = subprocess.Popen(  # noqa: S603  the operator's own command line
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    said = {pipe.fileno(): b"" for pipe in pipes}
    with selectors.DefaultSelector() as streams:
        for pipe in pipes:
            streams.register(pipe, selectors.EVENT_READ)
        end, ended = time.monotonic() + seconds, False
        try:
            while streams.get_map() and time.monotonic() < end:
                for key, _ in streams.select(_PAUSE_SECONDS):
                    data = os.read(key.fd, _KEPT)
                    said[key.fd] = (said[key.fd] + data)[-_KEPT:]
                    if not data:
                        streams.unregister(key.fd)
                if not ended and process.poll() is not None:
                    ended, end = True, min(end, time.monotonic() + _REST_SECONDS)
            code = process.wait(max(end - time.monotonic(), 0))
            return Ran(code, *(text.decode("utf-8", "replace") for text in said.values()))
        except subprocess.TimeoutExpired:
            return None
        finally:
            for pipe in pipes:
                pipe.close()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with all that it has started: a sandbox is rarely one process."""
    if process.poll() is not None:
        return
    # A wrapper that became another user, as sudo does, is out of reach; it is left behind then.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
