"""Background threads that can be started and stopped, and limits for the processor time that the threads take."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic, Protocol, TypeVar

_REST = 0.004

T = TypeVar("T")


class BackgroundThread(ABC, Generic[T]):
    """Works in its own thread from `start` to `stop`. Subclasses may also wait for the condition `_news`."""

    thread_name: ClassVar[str]
    join_seconds: ClassVar[float] = 2.0

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._stopped = False
        self._rung = False
        self._thread: threading.Thread | None = None

    def start(self, emit: Callable[[T], None]) -> None:
        """Start the thread, which calls `emit` with each result."""
        self._thread = threading.Thread(target=self._run, args=(emit,), name=self.thread_name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after its current work. Wait at most `join_seconds` for its end."""
        self._stopped = True
        self._wake()
        if self._thread:
            self._thread.join(self.join_seconds)

    def _wake(self) -> None:
        """End the current rest. If the thread is working, its next rest ends at once."""
        with self._news:
            self._rung = True
            self._news.notify()

    def _rest(self, seconds: float) -> None:
        """Wait until `seconds` have passed, or until `stop` or `_wake` is called."""
        with self._news:
            self._news.wait_for(lambda: self._stopped or self._rung, seconds)
            self._rung = False

    @abstractmethod
    def _run(self, emit: Callable[[T], None]) -> None:
        """Work until `_stopped` is true."""


class Waiter(Protocol):
    """Waits for a change in a directory."""

    def wait(self, timeout: float) -> object:
        """Wait until the directory changes, but at most `timeout` seconds."""

    def wake(self) -> None:
        """End the current wait. If no thread waits, the next wait ends at once. Any thread may call this."""


class Pollable(ABC):
    """An object that a worker polls regularly. `wake`, or a change that `waiter` sees, makes the worker poll at once.
    `notice` is a message for the operator. The message may quote untrusted text."""

    notice: str | None
    waiter: Waiter | None = None
    wake: Callable[[], None] = staticmethod(lambda: None)

    @abstractmethod
    def poll(self) -> Sequence[Any]:
        """Do the pending work, and return the events since the previous call. Blocks."""

    def close(self) -> None:
        """Clean up after the last poll."""
        return


class Worker(BackgroundThread[Sequence[Any]]):
    """Polls several objects in turn, in one thread. After `stop`, it polls each object once more."""

    thread_name = "agentwatch-parts"
    join_seconds = 10.0  # long, because the last poll writes to the disk
    poll_seconds = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Pollable] = []
        self._polled = 0
        self._waiter: Waiter | None = None

    def add(self, part: Pollable) -> None:
        """Begin to poll an object."""
        self._parts.append(part)
        part.wake = self._wake
        self._wake()

    @property
    def is_idle(self) -> bool:
        """Whether every object has been polled at least once."""
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
                except Exception:  # noqa: BLE001  the other objects are still polled
                    self._parts.remove(part)
                    threading.excepthook(threading.ExceptHookArgs([*sys.exc_info(), self._thread]))
                    continue
                # `emit` raises RuntimeError once the receiver's event loop is closed.
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
    """Limits long work to a `share` of one core. The first `credit` seconds of work are not limited."""

    def __init__(self, share: float, credit: float, longest: float):
        self._share, self._most, self._longest = share, credit, longest
        self._credit, self._at = credit, time.monotonic()

    def spend(self, seconds: float) -> None:
        """Subtract `seconds` of work from the credit."""
        now = time.monotonic()
        earned = min(self._credit + (now - self._at) * self._share, self._most)
        # The credit may fall below 0, but only to a limit, because `seconds` may include work of other threads.
        self._credit, self._at = max(earned - seconds, -self._most), now

    @property
    def rest(self) -> float:
        """The seconds to rest before the next work. It is 0 while credit is left, and at most `longest`."""
        self.spend(0.0)
        return min(max(-self._credit / self._share, 0.0), self._longest)


def let_others_work() -> None:
    """Rest briefly while other threads have work. In the main thread, return at once."""
    if threading.current_thread() is threading.main_thread():
        return
    for _ in range(10):
        began = time.perf_counter()
        time.sleep(0)
        if time.perf_counter() - began < 0.0005:  # sleep(0) returns at once if no other thread wants the interpreter
            return
        time.sleep(_REST)
