"""The screen under load: a storm of updates."""

import itertools
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measuring import Row
from tests.benchmarks.programs import watching
from tests.benchmarks.workspaces import place, returned, write

_RATE = 1_000
_STORM_SECONDS = 30.0
_PAUSE = 0.02


def storm(tasks: int, seconds: float) -> list[Row]:
    """Processor while updates come, and whether it is the same later as at first. The rate is what the writer reached,
    which a busy machine keeps below that of the goal."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, tasks)
        with watching(root) as program:
            program.settle()
            stopping, written = threading.Event(), itertools.count()
            writer = threading.Thread(target=_write, args=(root, tasks, written, stopping))
            writer.start()
            shares, sixth = [], seconds / 6
            begun, before = time.perf_counter(), next(written)
            for _ in range(6):
                # As it is: what a storm may take is bounded, however many updates come in it.
                busy, begin = program.busy, time.perf_counter()
                program.idle(sixth)
                shares.append((program.busy - busy) / (time.perf_counter() - begin) * 100)
            rate = (next(written) - before) / (time.perf_counter() - begun)
            stopping.set()
            writer.join()
    first, last = sum(shares[:2]) / 2, sum(shares[-2:]) / 2
    return [
        Row(f"storm of {rate:,.0f} updates/s, {tasks:,} tasks: processor", "a core", 100, sum(shares) / 6, 0.5, "%"),
        Row("the last third of it", "the first third", first, last, 1.1, "%"),
    ]


def _write(root: Path, tasks: int, written: itertools.count[int], stopping: threading.Event):
    """Rewrite the returns, one after the other."""
    at = time.perf_counter()
    while not stopping.is_set():
        for _ in range(int(_RATE * _PAUSE)):
            number = next(written)
            text = returned(number % tasks, mode=f"m{number}")
            (place(root, number % tasks) / "return.md").write_text(text, "utf-8")
        at += _PAUSE
        time.sleep(max(at - time.perf_counter(), 0.0))


def run() -> Iterator[Row]:
    yield from storm(5_000, _STORM_SECONDS)
