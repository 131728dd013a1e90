"""The thread that follows the transcript on the screen: the system wakes it when something is written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from agentwatch.sources.files.watcher import Watcher
from agentwatch.sources.sessions.following import Look, RunTranscript

_REST: Final = 0.02
"""Seconds after a look that found something: what is written in one go is shown in one go."""
_SHARE: Final = 4.0
"""How often as long as a look took it rests before the next one."""
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
        self._has_ended = False
        self._wants_older = False
        watched = transcript.watched
        directory, names = os.fspath(watched[0].parent) if watched else "", {path.name for path in watched}
        self._watcher = Watcher(directory, names.__contains__, polling="" if watched else "Nothing to watch")
        self.thread: Final = threading.Thread(target=self._run, name="agentwatch-live", daemon=True)
        self.thread.start()

    def end(self) -> None:
        self._has_ended = True
        self._watcher.wake()

    def ask_for_older(self) -> None:
        self._wants_older = True
        self._watcher.wake()

    def _run(self) -> None:
        try:
            if self._before is not None:
                # A reader may give the same one again, which expects one thread.
                self._before.join(_PATIENCE)
                self._before = None
            self._watcher.watch("")
            while not self._has_ended:
                wants_older, self._wants_older = self._wants_older, False
                began = time.monotonic()
                look = self._transcript.older() if wants_older else self._transcript.look()
                cost = time.monotonic() - began
                if look is not None and not self._has_ended:
                    self._tell(self._transcript, look)
                    # One that is read as a whole may take long, and be written all the time.
                    time.sleep(max(_REST, 0.0 if wants_older else min(cost * _SHARE, _CHECK)))
                self._watcher.wait(_POLL if self._watcher.polling else _CHECK)
        finally:
            self._watcher.close()
