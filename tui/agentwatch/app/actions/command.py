"""What a command is: its keys, its words in the footer, in the help and in the palette, and where it works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
    HELP = "help"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `keys` are Textual's key names with spaces between them; `footer` the places whose footer names it.

    `words` stand in the footer, `words_in` where a place has others; `each` names what numbered keys do one by one,
    if there is room. `title` stands in the palette (empty: not there), `tooltip` is the sentence in help, palette
    and tooltip. The action is one of the home's own; that of a command that `is_numbered` takes the number of its key,
    from 0 on. One that `acts` needs the workspace or the agents in it: there is none in a replay. What goes `by_key` is
    never done by a click.
    """

    id: str
    keys: str
    action: str
    homes: tuple[Home, ...]
    group: Group
    words: str
    tooltip: str
    title: str = ""
    footer: tuple[Place, ...] = ()
    priority: bool = False
    acts: bool = False
    by_key: bool = False
    words_in: tuple[tuple[Place, str], ...] = ()
    is_numbered: bool = False
    each: tuple[str, ...] = ()

    def words_at(self, place: Place) -> str:
        """What the footer of a place calls it."""
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
