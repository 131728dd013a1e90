"""What starting costs, against an interpreter that does nothing and an empty Textual app, in a real terminal."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.workspaces import write
from tests.terminal.emulator import Terminal, agentwatch

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("first frame")
Empty().run()
"""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _until(pattern: str, *command: str) -> None:
    with Terminal(command, columns=140, lines=40) as terminal:
        terminal.wait_for(pattern)


def run() -> list[Row]:
    version = "import sys; sys.argv = ['agentwatch', '{}']; from agentwatch.__main__ import main; main()"
    actions = [
        lambda: _run(sys.executable, "-c", "pass"),
        lambda: _run(sys.executable, "-c", version.format("--version")),
        lambda: _run(sys.executable, "-c", version.format("--help")),
    ]
    nothing, version_ms, help_ms = interleaved(actions, 21)
    reference = "python -c pass"
    rows = [
        Row("agentwatch --version", reference, nothing, version_ms, 1.3),
        Row("agentwatch --help", reference, nothing, help_ms, 2.7),
    ]
    with tempfile.TemporaryDirectory() as directory:
        small, large = Path(directory, "small"), Path(directory, "large")
        write(small, 10)
        write(large, 10_000)
        frames = [
            lambda: _until("first frame", sys.executable, "-c", EMPTY_APP),
            lambda: _until("agentwatch", *agentwatch(small)),
            lambda: _until("agentwatch", *agentwatch(large)),
            lambda: _until("t0 ", *agentwatch(large)),
        ]
        empty, *others = interleaved(frames, 9)
    names = ("first frame, 10 tasks", "first frame, 10,000 tasks", "first task of 10,000 on screen")
    goals = (1.1, 1.1, None)
    return rows + [
        Row(name, "first frame of an empty Textual app", empty, taken, goal)
        for name, taken, goal in zip(names, others, goals, strict=True)
    ]
