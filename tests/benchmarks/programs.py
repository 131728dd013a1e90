"""Programs in a terminal that is only read, their use of memory and processor (Linux), and workspaces to watch."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from agentwatch.sources.files.read import DEFAULT_PRUNED
from tests.journeys.made import returned
from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.agents.documents import packet

_EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("first frame")
Empty().run()
"""

_BARE_READER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
events = libc.inotify_init()
libc.inotify_add_watch(events, os.fsencode(sys.argv[1]), 0x8 | 0x80)
os.write(1, b"reading\\n")
while os.read(events, 4096):
    os.write(1, b"seen\\n")
"""
"""A program that prints a line for every file that was written and closed, or moved here: the fastest reader."""


class Program(Terminal):
    """A command in a pty without an emulator, so that nothing but the program itself is measured."""

    def __enter__(self) -> Program:
        super().__enter__()
        self._stream.feed = lambda data: None  # type: ignore[method-assign]
        return self

    def idle(self, seconds: float):
        """Read the output of the program for so many seconds."""
        end = time.perf_counter() + seconds
        while self._read(max(end - time.perf_counter(), 0.0)) or time.perf_counter() < end:
            pass

    def settle(self) -> Program:
        """Wait until the program has done nothing for two seconds."""
        before = float("-inf")
        while self.busy - before >= 0.1:
            before = self.busy
            self.idle(2.0)
        return self

    @property
    def busy(self) -> float:
        """Return the processor seconds that the program has used, to the microsecond."""
        return time.clock_gettime(~self.pid << 3 | 2)  # the clock of another process, as clock_getcpuclockid has it

    @property
    def memory(self) -> float:
        """Return the megabytes of memory that the program holds."""
        lines = Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def program(*words: str) -> Program:
    return Program(words, columns=140, lines=40)


def watching(root: Path) -> Program:
    """Start `agentwatch` at a workspace."""
    return program(*agentwatch(root))


def empty_app() -> Program:
    """Start a Textual app that shows two words."""
    return program(sys.executable, "-c", _EMPTY_APP)


def bare_reader(directory: Path) -> Program:
    """Start a reader of the events of one directory."""
    return program(sys.executable, "-c", _BARE_READER, os.fspath(directory))


# Workspaces


def result(number: int, mode: str = "code") -> str:
    """Return the return of a task of `write`; a row shows `mode` as the name of its agent."""
    state = "ERROR" if number % 300 == 0 else "SUCCESS"
    made = f"- group{number // 100}/t{number}/return.md"  # a claim that is true
    text = returned(
        state, f"t{number}", f"Did what was asked for in t{number}.", "retry_recommended: no\n", created=made
    )
    return text.replace("mode_reported: code", f"mode_reported: {mode}")


def place(root: Path, number: int) -> Path:
    """Return the directory where `write` puts a task."""
    return root / f"group{number // 100}" / f"t{number}"


def write(root: Path, tasks: int, *, age: float = 0.0):
    """Write a workspace: each task has a directory with handoff and return, `age` seconds old; one in 300 failed."""
    at = time.time() - age
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "api.md").write_text("# Design\n", "utf-8")
    for number in range(tasks):
        directory = place(root, number)
        directory.mkdir(parents=True)
        # The handoff names no agent, so that a row shows the name in the return.
        given = packet(f"t{number}", objective=f"Do part {number}.")
        for name, text in (("handoff.json", given), ("return.md", result(number))):
            (directory / name).write_text(text, "utf-8")
            if age:
                os.utime(directory / name, (at, at))


def walk_and_load(root: Path):
    """Walk a workspace, read its files, and parse the JSON in them: the least work that any such program has."""
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in DEFAULT_PRUNED]
        for name in files:
            if name.endswith((".json", ".md")):
                data = Path(directory, name).read_bytes()
                if name.endswith(".json"):
                    json.loads(data)
