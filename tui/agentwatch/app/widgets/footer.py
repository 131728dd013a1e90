"""The line at the bottom: what the keys do where the operator is, made from the command definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Final

from agentwatch.app.actions import ActionSpec, Home, Place, command_of, commands_of, footer_commands, key_label
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of

_ON_SCREEN: Final = (Home.MAIN, Home.PAGE, Home.PANE, Home.INSPECT, Home.TIMELINE, Home.DECIDE)
_NAMESPACES: Final = {Home.APP: "app."} | dict.fromkeys(_ON_SCREEN, "screen.")
_DECIDES: Final = "decide."
"""How the ids of commands begin that decide."""
_LOOKING: Final = (Place.PAGE, Place.INSPECT, Place.TIMELINE)
"""Where the words of what can be decided, which the tree has, give way to the keys of what is looked at."""
_ROOMY: Final = 100
"""Cells from which the palette is named, too: in fewer they are for what the keys do here."""


class Footer(LineWidget):
    """The keys of a place.

    By command id, `is_on` says what is on now, `is_useless` what would do nothing now, and `why_not` why a command is
    refused now, which is shown all the same: one that is missing would be looked for. `refused` says what the key that
    was pressed last waits for, if it does: that stands before all keys.
    """

    def __init__(
        self,
        place: Place,
        is_useless: Callable[[str], bool],
        is_on: Callable[[str], bool] = lambda _command_id: False,
        why_not: Callable[[str], str | None] = lambda _command_id: None,
        refused: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__()
        self._refused = refused
        self._ask_why_not = why_not
        self._refusals: dict[str, str | None] = {}
        """What `why_not` says, while the line is made: for each way to fit it once."""
        self._place = place
        self._is_on = is_on
        self._is_useless = is_useless

    def show_place(self, place: Place) -> None:
        """Say what the keys do there."""
        self._place = place
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        self._refusals.clear()
        commands = [
            command
            for command in footer_commands(self._place, commands_of(self.app))
            if not self._is_useless(command.id) and self.app.check_action(command.action, ())
        ]
        tail: Parts = []
        if (wants_help := command_of(self.app, "help")) in commands:
            commands.remove(wants_help)
            tail = self._hint(wants_help, palette)
            if width >= _ROOMY:
                tail += self._hint(command_of(self.app, "palette"), palette)
        if refused := self._refused():
            words = [Part(f" ✗ not yet: {refused} ", palette.needs)]
            room = width - 1 - width_of(words)
            return [apart([*words, *chain(*_fitting([self._hint(one, palette) for one in commands], room))], [], width)]
        parts = self._fitting(commands, width - width_of(tail) - 1, palette)
        return [apart(parts, tail, width - 1)]

    def _why_not(self, command_id: str) -> str | None:
        if command_id not in self._refusals:
            self._refusals[command_id] = self._ask_why_not(command_id)
        return self._refusals[command_id]

    def _fitting(self, commands: Sequence[ActionSpec], room: int, palette: Palette) -> Parts:
        """The hints that there is room for. What can be decided is among them: what is refused gives way to it."""
        for spelled in (True, False):
            hints = [self._hint(command, palette, spelled=spelled) for command in commands]
            if width_of(chain(*hints)) <= room:
                return list(chain(*hints))
        possible = [command for command in commands if self._why_not(command.id) is None]
        deciding = [command for command in possible if command.id.startswith(_DECIDES)]
        for shown in (commands, possible):
            hints = [self._hint(command, palette) for command in shown]
            needed = [number for number, command in enumerate(shown) if command in deciding]
            fitting = _fitting(hints, room)
            if not needed or (needed[-1] < len(fitting) and (self._place not in _LOOKING or len(needed) == 1)):
                return list(chain(*fitting))
        # No room for their words: their keys alone.
        keys = " ".join(command.key_label for command in deciding)
        hints = [[Part(f" {keys}", palette.strong), Part(" decide ", palette.muted)]]
        hints += [self._hint(command, palette) for command in possible if command not in deciding]
        return list(chain(*_fitting(hints, room)))

    def _hint(self, command: ActionSpec, palette: Palette, *, spelled: bool = False) -> Parts:
        """Key and words of a command; of numbered keys each with its own if they are `spelled`."""
        if spelled and command.each:
            hint: Parts = []
            for key, words in zip(command.keys.split(" "), command.each, strict=True):
                hint += [Part(f" {key_label(key)}", palette.strong), Part(f" {words} ", palette.muted)]
            return hint
        namespace = next((_NAMESPACES[home] for home in command.homes if home in _NAMESPACES), "focused.")
        action = "" if command.is_numbered or command.by_key else namespace + command.action
        key_style, style, tooltip = palette.strong, palette.muted, command.tooltip
        if (why_not := self._why_not(command.id)) is not None:
            key_style = style = palette.line
            tooltip = f"Not now: {why_not}."
        elif self._is_on(command.id):
            key_style = style = palette.accent
        return [
            Part(f" {command.key_label}", key_style, action, tooltip),
            Part(f" {command.words_at(self._place)} ", style, action, tooltip),
        ]


def _fitting(hints: Sequence[Parts], room: int) -> Sequence[Parts]:
    """As many of the first ones as there is room for."""
    widths = accumulate(map(width_of, hints))
    return hints[: sum(width <= room for width in widths)]
