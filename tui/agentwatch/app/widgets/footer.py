"""The line at the bottom: the keys of the place that has the focus, from the table of actions."""

from collections.abc import Callable, Iterable
from itertools import accumulate, chain

from textual.binding import Binding

from agentwatch.app.actions import ActionSpec, Place, commands_of
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of

# Places in which the words of possible decisions, which the tree's footer has, give way to the place's own keys.
_LOOKING = (Place.DETAILS, Place.INSPECT, Place.TIMELINE)
# The fewest cells for which the palette is named as well, and each numbered key has a word of its own.
_ROOMY = 100


class Footer(LineWidget):
    """The keys of a place, in a line that drops keys without room (Textual's own footer scrolls).

    By command id, `is_on` says whether something is on now, `is_hidden` whether to leave a key out, and `why_not` why
    it is refused now. A refused key is still shown, because the operator would look for it.
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
        hints = {name: self._hint(command, palette, name in refused) for name, command in commands.items()}
        tail = hints.pop("help", [])
        if tail and width >= _ROOMY:
            tail += self._hint(commands_of(self.app)["palette"], palette)
        return [apart(self._fit(hints, refused, width - width_of(tail) - 1, palette), tail, width - 1)]

    def _fit(self, hints: dict[str, Parts], refused: set[str], room: int, palette: Palette) -> Parts:
        """Return the hints that fit. To name all possible decisions, drop refused keys, then shorten decisions to their
        keys."""
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
        # A click must not record a decision.
        is_key_alone = command.is_numbered or command.id == "dialog.record"
        action = "" if is_key_alone else f"app.simulate_key('{key}')"
        key_style, style = palette.strong, palette.muted
        if is_refused:
            key_style = style = palette.line
        elif self._is_on(command.id):
            key_style = style = palette.accent
        if command.id == "dialog.instead" and self.size.width >= _ROOMY:
            # Each key for another action has the words of that action.
            each = [one.words for name, one in commands_of(self.app).items() if name.startswith("decide.")]
            both = zip(command.keys, each, strict=True)
            return [part for key, words in both for part in (Part(f" {key}", key_style), Part(f" {words} ", style))]
        # In the tree, a key may have another effect and other words, such as the one that goes back.
        words = command.words.split("; ")[-1 if self._place is Place.TREE else 0]
        return [Part(f" {command.key_label}", key_style, action), Part(f" {words} ", style, action)]


def _fitting(hints: Iterable[Parts], room: int) -> Parts:
    """Return the parts of the first hints that fit into `room` cells."""
    some = list(hints)
    return list(chain(*some[: sum(width <= room for width in accumulate(map(width_of, some)))]))
