"""Who rests so that others can work."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from queue import SimpleQueue

import pytest

from agentwatch import background
from agentwatch.background import Pace, Part, Worker


@pytest.mark.parametrize("in_thread", [False, True], ids=["a command", "a thread"])
def test_a_thread_rests_for_the_screen_and_a_command_for_nobody(
    monkeypatch: pytest.MonkeyPatch, in_thread: bool
) -> None:
    rests, over = list[float](), threading.Event()
    monkeypatch.setattr(background.time, "sleep", rests.append)
    other = threading.Thread(target=over.wait)
    other.start()
    thread = threading.Thread(target=background.let_others_work)
    thread.run() if not in_thread else thread.start()
    if in_thread:
        thread.join()
    over.set()
    other.join()
    assert bool(rests) is in_thread


def test_what_goes_on_takes_its_share_and_debt_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(background.time, "monotonic", lambda: now[0])
    pace, taken = Pace(0.25, 1.0, 10.0), 1.0
    pace.spend(1.0)
    assert pace.rest == 0.0, "the credit"
    while now[0] < 1_100.0:
        pace.spend(0.1)
        taken += 0.1
        now[0] += 0.1 + pace.rest
    assert taken == pytest.approx(250.0, rel=0.02)
    pace.spend(1_000.0)
    assert pace.rest == 4.0
    now[0] += 4.0
    assert pace.rest == 0.0


class Counting(Part):
    """Tells how often it was polled; fails in the end."""

    notice = None

    def __init__(self, polls: float = math.inf) -> None:
        self.polls, self.told, self.closed = polls, 0, False

    def poll(self) -> list[int]:
        self.told += 1
        if self.told > self.polls:
            raise ValueError("a part that is broken")
        return [self.told]

    def close(self) -> None:
        self.closed = True


def test_a_worker_polls_when_it_is_woken_and_once_more_at_the_end_and_does_without_what_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken, sound, told = Counting(1), Counting(), SimpleQueue[Sequence[int]]()
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(background, "_POLL_SECONDS", 1_000.0)
    worker = Worker(broken, sound)
    worker.start(told.put)
    assert [told.get(timeout=10) for _ in range(2)] == [[1], [1]]
    sound.wake()
    assert told.get(timeout=10) == [2]
    worker.stop()
    assert told.get(timeout=10) == [3]
    assert (broken.closed, sound.closed, worker.idle) == (False, True, True)
