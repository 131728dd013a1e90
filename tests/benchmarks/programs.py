"""Programs in a terminal that is only read, what they take of the machine (Linux), and workspaces to watch."""

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
"""Writes a line for every file that was written and closed, or moved here. No program that says more can be faster."""


class Program(Terminal):
    """A command in a pty, with nothing between it and the figures: no emulator makes a screen of what it writes."""

    def __enter__(self) -> Program:
        super().__enter__()
        self._stream.feed = lambda data: None  # type: ignore[method-assign]
        return self

    def idle(self, seconds: float):
        """Read what it writes for so long."""
        end = time.perf_counter() + seconds
        while self._read(max(end - time.perf_counter(), 0.0)) or time.perf_counter() < end:
            pass

    def settle(self) -> Program:
        """Wait until it does nothing but wait, for two seconds."""
        before = float("-inf")
        while self.busy - before >= 0.1:
            before = self.busy
            self.idle(2.0)
        return self

    @property
    def busy(self) -> float:
        """Seconds of processor that it has taken, to the microsecond."""
        return time.clock_gettime(~self.pid << 3 | 2)  # the clock of another process, as clock_getcpuclockid has it

    @property
    def memory(self) -> float:
        """Megabytes of memory that it holds."""
        lines = Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def program(*words: str) -> Program:
    return Program(words, columns=140, lines=40)


def watching(root: Path) -> Program:
    """This package's command, at a workspace."""
    return program(*agentwatch(root))


def empty_app() -> Program:
    """An app of Textual that shows two words."""
    return program(sys.executable, "-c", _EMPTY_APP)


def bare_reader(directory: Path) -> Program:
    """A reader of the events of one directory."""
    return program(sys.executable, "-c", _BARE_READER, os.fspath(directory))


# Workspaces


def result(number: int, mode: str = "code") -> str:
    """The return of a task of `write`; `mode` is what a row calls its agent."""
    state = "ERROR" if number % 300 == 0 else "SUCCESS"
    made = f"- group{number // 100}/t{number}/return.md"  # a claim that is true
    text = returned(
        state, f"t{number}", f"Did what was asked for in t{number}.", "retry_recommended: no\n", created=made
    )
    return text.replace("mode_reported: code", f"mode_reported: {mode}")


def place(root: Path, number: int) -> Path:
    """Where `write` puts a task."""
    return root / f"group{number // 100}" / f"t{number}"


def write(root: Path, tasks: int, *, age: float = 0.0):
    """A workspace on disk: a directory a task with a packet and a return, `age` seconds old; one of 300 has failed."""
    at = time.time() - age
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "api.md").write_text("# Design\n", "utf-8")
    for number in range(tasks):
        directory = place(root, number)
        directory.mkdir(parents=True)
        # It names no agent: a row calls it as the return does.
        given = packet(f"t{number}", objective=f"Do part {number}.")
        for name, text in (("handoff.json", given), ("return.md", result(number))):
            (directory / name).write_text(text, "utf-8")
            if age:
                os.utime(directory / name, (at, at))


def walk_and_load(root: Path):
    """Walk a workspace, read its files, and parse what is JSON: what nobody can do without."""
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in DEFAULT_PRUNED]
        for name in files:
            if name.endswith((".json", ".md")):
                data = Path(directory, name).read_bytes()
                if name.endswith(".json"):
                    json.loads(data)
