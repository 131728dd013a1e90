"""Keys that are typed ahead: each goes to the widget that the key before it has opened, or focused.

A terminal hands over several keys in one read if they were typed fast, pasted, or sent over a slow line. The app takes
one after another, and waits until each has done its work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from textual import events
from textual.dom import DOMNode
from textual.screen import Screen
from textual.timer import Timer

from agentwatch.app.once import once

Typed = events.Key | events.Paste

ARMING_SECONDS: Final = 0.6
"""How long a dialog is open before its key counts: keys that were meant for the screen below decide nothing."""
_PATIENCE: Final = 1.0
"""Seconds after which a key is no longer waited for: the widget that was to handle it may have gone."""


async def settle(widget: DOMNode) -> None:
    """Wait until a widget, and all above it, have handled all messages that they have by now."""
    for node in widget.ancestors_with_self:
        done = asyncio.Event()
        if node.is_running and node.call_later(done.set):
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), _PATIENCE)


class TypedOn:
    """Keys that are typed on behind one that was to open something and does not: until there is a pause, they are for
    nobody."""

    def __init__(self) -> None:
        self._refused_at: float | None = None

    def refuse(self, at: float) -> None:
        """Something that was to open does not (seconds of the clock that nobody sets)."""
        self._refused_at = at

    def is_for_nobody(self, typed: Typed) -> bool:
        """Whether a key is such a one."""
        if self._refused_at is None:
            return False
        leaves = isinstance(typed, events.Key) and (typed.key == "escape" or typed.key.startswith("ctrl+"))
        is_over = leaves or typed.time >= self._refused_at + ARMING_SECONDS
        self._refused_at = None if is_over else max(self._refused_at, typed.time)
        return not is_over


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
