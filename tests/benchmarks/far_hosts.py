"""Many hosts in one process, for the benchmark of the screen that watches them: `far_hosts TASKS RATE COUNT FD…`.

Each relays a workspace of so many tasks through one of the sockets. Once a line comes in, all together observe so many
things, at this rate a second.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return
from agentwatch.decisions.envelope import SigningKey
from agentwatch.delegation.events import Seen
from agentwatch.monitor import Monitor
from agentwatch.remote.pipe import StdioEnd
from agentwatch.remote.relay import Relay, Relayed
from agentwatch.sources import Batch, Health, Source

LIVE = Health("live", "")


class Fed(Source):
    """A workspace of so many tasks, each with what it was handed; told of returns by `news`."""

    def __init__(self, tasks: int) -> None:
        self._tasks, self._seq = tasks, 0
        self._emit: Callable[[Batch], None] = lambda _batch: None

    def start(self, emit: Callable[[Batch], None]) -> None:
        self._emit = emit
        for number in range(self._tasks):
            parent = f"t{number // 10}" if number >= 10 else None
            self._tell(f"t{number}.handoff.json", Handoff(f"t{number}", f"count the seeds of field {number}", parent))

    def news(self, number: int) -> None:
        words = f"All {number} rows were counted twice, and the second count is what the first one was."
        made = Return(Contract.RETURN_FORMAT, "SUCCESS", Outcome.COMPLETED, summary=words, files_modified=("src/a.py",))
        self._tell(f"t{number % self._tasks}.return.md", made)

    def _tell(self, path: str, document: Handoff | Return) -> None:
        self._seq += 1
        self._emit(Batch((Seen(self._seq, time.time(), path, f"{self._seq:064x}", document),), LIVE))


def feed(sources: Sequence[Fed], rate: float, count: int) -> None:
    """Have these observe so many things, one after the other."""
    began, told = time.monotonic(), 0
    while told < count:
        while told < min((time.monotonic() - began) * rate, count):
            sources[told % len(sources)].news(told // len(sources))
            told += 1
        time.sleep(0.002)


async def main(tasks: int, rate: float, count: int, descriptors: list[int]) -> None:
    sources, relays = [], []
    for number, descriptor in enumerate(descriptors):
        sources.append(Fed(tasks))
        monitor = Monitor(Path(f"/w/shop{number}"), Settings(), sources[-1], time.time)
        key = SigningKey(Ed25519PrivateKey.generate())
        end = StdioEnd(descriptor, descriptor)
        relays.append(asyncio.create_task(Relay([Relayed("shop", monitor)], end, key, host=f"build{number}").run()))

    def wait() -> None:
        sys.stdin.readline()
        feed(sources, rate, count)

    threading.Thread(target=wait, daemon=True).start()
    await asyncio.gather(*relays)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), [int(one) for one in sys.argv[4:]]))
