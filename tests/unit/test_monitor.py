"""The monitor joins a source and the tree, and gives the changes to the faces; its worker polls parts in a thread."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from agentwatch.background import Pollable, Worker
from agentwatch.config import Settings
from agentwatch.delegation.events import Aside, Event
from agentwatch.monitor import Monitor
from agentwatch.sources import Batch, Health, Source
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.files.watcher import Watcher
from tests.unit.delegation.events import Recorder, handoff

LIVE = Health("live", "")


class ScriptedSource(Source):
    """Emits a batch when it starts, and then the batches that a test gives it."""

    def __init__(self, *first: Event):
        self.first = first

    def start(self, emit: Callable[[Batch], None]):
        self.emit = emit
        emit(Batch(self.first, LIVE))


async def test_a_monitor_that_is_cancelled_twice_leaves_no_thread(tmp_path):
    async def watch():
        async for _ in Monitor(tmp_path, Settings(), FilesSource(tmp_path), time.time).updates():
            watching.set()

    before = set(threading.enumerate())
    watching = asyncio.Event()
    task = asyncio.create_task(watch())
    await watching.wait()
    task.cancel()
    # The monitor now waits for its parts to stop; the second cancel is that of an event loop that ends.
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while any(one.name.startswith("agentwatch-") for one in set(threading.enumerate()) - before):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_batch_that_counts_alone_takes_the_place_of_all():
    see = Recorder().seen
    source = ScriptedSource(see("a.json", handoff("a")), see("b.json", handoff("b")))
    monitor = Monitor(Path("/w"), Settings(), source, clock=lambda: 0.0)
    updates = monitor.updates()
    await anext(updates)
    shown = monitor.tree
    shown.asides["b"] = Aside(seen="as it was")
    taken: list[Event] = []
    monitor.on_event = taken.append
    seen = see("b.json", handoff("b")), *(see(f"{number}.json", handoff(f"t{number}")) for number in range(2_000))
    source.emit(Batch(seen, LIVE, starts_over=True))
    # The batch takes several slices; until the last one, the screen shows the old tasks.
    while "a" in shown.tasks:
        assert shown.tasks.keys() == {"a", "b"}
        changed = await anext(updates)
    assert monitor.tree is shown
    assert changed == {"a", *monitor.tree.tasks}
    assert monitor.tree.tasks.keys() == {"b", *(f"t{number}" for number in range(2_000))}
    assert monitor.tree.asides["b"] == Aside(seen="as it was")
    assert taken == list(seen)
    await updates.aclose()  # type: ignore[attr-defined]


class Counting(Pollable):
    """Counts how often it was polled, and raises an error after `polls`."""

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


@pytest.mark.parametrize("has_waiter", [False, True])
def test_a_worker_polls_when_woken_and_once_more_at_the_end(tmp_path, monkeypatch, has_waiter):
    broken, sound, told = Counting(1), Counting(), SimpleQueue[Sequence[int]]()
    waiter = sound.waiter = Watcher(str(tmp_path)) if has_waiter else None
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    worker = Worker()
    worker.poll_seconds = 1_000.0
    worker.add(broken)
    worker.add(sound)
    worker.start(told.put)
    assert [told.get(timeout=10) for _ in range(2)] == [[1], [1]]
    (waiter or sound).wake()
    assert told.get(timeout=10) == [2]
    worker.stop()
    assert told.get(timeout=10) == [3]
    assert (broken.closed, sound.closed, worker.is_idle) == (False, True, True)
    if waiter:
        waiter.close()
