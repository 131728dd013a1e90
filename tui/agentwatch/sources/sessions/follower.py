"""The thread that follows the transcript on the screen: the system wakes it when something is written."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from agentwatch.sources.files.watch import Backend, PollingBackend, WatchError
from agentwatch.sources.sessions.following import Look, RunTranscript

_REST: Final = 0.02
"""Seconds after a look that found something: what is written in one go is shown in one go."""
_CHECK: Final = 2.0
"""Events are hints: after so many seconds without any, the disk is asked."""
_POLL: Final = 0.1
"""The same where the system tells nothing."""


class Follower:
    """Follows one transcript at a time. `tell` gets what is known of it after each change, called in the thread."""

    def __init__(self, tell: Callable[[RunTranscript, Look], object]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._wanted: RunTranscript | None = None
        self._wants_older = False
        self._backend: Backend | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether its thread has not ended."""
        return self._thread is not None

    def follow(self, transcript: RunTranscript | None) -> None:
        """Go over to another transcript; None ends the thread, as soon as it has done what it is at."""
        with self._lock:
            self._wanted, self._wants_older = transcript, False
            if transcript is not None and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="agentwatch-live", daemon=True)
                self._thread.start()
        self._wake()

    def ask_for_older(self) -> None:
        """Read some of those before the first step, and tell."""
        with self._lock:
            self._wants_older = True
        self._wake()

    def _wake(self) -> None:
        if (backend := self._backend) is not None:
            backend.wake()

    def _run(self) -> None:
        while True:
            with self._lock:
                transcript = self._wanted
                if transcript is None:
                    self._thread = None
                    return
                self._backend = backend = _backend(transcript)
            try:
                self._follow(transcript, backend)
            finally:
                with self._lock:
                    self._backend = None
                backend.close()

    def _follow(self, transcript: RunTranscript, backend: Backend) -> None:
        """Until another is wanted, or the backend was woken: from then on it waits no more."""
        patience = _POLL if backend.polls else _CHECK
        while self._wanted is transcript:
            look = transcript.look()
            with self._lock:
                wants_older, self._wants_older = self._wants_older, False
            if wants_older:
                look = transcript.older()
            if look is not None and self._wanted is transcript:
                self._tell(transcript, look)
                time.sleep(_REST)
            if wants_older:
                return
            backend.wait(patience)


def _backend(transcript: RunTranscript) -> Backend:
    """What tells when one of the files changes."""
    if sys.platform == "linux" and transcript.watched:
        # Not everywhere, so it is loaded where it is.
        from agentwatch.sources.files.inotify_backend import InotifyBackend

        paths, inotify = transcript.watched, None
        try:
            inotify = InotifyBackend(os.fspath(paths[0].parent), {path.name for path in paths}.__contains__)
            inotify.watch("")
        except WatchError:
            if inotify is not None:
                inotify.close()
        else:
            return inotify
    return PollingBackend()
