"""Whether a screen shows a workspace: a lock in its state directory, which the system frees when the program ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agentwatch.disk import Directory

_NAME: Final = "watched.lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.01
"""Whoever asks holds the lock for microseconds: two that ask at once must not take each other for a screen."""


@contextmanager
def shown(state: Path) -> Iterator[None]:
    """A screen shows the workspace of this state directory. Where that cannot be told, it is not told."""
    descriptor = None
    with suppress(OSError):
        with Directory.make(state) as directory:
            descriptor = os.open(_NAME, _OPEN, 0o600, dir_fd=directory.descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_shown(state: Path) -> bool:
    """Whether a screen of this user shows it now, on this machine."""
    try:
        with Directory.open(state) as directory:
            descriptor = os.open(_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.descriptor)
    except OSError:
        return False
    try:
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE_SECONDS)
            except OSError:
                return False
            else:
                return False
        return True
    finally:
        os.close(descriptor)
