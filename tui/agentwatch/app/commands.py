"""Every command, defined once: its keys, its words in the footer, in the help and in the palette, and where it works.

Bindings, footer, help screen and palette are made from these definitions, so none can say what another does not do.
The keys r, e, x, a and y are kept free for the operator's decisions.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Final

from textual.binding import Binding, BindingType


class Home(StrEnum):
    """Whose binding a command is. MAIN and PAGE are screens, PANE is the details wherever they stand."""

    APP = "app"
    MAIN = "main"
    PAGE = "page"
    PANE = "pane"
    TREE = "tree"
    FILTER = "filter"


class Place(StrEnum):
    """Where the operator is; the footer says what the keys do there."""

    TREE = "tree"
    DETAILS = "details"
    PAGE = "page"
    FILTER = "filter"
    EMPTY = "empty"
    HELP = "help"


class Group(StrEnum):
    """The headings of the help screen."""

    LOOK = "Look"
    MOVE = "Move"
    FOLD = "Fold"
    FIND = "Find"
    FILTER = "In the filter line"
    USE = "Use"
    PROGRAM = "Program"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `keys` are Textual's key names with spaces between them; `footer` the places whose footer names it.

    `words` stand in the footer, `title` in the palette (empty: not there), `tooltip` is the sentence in help, palette
    and tooltip. The action is one of the home's own.
    """

    id: str
    keys: str
    action: str
    homes: tuple[Home, ...]
    group: Group
    _: KW_ONLY
    words: str
    tooltip: str
    title: str = ""
    footer: tuple[Place, ...] = ()
    priority: bool = False

    @property
    def key_label(self) -> str:
        """How the first key is written for people; a range where the keys are numbered."""
        names = self.keys.split(" ")
        return f"{key_label(names[0])}–{key_label(names[-1])}" if self.is_numbered else key_label(names[0])

    @property
    def keys_label(self) -> str:
        """How all keys are written for people."""
        return self.key_label if self.is_numbered else " ".join(key_label(key) for key in self.keys.split(" "))

    @property
    def is_numbered(self) -> bool:
        """Whether the action takes the number of its key, from 0 on."""
        return self.keys.startswith("1 ")


_SCREENS: Final = (Home.MAIN, Home.PAGE)
_MAIN: Final = (Home.MAIN,)
_PANE: Final = (Home.PANE,)
_TREE: Final = (Home.TREE,)
_FILTER: Final = (Home.FILTER,)
_APP: Final = (Home.APP,)
_T, _D, _P, _F, _E, _H = Place.TREE, Place.DETAILS, Place.PAGE, Place.FILTER, Place.EMPTY, Place.HELP

# In the order of the footer: what a narrow footer has no room for stands at the end.
COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "filter.done",
        "enter",
        "done",
        _FILTER,
        Group.FILTER,
        words="keep",
        tooltip="Keep the filter and go back to the tree.",
        footer=(_F,),
    ),
    Command(
        "filter.drop",
        "escape",
        "drop",
        _FILTER,
        Group.FILTER,
        words="clear",
        tooltip="Clear the filter and go back to the tree.",
        footer=(_F,),
    ),
    Command(
        "filter.down",
        "down",
        "down",
        _FILTER,
        Group.FILTER,
        words="to the tree",
        tooltip="Keep the filter and go on in the tree.",
        footer=(_F,),
    ),
    Command(
        "back",
        "escape",
        "back",
        _SCREENS,
        Group.LOOK,
        words="back",
        tooltip="Go back: from the details to the tree; in the tree, clear the filter.",
        footer=(_T, _D, _P, _H),
    ),
    Command(
        "open",
        "enter",
        "open",
        _MAIN,
        Group.LOOK,
        words="open",
        tooltip="Open the details of the selected task.",
        title="Open the details",
        footer=(_T,),
    ),
    Command(
        "needs.next",
        "n",
        "next_asking",
        _SCREENS,
        Group.LOOK,
        words="next",
        tooltip="Go to the next task that needs you.",
        title="Next task that needs you",
        footer=(_T, _D, _P),
    ),
    Command(
        "needs.previous",
        "N",
        "previous_asking",
        _SCREENS,
        Group.LOOK,
        words="previous",
        tooltip="Go to the previous task that needs you.",
        title="Previous task that needs you",
    ),
    Command(
        "filter",
        "/",
        "filter",
        _MAIN,
        Group.FIND,
        words="filter",
        tooltip="Show only tasks whose id, title, agent or objective holds a text.",
        title="Filter by text",
        footer=(_T,),
    ),
    Command(
        "filter.state",
        "s",
        "filter_state(1)",
        _MAIN,
        Group.FIND,
        words="state",
        tooltip="Show only tasks in one state: each press goes on to the next state there is.",
        title="Filter by state",
        footer=(_T,),
    ),
    Command(
        "filter.state.back",
        "S",
        "filter_state(-1)",
        _MAIN,
        Group.FIND,
        words="state",
        tooltip="Go back to the state before.",
    ),
    Command(
        "follow",
        "f",
        "follow",
        _MAIN,
        Group.LOOK,
        words="follow",
        tooltip="Follow what happens: the cursor goes to the task that changed last. Moving it yourself ends this.",
        title="Follow what happens",
        footer=(_T, _E),
    ),
    Command(
        "fold",
        "space",
        "toggle_fold",
        _TREE,
        Group.FOLD,
        words="fold",
        tooltip="Fold or unfold the selected task.",
        footer=(_T,),
    ),
    Command(
        "edit",
        "o",
        "edit",
        _APP,
        Group.USE,
        words="edit",
        tooltip="Open the selected task's return, else its handoff, in $VISUAL or $EDITOR.",
        title="Open the file in the editor",
        footer=(_T, _D, _P),
    ),
    Command(
        "copy",
        "c",
        "copy_path",
        _APP,
        Group.USE,
        words="copy path",
        tooltip="Copy the path of that file to the clipboard.",
        title="Copy the path",
        footer=(_T, _D, _P),
    ),
    Command(
        "tabs",
        "1 2 3 4 5 6",
        "tab",
        _SCREENS,
        Group.LOOK,
        words="tabs",
        tooltip="Go to a tab of the details.",
        footer=(_D, _P),
    ),
    Command(
        "tab.next", "right l", "next_tab", _PANE, Group.LOOK, words="next tab", tooltip="In the details: the next tab."
    ),
    Command(
        "tab.previous",
        "left h",
        "previous_tab",
        _PANE,
        Group.LOOK,
        words="previous tab",
        tooltip="In the details: the tab before.",
    ),
    Command(
        "focus.next",
        "tab",
        "switch",
        _MAIN,
        Group.MOVE,
        words="switch",
        tooltip="Go from the tree to the details and back.",
        footer=(_T, _D),
    ),
    Command(
        "focus.previous",
        "shift+tab",
        "switch",
        _MAIN,
        Group.MOVE,
        words="switch",
        tooltip="The same, the other way round.",
    ),
    Command(
        "fold.none",
        "E",
        "unfold_all",
        _TREE,
        Group.FOLD,
        words="expand all",
        tooltip="Expand everything.",
        title="Expand everything",
        footer=(_T,),
    ),
    Command(
        "fold.all",
        "C",
        "fold_all",
        _TREE,
        Group.FOLD,
        words="collapse all",
        tooltip="Collapse everything.",
        title="Collapse everything",
        footer=(_T,),
    ),
    Command("up", "up k", "cursor_up", _TREE, Group.MOVE, words="up", tooltip="Go up one row."),
    Command("down", "down j", "cursor_down", _TREE, Group.MOVE, words="down", tooltip="Go down one row."),
    Command(
        "left",
        "left h",
        "cursor_left",
        _TREE,
        Group.FOLD,
        words="out",
        tooltip="Fold the task; where it is folded, go to its parent.",
    ),
    Command(
        "right",
        "right l",
        "cursor_right",
        _TREE,
        Group.FOLD,
        words="in",
        tooltip="Unfold the task; where it is unfolded, go to its first child.",
    ),
    Command("page.up", "pageup ctrl+u", "page_up", _TREE, Group.MOVE, words="page up", tooltip="Go up one page."),
    Command(
        "page.down", "pagedown ctrl+d", "page_down", _TREE, Group.MOVE, words="page down", tooltip="Go down one page."
    ),
    Command("first", "home g", "first", _TREE, Group.MOVE, words="first", tooltip="Go to the first row."),
    Command("last", "end G", "last", _TREE, Group.MOVE, words="last", tooltip="Go to the last row."),
    Command(
        "notices",
        "!",
        "notices",
        _MAIN,
        Group.LOOK,
        words="notices",
        tooltip="List the files that could not be read or belong to no task.",
        title="Files with a problem",
        footer=(_E,),
    ),
    Command(
        "help",
        "?",
        "help",
        _APP,
        Group.PROGRAM,
        words="keys",
        tooltip="List the keys.",
        title="List the keys",
        footer=(_T, _D, _P, _E),
    ),
    Command(
        "palette",
        "ctrl+p",
        "command_palette",
        _APP,
        Group.PROGRAM,
        words="palette",
        tooltip="Find any command by its name; the themes are there, too.",
        priority=True,
    ),
    Command(
        "quit",
        "q ctrl+c",
        "quit",
        _APP,
        Group.PROGRAM,
        words="quit",
        tooltip="Leave agentwatch. Nothing that runs is touched.",
        title="Quit",
        footer=(_T, _D, _P, _E),
    ),
)

_LABELS: Final = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "shift+tab": "⇧tab",
}


def key_label(key: str) -> str:
    """A key as people write it: `^p`, `esc`, `↑`."""
    return _LABELS.get(key) or key.replace("ctrl+", "^")


def bindings(home: Home) -> list[BindingType]:
    """The bindings of one home. A command with several numbered keys gets each key's number as its argument."""
    made: list[BindingType] = []
    for command in COMMANDS:
        if home not in command.homes:
            continue
        for number, key in enumerate(command.keys.split(" ")):
            action = f"{command.action}({number})" if command.is_numbered else command.action
            made.append(
                Binding(key, action, command.words, show=False, tooltip=command.tooltip, priority=command.priority)
            )
    return made


def footer_commands(place: Place) -> list[Command]:
    """What the footer of a place names, most needed first."""
    return [command for command in COMMANDS if place in command.footer]
