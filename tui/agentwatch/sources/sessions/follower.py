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
_PATIENCE: Final = 1.0
"""Seconds that another one waits for the one before: somebody else's reader may hang, or a disk that is not here."""


class Follower:
    """Follows one transcript at a time. `tell` gets what is known of it after each change, called in a thread of its
    own for each: one that hangs holds up no other."""

    def __init__(self, tell: Callable[[RunTranscript, Look], object]) -> None:
        self._tell = tell
        self._following: _Following | None = None

    @property
    def is_running(self) -> bool:
        """Whether its thread has not ended."""
        return self._following is not None and self._following.thread.is_alive()

    def follow(self, transcript: RunTranscript | None) -> None:
        """Go over to another transcript; None ends the thread, as soon as it has done what it is at."""
        before = self._following
        if before is not None:
            before.end()
        if transcript is not None:
            self._following = _Following(transcript, self._tell, None if before is None else before.thread)

    def ask_for_older(self) -> None:
        """Read some of those before the first step, and tell."""
        if self._following is not None:
            self._following.ask_for_older()


class _Following:
    """The thread of one transcript. It begins when that `before` it has ended, or does not."""

    def __init__(
        self,
        transcript: RunTranscript,
        tell: Callable[[RunTranscript, Look], object],
        before: threading.Thread | None,
    ) -> None:
        self._transcript = transcript
        self._tell = tell
        self._before = before
        self._lock = threading.Lock()
        self._has_ended = False
        self._wants_older = False
        self._backend: Backend | None = None
        self.thread: Final = threading.Thread(target=self._run, name="agentwatch-live", daemon=True)
        self.thread.start()

    def end(self) -> None:
        self._has_ended = True
        self._wake()

    def ask_for_older(self) -> None:
        with self._lock:
            self._wants_older = True
        self._wake()

    def _wake(self) -> None:
        if (backend := self._backend) is not None:
            backend.wake()

    def _run(self) -> None:
        if self._before is not None:
            # A reader may give the same one again, which expects one thread.
            self._before.join(_PATIENCE)
            self._before = None
        while not self._has_ended:
            with self._lock:
                self._backend = backend = _backend(self._transcript)
            try:
                self._follow(backend)
            finally:
                with self._lock:
                    self._backend = None
                backend.close()

    def _follow(self, backend: Backend) -> None:
        """Until it is over, or the backend was woken: from then on it waits no more."""
        patience = _POLL if backend.polls else _CHECK
        while not self._has_ended:
            look = self._transcript.look()
            with self._lock:
                wants_older, self._wants_older = self._wants_older, False
            if wants_older:
                look = self._transcript.older()
            if look is not None and not self._has_ended:
                self._tell(self._transcript, look)
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
