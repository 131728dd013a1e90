"""The commands of what is looked at, in the order of the footer."""

from __future__ import annotations

from typing import Final

from agentwatch.app.commands.command import Command, Group, Home, Place

_SCREENS: Final = (Home.MAIN, Home.PAGE)
_INSPECT: Final = (Home.INSPECT,)
_PANE: Final = (Home.PANE,)
_TREE: Final = (Home.TREE,)
_FILTER: Final = (Home.FILTER,)

COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "filter.done",
        "enter",
        "done",
        _FILTER,
        Group.FILTER,
        words="keep",
        tooltip="Keep the filter and go back to the tree.",
        footer=(Place.FILTER,),
    ),
    Command(
        "filter.drop",
        "escape",
        "drop",
        _FILTER,
        Group.FILTER,
        words="clear",
        tooltip="Clear the filter and go back to the tree.",
        footer=(Place.FILTER,),
    ),
    Command(
        "filter.down",
        "down",
        "down",
        _FILTER,
        Group.FILTER,
        words="to the tree",
        tooltip="Keep the filter and go on in the tree.",
        footer=(Place.FILTER,),
    ),
    Command(
        "back",
        "escape",
        "back",
        (*_SCREENS, Home.TIMELINE, Home.INSPECT),
        Group.LOOK,
        words="back",
        words_in=((Place.TREE, "clear the filter"),),
        tooltip="Go back: from the details or the timeline to the tree; in the tree, clear the filter.",
        footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.HELP, Place.TIMELINE, Place.INSPECT),
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
        footer=(Place.TREE,),
    ),
    Command(
        "inspect",
        "enter",
        "inspect",
        _PANE,
        Group.DETAILS,
        words="inspect",
        tooltip="Look at the file of the selected claim, or at a changed file that nobody claims.",
        footer=(Place.DETAILS, Place.PAGE),
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
        footer=(Place.DETAILS, Place.PAGE),
    ),
    Command(
        "inspect.switch",
        "d tab",
        "switch",
        _INSPECT,
        Group.DETAILS,
        words="difference",
        tooltip="Switch between that file and its git diff since the handoff.",
        footer=(Place.INSPECT,),
    ),
    Command(
        "compare.earlier",
        "-",
        "compare(-1)",
        _PANE,
        Group.DETAILS,
        words="earlier",
        tooltip="Compare earlier attempts.",
        footer=(Place.DETAILS, Place.PAGE),
    ),
    Command(
        "compare.later",
        "+ =",
        "compare(1)",
        _PANE,
        Group.DETAILS,
        words="later attempts",
        tooltip="Compare later attempts.",
        footer=(Place.DETAILS, Place.PAGE),
    ),
    Command(
        "needs.next",
        "n",
        "go_asking(1)",
        _SCREENS,
        Group.LOOK,
        words="next",
        tooltip="Go to the next task that needs you.",
        title="Next task that needs you",
        footer=(Place.TREE, Place.DETAILS, Place.PAGE),
    ),
    Command(
        "needs.previous",
        "N",
        "go_asking(-1)",
        _SCREENS,
        Group.LOOK,
        words="previous",
        tooltip="Go to the previous task that needs you.",
        title="Previous task that needs you",
    ),
)
