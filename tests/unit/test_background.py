"""The worker that polls parts in a thread."""

import math
import threading
from collections.abc import Sequence
from queue import SimpleQueue

import pytest

from agentwatch import background
from agentwatch.background import Part, Worker


class Counting(Part):
    """Tells how often it was polled; fails in the end."""

    notice = None

    def __init__(self, polls: float = math.inf):
        self.polls, self.told, self.closed = polls, 0, False

    def poll(self) -> list[int]:
        self.told += 1
        if self.told > self.polls:
            raise ValueError("a part that is broken")
        return [self.told]

    def close(self):
        self.closed = True


class Bell:
    """Waits until it rings."""

    def __init__(self):
        self._rings = SimpleQueue[None]()

    def wait(self, timeout: float):
        self._rings.get(timeout=timeout)

    def wake(self):
        self._rings.put(None)


@pytest.mark.parametrize("waiter", [None, Bell()], ids=["alone", "with a waiter"])
def test_a_worker_polls_when_woken_and_once_more_at_the_end(monkeypatch, waiter):
    broken, sound, told = Counting(1), Counting(), SimpleQueue[Sequence[int]]()
    sound.waiter = waiter
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(background, "_POLL_SECONDS", 1_000.0)
    worker = Worker()
    worker.add(broken)
    worker.add(sound)
    worker.start(told.put)
    assert [told.get(timeout=10) for _ in range(2)] == [[1], [1]]
    (waiter or sound).wake()
    assert told.get(timeout=10) == [2]
    worker.stop()
    assert told.get(timeout=10) == [3]
    assert (broken.closed, sound.closed, worker.idle) == (False, True, True)
