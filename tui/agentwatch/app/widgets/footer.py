"""The line at the bottom: what the keys do where the operator is, read from the table of actions."""

from collections.abc import Callable, Iterable
from itertools import accumulate, chain

from textual.binding import Binding

from agentwatch.app.actions import ActionSpec, Place, commands_of
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of

# Where the words of what can be decided, which the tree has, give way to the keys of what is looked at.
_LOOKING = (Place.DETAILS, Place.INSPECT, Place.TIMELINE)
# Cells from which the palette is named, too, and numbered keys have a word each: in fewer they are for what the keys do
# here.
_ROOMY = 100


class Footer(LineWidget):
    """The keys of a place, in one line that drops what there is no room for; Textual's own scrolls.

    By command id, `is_on` says what is on now, `is_useless` what would do nothing now, and `why_not` why a command is
    refused now, which is shown all the same: one that is missing would be looked for.
    """

    def __init__(
        self,
        place: Place,
        is_useless: Callable[[str], bool],
        is_on: Callable[[str], bool] = lambda _command_id: False,
        why_not: Callable[[str], str | None] = lambda _command_id: None,
    ):
        super().__init__()
        self._place, self._is_useless, self._is_on = place, is_useless, is_on
        self._why_not = why_not

    def show_place(self, place: Place) -> None:
        """Say what the keys do there."""
        self._place = place
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        commands = {
            name: command
            for name, command in commands_of(self.app).items()
            if self._place in command.footer
            and not self._is_useless(name)
            and self.app.check_action(command.action, ())
        }
        refused = {name for name in commands if self._why_not(name) is not None}
        hints = {name: self._hint(command, palette, name in refused) for name, command in commands.items()}
        tail = hints.pop("help", [])
        if tail and width >= _ROOMY:
            tail += self._hint(commands_of(self.app)["palette"], palette)
        return [apart(self._fit(hints, refused, width - width_of(tail) - 1, palette), tail, width - 1)]

    def _fit(self, hints: dict[str, Parts], refused: set[str], room: int, palette: Palette) -> Parts:
        """The hints that there is room for. Possible decisions are among them: refused ones give way to them, and
        then its own words."""
        possible = {name: hint for name, hint in hints.items() if name not in refused}
        deciding = [name for name in possible if name.startswith("decide.")]
        gives_way = self._place in _LOOKING and len(deciding) > 1
        for some in (hints, possible):
            fitting = _fitting(some.values(), room)
            is_named = not gives_way and all(part in fitting for name in deciding for part in hints[name])
            if is_named or len(fitting) == 2 * len(hints):
                return fitting
        keys = "".join(possible.pop(name)[0].text for name in deciding)
        return _fitting([[Part(keys, palette.strong), Part(" decide ", palette.muted)], *possible.values()], room)

    def _hint(self, command: ActionSpec, palette: Palette, is_refused: bool = False) -> Parts:
        key = next(iter(Binding.make_bindings([Binding(command.keys[0], "")]))).key
        # No click records a decision.
        is_key_alone = command.is_numbered or command.id == "dialog.record"
        action = "" if is_key_alone else f"app.simulate_key('{key}')"
        key_style, style = palette.strong, palette.muted
        if is_refused:
            key_style = style = palette.line
        elif self._is_on(command.id):
            key_style = style = palette.accent
        if command.id == "dialog.instead" and self.size.width >= _ROOMY:
            # Of keys that decide otherwise each has its own words.
            each = [one.words for name, one in commands_of(self.app).items() if name.startswith("decide.")]
            both = zip(command.keys, each, strict=True)
            return [part for key, words in both for part in (Part(f" {key}", key_style), Part(f" {words} ", style))]
        # In the tree the key that leads back has another effect.
        words = command.words.split("; ")[-1 if self._place is Place.TREE else 0]
        return [Part(f" {command.key_label}", key_style, action), Part(f" {words} ", style, action)]


def _fitting(hints: Iterable[Parts], room: int) -> Parts:
    """As many of the first ones as there is room for."""
    some = list(hints)
    return list(chain(*some[: sum(width <= room for width in accumulate(map(width_of, some)))]))
