"""What stands on the screen before there is a monitor: to load all that a monitor needs takes longer than a frame."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from agentwatch.app.actions import Place
from agentwatch.app.widgets.cells import shown
from agentwatch.app.widgets.footer import Footer

if TYPE_CHECKING:
    from agentwatch.config import Settings
    from agentwatch.monitor import Monitor


class Opening(NamedTuple):
    """A monitor that is yet to be made, by `open` in a thread, and what is watched, as far as that is known."""

    settings: Settings
    title: str
    open: Callable[[], Monitor]


def opened(opening: Opening) -> Future[Monitor]:
    """Load the screen and its monitor, in a thread: it takes a tenth of a second, in which keys may be pressed. An
    operator who leaves meanwhile does not wait for it, so it may write nothing."""
    monitor: Future[Monitor] = Future()
    monitor.set_running_or_notify_cancel()

    def open_it() -> None:
        try:
            for name in ("notifying", "screens.main"):
                import_module(f"agentwatch.app.{name}")
            monitor.set_result(opening.open())
        except BaseException as error:  # noqa: BLE001  who waits for it raises it
            monitor.set_exception(error)

    Thread(target=open_it, name="agentwatch-opening", daemon=True).start()
    return monitor


class OpeningScreen(Screen[None]):
    """The header and the footer of a main screen that has just started."""

    DEFAULT_CSS = """
    OpeningScreen { layout: vertical; background: $background; }
    OpeningScreen #title { height: 1; text-wrap: nowrap; }
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        title = (shown(self._title), "$text-muted")
        yield Static(Content.assemble((" agentwatch  ", "bold"), title, ("   ○ starting", "$text-muted")), id="title")
        yield Container()
        # There is nothing yet to give notice of.
        footer = Footer(Place.EMPTY, is_useless=lambda command_id: command_id == "notices")
        # As what is typed waits for the main screen, nothing is clicked, either.
        footer.disabled = True
        yield footer
