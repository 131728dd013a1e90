"""A host whose clock is wrong: `python wrong_clock.py FILE WORD...` runs `agentwatch WORD...` with a time of day that
is ahead by the seconds in the file, which may change meanwhile. Clocks that measure spans of time are right."""

from __future__ import annotations

import datetime
import runpy
import shlex
import sys
import time
from pathlib import Path


class WrongClock:
    """A clock that is ahead by the seconds in a file."""

    def __init__(self, file: Path):
        self.file = file
        self.set(0)

    @property
    def command(self) -> list[str]:
        """Return the command to start instead of agentwatch."""
        return [sys.executable, __file__, str(self.file)]

    def install(self, directory: Path) -> Path:
        """Make a directory with an `agentwatch` that goes by this clock."""
        directory.mkdir(parents=True)
        script = directory / "agentwatch"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(self.command)} "$@"\n')
        script.chmod(0o755)
        return directory

    def set(self, ahead: float):
        beside = self.file.with_suffix(".new")
        beside.write_text(str(ahead))
        beside.rename(self.file)


def run(file: Path, words: list[str]):
    right, right_ns = time.time, time.time_ns

    def ahead() -> float:
        return float(file.read_text())

    class Datetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Datetime:
            return cls.fromtimestamp(time.time(), tz)

    time.time = lambda: right() + ahead()
    time.time_ns = lambda: right_ns() + int(ahead() * 1e9)
    datetime.datetime = Datetime  # type: ignore[misc]
    sys.argv = ["agentwatch", *words]
    runpy.run_module("agentwatch", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # Imports find the installed package instead of a file beside this one.
    del sys.path[0]
    run(Path(sys.argv[1]), sys.argv[2:])
