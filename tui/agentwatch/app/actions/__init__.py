"""Every action of the screen, defined once, in the table.

Bindings, footer, help screen and palette are made from these definitions, so none can say something else than another
does. `keymap` applies the operator's settings to their keys; the app has the actions that hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType

from agentwatch.app.actions.table import TABLE


class Home(StrEnum):
    """Whose binding a command is. MAIN, PAGE, INSPECT, TIMELINE and DECIDE are screens, PANE is the details in any and
    LINES what is read there.

    REPLAY is the app that plays a recording: its keys go before those of the tree.
    """

    APP = "app"
    MAIN = "main"
    PAGE = "page"
    INSPECT = "inspect"
    PANE = "pane"
    LINES = "lines"
    TREE = "tree"
    FILTER = "filter"
    TIMELINE = "timeline"
    CHART = "chart"
    DECIDE = "decide"
    REPLAY = "replay"


class Place(StrEnum):
    """Where the operator is; the footer says what the keys do there."""

    TREE = "tree"
    DETAILS = "details"
    PAGE = "page"
    INSPECT = "inspect"
    FILTER = "filter"
    EMPTY = "empty"
    TIMELINE = "timeline"
    DECIDE = "decide"


class Group(StrEnum):
    """The headings of the help screen."""

    LOOK = "Look"
    DECIDE = "Decide"
    ASIDE = "Put aside"
    DIALOG = "In a decision"
    MOVE = "Move"
    FOLD = "Fold"
    FIND = "Find"
    DETAILS = "In the details"
    FILTER = "In the filter line"
    TIMELINE = "In the timeline"
    REPLAY = "In a replay"
    USE = "Use"
    PROGRAM = "Program"


class ActionSpec(NamedTuple):
    """One action. `keys` are Textual's key names with spaces between them; `footer` the places whose footer names it.

    `words` stand in the footer, `words_in` where a place has others; `each` names what numbered keys do one by one,
    if there is room. `title` stands in the palette (empty: not there), `tooltip` is the sentence in help, palette
    and tooltip. `action` is one of the home's own; that of an `is_numbered` one takes the number of its key, from 0 on.
    One that `acts` needs the workspace or the agents in it: there is none in a replay. One that goes `by_key` is never
    done by a click.
    """

    id: str
    keys: str
    action: str
    words: str
    tooltip: str
    homes: tuple[Home, ...]
    group: Group
    title: str = ""
    footer: tuple[Place, ...] = ()
    priority: bool = False
    acts: bool = False
    by_key: bool = False
    is_numbered: bool = False
    words_in: tuple[tuple[str, str], ...] = ()
    each: tuple[str, ...] = ()

    def words_at(self, place: Place) -> str:
        """Its name in the footer of a place."""
        return dict(self.words_in).get(place, self.words)

    @property
    def key_label(self) -> str:
        """How the first key is written for people; a range where the keys are numbered."""
        keys = self.keys.split(" ")
        if not self.is_numbered or len(keys) == 1:
            return key_label(keys[0])
        return f"{key_label(keys[0])}{'–' if _is_range(keys) else '…'}{key_label(keys[-1])}"

    @property
    def keys_label(self) -> str:
        """How all keys are written for people."""
        keys = self.keys.split(" ")
        return self.key_label if self.is_numbered and _is_range(keys) else " ".join(map(key_label, keys))


def _is_range(keys: Sequence[str]) -> bool:
    """Whether they are the same but for a digit that counts up."""
    first = keys[0]
    return first[-1].isdigit() and keys == [f"{first[:-1]}{int(first[-1]) + more}" for more in range(len(keys))]


_LABELS: Final = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "shift+tab": "⇧tab",
    "comma": ",",
}


def key_label(key: str) -> str:
    """A key as people write it: `^p`, `esc`, `↑`."""
    return _LABELS.get(key) or key.replace("ctrl+", "^")


_SELECTED: Final = "tree details page timeline inspect"
"""Where a task is selected."""


def _read_table(table: str) -> list[ActionSpec]:
    specs: list[ActionSpec] = []
    for section in re.split(r"^== ", table, flags=re.MULTILINE)[1:]:
        heading, _, rows = section.partition("\n")
        for row, tooltip in re.findall(r"^(\S.*)\n((?: +.*\n)+)", rows, re.MULTILINE):
            name, keys, action, words, homes, footer, title, flags = [*re.split(r" ?\| ?", row), "", "", ""][:8]
            words, *others = words.split("; ")
            sentence = " ".join(tooltip.split())
            spec = ActionSpec(
                name,
                keys,
                action,
                words,
                tooltip=sentence,
                homes=tuple(map(Home, homes.split())),
                group=Group(heading),
                title=title,
                footer=tuple(map(Place, footer.replace("selected", _SELECTED).split())),
                priority="priority" in flags,
                acts="acts" in flags,
                by_key="by_key" in flags,
                is_numbered="numbered" in flags,
                words_in=tuple((place, words) for place, _, words in (one.partition(": ") for one in others)),
                each=tuple(sentence.rstrip(".").partition(": ")[2].split(", ")) if "each" in flags else (),
            )
            specs.append(spec)
    return specs


COMMANDS: Final = tuple(_read_table(TABLE))

VIEWS: Final = max(len(command.keys.split(" ")) for command in COMMANDS if command.id == "views")
"""How many saved views have a key."""


def action_name(action: str) -> str:
    """The name of an action without its arguments."""
    return action.partition("(")[0]


def bindings(home: Home) -> list[BindingType]:
    """The bindings of one home. A command with several numbered keys gets each key's number as its argument.

    Each has an id, by which the operator's keys replace its own.
    """
    made: list[BindingType] = []
    for command in COMMANDS:
        if home not in command.homes:
            continue
        bind = partial(
            Binding, description=command.words, show=False, tooltip=command.tooltip, priority=command.priority
        )
        keys = command.keys.split(" ")
        if command.is_numbered:
            numbered = enumerate(keys)
            made += (bind(key, f"{command.action}({n})", id=f"{command.id}.{n}") for n, key in numbered)
        else:
            made.append(bind(",".join(keys), command.action, id=command.id))
    return made


def with_views(commands: Iterable[ActionSpec], views: int) -> tuple[ActionSpec, ...]:
    """The commands where so many views are saved: no more keys than views are named. 0: as they are."""
    return tuple(
        one._replace(keys=" ".join(one.keys.split(" ")[:views])) if views and one.id == "views" else one
        for one in commands
    )


def commands_of(app: object) -> tuple[ActionSpec, ...]:
    """The commands of an app, with the keys that hold there."""
    commands: tuple[ActionSpec, ...] = getattr(app, "commands", COMMANDS)
    return commands


def command_of(app: object, command_id: str) -> ActionSpec:
    """One of them."""
    return next(command for command in commands_of(app) if command.id == command_id)


def footer_commands(place: Place, commands: Iterable[ActionSpec] = COMMANDS) -> list[ActionSpec]:
    """What the footer of a place names, most needed first."""
    return [command for command in commands if place in command.footer]
