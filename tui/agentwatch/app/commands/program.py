"""The commands of the program itself, in the order of the footer."""

from __future__ import annotations

from typing import Final

from agentwatch.app.commands.command import Command, Group, Home, Place

_APP: Final = (Home.APP,)

COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "help",
        "?",
        "help",
        _APP,
        Group.PROGRAM,
        words="keys",
        tooltip="List the keys; the arrow keys left and right lead through the manual.",
        title="Keys and manual",
        footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.EMPTY, Place.TIMELINE, Place.INSPECT),
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
        footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.EMPTY, Place.INSPECT),
    ),
)
