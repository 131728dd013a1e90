"""When everything known is compared with the disk: soon after events, seldom while nothing happens, never too dear."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from agentwatch.sources.files.catalogue import Catalogue

_SLICE_SECONDS: Final = 0.006
"""Comparing between two looks at the events."""

_ACTIVE_SHARE: Final = 0.05
_EXACT_SHARE: Final = 0.01
_IDLE_SHARE: Final = 0.001
_POLL_SHARE: Final = 0.02
"""The share of one core that comparing may take: after events, after events of a backend that knows what it lost, while
nothing happens, and where there are no events."""

_IDLE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 30.0


class Sweeps:
    """Sweeps over one catalogue. Times are those of the monotonic clock."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._running: Iterator[None] | None = None
        self._spent = 0.0
        self._cost = 0.0
        self._ended_at = 0.0
        self.next_at = 0.0
        """When the next one begins, if nothing happens until then."""

    @property
    def running(self) -> bool:
        return self._running is not None

    def ask(self, at: float, *, exact: bool = False) -> None:
        """Something happened: sweep at this time, or as soon as the cost of the last sweep allows.

        `exact`: it was reported by a backend that would know if there had been more.
        """
        share = _EXACT_SHARE if exact else _ACTIVE_SHARE
        self.next_at = min(self.next_at, max(at, self._ended_at + self._cost / share))

    def advance(self, *, polls: bool) -> None:
        """Begin a sweep that is due, and do a slice of it. `polls`: nothing else finds changes."""
        now = time.monotonic()
        if self._running is None:
            if now < self.next_at or self._catalogue.waiting:
                return
            self._running = self._catalogue.sweeping()
            self._spent = 0.0
            self.next_at = now + _LONGEST_SECONDS
        began = time.thread_time()
        for _ in self._running:
            if time.monotonic() >= now + _SLICE_SECONDS:
                self._spent += time.thread_time() - began
                return
        self._running = None
        self._cost = self._spent + time.thread_time() - began
        self._ended_at = time.monotonic()
        shortest, share = (_POLL_SECONDS, _POLL_SHARE) if polls else (_IDLE_SECONDS, _IDLE_SHARE)
        pause = min(max(shortest, self._cost / share), _LONGEST_SECONDS)
        self.next_at = min(self.next_at, self._ended_at + pause)
