"""Runs one program to its end within a time and a size, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_CHUNK: Final = 256 * 1024
_ERRORS: Final = 4_096


class TooSlowError(Exception):
    """The program did not end in time; it was killed with all its children."""


class Output(NamedTuple):
    """What a program wrote. `cut`: it wrote more than was wanted and was killed. `errors` are its first 4 KiB."""

    code: int
    text: bytes
    errors: bytes
    cut: bool


def run(
    arguments: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str],
    seconds: float,
    max_bytes: int,
    given: bytes = b"",
) -> Output:
    """Run a program with exactly this environment. `given` is what it reads.

    Raises TooSlowError after `seconds`, OSError where it cannot be started.
    """
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        source: int = subprocess.DEVNULL
        if given:
            # A file cannot block the program, nor us, as a pipe would.
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(given)
            file.seek(0)
            source = file.fileno()
        # Its own process group: whatever it starts is killed with it.
        process = subprocess.Popen(  # noqa: S603  the caller's arguments, no shell
            list(arguments),
            cwd=directory,
            env=dict(environment),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        with process:
            try:
                text, errors, cut = _read(process, deadline, max_bytes)
                if not cut:
                    process.wait(max(deadline - time.monotonic(), 0.001))
            except subprocess.TimeoutExpired:
                raise TooSlowError from None
            finally:
                _kill(process)
            return Output(process.returncode, text, errors, cut)


def _read(process: subprocess.Popen[bytes], deadline: float, max_bytes: int) -> tuple[bytes, bytes, bool]:
    text = bytearray()
    errors = bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, into in ((process.stdout, text), (process.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, into)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TooSlowError
            for key, _ in selector.select(left):
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data is text:
                    text += data
                    if len(text) > max_bytes:
                        return bytes(text[:max_bytes]), bytes(errors), True
                elif len(errors) < _ERRORS:
                    errors += data[:_ERRORS]
    return bytes(text), bytes(errors), False


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
