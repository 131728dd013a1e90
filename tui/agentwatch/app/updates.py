"""The monitor's updates on their way to the screen: as often as the eye can follow, and when the first scan is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, ScreenStackError
from textual.timer import Timer

from agentwatch.app.guards import once

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_REFRESH: Final = 1 / 30
"""Seconds between two refreshes while updates keep coming; the first after a pause is shown at once."""
_REST: Final = 4.0
_LONGEST: Final = 1 / 4
"""How often as long as a refresh took is waited for the next, and how long at most: in a storm, and on a busy machine,
drawing takes a fifth of the time, and keys do not wait for it."""
_SETTLED: Final = 0.3
"""Seconds without an update, or at most ten times as many, after which the first scan counts as over."""


class Updates:
    """Runs a monitor. `show` is called with the ids of all tasks that have changed since it was called last.

    `settled` is called once, when the first scan is over.
    """

    def __init__(
        self, app: App[Any], monitor: Monitor, show: Callable[[frozenset[str]], None], settled: Callable[[], None]
    ) -> None:
        self._app, self._monitor, self._show, self._when_settled = app, monitor, show, settled
        self._changed: set[str] = set()
        self._shown_at = self._took = 0.0
        """When the last refresh began, and the seconds from it to its picture."""
        self._showing: Timer | None = None
        self._settling: Timer | None = None
        self._first_at: float | None = None
        self.is_settled = False
        """Whether the first scan is over: from now on nothing folds by itself."""

    @property
    def is_idle(self) -> bool:
        """Whether all that has come is shown."""
        return self._showing is None and not self._changed

    async def run(self) -> None:
        """Run the monitor, to the end of the app."""
        async for changed in self._monitor.updates():
            self._changed |= changed
            if self._showing is None:
                pause = self._shown_at + min(max(self._took * _REST, _REFRESH), _LONGEST) - time.monotonic()
                if pause <= 0:
                    self._show_now()
                else:
                    self._showing = once(self._app, pause, self._show_now)
            self._wait_for_settling()

    def _show_now(self) -> None:
        self._showing = None
        self._shown_at = time.monotonic()
        changed, self._changed = frozenset(self._changed), set()
        self._show(changed)
        with suppress(ScreenStackError):  # the app has ended
            self._app.screen.call_after_refresh(self._note_drawn, self._shown_at)

    def _note_drawn(self, shown_at: float) -> None:
        self._took = time.monotonic() - shown_at

    def _wait_for_settling(self) -> None:
        if self.is_settled or self._monitor.health.mode == "starting":
            return
        now = time.monotonic()
        self._first_at = self._first_at or now
        if self._settling is not None:
            self._settling.stop()
        pause = max(min(_SETTLED, self._first_at + 10 * _SETTLED - now), 0.001)
        self._settling = once(self._app, pause, self.settle)

    def settle(self) -> None:
        """The first scan is over."""
        if self._settling is not None:
            self._settling.stop()
        if not self.is_settled:
            self.is_settled = True
            self._show_now()
            self._when_settled()
