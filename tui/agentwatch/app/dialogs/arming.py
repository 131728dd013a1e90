"""When the key of a dialog begins to count: not before the operator could have read what it is about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from textual.screen import Screen
from textual.timer import Timer

ARMING_SECONDS: Final = 0.6
"""How long a dialog is open before its key decides: keys that were meant for the screen below decide nothing."""


class Arming:
    """The arming of one dialog. `steady` is a clock that nobody sets; `armed` is called when the key counts."""

    def __init__(self, screen: Screen[Any], steady: Callable[[], float], armed: Callable[[], None]) -> None:
        self._screen = screen
        self._steady = steady
        self._armed = armed
        self._armed_at = 0.0
        self._timer: Timer | None = None
        self.seen_at: float | None = None
        """When it was on the screen for the first time, by the clock of events; None as long as it was not."""

    @property
    def is_armed(self) -> bool:
        """Whether the dialog has been open, and its key left alone, for long enough."""
        return self._steady() >= self._armed_at

    def begin(self) -> None:
        """The moment begins again."""
        self._armed_at = self._steady() + ARMING_SECONDS
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_timer(ARMING_SECONDS, self._armed)

    def be_seen(self) -> None:
        """The dialog is on the screen."""
        self.seen_at = time.monotonic()
