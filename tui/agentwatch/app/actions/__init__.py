"""Every command, defined once.

Bindings, footer, help screen and palette are made from these definitions, so none can say what another does not do.
"""

from __future__ import annotations

from typing import Final

from textual.binding import Binding, BindingType

from agentwatch.app.actions.command import Command, Group, Home, Place, key_label
from agentwatch.app.actions.table import COMMANDS

__all__ = [
    "COMMANDS",
    "VIEWS",
    "Command",
    "Group",
    "Home",
    "Place",
    "action_name",
    "bindings",
    "footer_commands",
    "key_label",
]


VIEWS: Final = max(len(command.keys.split(" ")) for command in COMMANDS if command.id == "views")
"""How many saved views have a key."""


def action_name(action: str) -> str:
    """The name of an action without its arguments."""
    return action.partition("(")[0]


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
