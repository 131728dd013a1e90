"""What screens leave in the state directory of a workspace: that one shows it now, since when, and of what it told.

That a screen shows it is a lock, which the system frees when the program ends. The other two are small files of their
own, so that they outlive a history that was damaged and begins anew.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agentwatch.disk import Directory

_NAME: Final = "watched.lock"
_FIRST: Final = "first-watched"
"""A line of ISO 8601, written once."""
_TOLD: Final = "told-alarms"
"""A line for each alarm that the operator was told of, the last last."""
_MOST_TOLD: Final = 2_000
"""Lines that are kept: work that raises an alarm ends before so many others do."""
_LONGEST: Final = 100 * _MOST_TOLD
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.01
"""A question holds the lock for microseconds: two that ask at once must not take each other for a screen."""

_held: Final[set[int]] = set()
"""The locks of this process."""
_here = True
"""Nobody has stepped away."""


@contextmanager
def shown(state: Path) -> Iterator[None]:
    """A screen shows the workspace of this state directory. Where that cannot be told, it is not told."""
    descriptor = None
    with suppress(OSError):
        with Directory.make(state) as directory:
            descriptor = os.open(_NAME, _OPEN, 0o600, dir_fd=directory.descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        _held.add(descriptor)
    try:
        yield
    finally:
        if descriptor is not None:
            _held.discard(descriptor)
            os.close(descriptor)


def step_away() -> None:
    """The screens of this process show nothing until somebody comes back."""
    global _here  # noqa: PLW0603
    _here = False
    for descriptor in _held:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def come_back() -> None:
    """They show their workspaces again."""
    global _here  # noqa: PLW0603
    _here = True
    for descriptor in _held:
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def is_here() -> bool:
    """Whether nobody has stepped away from the screens of this process."""
    return _here


def is_shown(state: Path, tries: int = _TRIES) -> bool:
    """Whether a screen of this user shows it now, on this machine. Who asks again soon needs one try only: at worst it
    takes somebody else who asks for a screen."""
    try:
        with Directory.open(state) as directory:
            descriptor = os.open(_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.descriptor)
    except OSError:
        return False
    try:
        for left in reversed(range(tries)):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if left:
                    time.sleep(_PAUSE_SECONDS)
            except OSError:
                return False
            else:
                return False
        return True
    finally:
        os.close(descriptor)


def first_watched(state: Path) -> float | None:
    """When a screen first showed the workspace, in epoch seconds; None where that is not known."""
    with suppress(OSError), Directory.open(state) as directory:
        try:
            return datetime.fromisoformat(directory.read(_FIRST, _LONGEST).decode("ascii").strip()).timestamp()
        except (ValueError, OverflowError):
            # Damaged: nobody has written it since, so its own time is good enough.
            return directory.look(_FIRST).st_mtime
    return None


def note_first_watch(state: Path, at: float) -> None:
    """The workspace is watched since then (epoch seconds), unless that was noted before. Blocks.

    Where it cannot be written, the next start counts as the first.
    """
    with suppress(OSError), Directory.make(state) as directory:
        directory.publish(_FIRST, f"{datetime.fromtimestamp(at, UTC).isoformat()}\n".encode())


def claim_alarms(state: Path, keys: Set[str]) -> Set[str]:
    """Note that the operator is told of these alarms now; those that nobody has told before, on no screen. Blocks.

    Where nothing can be noted, or nothing is kept of the workspace, all of them are new.
    """
    new = keys
    with suppress(OSError), Directory.open(state) as directory, directory.locked():
        known: list[str] = []
        with suppress(FileNotFoundError):
            known = directory.read(_TOLD, _LONGEST).decode("ascii", "replace").split()
        new = keys - set(known)
        if new:
            directory.replace(_TOLD, "".join(f"{line}\n" for line in [*known, *sorted(new)][-_MOST_TOLD:]).encode())
    return new
