"""What is done once, a while later."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from textual.message_pump import MessagePump
from textual.timer import Timer


def once(pump: MessagePump, seconds: float, callback: Callable[[], object]) -> Timer:
    """Call it after so many seconds, however busy the machine is.

    A timer of Textual leaves out what it is late for: one that goes off once never does where the system takes the
    processor away for as long while the timer begins.
    """
    timer = pump.set_timer(seconds, cast("Callable[[], None]", callback))
    # Nothing of Textual's own asks for this; it begins only when it next has the event loop.
    timer._skip = False  # noqa: SLF001
    return timer
