"""What carries messages between a screen and a relay, and nothing else: it may lose, double, delay and reorder them.

Everything here is called from threads. A link connects again by itself, each time later, and says why it is down.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds between two attempts to connect."""

Take = Callable[[bytes], None]
"""What is called with every message, in a thread of the link."""


class LinkState(NamedTuple):
    """Whether a link is up. `words` say in a plain sentence why it is not, and what to do; they may quote foreign text.
    `fatal`: trying again does not help, and is not tried."""

    up: bool
    words: str = ""
    fatal: bool = False


Change = Callable[[LinkState], None]


class Link(ABC):
    """The end of a screen, to one host. With `keeps`, it gives a screen that comes later what was told before."""

    keeps: ClassVar[bool] = False
    screen: str = ""
    """The random id by which a relay speaks to this screen. Whoever uses the link gives it one, if it has none."""

    @abstractmethod
    def start(self, take: Take, change: Change) -> None:
        """Connect, and stay so. `take` is called with every message; `change` with every other state, each time that
        the link is up again, too. Both in threads of the link, one call at a time."""

    @abstractmethod
    def send(self, message: bytes, *, keep: bool = False) -> None:
        """Send a message to the relay. Any thread may call it. It never blocks, and drops what cannot be sent now: who
        needs it sends it again. `keep`: where messages are kept, until the relay has done what it asks for."""

    @abstractmethod
    def stop(self) -> None:
        """End within a second. Nothing is called afterwards."""


class RelayEnd(ABC):
    """The end of a relay, to whatever screens there are.

    With `by_key`, it keeps messages for screens that come later, the last ones of each key: so what is observed comes
    with the entries of one subject in each message.
    """

    by_key: ClassVar[bool] = False

    @abstractmethod
    def start(self, take: Take, change: Change) -> None:
        """Connect, and stay so, as in `Link`. Where all screens are gone for good, the state is fatal.

        `take` returns when all is done that a message asks for, and raises where that could not be done: for whom it
        matters, that is the receipt.
        """

    @abstractmethod
    def send(self, message: bytes, key: str = "", *, keep: bool = False, to: str = "") -> None:
        """Send a message to all screens, or only to the one with the id `to`. Any thread may call it. It never blocks,
        and may drop.

        For what keeps messages: `keep` says that a screen that comes later needs it, `key` what it is about.
        """

    @abstractmethod
    def stop(self) -> None:
        """End within a second, with what was sent. Nothing is called afterwards."""


class Pauses:
    """How long to wait before the next attempt: twice as long each time, and never in step with others."""

    def __init__(self, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def again(self) -> float:
        """Seconds to wait now."""
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return pause * random.uniform(0.75, 1.25)  # noqa: S311  not for secrets

    def reset(self) -> None:
        """It has worked: the next failure is a first one again."""
        self._next = self._first
