"""The screen at three sizes: a file's way to the pixel, memory, and what it takes while nothing happens."""

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.benchmarks.measuring import Row
from tests.benchmarks.programs import Program, bare_reader, empty_app, watching
from tests.benchmarks.workspaces import place, returned, write

SIZES = (200, 5_000, 20_000, 100_000)
_PIXEL_GOALS = {200: 20.0, 5_000: 20.0, 20_000: 60.0}  # milliseconds in the median
_WORST = 40.0  # milliseconds at most, up to 5,000 tasks
_MEMORY_GOALS = {5_000: 2.5}
_IDLE_SECONDS = 30.0
_HOURS = 7_200.0
"""How old is what stands still: younger ages are shown in seconds and minutes, which go on."""


@contextmanager
def _settled(program: Program) -> Iterator[Program]:
    with program:
        program.settle()
        yield program


def _pixel(root: Path, tasks: int, program: Program, changes: int) -> tuple[list[float], list[float]]:
    """Milliseconds from a file that is written to what it says on screen, and to a bare reader's line."""
    # In sight, and not under the cursor: those that failed stand on top, and fill a screen of many.
    number = tasks - 10 if tasks <= 5_000 else (tasks // 300 - 1) * 300
    file = place(root, number) / "return.md"
    shown, read = [], []
    with tempfile.TemporaryDirectory() as directory, bare_reader(Path(directory)) as reader:
        reader.shows(b"reading")
        other = Path(directory, "return.md")
        for change in itertools.islice(itertools.count(), changes):
            for target, watcher, pattern, taken in (
                (file, program, f"mark{change}x".encode(), shown),
                (other, reader, b"seen", read),
            ):
                watcher.idle(0.15)
                watcher.forget()
                begin = time.perf_counter()
                target.write_text(returned(number, mode=f"mark{change}x"), "utf-8")
                watcher.shows(pattern, 60.0)
                taken.append((time.perf_counter() - begin) * 1_000)
    return shown, read


def at(tasks: int, changes: int) -> list[Row]:
    """A file's way to the pixel, and the memory, in a workspace of so many tasks."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write(root, tasks)
        empty = stack.enter_context(_settled(empty_app())).memory
        program = stack.enter_context(_settled(watching(root)))
        memory = program.memory
        shown, read = _pixel(root, tasks, program, changes)
    what, reference = f"file written -> pixel, {tasks:,} tasks", "a bare reader of inotify"
    least, worst = _PIXEL_GOALS.get(tasks), _WORST if tasks <= 5_000 else None
    return [
        Row(what, reference, statistics.median(read), statistics.median(shown), least, absolute=True),
        Row(f"the worst of {changes}", reference, max(read), max(shown), worst, absolute=True),
        Row(f"memory, {tasks:,} tasks", "an empty Textual app", empty, memory, _MEMORY_GOALS.get(tasks), "MB"),
    ]


def idle(tasks: int, seconds: float) -> list[Row]:
    """Processor and wake-ups while nothing happens, side by side with an empty app."""
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory, "plain"), tasks, age=_HOURS)
        programs = [empty_app(), watching(Path(directory, "plain"))]
        with ExitStack() as stack:
            for program in programs:
                stack.enter_context(_settled(program))
            before = [(one.busy, one.woken) for one in programs]
            for _ in range(int(seconds)):
                for one in programs:
                    one.idle(1.0 / len(programs))
            spent = [
                ((one.busy - busy) / seconds, (one.woken - woken) / seconds)
                for one, (busy, woken) in zip(programs, before, strict=True)
            ]
    (empty, few), (busy, woken) = spent
    reference = "an empty Textual app"
    return [
        Row(f"idle, {tasks:,} tasks: processor", reference, empty * 100, busy * 100, 2.0, "%"),
        Row(f"idle, {tasks:,} tasks: wake-ups a second", reference, few, woken, None, "/s"),
    ]


def run() -> Iterator[Row]:
    for size in SIZES:
        yield from at(size, 100)
    yield from idle(5_000, _IDLE_SECONDS)
