"""Every command, defined once: its keys, its words in the footer, in the help and in the palette, and where it works.

Bindings, footer, help screen and palette are made from these definitions, so none can say what another does not do.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Final

from textual.binding import Binding, BindingType


class Home(StrEnum):
    """Whose binding a command is. MAIN, PAGE, INSPECT, TIMELINE and DECIDE are screens, PANE is the details in any.

    REPLAY is the app that plays a recording: its keys go before those of the tree.
    """

    APP = "app"
    MAIN = "main"
    PAGE = "page"
    INSPECT = "inspect"
    PANE = "pane"
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


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `keys` are Textual's key names with spaces between them; `footer` the places whose footer names it.

    `words` stand in the footer, `title` in the palette (empty: not there), `tooltip` is the sentence in help, palette
    and tooltip. The action is one of the home's own. One that `acts` needs the workspace or the agents in it: there is
    none in a replay. What goes `by_key` is never done by a click.
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
    acts: bool = False
    by_key: bool = False

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
        return self.keys.startswith(("1 ", "f2 "))


_SCREENS: Final = (Home.MAIN, Home.PAGE)
_MAIN: Final = (Home.MAIN,)
_INSPECT: Final = (Home.INSPECT,)
_PANE: Final = (Home.PANE,)
_TREE: Final = (Home.TREE,)
_ROWS: Final = (Home.TREE, Home.CHART)
_TIMELINE: Final = (Home.TIMELINE,)
_CHART: Final = (Home.CHART,)
_FILTER: Final = (Home.FILTER,)
_APP: Final = (Home.APP,)
_REPLAY: Final = (Home.REPLAY,)
_DECIDE: Final = (Home.DECIDE,)
_T, _D, _P, _F, _E, _H = Place.TREE, Place.DETAILS, Place.PAGE, Place.FILTER, Place.EMPTY, Place.HELP
_L, _I, _C = Place.TIMELINE, Place.INSPECT, Place.DECIDE

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
        (*_SCREENS, Home.TIMELINE, Home.INSPECT),
        Group.LOOK,
        words="back",
        tooltip="Go back: from the details or the timeline to the tree; in the tree, clear the filter.",
        footer=(_T, _D, _P, _H, _L, _I),
    ),
    Command(
        "open",
        "enter",
        "open",
        _TREE,
        Group.LOOK,
        words="open",
        tooltip="Open the details of the selected task.",
        title="Open the details",
        footer=(_T,),
    ),
    Command(
        "inspect",
        "enter",
        "inspect",
        _PANE,
        Group.DETAILS,
        words="inspect",
        tooltip="Look at the file of the selected claim, or at a changed file that nobody claims.",
        footer=(_D, _P),
        acts=True,
    ),
    Command(
        "inspect.switch",
        "d tab",
        "switch",
        _INSPECT,
        Group.DETAILS,
        words="file or difference",
        tooltip="Of that file: its git diff since the handoff, and back to the file itself.",
        footer=(_I,),
    ),
    Command(
        "compare.earlier",
        "-",
        "compare(-1)",
        _PANE,
        Group.DETAILS,
        words="earlier",
        tooltip="Compare the attempts before those that are compared now.",
        footer=(_D, _P),
    ),
    Command(
        "compare.later",
        "+ =",
        "compare(1)",
        _PANE,
        Group.DETAILS,
        words="later attempts",
        tooltip="Compare the attempts after them.",
        footer=(_D, _P),
    ),
    Command(
        "timeline.open",
        "enter",
        "open",
        _TIMELINE,
        Group.TIMELINE,
        words="tree",
        tooltip="Go to the selected task in the tree.",
        footer=(_L,),
    ),
    Command(
        "timeline.in",
        "+ =",
        "zoom(1)",
        _CHART,
        Group.TIMELINE,
        words="zoom in",
        tooltip="Zoom in: less time, more of it, around the selected bar.",
        footer=(_L,),
    ),
    Command(
        "timeline.out",
        "- _",
        "zoom(-1)",
        _CHART,
        Group.TIMELINE,
        words="out",
        tooltip="Zoom out.",
        footer=(_L,),
    ),
    Command(
        "timeline.fit",
        "0",
        "fit",
        _CHART,
        Group.TIMELINE,
        words="all",
        tooltip="Show all of time, and make room for more as it passes.",
        footer=(_L,),
    ),
    Command(
        "timeline.now",
        "n",
        "now",
        _CHART,
        Group.TIMELINE,
        words="now",
        tooltip="Go to the present and stay with it: new time scrolls in. Moving away ends this.",
        footer=(_L,),
    ),
    Command(
        "timeline.show",
        "z",
        "show",
        _CHART,
        Group.TIMELINE,
        words="this task",
        tooltip="Zoom so that the selected task, with what is below it, fills the chart.",
        footer=(_L,),
    ),
    Command(
        "timeline.earlier",
        "left h",
        "pan(-1)",
        _CHART,
        Group.TIMELINE,
        words="earlier",
        tooltip="Go to earlier times.",
        footer=(_L,),
    ),
    Command(
        "timeline.later",
        "right l",
        "pan(1)",
        _CHART,
        Group.TIMELINE,
        words="later",
        tooltip="Go to later times.",
        footer=(_L,),
    ),
    Command(
        "timeline.idle",
        "i",
        "fold_idle",
        _CHART,
        Group.TIMELINE,
        words="fold idle time",
        tooltip="Fold stretches of ten minutes and more in which nobody did anything, or show them in full.",
        footer=(_L,),
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
        "decide.retry",
        "r",
        "decide('retry')",
        _APP,
        Group.DECIDE,
        words="retry",
        tooltip="Retry the selected task, with an amended handoff.",
        title="Decide: retry",
        footer=(_T, _D, _P),
        acts=True,
    ),
    Command(
        "decide.escalate",
        "e",
        "decide('escalate')",
        _APP,
        Group.DECIDE,
        words="escalate",
        tooltip="Give the selected task to another mode; a line fault goes to the fitter.",
        title="Decide: escalate",
        footer=(_T, _D, _P),
        acts=True,
    ),
    Command(
        "decide.abort",
        "x",
        "decide('abort')",
        _APP,
        Group.DECIDE,
        words="abort",
        tooltip="Abort the selected task and what is below it, with a final error report.",
        title="Decide: abort",
        footer=(_T, _D, _P),
        acts=True,
    ),
    Command(
        "decide.respond",
        "a",
        "decide('respond')",
        _APP,
        Group.DECIDE,
        words="answer",
        tooltip="Answer what the selected task asks.",
        title="Decide: answer",
        footer=(_T, _D, _P),
        acts=True,
    ),
    Command(
        "decide.accept",
        "y",
        "decide('accept')",
        _APP,
        Group.DECIDE,
        words="accept",
        tooltip="Accept a partial, invalid or contradicted return as it is, with a reason.",
        title="Decide: accept",
        footer=(_T, _D, _P),
        acts=True,
    ),
    Command(
        "review",
        "R",
        "review",
        _APP,
        Group.DECIDE,
        words="review",
        tooltip="Decide about the marked tasks, or all that need you, one after another.",
        title="Review what needs you",
        footer=(_T, _P),
        acts=True,
    ),
    Command(
        "mark",
        "m",
        "mark",
        _TREE,
        Group.DECIDE,
        words="mark",
        tooltip="Mark the selected task for the review, or take the mark away.",
        title="Mark for the review",
        acts=True,
    ),
    Command(
        "dialog.record",
        "ctrl+s",
        "record",
        _DECIDE,
        Group.DIALOG,
        words="record",
        tooltip="Record the decision. Nothing else records it: no click, and no other key.",
        footer=(_C,),
        priority=True,
        by_key=True,
    ),
    Command(
        "dialog.leave",
        "escape",
        "leave",
        _DECIDE,
        Group.DIALOG,
        words="leave",
        tooltip="Leave without a decision; a review ends here.",
        footer=(_C,),
        priority=True,
    ),
    Command(
        "dialog.skip",
        "ctrl+n",
        "skip",
        _DECIDE,
        Group.DIALOG,
        words="skip",
        tooltip="In a review: go on to the next task, this one stays undecided.",
        footer=(_C,),
        priority=True,
    ),
    Command(
        "dialog.next",
        "tab",
        "next_field",
        _DECIDE,
        Group.DIALOG,
        words="next",
        tooltip="Go to the next field. Arrow keys choose in it.",
        footer=(_C,),
        priority=True,
    ),
    Command(
        "dialog.previous",
        "shift+tab",
        "previous_field",
        _DECIDE,
        Group.DIALOG,
        words="previous",
        tooltip="Go to the field before.",
        priority=True,
    ),
    Command(
        "dialog.edit",
        "ctrl+e",
        "edit_document",
        _DECIDE,
        Group.DIALOG,
        words="editor",
        tooltip="Open the handoff, or the report, in $VISUAL or $EDITOR.",
        footer=(_C,),
        priority=True,
    ),
    Command(
        "dialog.changes",
        "ctrl+t",
        "changes",
        _DECIDE,
        Group.DIALOG,
        words="changes",
        tooltip="Show what is changed in the last handoff, or go on editing.",
        footer=(_C,),
        priority=True,
    ),
    Command(
        "dialog.instead",
        "f2 f3 f4 f5 f6",
        "instead",
        _DECIDE,
        Group.DIALOG,
        words="otherwise",
        tooltip="Decide otherwise about the same task: retry, escalate, abort, answer, accept.",
        footer=(_C,),
        priority=True,
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
        "timeline",
        "t",
        "timeline",
        (Home.MAIN, Home.TIMELINE),
        Group.LOOK,
        words="timeline",
        tooltip="Show all tasks over time, who works and who waits; in the timeline, go back to the tree.",
        title="Timeline",
        footer=(_T,),
    ),
    Command(
        "fold",
        "space",
        "toggle_fold",
        _ROWS,
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
        tooltip="Open the selected task's return, else its handoff, or the inspected file, in $VISUAL or $EDITOR.",
        title="Open the file in the editor",
        footer=(_T, _D, _P, _I),
        acts=True,
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
        footer=(_T, _D, _P, _I),
        acts=True,
    ),
    Command(
        "tabs",
        "1 2 3 4 5 6 7",
        "tab",
        _SCREENS,
        Group.DETAILS,
        words="tabs",
        tooltip="Go to a tab of the details.",
        footer=(_D, _P),
    ),
    Command("tab.next", "right l", "next_tab", _PANE, Group.DETAILS, words="next tab", tooltip="Go to the next tab."),
    Command(
        "tab.previous",
        "left h",
        "previous_tab",
        _PANE,
        Group.DETAILS,
        words="previous tab",
        tooltip="Go to the tab before.",
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
        _ROWS,
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
        _ROWS,
        Group.FOLD,
        words="collapse all",
        tooltip="Collapse everything.",
        title="Collapse everything",
        footer=(_T,),
    ),
    Command("up", "up k", "cursor_up", _ROWS, Group.MOVE, words="up", tooltip="Go up one row."),
    Command("down", "down j", "cursor_down", _ROWS, Group.MOVE, words="down", tooltip="Go down one row."),
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
    Command("page.up", "pageup ctrl+u", "page_up", _ROWS, Group.MOVE, words="page up", tooltip="Go up one page."),
    Command(
        "page.down", "pagedown ctrl+d", "page_down", _ROWS, Group.MOVE, words="page down", tooltip="Go down one page."
    ),
    Command("first", "home g", "first", _ROWS, Group.MOVE, words="first", tooltip="Go to the first row."),
    Command("last", "end G", "last", _ROWS, Group.MOVE, words="last", tooltip="Go to the last row."),
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
        "replay.play",
        "space",
        "play",
        _REPLAY,
        Group.REPLAY,
        words="play",
        tooltip="Play or pause, instead of folding; at the end, start over.",
        title="Play or pause",
        priority=True,
    ),
    Command(
        "replay.step",
        ".",
        "step(1)",
        _REPLAY,
        Group.REPLAY,
        words="step",
        tooltip="Pause, and go on by one observation.",
        priority=True,
    ),
    Command(
        "replay.step.back",
        "comma",
        "step(-1)",
        _REPLAY,
        Group.REPLAY,
        words="back",
        tooltip="Pause, and go back by one observation.",
        priority=True,
    ),
    Command(
        "replay.slower",
        "<",
        "change_speed(0.5)",
        _REPLAY,
        Group.REPLAY,
        words="slower",
        tooltip="Play at half the speed.",
        priority=True,
    ),
    Command(
        "replay.faster",
        ">",
        "change_speed(2.0)",
        _REPLAY,
        Group.REPLAY,
        words="faster",
        tooltip="Play at twice the speed.",
        priority=True,
    ),
    Command(
        "replay.start",
        "[",
        "rewind",
        _REPLAY,
        Group.REPLAY,
        words="start",
        tooltip="Go to the first observation.",
        title="Go to the start of the recording",
        priority=True,
    ),
    Command(
        "replay.end",
        "]",
        "wind",
        _REPLAY,
        Group.REPLAY,
        words="end",
        tooltip="Go to the last observation.",
        title="Go to the end of the recording",
        priority=True,
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
        footer=(_T, _D, _P, _E, _L, _I),
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
        footer=(_T, _D, _P, _E, _I),
    ),
)

PANE_COMMANDS: Final = frozenset(command.id for command in COMMANDS if command.homes == _PANE and command.footer)
"""Ids of what the keys do in some tabs of the details only."""


def action_name(action: str) -> str:
    """The name of an action without its arguments."""
    return action.partition("(")[0]


REPLAY_ACTIONS: Final = frozenset(action_name(command.action) for command in COMMANDS if Home.REPLAY in command.homes)
"""What only the app that plays a recording can do."""

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
