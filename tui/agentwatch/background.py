"""Work in threads of its own, and who goes first where several want the interpreter."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar

_JOIN_SECONDS: Final = 2.0
_REST: Final = 0.004
_LONGEST: Final = 0.2
_BETWEEN: Final = 0.05
"""Seconds for which a key goes first at most, and after which the next one does: while a key is held down, all else
goes on, too."""

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


def in_step(now: float, seconds: float) -> float:
    """The moment about so many seconds later in which all look again that rest as long, on the monotonic clock: those
    of eleven worktrees take a third of the processor in the same moment of what they take one by one."""
    return round(now / seconds + 1) * seconds


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


class _KeysFirst:
    """What can wait rests while a key is being answered: that takes a dozen rounds of the event loop, and what is done
    in between them keeps it waiting."""

    def __init__(self) -> None:
        self._until = -math.inf

    def begin(self) -> None:
        """A key was pressed."""
        now = time.monotonic()
        if now >= self._until + _BETWEEN:
            self._until = now + _LONGEST

    def end(self) -> None:
        """It is answered."""
        self._until = min(self._until, time.monotonic())

    @property
    def is_on(self) -> bool:
        return time.monotonic() < self._until

    async def pass_by(self) -> None:
        """Rest meanwhile; the event loop goes round once in any case."""
        import asyncio  # most that import this have no loop

        await asyncio.sleep(0)
        while self.is_on:  # noqa: ASYNC110  not long
            await asyncio.sleep(_REST)


keys_first: Final = _KeysFirst()
