"""Threads that work from start to stop, and how they leave the processor to others."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic, Protocol, TypeVar

_REST = 0.004

T = TypeVar("T")


class Background(ABC, Generic[T]):
    """Works in its thread from `start` to `stop`. A notify of `_news` wakes it, if it waits for that."""

    thread_name: ClassVar[str]
    join_seconds: ClassVar[float] = 2.0

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
        self._stopped = True
        self._wake()
        if self._thread:
            self._thread.join(self.join_seconds)

    def _wake(self) -> None:
        """End the present rest, or the next one."""
        with self._news:
            self._rung = True
            self._news.notify()

    def _rest(self, seconds: float) -> None:
        """Wait until it is stopped, something has rung, or so many seconds have passed."""
        with self._news:
            self._news.wait_for(lambda: self._stopped or self._rung, seconds)
            self._rung = False

    @abstractmethod
    def _run(self, emit: Callable[[T], None]) -> None:
        """Work, until it is `_stopped`."""


class Waiter(Protocol):
    """Waits until something happens in a directory."""

    def wait(self, timeout: float) -> object:
        """Wait for that, or for so many seconds."""

    def wake(self) -> None:
        """End the present wait, or the next one. Any thread may call it."""


class Part(ABC):
    """Something that a worker polls; `wake` has it polled at once, and so has its `waiter`, once it has one. `notice`
    may quote foreign text."""

    notice: str | None
    waiter: Waiter | None = None
    wake: Callable[[], None] = staticmethod(lambda: None)

    @abstractmethod
    def poll(self) -> Sequence[Any]:
        """Do what is to be done, and give the events since the call before. Blocks."""

    def close(self) -> None:
        """Nobody polls it any more."""
        return


class Worker(Background[Sequence[Any]]):
    """Polls parts, one after the other, in one thread; once more at the end."""

    thread_name = "agentwatch-parts"
    join_seconds = 10.0  # it writes at the end: a slow disk does not cost what was shown
    poll_seconds = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Part] = []
        self._polled = 0
        self._waiter: Waiter | None = None

    def add(self, part: Part) -> None:
        """Poll this one, too, from now on."""
        self._parts.append(part)
        part.wake = self._wake
        self._wake()

    @property
    def idle(self) -> bool:
        """Whether all that was there at first has been told."""
        return self._polled == len(self._parts)

    def _wake(self) -> None:
        super()._wake()
        if self._waiter:
            self._waiter.wake()

    def _rest(self, seconds: float) -> None:
        if self._waiter is None:
            super()._rest(seconds)
        elif not self._stopped:
            self._waiter.wait(seconds)

    def _run(self, emit: Callable[[Sequence[Any]], None]) -> None:
        is_last = False
        while not is_last:
            is_last, parts = self._stopped, list(self._parts)
            for part in parts:
                try:
                    news = part.poll()
                except Exception:  # noqa: BLE001  the others go on
                    self._parts.remove(part)
                    threading.excepthook(threading.ExceptHookArgs([*sys.exc_info(), self._thread]))
                    continue
                # Once the receiver's event loop is closed, nobody listens any more.
                with suppress(RuntimeError):
                    if news:
                        emit(news)
            self._waiter = next((one.waiter for one in parts if one.waiter), None)
            self._polled = len(parts)
            if not is_last:
                self._rest(self.poll_seconds)
        for part in self._parts:
            part.close()


class Pace:
    """Limits lasting work to a share of one core, once a credit of seconds is used up."""

    def __init__(self, share: float, credit: float, longest: float):
        self._share, self._most, self._longest = share, credit, longest
        self._credit, self._at = credit, time.monotonic()

    def spend(self, seconds: float) -> None:
        """So much has been taken since the call before."""
        now = time.monotonic()
        earned = min(self._credit + (now - self._at) * self._share, self._most)
        # Others may have added to it in the meantime: nobody rests for that for ever.
        self._credit, self._at = max(earned - seconds, -self._most), now

    @property
    def rest(self) -> float:
        """How long to rest before there is more to do, the longest at most; 0 while there is credit."""
        self.spend(0.0)
        return min(max(-self._credit / self._share, 0.0), self._longest)


def let_others_work() -> None:
    """Rest, for a while at most, as long as another thread has work; a command's main thread does not."""
    if threading.current_thread() is threading.main_thread():
        return
    for _ in range(10):
        began = time.perf_counter()
        time.sleep(0)
        if time.perf_counter() - began < 0.0005:  # the interpreter is had back at once where nobody else wants it
            return
        time.sleep(_REST)
