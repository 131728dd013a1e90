"""A growing file, and what its lines come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from agentwatch.background import let_others_work
from agentwatch.sources.sessions.tail import Line, Tail, words_of_refusal


class Fold(Protocol):
    """What the lines of a file come to: it depends on these alone, however they came."""

    def fold(self, stretch: Line) -> None:
        """Take in a line, or several that follow one another. Never raises for what stands in them."""


F = TypeVar("F", bound=Fold)


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

    def read(self, budget: int) -> bool:
        """Read on, about so many bytes; whether there was anything new. More may be left, as `tail.behind` says."""
        try:
            look = self.tail.read(budget)
        except OSError as error:
            self.is_stuck, self.refusal = True, words_of_refusal(error)
            return False
        self.is_stuck, self.refusal = False, ""
        if look.restarted:
            self.fold = self._make()
        for stretch in look.stretches:
            self.fold.fold(stretch)
            let_others_work()
        return look.restarted or bool(look.stretches)
