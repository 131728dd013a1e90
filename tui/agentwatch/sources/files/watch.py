"""Waiting until something happens in a set of directories: one protocol, and what implements it everywhere.

Events are hints. A backend may miss some without knowing: compare with the disk from time to time.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from agentwatch.sources.files.settings import FilesSettings


class Changes(NamedTuple):
    """What a backend noticed. `paths` are names relative to the root; `lost`: there was more than they tell; `others`:
    something happened to files that are of no interest here."""

    paths: frozenset[str] = frozenset()
    lost: bool = False
    others: bool = False


NOTHING: Final = Changes()


class WatchError(Exception):
    """The system does not let us watch (any more); the message says why and what to do, for the operator."""


class Backend(Protocol):
    """One way to wait for changes. Paths are relative to the root, "" is the root itself.

    All but `wake` belong to one thread. `watch` and `wait` raise WatchError once this way does not work any more.
    `polls`: nothing is ever reported, the caller has to look. `exact`: it knows whenever it lost something.
    """

    polls: bool = False
    exact: bool = False

    def watch(self, path: str) -> None:  # noqa: ARG002
        """Report what happens right in this directory from now on; calling it again renews a watch that died."""
        return

    def unwatch(self, path: str) -> None:  # noqa: ARG002
        """The directory is no longer of interest."""
        return

    def wait(self, timeout: float) -> Changes:
        """Changes since the last call, at once where there are some, else after at most `timeout` seconds."""

    def wake(self) -> None:
        """End the present and every later wait at once. Any thread may call it."""

    def close(self) -> None:
        """Give back what the system gave."""
        return


class PollingBackend(Backend):
    """No events at all."""

    polls = True

    def __init__(self) -> None:
        self._woken = threading.Event()

    def wait(self, timeout: float) -> Changes:
        self._woken.wait(timeout)
        return NOTHING

    def wake(self) -> None:
        self._woken.set()


OpenBackend = Callable[[str, FilesSettings], Backend]


def why_polling(error: OSError, limit: str) -> str:
    """The sentence for the operator when the system gives no more watches; `limit` is the setting to raise."""
    words = os.strerror(error.errno) if error.errno else str(error)
    return f"Polling, because the system gives no more file watches ({words}). Raise {limit}, or prune directories"


def open_backend(root: str, settings: FilesSettings) -> Backend:
    """The best backend for this machine and these settings. Raises WatchError with the reason where there is none."""
    if settings.force_polling:
        raise WatchError("Polling, as configured")
    # The same reading of the variable as watchfiles has.
    if os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in {"", "false", "disable", "disabled"}:
        raise WatchError("Polling, because WATCHFILES_FORCE_POLLING is set")
    # Loaded here, in the thread that watches: watchfiles takes as long to load as a screen to appear, and inotify is
    # not everywhere.
    if sys.platform == "linux":
        from agentwatch.sources.files.inotify_backend import InotifyBackend

        return InotifyBackend(root)
    from agentwatch.sources.files.watchfiles_backend import WatchfilesBackend

    return WatchfilesBackend(root)
