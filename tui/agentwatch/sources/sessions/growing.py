"""A file of lines that is still being written, and what they come to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from agentwatch.sources.sessions.reader import Progress
from agentwatch.sources.sessions.tail import Line, Tail


class Fold(Protocol):
    """What the lines of a file come to: it depends on these alone, however they came."""

    def fold(self, stretch: Line) -> None:
        """Take in a line, or several that follow one another. Never raises for what stands in them."""


F = TypeVar("F", bound=Fold)

Stamp = tuple[int, int, int, int]


def stamp_of(status: os.stat_result) -> Stamp:
    """What tells that a file has changed: its ctime does so, also when reading is allowed again."""
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


class Growing(Generic[F]):
    """Follows one file. `make` gives what no line comes to: at first, and once it is another file."""

    def __init__(self, tail: Tail, make: Callable[[], F]) -> None:
        self.tail = tail
        self.fold = make()
        self.refusal = ""
        """Why it cannot be read, "" where it can be or is not there."""
        self.is_stuck = False
        """The last reading failed: there is nothing to be had before it changes."""
        self._make = make

    @property
    def path(self) -> Path:
        return self.tail.path

    @property
    def progress(self) -> Progress:
        """In bytes; what cannot be read is not waited for."""
        done = self.tail.position
        return Progress(done, done if self.is_stuck else self.tail.size)

    def read(self, budget: int) -> bool:
        """Read on, about so many bytes; whether there was anything new. More may be left, as `tail.behind` says."""
        try:
            look = self.tail.read(budget)
        except OSError as error:
            self.is_stuck = True
            self.refusal = "" if isinstance(error, FileNotFoundError) else error.strerror or "unreadable"
            return False
        self.is_stuck, self.refusal = False, ""
        if look.restarted:
            self.fold = self._make()
        for stretch in look.stretches:
            self.fold.fold(stretch)
        return look.restarted or bool(look.stretches)
