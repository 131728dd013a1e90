"""The monitor's updates on their way to the screen: as often as the eye can follow, and when the first scan is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, ScreenStackError
from textual.timer import Timer

from agentwatch.app.once import once

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_REFRESH: Final = 1 / 30
"""Seconds between two refreshes while updates keep coming; the first after a pause is shown at once."""

_REST: Final = 4.0
_LONGEST: Final = 1 / 4
"""How often as long as a refresh took is waited for the next, and how long at most: in a storm, and on a busy machine,
drawing takes a fifth of the time, and keys do not wait for it."""

_FIRST_REFRESH: Final = (1 / 10, 1 / 2)
"""The same during the first scan, which takes what processor there is: at first, and at most."""

_OF_PASSED: Final = 0.1
"""The part of the first scan so far that a refresh waits for: the longer it takes, the fewer of them."""

_PORTION: Final = 400
"""Tasks that are shown at once during the first scan: a key waits for no more of them."""

_SETTLED: Final = 0.3
"""Seconds without an update, or at most ten times as many, after which the first scan counts as over."""


class Updates:
    """Runs a monitor. `tell` is called with the ids of all tasks that have changed since it was called last.

    `settled` is called once, when the first scan is over.
    """

    def __init__(
        self, app: App[Any], monitor: Monitor, tell: Callable[[frozenset[str]], None], settled: Callable[[], None]
    ) -> None:
        self._app = app
        self._monitor = monitor
        self._tell = tell
        self._when_settled = settled
        self._changed: set[str] = set()
        self._told_at = 0.0
        self._began_at = 0.0
        self._took = 0.0
        """Seconds from the last refresh to its picture."""
        self._telling: Timer | None = None
        self._settling: Timer | None = None
        self._first_at: float | None = None
        self.is_settled = False
        """Whether the first scan is over: from now on nothing folds by itself."""

    async def run(self) -> None:
        """Run the monitor, to the end of the app."""
        self._began_at = time.monotonic()
        async for changed in self._monitor.updates():
            self._changed |= changed
            if self._telling is None:
                pause = self._told_at + self._pause - time.monotonic()
                if pause <= 0:
                    self._tell_now()
                else:
                    self._telling = once(self._app, pause, self._tell_now)
            self._wait_for_settling()

    @property
    def _pause(self) -> float:
        """Seconds between two refreshes now."""
        if self.is_settled:
            return min(max(self._took * _REST, _REFRESH), _LONGEST)
        least, most = _FIRST_REFRESH
        return min(max((time.monotonic() - self._began_at) * _OF_PASSED, least), most)

    def _tell_now(self) -> None:
        self._telling = None
        self._told_at = time.monotonic()
        changed = frozenset(islice(self._changed, None if self.is_settled else _PORTION))
        self._changed -= changed
        if self._changed:
            self._telling = once(self._app, _REFRESH, self._tell_now)
        self._tell(changed)
        with suppress(ScreenStackError):  # the app has ended
            self._app.screen.call_after_refresh(self._note_drawn, self._told_at)

    def _note_drawn(self, told_at: float) -> None:
        self._took = time.monotonic() - told_at

    def _wait_for_settling(self) -> None:
        if self.is_settled or self._monitor.health.mode == "starting":
            return
        now = time.monotonic()
        self._first_at = self._first_at or now
        if self._settling is not None:
            self._settling.stop()
        pause = max(min(_SETTLED, self._first_at + 10 * _SETTLED - now), 0.001)
        self._settling = once(self._app, pause, self._settle)

    def _settle(self) -> None:
        self.is_settled = True
        self._tell_now()
        self._when_settled()
