"""Threads that work from start to stop, and how they leave the processor to others."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar

_JOIN_SECONDS: Final = 2.0
_REST: Final = 0.004

T = TypeVar("T")


class Background(ABC, Generic[T]):
    """Works in its thread from `start` to `stop`. Who notifies `_news` wakes it, if it waits for that."""

    thread_name: ClassVar[str]

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._stopped = False
        self._rung = False
        self._thread: threading.Thread | None = None

    def start(self, emit: Callable[[T], None]) -> None:
        """Begin. `emit` is called in the thread; once it raises RuntimeError, nobody listens any more."""
        self._thread = threading.Thread(target=self._run, args=(emit,), name=self.thread_name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, with what it is at; waits for that, not for long."""
        with self._news:
            self._stopped = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)

    def ring(self) -> None:
        """Something may have changed where it looks. Any thread may call it."""
        with self._news:
            self._rung = True
            self._news.notify()

    @property
    def _is_wanted(self) -> bool:
        """Whether it is to go on at once; asked while `_news` is held."""
        return self._stopped

    def _rest(self, least: float, most: float) -> bool:
        """Wait until it is wanted, or something has rung after `least` seconds, or `most` have passed. Returns whether
        something has rung."""
        with self._news:
            if not self._news.wait_for(lambda: self._is_wanted, least):
                self._news.wait_for(lambda: self._is_wanted or self._rung, most - least)
            rung, self._rung = self._rung, False
            return rung

    @abstractmethod
    def _run(self, emit: Callable[[T], None]) -> None:
        """Work, until it is `_stopped`."""


class Pace:
    """What goes on and on takes no more than a share of one core: it is done at once until the credit is used up, which
    comes back with time, and then rests in between. All in seconds, of the processor but for the rest."""

    def __init__(self, share: float, credit: float, longest: float) -> None:
        self._share, self._most, self._longest = share, credit, longest
        self._credit, self._at = credit, time.monotonic()

    def spend(self, seconds: float) -> None:
        """So much has been taken since the call before."""
        now = time.monotonic()
        earned = min(self._credit + (now - self._at) * self._share, self._most)
        # What others took in the meantime may be in it: nobody rests for that for ever.
        self._credit, self._at = max(earned - seconds, -self._most), now

    @property
    def rest(self) -> float:
        """How long to rest before there is more to do, the longest at most; 0 while there is credit."""
        self.spend(0.0)
        return min(max(-self._credit / self._share, 0.0), self._longest)


def let_others_work() -> None:
    """Rest, for a while at most, as long as another thread has work: of two, each gets half of the interpreter, and the
    screen would wait twice as long. A command works in the main thread, for which nobody waits."""
    if threading.current_thread() is threading.main_thread():
        return
    for _ in range(10):
        began = time.perf_counter()
        time.sleep(0)
        if time.perf_counter() - began < 0.0005:  # the interpreter is had back at once where nobody else wants it
            return
        time.sleep(_REST)
