"""The apps that show a recording or the demo: the usual screens with a bar at the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from rich.style import Style
from textual import actions
from textual.actions import ActionParseResult
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from agentwatch.app.actions import COMMANDS, ActionSpec, Home, action_name, bindings, commands_of
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, join_ends, width_of
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.sources.playback import Playback

_REPLAY_ACTIONS = {action_name(one.action) for one in COMMANDS.values() if Home.REPLAY in one.homes}
_WORKSPACE_ACTIONS = {action_name(one.action) for one in COMMANDS.values() if one.needs_workspace}
_REVERSED = Style(reverse=True)


class DemoBar(LineWidget):
    """The bar of the demo, which suggests something to try."""

    period = 0.5

    def __init__(self, tree: Tree, is_over: Callable[[], bool]):
        super().__init__()
        self._tree = tree
        self._is_over = is_over

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:  # noqa: ARG002 - longer lines are cut anyway
        words = "Agents build the checkout of a shop. Soon one of them will need you."
        if self._tree.totals.needs_operator:
            key = commands_of(self.app)["needs.next"].key_label
            words = f"Try it: {key} goes to a child that needs you, the keys below decide. All of it is temporary."
        elif self._is_over():
            words = "The demo is over: nothing more happens by itself."
        return [[Part(" DEMO ", palette.needs_you + _REVERSED), Part(f"  {words}")]]


class ReplayBar(LineWidget):
    """The bar of a recording: the position and the speed of the playback, and the keys that change them."""

    period = 0.1

    def __init__(self, playback: Playback):
        super().__init__()
        self._playback = playback

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        position = self._playback.position
        count, moment = f"{position.count:,}", datetime.fromtimestamp(position.at, UTC)
        at_rest = "■ at the end" if position.number == position.count else "‖ paused"
        speed = f"{position.speed:.3g}×" if position.speed < 1000 else f"{position.speed:.0f}×"
        parts = [
            Part(" REPLAY ", palette.needs_you + _REVERSED),
            # Each state has the same width, so that the parts to the right do not jump.
            Part(f" {'▶ playing' if position.playing else at_rest:<12}", palette.accent),
            Part(f" {speed:>5}"),
            Part(f"  {moment:{'%Y-%m-%d ' if width >= 72 else ''}%H:%M:%S}Z"),
            Part(f"  {position.number:>{len(count)},} of {count}"),
        ]
        keys: Parts = []
        for command in (one for one in commands_of(self.app).values() if Home.REPLAY in one.homes):
            words = "pause" if command.id == "replay.play" and position.playing else command.words
            click = f"app.{command.action}"
            keys += [Part(f" {command.key_label}", palette.strong, click), Part(f" {words} ", palette.muted, click)]
        while keys and width_of(parts + keys) >= width:
            del keys[-2:]
        return [join_ends(parts, keys, width)]


class _PlayedApp(AgentwatchApp):
    is_played = True
    make_bar: Callable[[], DemoBar | ReplayBar]  # makes the bar at the top
    pause_play: Callable[[bool], None] | None = None

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._add_bar)
        self._add_bar(self.screen)

    def _add_bar(self, screen: Screen[object]) -> None:
        """Add the bar to any screen except a dialog. In the demo, pause the play while a dialog is open."""
        is_modal = isinstance(screen, ModalScreen)
        if self.pause_play is not None:
            self.pause_play(is_modal)
        if not is_modal and not screen.query("DemoBar, ReplayBar"):
            bar = self.make_bar()
            screen.mount(bar, before=0)
            bar.set_interval(bar.period, bar.redraw)


class DemoApp(_PlayedApp):
    """Shows the monitor of a demo.

    `pause_play` is called with True when a dialog opens, and with False when the dialog closes. `is_over` tells
    whether the demo has ended.
    """

    def __init__(self, monitor: Monitor, pause_play: Callable[[bool], None], is_over: Callable[[], bool]):
        super().__init__(monitor)
        self.pause_play = pause_play
        self.make_bar = lambda: DemoBar(monitor.tree, is_over)


class ReplayApp(_PlayedApp):
    """Shows a recording. Commands that need a workspace are refused."""

    BINDINGS = bindings(Home.REPLAY)

    def __init__(self, monitor: Monitor, playback: Playback):
        super().__init__(monitor, playback.clock)
        self.playback = playback
        self.make_bar = lambda: ReplayBar(playback)
        # Nobody is notified of questions in a recording.
        self.notifier = None
        self._keys = {key for one in self.commands.values() if Home.REPLAY in one.homes for key in one.keys}

    # Commands

    def has_command(self, command: ActionSpec) -> bool:
        """Return whether a replay has a command. It must need no workspace, and the replay must leave it a key."""
        return not command.needs_workspace and (Home.REPLAY in command.homes or not self._keys.issuperset(command.keys))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        name = action_name(action)
        if name in _REPLAY_ACTIONS:
            # In a text field, the keys of the replay are characters.
            return not isinstance(self.focused, Input)
        refused = {action_name(one.action) for one in self.commands.values() if not self.has_command(one)}
        return name not in refused and super().check_action(action, parameters)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, but refuse an action that needs a workspace."""
        _, name, _ = actions.parse(action) if isinstance(action, str) else action
        if name in _WORKSPACE_ACTIONS:
            self.notify("This is a recording: you cannot act on it.", markup=False)
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def action_play(self) -> None:
        self.playback.toggle_playing()

    def action_step(self, by: int) -> None:
        self.playback.step(by)

    def action_change_speed(self, factor: float) -> None:
        self.playback.change_speed(factor)

    def action_rewind(self) -> None:
        self.playback.seek(1)

    def action_wind(self) -> None:
        self.playback.seek(self.playback.position.count)
