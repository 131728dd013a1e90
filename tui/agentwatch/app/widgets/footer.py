"""The line at the bottom: what the keys do where the operator is, read from the table of actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Final

from agentwatch.app.actions import ActionSpec, Home, Place, command_of, commands_of, key_label
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of

_ON_SCREEN: Final = (Home.MAIN, Home.PAGE, Home.PANE, Home.INSPECT, Home.TIMELINE, Home.DECIDE)
_NAMESPACES: Final = {Home.APP: "app."} | dict.fromkeys(_ON_SCREEN, "screen.")
_LOOKING: Final = (Place.PAGE, Place.INSPECT, Place.TIMELINE)
"""Where the words of what can be decided, which the tree has, give way to the keys of what is looked at."""
_ROOMY: Final = 100
"""Cells from which the palette is named, too: in fewer they are for what the keys do here."""


class Footer(LineWidget):
    """The keys of a place, in one line that drops what there is no room for; Textual's own scrolls.

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
        self._place, self._is_useless, self._is_on = place, is_useless, is_on
        self._why_not, self._refused = why_not, refused

    def show_place(self, place: Place) -> None:
        """Say what the keys do there."""
        self._place = place
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        commands = [
            command
            for command in commands_of(self.app)
            if self._place in command.footer
            and not self._is_useless(command.id)
            and self.app.check_action(command.action, ())
        ]
        why_not = {command.id: self._why_not(command.id) for command in commands}
        tail: Parts = []
        if (help_keys := command_of(self.app, "help")) in commands:
            commands.remove(help_keys)
            also = (help_keys, command_of(self.app, "palette")) if width >= _ROOMY else (help_keys,)
            tail = [part for command in also for part in self._hint(command, None, palette)]
        hints = [self._hint(command, why_not[command.id], palette) for command in commands]
        if refused := self._refused():
            words = [Part(f" ✗ not yet: {refused} ", palette.needs)]
            return [apart([*words, *_fitting(hints, width - 1 - width_of(words))], [], width)]
        room = width - width_of(tail) - 1
        spelled = [_spelled(command, palette) or hint for command, hint in zip(commands, hints, strict=True)]
        parts = next((list(chain(*ways)) for ways in (spelled, hints) if width_of(chain(*ways)) <= room), None)
        if parts is None:
            parts = self._cut(commands, hints, why_not, room, palette)
        return [apart(parts, tail, width - 1)]

    def _cut(
        self,
        commands: Sequence[ActionSpec],
        hints: Sequence[Parts],
        why_not: dict[str, str | None],
        room: int,
        palette: Palette,
    ) -> Parts:
        """The hints that there is room for. What can be decided is among them: what is refused gives way to it."""
        both = list(zip(commands, hints, strict=True))
        possible = [(command, hint) for command, hint in both if why_not[command.id] is None]
        for some in (both, possible):
            fitting = _fitting([hint for _, hint in some], room)
            decides = [
                hint for command, hint in some if command.id.startswith("decide.") and why_not[command.id] is None
            ]
            is_told = all(part in fitting for hint in decides for part in hint)
            if is_told and (self._place not in _LOOKING or len(decides) < 2):
                return fitting
        # No room for their words: their keys alone.
        deciding = [command for command, _ in possible if command.id.startswith("decide.")]
        keys = " ".join(command.key_label for command in deciding)
        first = [Part(f" {keys}", palette.strong), Part(" decide ", palette.muted)]
        return _fitting([first, *(hint for command, hint in possible if command not in deciding)], room)

    def _hint(self, command: ActionSpec, why_not: str | None, palette: Palette) -> Parts:
        namespace = next((_NAMESPACES[home] for home in command.homes if home in _NAMESPACES), "focused.")
        action = "" if command.is_numbered or "by_key" in command.flags else namespace + command.action
        key_style, style = palette.strong, palette.muted
        if why_not is not None:
            key_style = style = palette.line
        elif self._is_on(command.id):
            key_style = style = palette.accent
        words = command.words_at(self._place)
        return [Part(f" {command.key_label}", key_style, action), Part(f" {words} ", style, action)]


def _spelled(command: ActionSpec, palette: Palette) -> Parts:
    """Of keys that decide otherwise each with its own words."""
    if command.id != "dialog.instead":
        return []
    each = command.tooltip.rstrip(".").partition(": ")[2].split(", ")
    both = zip(command.keys.split(" "), each, strict=True)
    return [
        part
        for key, words in both
        for part in (Part(f" {key_label(key)}", palette.strong), Part(f" {words} ", palette.muted))
    ]


def _fitting(hints: Sequence[Parts], room: int) -> Parts:
    """As many of the first ones as there is room for."""
    return list(chain(*hints[: sum(width <= room for width in accumulate(map(width_of, hints)))]))
