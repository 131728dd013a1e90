"""Every command, defined once.

Bindings, footer, help screen and palette are made from these definitions, so none can say what another does not do.
What the operator's settings change of their keys, `keymap` says; the app has the commands that hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
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
    "command_of",
    "commands_of",
    "footer_commands",
    "key_label",
    "with_views",
]


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


def with_views(commands: Iterable[Command], views: int) -> tuple[Command, ...]:
    """The commands where so many views are saved: no more keys than views are named. 0: as they are."""
    return tuple(
        replace(one, keys=" ".join(one.keys.split(" ")[:views])) if views and one.id == "views" else one
        for one in commands
    )


def commands_of(app: object) -> tuple[Command, ...]:
    """The commands of an app, with the keys that hold there."""
    commands: tuple[Command, ...] = getattr(app, "commands", COMMANDS)
    return commands


def command_of(app: object, command_id: str) -> Command:
    """One of them."""
    return next(command for command in commands_of(app) if command.id == command_id)


def footer_commands(place: Place, commands: Iterable[Command] = COMMANDS) -> list[Command]:
    """What the footer of a place names, most needed first."""
    return [command for command in commands if place in command.footer]
