"""The screen: its start, the time from a file to the pixel at several sizes, and its cost when idle and in a storm."""

import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.programs import Program, bare_reader, empty_app, place, result, walk_and_load, watching, write

SIZES = (200, 5_000, 20_000, 100_000)
TASKS = 5_000
_CHANGES = 100
_PIXEL_GOALS = {200: 20.0, 5_000: 20.0, 20_000: 60.0}  # milliseconds in the median
_WORST = 40.0  # milliseconds at most, up to 5,000 tasks
_MEMORY_GOALS = {5_000: 2.5}
_SECONDS = 30.0
_RATE = 1_000  # updates a second in a storm
_PAUSE = 0.02
_HOURS = 7_200.0
"""The age of files that do not change: younger ages are shown in seconds and minutes, which would go on counting."""

_TASK = rb"(?:\x1b\[[\d;]*m|[^/\w])t\d+\b"
"""Matches the name of a task in its row, where a style may begin."""

EMPTY = "an empty Textual app"


def _run(*words: str):
    subprocess.run([sys.executable, "-c", *words], check=True, capture_output=True)


def _until(pattern: bytes, program: Program):
    with program:
        program.wait_until_written(pattern)


def start() -> Iterator[Row]:
    """Measure `--version` and `--help` against an idle interpreter, then the first frame and the first task."""
    version = "import sys; sys.argv = ['agentwatch', '{}']; from agentwatch.__main__ import main; main()"
    given = {"--version": 1.3, "--help": 2.7}
    words = ["pass", *(version.format(name) for name in given)]
    nothing, *taken = interleaved([lambda one=one: _run(one) for one in words], 21)  # type: ignore[misc]
    for (name, goal), took in zip(given.items(), taken, strict=True):
        yield Row(f"agentwatch {name}", "python -c pass", nothing, took, goal)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, TASKS)
        actions = [
            lambda: _until(b"first frame", empty_app()),
            lambda: walk_and_load(root),
            lambda: _until(b"agentwatch", watching(root)),
            lambda: _until(_TASK, watching(root)),
        ]
        empty, load, frame, task = interleaved(actions, 9)
    yield Row(f"first frame, {TASKS:,} tasks", f"first frame of {EMPTY}", empty, frame, 1.3)
    what = f"first of {TASKS:,} tasks on screen, less 1.15 x empty app"
    yield Row(what, "walk, read and json.loads", load, task - 1.15 * empty, 2.5)


def _pixel(root: Path, tasks: int, program: Program) -> tuple[list[float], list[float]]:
    """Return the milliseconds from writing a file until its text is on screen, and until a bare reader has its line."""
    # The row is in sight and not under the cursor: failed tasks stand on top, and fill the screen if there are many.
    number = tasks - 10 if tasks <= TASKS else (tasks // 300 - 1) * 300
    file = place(root, number) / "return.md"
    shown, read = [], []
    with tempfile.TemporaryDirectory() as directory, bare_reader(Path(directory)) as reader:
        reader.wait_until_written(b"reading")
        other = Path(directory, "return.md")
        for change in range(_CHANGES):
            for target, watcher, pattern, taken in (
                (file, program, f"mark{change}x".encode(), shown),
                (other, reader, b"seen", read),
            ):
                watcher.idle(0.15)
                watcher.written.clear()
                begin = time.perf_counter()
                target.write_text(result(number, f"mark{change}x"), "utf-8")
                watcher.wait_until_written(pattern)
                taken.append((time.perf_counter() - begin) * 1_000)
    return shown, read


def at(tasks: int) -> list[Row]:
    """Measure a file's way to the pixel, and the memory, in a workspace of so many tasks."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write(root, tasks)
        empty = stack.enter_context(empty_app()).settle().memory
        program = stack.enter_context(watching(root)).settle()
        memory = program.memory
        shown, read = _pixel(root, tasks, program)
    what, reference = f"file written -> pixel, {tasks:,} tasks", "a bare reader of inotify"
    least, worst = _PIXEL_GOALS.get(tasks), _WORST if tasks <= TASKS else None
    return [
        Row(what, reference, median(read), median(shown), least, absolute=True),
        Row(f"the worst of {_CHANGES}", reference, max(read), max(shown), worst, absolute=True),
        Row(f"memory, {tasks:,} tasks", EMPTY, empty, memory, _MEMORY_GOALS.get(tasks), "MB"),
    ]


def idle() -> Row:
    """Measure the processor while nothing happens."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        root = Path(directory, "plain")
        write(root, TASKS, age=_HOURS)
        programs = [stack.enter_context(one).settle() for one in (empty_app(), watching(root))]
        before = [one.busy for one in programs]
        for _ in range(int(_SECONDS)):
            for one in programs:
                one.idle(1.0 / len(programs))
        spent = [(one.busy - busy) / _SECONDS * 100 for one, busy in zip(programs, before, strict=True)]
    return Row(f"idle, {TASKS:,} tasks: processor", EMPTY, *spent, 2.0, "%")


def storm() -> list[Row]:
    """Measure the processor while updates come, and compare its use at the end with that at the beginning. The rate is
    the one that the writer reached; on a busy machine it stays below the goal."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, TASKS)
        with watching(root) as program:
            program.settle()
            stopping, written = threading.Event(), itertools.count()
            writer = threading.Thread(target=_write, args=(root, written, stopping))
            writer.start()
            shares = []
            begun, before = time.perf_counter(), next(written)
            for _ in range(6):
                # Not divided by the rate: the cost of a storm is bounded, however many updates come in it.
                busy, begin = program.busy, time.perf_counter()
                program.idle(_SECONDS / 6)
                shares.append((program.busy - busy) / (time.perf_counter() - begin) * 100)
            rate = (next(written) - before) / (time.perf_counter() - begun)
            stopping.set()
            writer.join()
    first, last = sum(shares[:2]) / 2, sum(shares[-2:]) / 2
    return [
        Row(f"storm of {rate:,.0f} updates/s, {TASKS:,} tasks: processor", "a core", 100, sum(shares) / 6, 0.5, "%"),
        Row("the last third of it", "the first third", first, last, 1.1, "%"),
    ]


def _write(root: Path, written: Iterator[int], stopping: threading.Event):
    """Rewrite the returns one after the other until `stopping` is set."""
    at = time.perf_counter()
    while not stopping.is_set():
        for _ in range(int(_RATE * _PAUSE)):
            number = next(written)
            (place(root, number % TASKS) / "return.md").write_text(result(number % TASKS, f"m{number}"), "utf-8")
        at += _PAUSE
        time.sleep(max(at - time.perf_counter(), 0.0))


def run() -> Iterator[Row]:
    yield from start()
    for size in SIZES:
        yield from at(size)
    yield idle()
    yield from storm()
