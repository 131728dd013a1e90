"""The app on the demo: the same screens, with a line that says so and what to try. The play waits for dialogs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.screen import ModalScreen, Screen

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.widgets.demo_bar import DemoBar

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor


class DemoApp(AgentwatchApp):
    """Shows the monitor of a demo.

    `hold` is called with False when the first frame is there, with True when a dialog opens, and with False after it.
    """

    def __init__(self, monitor: Monitor, hold: Callable[[bool], None]) -> None:
        super().__init__(monitor)
        self._hold = hold

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._take_screen)
        self._add_bar(self.screen)

    def on_ready(self) -> None:
        self._hold(False)

    def _take_screen(self, screen: Screen[object]) -> None:
        is_dialog = isinstance(screen, ModalScreen)
        self._hold(is_dialog)
        # On every screen of its own: a modal one lets it shine through.
        if not is_dialog:
            self._add_bar(screen)

    def _add_bar(self, screen: Screen[object]) -> None:
        if not screen.query(DemoBar):
            screen.mount(DemoBar(self.monitor.tree), before=0)
