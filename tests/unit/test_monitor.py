"""The monitor joins a source and the tree, and tells the faces what changed."""

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from agentwatch import background
from agentwatch.background import Part, Worker
from agentwatch.config import Settings
from agentwatch.delegation.events import Aside, Event, Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.monitor import Monitor
from agentwatch.sources import Batch, Health, Source
from agentwatch.sources.files.source import FilesSource
from tests.journeys.made import returned
from tests.unit.delegation.events import Recorder, handoff

LIVE = Health("live", "")


class ScriptedSource(Source):
    """Emits what the test tells it to, at the latest when it is started."""

    def __init__(self):
        self.early: list[Batch] = []
        self.emit: Callable[[Batch], None] = self.early.append

    def start(self, emit: Callable[[Batch], None]):
        self.emit = emit
        for batch in self.early:
            emit(batch)


def watched() -> tuple[Monitor, ScriptedSource]:
    source = ScriptedSource()
    return Monitor(Path("/w"), Settings(), source, clock=lambda: 0.0), source


async def next_update(updates: AsyncIterator[Set[str]]) -> Set[str]:
    return await asyncio.wait_for(anext(updates), 10)


async def test_a_flood_is_applied_whole_in_several_updates():
    monitor, source = watched()
    updates = monitor.updates()
    see = Recorder().seen
    source.emit(Batch(tuple(see(f"{n}.json", handoff(f"t{n}")) for n in range(3_000)), LIVE))
    changed = {*await next_update(updates)}
    while len(changed) < 3_000:
        changed |= await next_update(updates)
    assert len(monitor.tree.tasks) == 3_000
    await updates.aclose()  # type: ignore[attr-defined]


async def test_a_monitor_that_is_cancelled_twice_leaves_no_thread(tmp_path):
    async def watch():
        async for _ in Monitor(tmp_path, Settings(), FilesSource(tmp_path), time.time).updates():
            watching.set()

    before = set(threading.enumerate())
    watching = asyncio.Event()
    task = asyncio.create_task(watch())
    await watching.wait()
    task.cancel()
    # Now it waits for its parts to stop, and the end of an event loop cancels what is left.
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while any(one.name.startswith("agentwatch-") for one in set(threading.enumerate()) - before):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_batch_that_counts_alone_takes_the_place_of_all():
    monitor, source = watched()
    updates = monitor.updates()
    see = Recorder().seen
    source.emit(Batch((see("a.json", handoff("a")), see("b.json", handoff("b"))), LIVE))
    await next_update(updates)
    shown = monitor.tree
    shown.asides["b"] = Aside(seen="as it was")
    taken: list[Event] = []
    monitor.tap = taken.append
    seen = see("b.json", handoff("b")), *(see(f"{number}.json", handoff(f"t{number}")) for number in range(2_000))
    source.emit(Batch(seen, LIVE, anew=True))
    # It takes several slices: until the last one, the screen shows what was there.
    while "a" in shown.tasks:
        assert shown.tasks.keys() == {"a", "b"}
        changed = await next_update(updates)
    assert monitor.tree is shown
    assert changed == {"a", *monitor.tree.tasks}
    assert monitor.tree.tasks.keys() == {"b", *(f"t{number}" for number in range(2_000))}
    assert monitor.tree.asides["b"] == Aside(seen="as it was")
    assert taken == list(seen)
    await updates.aclose()  # type: ignore[attr-defined]


def workspace_with_a_lie(root: Path, state: str = "SUCCESS") -> Path:
    (root / "docs").mkdir()
    (root / "docs" / "api.md").write_text("# Design\n", "utf-8")
    (root / "api.return.md").write_text(returned(state, more="", created="- src/handler.py"), "utf-8")
    return root


def monitor_of(root: Path, *, remembers: bool = False) -> Monitor:
    return Monitor(root, Settings(), FilesSource(root), clock=time.time, inspects=True, remembers=remembers)


async def until(updates: AsyncIterator[object], monitor: Monitor, holds: Callable[[Task], bool]):
    async with asyncio.timeout(20):
        async for _ in updates:
            task = monitor.tree.tasks.get("shop.api")
            if task is not None and holds(task):
                return


async def test_a_lie_turns_true_when_the_file_appears(tmp_path):
    root = workspace_with_a_lie(tmp_path)
    monitor = monitor_of(root)
    updates = monitor.updates()
    await until(updates, monitor, lambda task: task.contradicted)
    task = monitor.tree.tasks["shop.api"]
    assert task.ask is not None
    assert task.ask.startswith("a claim is false: src/handler.py (missing")
    (root / "src").mkdir()
    (root / "src" / "handler.py").write_text("def handle(): ...\n", "utf-8")
    await until(updates, monitor, lambda task: task.verdict is Verdict.VERIFIED)
    assert task.ask is None
    (root / "src" / "handler.py").unlink()
    await until(updates, monitor, lambda task: task.contradicted)
    await updates.aclose()  # type: ignore[attr-defined]


async def watch_a_broken_return(root: Path):
    monitor = monitor_of(root, remembers=True)
    updates = monitor.updates()
    await until(updates, monitor, lambda task: task.state is State.INVALID and bool(task.claims))
    await updates.aclose()  # type: ignore[attr-defined]


async def test_a_return_that_breaks_its_contract_is_an_error_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "shop").mkdir()
    root = workspace_with_a_lie(tmp_path / "shop", "DONE")
    await watch_a_broken_return(root)
    await watch_a_broken_return(root)
    (entry,) = json.loads((root / ".agentwatch" / "errors.json").read_text("utf-8"))["errors"]
    assert (entry["task_id"], entry["rules"]) == ("shop.api", ["RET011"])
    assert entry["recommendation"] == "Fix code subagent return format"


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
