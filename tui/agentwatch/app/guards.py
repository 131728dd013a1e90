"""Guards against keys and clicks that nobody meant, and a timer that never fails to go off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.timer import Timer

ARMING_SECONDS: Final = 0.6
"""How long a dialog is open before its key counts: keys that were meant for the screen below decide nothing."""


def leave(screen: Screen[ScreenResultType], result: ScreenResultType | None = None) -> None:
    """Dismiss a screen that is on top. Any other was left before, or Textual would dismiss the one above it."""
    if screen.is_active:
        screen.dismiss(result)


def once(pump: MessagePump, seconds: float, callback: Callable[[], object]) -> Timer:
    """Call it after so many seconds, however busy the machine is."""
    timer = pump.set_timer(seconds, cast("Callable[[], None]", callback))
    # A timer of Textual leaves out what it is late for, so one that goes off once may never do. There is no public way
    # to ask for another: `set_timer` does not hand `skip` on.
    timer._skip = False  # noqa: SLF001
    return timer


class Arming:
    """The moment in which the key of a dialog does not count yet. `over` is called at its end.

    It begins when the dialog is seen: a slow machine may take longer to draw it.
    """

    def __init__(self, screen: Screen[Any], steady: Callable[[], float], over: Callable[[], object]) -> None:
        self._screen, self._steady, self._over = screen, steady, over
        self._at = float("inf")
        self._timer: Timer | None = None

    @property
    def is_over(self) -> bool:
        """Whether the dialog has been open, and its key left alone, for long enough."""
        return self._steady() >= self._at

    def begin(self) -> None:
        """The moment begins, or begins again."""
        self._at = self._steady() + ARMING_SECONDS
        if self._timer is not None:
            self._timer.stop()
        # Timers of Textual may go off half a millisecond early.
        self._timer = once(self._screen, ARMING_SECONDS + 0.001, self._over)
