"""Temporary directories where no agent can write: below the state directory, removed at the end or by the next user."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agentwatch.disk import UNSYNCED, Directory
from agentwatch.place import state_directories

_NAME: Final = "temporary"
_NEW_SECONDS: Final = 60.0


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory that only the user can enter, for as long as the block lasts. Raises OSError.

    It is locked meanwhile: one that nobody holds was left by a process that was killed, and is removed by the next.
    """
    top = state_directories() / _NAME
    with Directory.make(top, UNSYNCED) as parent:
        _sweep(parent, top)
    path = Path(tempfile.mkdtemp(prefix="", dir=top)).resolve()
    try:
        with Directory.open(path) as directory:
            # Nobody is waited for: an agent that may read here can hold a lock, too.
            with suppress(OSError):
                fcntl.flock(directory.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _sweep(parent: Directory, top: Path) -> None:
    for name in parent.names():
        with suppress(OSError), parent.child(name) as left:
            fcntl.flock(left.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # One that was made just now may not be locked yet.
            if time.time() - os.fstat(left.descriptor).st_mtime > _NEW_SECONDS:
                shutil.rmtree(top / name, ignore_errors=True)
