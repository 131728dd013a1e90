"""The app on a recording: the same screens, with a line that says so, and keys that steer the playback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from textual import actions
from textual.actions import ActionParseResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from agentwatch.app.actions import COMMANDS, REPLAY_ACTIONS, Command, Home, action_name, bindings
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.widgets.replay_bar import ReplayBar

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor
    from agentwatch.sources.playback import Playback

_KEYS: Final = frozenset(key for command in COMMANDS if Home.REPLAY in command.homes for key in command.keys.split(" "))
_ACTING: Final = frozenset(action_name(command.action) for command in COMMANDS if command.acts)
_WITHOUT_KEY: Final = frozenset(
    action_name(command.action)
    for command in COMMANDS
    if Home.REPLAY not in command.homes and _KEYS.issuperset(command.keys.split(" "))
)


class ReplayApp(AgentwatchApp):
    """Shows a monitor whose source is a playback. Nothing that acts on a workspace can be done here."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.REPLAY)

    def __init__(self, monitor: Monitor, playback: Playback) -> None:
        super().__init__(monitor, playback.clock)
        self.playback = playback

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._add_bar)
        self._add_bar(self.screen)

    def _add_bar(self, screen: Screen[object]) -> None:
        """On every screen of its own: a modal one lets it shine through."""
        if not isinstance(screen, ModalScreen) and not screen.query(ReplayBar):
            screen.mount(ReplayBar(self.playback), before=0)

    def announce(self, changed: frozenset[str]) -> None:
        """Nothing in a recording needs anybody."""

    # Commands

    def offers(self, command: Command) -> bool:
        return action_name(command.action) not in _ACTING | _WITHOUT_KEY

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        name = action_name(action)
        if name in REPLAY_ACTIONS:
            # In a text field the keys are characters.
            return not isinstance(self.focused, Input)
        return name not in _ACTING | _WITHOUT_KEY and super().check_action(action, parameters)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Refuse every action that acts on a workspace."""
        _, name, _ = actions.parse(action) if isinstance(action, str) else action
        if name in _ACTING:
            self.notify("This is a recording: there is nothing behind it to act on.", markup=False, timeout=4)
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def action_play(self) -> None:
        self.playback.play()
        self._show_position()

    def action_step(self, by: int) -> None:
        self.playback.step(by)
        self._show_position()

    def action_change_speed(self, factor: float) -> None:
        self.playback.change_speed(factor)
        self._show_position()

    def action_rewind(self) -> None:
        self.playback.rewind()
        self._show_position()

    def action_wind(self) -> None:
        self.playback.wind()
        self._show_position()

    def _show_position(self) -> None:
        for bar in self.screen.query(ReplayBar):
            bar.redraw()
