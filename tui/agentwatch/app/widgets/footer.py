"""The line at the bottom: what the keys do where the operator is, made from the command definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from agentwatch.app.actions import COMMANDS, Command, Home, Place, footer_commands, key_label
from agentwatch.app.decision_words import ACTIONS
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of

_ON_SCREEN: Final = (Home.MAIN, Home.PAGE, Home.PANE, Home.INSPECT, Home.TIMELINE, Home.DECIDE)
_NAMESPACES: Final = {Home.APP: "app."} | dict.fromkeys(_ON_SCREEN, "screen.")
_PALETTE: Final = next(command for command in COMMANDS if command.id == "palette")
_HELP: Final = next(command for command in COMMANDS if command.id == "help")
_LOOKING: Final = (Place.PAGE, Place.INSPECT, Place.TIMELINE)
"""Where the words of what can be decided, which the tree has, give way to the keys of what is looked at."""
_ROOMY: Final = 100
"""Cells from which the palette is named, too: in fewer they are for what the keys do here."""


class Footer(LineWidget):
    """The keys of a place.

    By command id, `is_on` says what is on now, `is_useless` what would do nothing now, and `why_not` why a command is
    refused now, which is shown all the same: one that is missing would be looked for.
    """

    DEFAULT_CSS = """
    Footer { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(
        self,
        place: Place,
        is_on: Callable[[str], bool] = lambda _command_id: False,
        is_useless: Callable[[str], bool] = lambda _command_id: False,
        why_not: Callable[[str], str | None] = lambda _command_id: None,
    ) -> None:
        super().__init__()
        self._why_not = why_not
        self._place = place
        self._is_on = is_on
        self._is_useless = is_useless

    def show_place(self, place: Place) -> None:
        """Say what the keys do there."""
        self._place = place
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        commands = [
            command
            for command in footer_commands(self._place)
            if not self._is_useless(command.id) and self.app.check_action(command.action, ())
        ]
        tail: Parts = []
        if _HELP in commands:
            commands.remove(_HELP)
            tail = self._hint(_HELP, palette)
            if width >= _ROOMY:
                tail += self._hint(_PALETTE, palette)
        room = width - width_of(tail) - 1
        parts = self._fitting(commands, room, palette)
        return [[*parts, Part(" " * max(room - width_of(parts), 0)), *tail]]

    def _fitting(self, commands: Sequence[Command], room: int, palette: Palette) -> Parts:
        """The hints that there is room for. What can be decided is among them: what is refused gives way to it."""
        for spelled in (True, False):
            hints = [self._hint(command, palette, spelled=spelled) for command in commands]
            if sum(width_of(hint) for hint in hints) <= room:
                return [part for hint in hints for part in hint]
        possible = [command for command in commands if self._why_not(command.id) is None]
        deciding = [command for command in possible if _decides(command)]
        for shown in (commands, possible):
            hints = [self._hint(command, palette) for command in shown]
            needed = [number for number, command in enumerate(shown) if command in deciding]
            count = _count_fitting(hints, room)
            if not needed or (needed[-1] < count and (self._place not in _LOOKING or len(needed) == 1)):
                return [part for hint in hints[:count] for part in hint]
        # No room for their words: their keys alone.
        keys = " ".join(command.key_label for command in deciding)
        hints = [[Part(f" {keys}", palette.strong), Part(" decide ", palette.muted)]]
        hints += [self._hint(command, palette) for command in possible if command not in deciding]
        return [part for hint in hints[: _count_fitting(hints, room)] for part in hint]

    def _hint(self, command: Command, palette: Palette, *, spelled: bool = False) -> Parts:
        """Key and words of a command; of numbered keys each with its own if they are `spelled`."""
        if spelled and command.each:
            pairs = zip(command.keys.split(" "), command.each, strict=True)
            return [
                part
                for key, words in pairs
                for part in (Part(f" {key_label(key)}", palette.strong), Part(f" {words} ", palette.muted))
            ]
        namespace = next((_NAMESPACES[home] for home in command.homes if home in _NAMESPACES), "focused.")
        action = namespace + command.action
        if command.is_numbered or command.by_key:
            action = ""
        on = self._is_on(command.id)
        why_not = self._why_not(command.id)
        tooltip = command.tooltip if why_not is None else f"Not now: {why_not}."
        key = palette.line if why_not is not None else palette.accent if on else palette.strong
        words = palette.line if why_not is not None else palette.accent if on else palette.muted
        return [
            Part(f" {command.key_label}", key, action, tooltip),
            Part(f" {command.words_at(self._place)} ", words, action, tooltip),
        ]


def _decides(command: Command) -> bool:
    return command.id in ACTIONS


def _count_fitting(hints: Sequence[Parts], room: int) -> int:
    for number, hint in enumerate(hints):
        room -= width_of(hint)
        if room < 0:
            return number
    return len(hints)
