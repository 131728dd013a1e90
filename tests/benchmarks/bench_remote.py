"""A screen that watches a hundred hosts, against one that watches one workspace with as many tasks here."""

from __future__ import annotations

import asyncio
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Seen
from agentwatch.delegation.task import State
from agentwatch.monitor import Monitor
from agentwatch.remote.host import RemoteHost, RemoteSource
from agentwatch.remote.pipe import Change, Link, LinkState, Receive, Writer, messages
from agentwatch.workspaces import Place, Workspaces
from tests.benchmarks.far_hosts import Fed, feed
from tests.benchmarks.measuring import Row

HOSTS = 100
TASKS = 100
RATE = 1_000.0
COUNT = 5_000
PATIENCE = 120.0
"""Seconds after which a run is given up."""


class SocketLink(Link):
    """A link through a socket, which counts its bytes."""

    def __init__(self, one: socket.socket) -> None:
        self._socket = one
        self._writer: Writer | None = None
        self.bytes = 0

    def start(self, receive: Receive, change: Change) -> None:
        self._writer = Writer(self._socket.fileno())
        threading.Thread(target=self._read, args=(receive, change), daemon=True).start()

    def _read(self, receive: Receive, change: Change) -> None:
        with suppress(OSError):
            for message in messages(self._socket.fileno(), lambda: change(LinkState(up=True))):
                self.bytes += len(message) + 4
                receive(message)

    def send(self, message: bytes, to: str = "") -> None:
        if self._writer is not None:
            self._writer.send(message)

    def stop(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class Measured:
    """What a screen saw when, of `count` things that were observed once it had seen all tasks."""

    def __init__(self, tasks: int, count: int) -> None:
        self._tasks, self._count = tasks, count
        self._began = time.perf_counter()
        self.full_ms = float("nan")
        """From nothing to all tasks in the tree."""
        self.full_cpu = self.cpu = float("nan")
        """Milliseconds of the processor until then, and for each thing observed from then on."""
        self.late: list[float] = []
        self.keys: list[float] = []
        self.lost: list[float] = []
        """How long keys waited while all hosts were lost at once."""

    def tap(self, event: Event) -> None:
        if isinstance(event, Seen):
            self.late.append((time.time() - event.at) * 1_000)

    async def watch(self, monitor: Monitor, begin: Callable[[], None], lose: Callable[[], None] | None = None) -> None:
        """Run it, and note how long the event loop lets a key wait; also while all hosts are lost."""
        full, over = asyncio.Event(), asyncio.Event()

        async def keys() -> None:
            while True:
                at = time.perf_counter()
                await asyncio.sleep(0.01)
                self.keys.append((time.perf_counter() - at - 0.01) * 1_000)

        async def run() -> None:
            async for _ in monitor.updates():
                if monitor.tree.totals.tasks >= self._tasks:
                    full.set()
                if full.is_set() and len(self.late) >= self._count:
                    over.set()

        began, running = time.process_time(), [asyncio.create_task(run()), asyncio.create_task(keys())]
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await full.wait()
                self.full_ms = (time.perf_counter() - self._began) * 1_000
                self.full_cpu = (time.process_time() - began) * 1_000
                # What follows the first look is over.
                await asyncio.sleep(2)
                self.late.clear()
                self.keys.clear()
                over.clear()
                began = time.process_time()
                begin()
                await over.wait()
                self.cpu = (time.process_time() - began) * 1_000 / max(len(self.late), 1)
                if lose is not None:
                    calm = self.keys[:]
                    self.keys.clear()
                    lose()
                    while monitor.tree.totals.states.get(State.SUBMITTED):  # noqa: ASYNC110  not long
                        await asyncio.sleep(0.01)
                    self.lost, self.keys = self.keys, calm
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def slowest(self, share: float, of: list[float]) -> float:
        return sorted(of)[int(len(of) * (1 - share))] if of else float("nan")


def far(hosts: int, tasks: int) -> tuple[Measured, int, int]:
    """What was measured, and the bytes on the wire until all tasks were there, and after that."""
    ends = [socket.socketpair() for _ in range(hosts)]
    fds = [theirs.fileno() for _, theirs in ends]
    command = [sys.executable, "-m", "tests.benchmarks.far_hosts", str(tasks), str(RATE), str(COUNT), *map(str, fds)]
    there = subprocess.Popen(command, pass_fds=fds, stdin=subprocess.PIPE)
    links = {Path(f"/ssh:build{number}:/w"): SocketLink(ours) for number, (ours, _) in enumerate(ends)}
    measured, before = Measured(hosts * tasks, COUNT), 0

    def open_one(place: Place) -> Monitor:
        source = RemoteSource(RemoteHost(links[place.workspace], place.name or ""))
        monitor = Monitor(place.workspace, Settings(), source, time.time)
        monitor.tap = measured.tap
        return monitor

    def begin() -> None:
        nonlocal before
        before = sum(link.bytes for link in links.values())
        if there.stdin is not None:
            there.stdin.write(b"go\n")
            there.stdin.flush()

    def lose() -> None:
        there.kill()

    places = [Place(path, f"build{number}", host=f"build{number}") for number, path in enumerate(links)]
    try:
        asyncio.run(measured.watch(Workspaces(places, Settings(), open_one), begin, lose))
    finally:
        there.kill()
        there.communicate()
        for pair in ends:
            for one in pair:
                one.close()
    return measured, before, sum(link.bytes for link in links.values()) - before


def here(tasks: int) -> Measured:
    """One workspace with all the tasks, observed in a thread of this process."""
    measured, source = Measured(tasks, COUNT), Fed(tasks)
    monitor = Monitor(Path("/w/all"), Settings(), source, time.time)
    monitor.tap = measured.tap
    feeding = threading.Thread(target=feed, args=([source], RATE, COUNT), daemon=True)
    asyncio.run(measured.watch(monitor, feeding.start))
    return measured


def run() -> list[Row]:
    before = _memory()
    local = here(HOSTS * TASKS)
    between = _memory()
    remote, cold, told = far(HOSTS, TASKS)
    after = _memory()
    print(
        f"  {len(remote.late):,} observed, {told / max(len(remote.late), 1):,.0f} bytes on the wire for each;", end=" "
    )
    print(f"cold start: {cold / HOSTS / TASKS:,.0f} bytes a task;", end=" ")
    print(f"memory: {between - before:,} MB for the tasks here, {after - between:,} MB more for the same on hosts")
    medians = statistics.median(local.late), statistics.median(remote.late)
    tails = [one.slowest(0.05, one.late) for one in (local, remote)]
    keys = [one.slowest(0.01, one.keys) for one in (local, remote)]
    same = "the same here"
    return [
        Row(f"observed there, in the tree here, {RATE:,.0f} a second", f"{HOSTS * TASKS:,} tasks here", *medians),
        Row("the slowest 5 of 100", same, *tails),
        Row("processor of the screen for one", same, local.cpu, remote.cpu),
        Row("a key waits, the longest 1 of 100", same, *keys),
        Row(
            "a key waits at most, while all hosts are lost",
            "tasks here, in calm",
            max(local.keys),
            max(remote.lost, default=float("nan")),
        ),
        Row(f"cold start: {HOSTS} hosts with {TASKS} tasks each", same, local.full_ms, remote.full_ms),
        Row("processor of the screen for that", same, local.full_cpu, remote.full_cpu),
    ]


def _memory() -> int:
    """The most that this process has taken so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
