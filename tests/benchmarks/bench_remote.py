"""A screen that watches a hundred hosts, against one that watches one workspace with as many tasks here."""

from __future__ import annotations

import asyncio
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
from agentwatch.monitor import Monitor
from agentwatch.remote.host import RemoteHost, RemoteSource
from agentwatch.remote.pipe import Change, Link, LinkState, Receive, Writer, messages
from agentwatch.sources import Source
from agentwatch.workspaces import Place, Workspaces
from tests.benchmarks.far_hosts import Fed, feed
from tests.benchmarks.measuring import Row

HOSTS = 100
TASKS = 100
RATE = 1_000.0
COUNT = 5_000


class SocketLink(Link):
    """A link through a socket."""

    def __init__(self, one: socket.socket) -> None:
        self._socket, self._writer = one, Writer(one.fileno())

    def start(self, receive: Receive, change: Change) -> None:
        threading.Thread(target=self._read, args=(receive, change), daemon=True).start()

    def _read(self, receive: Receive, change: Change) -> None:
        with suppress(OSError):
            for message in messages(self._socket.fileno(), lambda: change(LinkState(up=True))):
                receive(message)

    def send(self, message: bytes, to: str = "") -> None:
        self._writer.send(message)

    def stop(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class Watched:
    """Milliseconds until each thing that is observed is in the tree."""

    def __init__(self) -> None:
        self.late: list[float] = []

    def monitor(self, workspace: Path, source: Source) -> Monitor:
        monitor = Monitor(workspace, Settings(), source, time.time)
        monitor.tap = self._note
        return monitor

    def _note(self, event: Event) -> None:
        if isinstance(event, Seen):
            self.late.append((time.time() - event.at) * 1_000)

    async def watch(self, monitor: Monitor, begin: Callable[[], object]) -> tuple[float, float]:
        """The median of those after `begin`, when all tasks are there, and the processor time that each took."""
        updates = monitor.updates()
        async with asyncio.timeout(120):
            while monitor.tree.totals.tasks < HOSTS * TASKS:
                await anext(updates)
            self.late.clear()
            before = time.process_time()
            begin()
            while len(self.late) < COUNT:
                await anext(updates)
        taken = (time.process_time() - before) * 1_000 / COUNT
        await updates.aclose()  # type: ignore[attr-defined]
        return statistics.median(self.late), taken


def far() -> tuple[float, float]:
    """On hosts, which are in a process of their own."""
    ends = [socket.socketpair() for _ in range(HOSTS)]
    fds = [theirs.fileno() for _, theirs in ends]
    command = [sys.executable, "-m", "tests.benchmarks.far_hosts", str(TASKS), str(RATE), str(COUNT), *map(str, fds)]
    watched, links = Watched(), {Path(f"/ssh:b{at}:/w"): SocketLink(ours) for at, (ours, _) in enumerate(ends)}

    def open_one(place: Place) -> Monitor:
        return watched.monitor(place.workspace, RemoteSource(RemoteHost(links[place.workspace], place.name or "")))

    with subprocess.Popen(command, pass_fds=fds, stdin=subprocess.PIPE, bufsize=0) as there:
        assert there.stdin is not None
        go = there.stdin
        places = [Place(path, path.name, host=str(at)) for at, path in enumerate(links)]
        try:
            return asyncio.run(watched.watch(Workspaces(places, Settings(), open_one), lambda: go.write(b"go\n")))
        finally:
            there.kill()


def here() -> tuple[float, float]:
    """In one workspace with all the tasks, observed in a thread of this process."""
    watched, source = Watched(), Fed(HOSTS * TASKS)
    feeding = threading.Thread(target=feed, args=([source], RATE, COUNT), daemon=True)
    return asyncio.run(watched.watch(watched.monitor(Path("/w/all"), source), feeding.start))


def run() -> list[Row]:
    local, remote = here(), far()
    reference = f"{HOSTS * TASKS:,} tasks here"
    return [
        Row(f"observed there, in the tree here, {RATE:,.0f} a second", reference, local[0], remote[0]),
        Row("processor of the screen for one", reference, local[1], remote[1], 1.5),
    ]
