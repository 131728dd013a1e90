"""What takes time to come by, such as the texts of documents: made in threads, and kept for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Final, TypeVar, cast

T = TypeVar("T")

KEPT: Final = 16
"""Values that are kept: moving up and down between a few tasks reads nothing twice."""


class Shelf:
    """Values by key. `run` starts a coroutine on the event loop, `arrived` is called when a value has come.

    Everything but what makes a value runs on the event loop.
    """

    def __init__(self, run: Callable[[Coroutine[None, None, None]], object], arrived: Callable[[], None]) -> None:
        self._run = run
        self._arrived = arrived
        self._made: OrderedDict[Hashable, object] = OrderedDict()
        self._making: set[Hashable] = set()
        self._asked: set[Hashable] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether something that was asked for since `begin` is still being made."""
        return not self._making.isdisjoint(self._asked)

    def begin(self, *, anew: bool) -> None:
        """Something is about to be written. `anew`: what was not found before is looked for again."""
        self._asked.clear()
        if anew:
            for key in [key for key, value in self._made.items() if not value]:
                del self._made[key]

    def later(self, key: Hashable, make: Callable[[], T]) -> T | None:
        """The value that `make` returns, None as long as a thread is making it. False: what it needs was not found."""
        self._asked.add(key)
        if key in self._made:
            self._made.move_to_end(key)
            return cast("T", self._made[key])
        if key not in self._making:
            self._making.add(key)
            self._run(self._make(key, make))
        return None

    async def _make(self, key: Hashable, make: Callable[[], object]) -> None:
        try:
            self._made[key] = await asyncio.to_thread(make)
        finally:
            self._making.discard(key)
        # What is on the screen stays, however much it is: it would be asked for again at once.
        for other in list(self._made)[: max(len(self._made) - KEPT, 0)]:
            if other not in self._asked:
                del self._made[other]
        if key in self._asked and not self.is_waiting:
            self._arrived()
