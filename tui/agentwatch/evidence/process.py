"""Runs one program to its end within a time and a size, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_CHUNK: Final = 256 * 1024
_PAUSE_SECONDS: Final = 0.02
_REST_SECONDS: Final = 1.0
"""What a program leaves running may hold its streams open for ever: they are read this long after its end."""
_KILLED_SECONDS: Final = 1.0


class TooSlowError(Exception):
    """The program did not end in time; it was killed with all its children."""


class Output(NamedTuple):
    """What a program wrote. `cut`: it wrote more than was wanted and was killed."""

    code: int
    text: bytes
    errors: bytes
    cut: bool


def run(
    arguments: Sequence[str],
    *,
    directory: str,
    seconds: float,
    max_bytes: int,
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
) -> Output:
    """Run a program with exactly this environment; None is ours. `given` is what it reads.

    Of each stream the first `max_bytes` are kept, and a program that writes more is killed. Raises TooSlowError after
    `seconds`, OSError where it cannot be started.
    """
    end = time.monotonic() + seconds
    text, errors = bytearray(), bytearray()
    cut = has_ended = False
    with contextlib.ExitStack() as stack:
        streams = stack.enter_context(selectors.DefaultSelector())
        # A session of its own: whatever it starts is killed with it.
        process = subprocess.Popen(  # noqa: S603  the caller's arguments, no shell
            arguments,
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE if given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        stack.callback(_kill, process)
        for pipe, into in ((process.stdout, text), (process.stderr, errors)):
            if pipe is not None:
                streams.register(stack.enter_context(pipe), selectors.EVENT_READ, into)
        if process.stdin is not None:
            stack.callback(process.stdin.close)
            os.set_blocking(process.stdin.fileno(), False)
            streams.register(process.stdin, selectors.EVENT_WRITE)
        rest = memoryview(given)
        while streams.get_map() and not cut and time.monotonic() < end:
            for key, _ in streams.select(_PAUSE_SECONDS):
                if key.fileobj is process.stdin:
                    try:
                        rest = rest[os.write(key.fd, rest[:_CHUNK]) :]
                    except BrokenPipeError:
                        rest = rest[:0]
                    if not rest:
                        streams.unregister(process.stdin)
                        process.stdin.close()
                    continue
                kept: bytearray = key.data
                data = os.read(key.fd, _CHUNK)
                if not data:
                    streams.unregister(key.fileobj)
                kept += data
                if len(kept) > max_bytes:
                    del kept[max_bytes:]
                    cut = True
            if not has_ended and process.poll() is not None:
                has_ended, end = True, min(end, time.monotonic() + _REST_SECONDS)
        if not cut:
            try:
                process.wait(max(end - time.monotonic(), 0.001))
            except subprocess.TimeoutExpired:
                raise TooSlowError from None
    return Output(process.returncode, bytes(text), bytes(errors), cut)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # One that became another user, as sudo does, is out of reach; it is left behind then.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILLED_SECONDS)
