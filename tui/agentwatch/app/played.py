"""The app on what is played, a recording or the demo: the same screens, with a line on each that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from textual import actions, events
from textual.actions import ActionParseResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from agentwatch.app.actions import COMMANDS, ActionSpec, Home, action_name, bindings
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.widgets.play_bars import DemoBar, ReplayBar

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor
    from agentwatch.sources.playback import Playback

_OUR_ACTIONS: Final = frozenset(action_name(command.action) for command in COMMANDS if Home.REPLAY in command.homes)
_ACTING: Final = frozenset(action_name(command.action) for command in COMMANDS if command.acts)


class _PlayedApp(AgentwatchApp):
    def new_bar(self) -> DemoBar | ReplayBar:
        """The line that says what is played."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._take_screen)
        _PlayedApp._take_screen(self, self.screen)

    def _take_screen(self, screen: Screen[object]) -> None:
        """The line stands on every screen of its own: a modal one lets it shine through."""
        if not isinstance(screen, ModalScreen) and not screen.query("DemoBar, ReplayBar"):
            screen.mount(self.new_bar(), before=0)


class DemoApp(_PlayedApp):
    """Shows the monitor of a demo. The play waits for dialogs.

    `hold` is called with False when the first frame is there, with True when a dialog opens, and with False after it;
    `stay` at each key. `starts_over_in` gives the seconds until the play starts over: see `DemoBar`.
    """

    def __init__(
        self,
        monitor: Monitor,
        hold: Callable[[bool], None],
        stay: Callable[[], None] = lambda: None,
        starts_over_in: Callable[[], float | None] = lambda: None,
    ) -> None:
        super().__init__(monitor)
        self._hold = hold
        self._stay = stay
        self._starts_over_in = starts_over_in

    def new_bar(self) -> DemoBar:
        return DemoBar(self.monitor.tree, self._starts_over_in)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.MouseDown):
            self._stay()
        await super().on_event(event)

    def on_ready(self) -> None:
        self._hold(False)

    def _take_screen(self, screen: Screen[object]) -> None:
        self._hold(isinstance(screen, ModalScreen))
        super()._take_screen(screen)


class ReplayApp(_PlayedApp):
    """Shows a monitor whose source is a playback. Nothing that acts on a workspace can be done here."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.REPLAY)

    def __init__(self, monitor: Monitor, playback: Playback) -> None:
        super().__init__(monitor, playback.clock)
        self.playback = playback
        ours = {key for command in self.commands if Home.REPLAY in command.homes for key in command.keys.split(" ")}
        self._refused = _ACTING | {
            action_name(command.action)
            for command in self.commands
            if Home.REPLAY not in command.homes and ours.issuperset(command.keys.split(" "))
        }
        """What a replay cannot do: what acts, and what has lost its keys to those of the replay."""

    def new_bar(self) -> ReplayBar:
        return ReplayBar(self.playback)

    def announce(self, changed: frozenset[str]) -> None:
        """Nothing in a recording needs anybody."""

    # Commands

    def offers(self, command: ActionSpec) -> bool:
        return action_name(command.action) not in self._refused

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        name = action_name(action)
        if name in _OUR_ACTIONS:
            # In a text field the keys are characters.
            return not isinstance(self.focused, Input)
        return name not in self._refused and super().check_action(action, parameters)

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
        self.playback.seek(1)
        self._show_position()

    def action_wind(self) -> None:
        self.playback.seek(self.playback.position.count)
        self._show_position()

    def _show_position(self) -> None:
        for bar in self.screen.query(ReplayBar):
            bar.redraw()
