"""The line at the bottom, with the keys of the place that has the focus."""

from collections.abc import Callable, Iterable
from itertools import accumulate, chain

from textual.binding import Binding

from agentwatch.app.actions import ActionSpec, Place, commands_of
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, join_ends, width_of

# In these places, the words of decisions are left out to make room for the place's own keys.
_READING_PLACES = (Place.DETAILS, Place.INSPECT, Place.TIMELINE)
# Cells: from this width on, the palette's key is shown, and each key for a kind of decision has its own words.
_ROOMY = 100


class Footer(LineWidget):
    """The keys of a place in one line. The last keys are left out if there is no room.

    `is_hidden`, `is_on` and `why_not` take a command id. They tell whether to leave out the key, whether the command is
    switched on, and why it is refused now. A refused key is still shown, because the operator would look for it.
    """

    def __init__(
        self,
        place: Place,
        is_hidden: Callable[[str], bool],
        is_on: Callable[[str], bool] = lambda _command_id: False,
        why_not: Callable[[str], str | None] = lambda _command_id: None,
    ):
        super().__init__()
        self._place, self._is_hidden, self._is_on = place, is_hidden, is_on
        self._why_not = why_not

    def show_place(self, place: Place) -> None:
        """Show the keys of a place."""
        self._place = place
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        commands = {
            name: command
            for name, command in commands_of(self.app).items()
            if self._place in command.footer and not self._is_hidden(name) and self.app.check_action(command.action, ())
        }
        refused = {name for name in commands if self._why_not(name) is not None}
        hints = {name: self._make_hint(command, palette, name in refused) for name, command in commands.items()}
        tail = hints.pop("help", [])
        if tail and width >= _ROOMY:
            tail += self._make_hint(commands_of(self.app)["palette"], palette)
        return [join_ends(self._fit_hints(hints, refused, width - width_of(tail) - 1, palette), tail, width - 1)]

    def _fit_hints(self, hints: dict[str, Parts], refused: set[str], room: int, palette: Palette) -> Parts:
        """Return the hints that fit. If room is short, drop the refused keys, then the labels of decision keys."""
        possible = {name: hint for name, hint in hints.items() if name not in refused}
        deciding = [name for name in possible if name.startswith("decide.")]
        gives_way = self._place in _READING_PLACES and len(deciding) > 1
        for some in (hints, possible):
            fitting = _first_fitting(some.values(), room)
            is_named = not gives_way and all(part in fitting for name in deciding for part in hints[name])
            if is_named or len(fitting) == 2 * len(hints):
                return fitting
        keys = "".join(possible.pop(name)[0].text for name in deciding)
        return _first_fitting([[Part(keys, palette.strong), Part(" decide ", palette.muted)], *possible.values()], room)

    def _make_hint(self, command: ActionSpec, palette: Palette, is_refused: bool = False) -> Parts:
        key = next(iter(Binding.make_bindings([Binding(command.keys[0], "")]))).key
        # A click on the hint runs this action. A click must not record a decision.
        is_key_alone = command.is_numbered or command.id == "dialog.record"
        action = "" if is_key_alone else f"app.simulate_key('{key}')"
        key_style, style = palette.strong, palette.muted
        if is_refused:
            key_style = style = palette.line
        elif self._is_on(command.id):
            key_style = style = palette.accent
        if command.id == "dialog.instead" and self.size.width >= _ROOMY:
            # The keys are in the order of the kinds of decisions.
            each = [one.words for name, one in commands_of(self.app).items() if name.startswith("decide.")]
            both = zip(command.keys, each, strict=True)
            return [part for key, words in both for part in (Part(f" {key}", key_style), Part(f" {words} ", style))]
        # In the tree, a key such as escape may have another effect, and then has other words.
        words = command.words.split("; ")[-1 if self._place is Place.TREE else 0]
        return [Part(f" {command.key_label}", key_style, action), Part(f" {words} ", style, action)]


def _first_fitting(hints: Iterable[Parts], room: int) -> Parts:
    some = list(hints)
    return list(chain(*some[: sum(width <= room for width in accumulate(map(width_of, some)))]))
