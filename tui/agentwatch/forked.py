"""A part of what a command does, done meanwhile by a copy of this process: it begins at once, and knows all that this
one knows."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Final

from agentwatch.cores import has_two_cores

_STEP: Final = 0.001
_CHUNK: Final = 1024 * 1024
_ENDED_SECONDS: Final = 1.0
_ASIDE_SECONDS: Final = 4.0
"""How long this process waits, when it ends, for all that is done aside."""
_STREAMS: Final = 3
_MOST_DESCRIPTORS: Final = 65_536

_copies: Final[set[Forked]] = set()
"""Those of which it has not been seen that they have ended."""


def may_fork() -> bool:
    """Whether this process can be copied: what other threads hold, nobody would ever give back in a copy."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked:
    """A copy that does `work`, which writes what it has to tell, and ends with it. Raises OSError where there can be
    none.

    Nothing else of it is seen outside: it says nothing, and has no file of this one open. It is told to end by an
    interrupt of both, by that nobody reads any more, and when this process ends.
    """

    stdin: Final = None

    def __init__(self, work: Callable[[IO[bytes]], None]) -> None:
        got, given = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(got)
            os.close(given)
            raise
        if self.pid == 0:
            _do(work, given)
        os.close(given)
        self.stdout: IO[bytes] = open(got, "rb")  # noqa: PTH123, SIM115  it is closed by who reads it
        self.is_aside = False
        """Whether it may end by itself, though this process has nothing else to do."""
        self._has_ended = False
        _copies.add(self)

    def told(self, seconds: float) -> bytes:
        """All that it tells, and then it is ended; nothing where that takes longer."""
        until, parts = time.monotonic() + seconds, list[bytes]()
        news = select.poll()
        with self.stdout as got:
            news.register(got, select.POLLIN)
            while news.poll(max(until - time.monotonic(), 0.0) * 1_000):
                if not (part := os.read(got.fileno(), _CHUNK)):
                    break
                parts.append(part)
            else:
                parts.clear()
        self.kill()
        self.wait(_ENDED_SECONDS)
        return b"".join(parts)

    def poll(self) -> bool:
        """Whether it has ended."""
        if not self._has_ended:
            try:
                self._has_ended = os.waitpid(self.pid, os.WNOHANG) != (0, 0)
            except ChildProcessError:
                self._has_ended = True
        if self._has_ended:
            _copies.discard(self)
        return self._has_ended

    def kill(self) -> None:
        # Where nobody waits for children, it may end just now.
        with suppress(ProcessLookupError):
            if not self.poll():
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Until it has ended, but no longer."""
        until = time.monotonic() + seconds
        while not self.poll() and time.monotonic() < until:
            time.sleep(_STEP)


def aside(work: Callable[[], None]) -> None:
    """Have a copy do what this process needs nothing of, and end after it; where there can be none, do it here."""
    made = None
    if may_fork() and has_two_cores():
        with suppress(OSError):
            made = Forked(lambda _: work())
    if made is None:
        work()
        return
    made.stdout.close()
    made.is_aside = True


@atexit.register
def _end_all() -> None:
    """Leave none behind, whatever it is held up by."""
    until = time.monotonic() + _ASIDE_SECONDS
    with suppress(KeyboardInterrupt):
        for made in [one for one in _copies if one.is_aside]:
            made.wait(until - time.monotonic())
    for made in list(_copies):
        made.kill()
        made.wait(_ENDED_SECONDS)


def _do(work: Callable[[IO[bytes]], None], given: int) -> None:
    """The life of the copy."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(given, _STREAMS)
        for descriptor in range(_STREAMS):
            os.dup2(nothing, descriptor)
        os.closerange(_STREAMS + 1, _MOST_DESCRIPTORS)
        with open(_STREAMS, "wb") as told:  # noqa: PTH123
            work(told)
    finally:
        # What this process does when it ends, the other one does.
        os._exit(0)
