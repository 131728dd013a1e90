"""The cost of starting, against an interpreter that does nothing and an empty Textual app, in a real terminal."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.programs import Program, empty_app, watching
from tests.benchmarks.workspaces import walk_and_load, write

_TASK = rb"(?:\x1b\[[\d;]*m|[^/\w])t\d+\b"
"""The name of a task in its row, where a style may begin."""


def _run(*command: str):
    subprocess.run(command, check=True, capture_output=True)


def _until(pattern: bytes, program: Program):
    with program:
        program.shows(pattern)


def run() -> list[Row]:
    version = "import sys; sys.argv = ['agentwatch', '{}']; from agentwatch.__main__ import main; main()"
    actions = [
        lambda: _run(sys.executable, "-c", "pass"),
        lambda: _run(sys.executable, "-c", version.format("--version")),
        lambda: _run(sys.executable, "-c", version.format("--help")),
    ]
    nothing, version_ms, help_ms = interleaved(actions, 21)
    reference = "python -c pass"
    return [
        Row("agentwatch --version", reference, nothing, version_ms, 1.3),
        Row("agentwatch --help", reference, nothing, help_ms, 2.7),
        *frames(5_000, rounds=9),
    ]


def frames(tasks: int, rounds: int) -> list[Row]:
    """The first frame, and the first task on screen."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, tasks)
        actions = [
            lambda: _until(b"first frame", empty_app()),
            lambda: walk_and_load(root),
            lambda: _until(b"agentwatch", watching(root)),
            lambda: _until(_TASK, watching(root)),
        ]
        empty, load, frame, task = interleaved(actions, rounds)
    return [
        Row(f"first frame, {tasks:,} tasks", "first frame of an empty Textual app", empty, frame, 1.3),
        Row(
            f"first of {tasks:,} tasks on screen, less 1.15 x empty app",
            "walk, read and json.loads",
            load,
            task - 1.15 * empty,
            2.5,
        ),
    ]
