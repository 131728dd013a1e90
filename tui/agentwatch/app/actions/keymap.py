"""The operator's own keys, `[keys]` of the settings: which of them hold, and what is wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from agentwatch.app.actions import COMMANDS, ActionSpec, Home, key_label
from agentwatch.arguments import did_you_mean
from agentwatch.config import where
from agentwatch.text import quoted

KEPT: Final = {"dialog.record": "ctrl+s", "dialog.leave": "escape", "quit": "ctrl+c"}
"""Keys that these commands have whatever is set: the way to decide and the ways out."""

_HERE: Final[Mapping[str, tuple[Home, ...]]] = {
    "the tree": (Home.APP, Home.MAIN, Home.TREE, Home.REPLAY),
    "the details": (Home.APP, Home.MAIN, Home.PANE, Home.LINES, Home.REPLAY),
    "a task's page": (Home.APP, Home.PAGE, Home.PANE, Home.LINES, Home.REPLAY),
    "the timeline": (Home.APP, Home.TIMELINE, Home.CHART, Home.REPLAY),
    "an inspected file": (Home.APP, Home.INSPECT, Home.LINES, Home.REPLAY),
    "the filter line": (Home.FILTER,),
    "a decision": (Home.DECIDE,),
}
"""Where keys are pressed, and whose commands are meant there. What goes before all others is meant everywhere."""

_WRITING: Final = frozenset({"space", "backspace", "delete", "left", "right", "home", "end", "up", "down", "enter"})
"""Keys without a character that a text field needs."""
_NAMES: Final = _WRITING | {"escape", "tab", "insert", "pageup", "pagedown", *(f"f{n}" for n in range(1, 25))}
_MODIFIERS: Final = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_ALIASES: Final = {
    "esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete", "ins": "insert",
    "↑": "up", "↓": "down", "←": "left", "→": "right", ",": "comma", " ": "space",
}  # fmt: skip
_SENT: Final = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+[": "escape"}
"""What a terminal sends for these."""


class KeyFault(NamedTuple):
    """A wish that does not hold: of which command, and what is wrong and what to do, as a sentence without its place.

    Quotes what stands in the settings.
    """

    command_id: str
    words: str

    def __str__(self) -> str:
        return f"{where(f'keys.{self.command_id}')}: {self.words}"


class Keymap(NamedTuple):
    """All commands with the keys that hold, and what is wrong with the wishes that do not."""

    commands: tuple[ActionSpec, ...]
    faults: tuple[KeyFault, ...] = ()

    @property
    def changes(self) -> dict[str, str]:
        """By the id of each binding that differs from the default: its keys, as Textual takes them."""
        changes: dict[str, str] = {}
        for command, default in zip(self.commands, COMMANDS, strict=True):
            keys = command.keys.split(" ")
            if command.keys == default.keys:
                continue
            if command.is_numbered:
                changes |= {f"{command.id}.{number}": key for number, key in enumerate(keys)}
            else:
                changes[command.id] = ",".join(keys)
        return changes


def keymap(wishes: Iterable[tuple[str, Sequence[str]]]) -> Keymap:
    """The keys that hold. A command whose wish is wrong, or clashes with another's keys, keeps its defaults."""
    by_id = {command.id: command for command in COMMANDS}
    faults: list[KeyFault] = []
    wanted: dict[str, tuple[str, ...]] = {}
    for command_id, words in wishes:
        command = by_id.get(command_id)
        keys = tuple(dict.fromkeys(key_of(word) or "" for word in words))
        if command is None:
            meant = did_you_mean(command_id, by_id)
            faults.append(
                KeyFault(
                    command_id,
                    f"there is no command {quoted(command_id, 40)}; {meant or '`agentwatch help keys` has all'}",
                )
            )
        elif fault := _fault(command, words, keys):
            faults.append(KeyFault(command_id, f"{fault}; it keeps {command.keys_label}"))
        else:
            wanted[command_id] = keys
    while clashes := list(_clashes(_with(wanted))):
        for command_id, words in clashes:
            if wanted.pop(command_id, None) is not None:
                faults.append(KeyFault(command_id, f"{words}; give one of them another key"))
    return Keymap(_with(wanted), tuple(faults))


def key_of(word: str) -> str | None:
    """A key by Textual's name for it; None if there is none that a terminal could send."""
    if not word:
        return None
    text = _ALIASES.get(word) or re.sub(r"^\^(?=.)", "ctrl+", word).replace("⇧", "shift+")
    head, base = re.fullmatch(r"(?:(.+)\+)?(.+)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    modifiers = sorted(head.lower().split("+")) if head else []
    if modifiers or len(base) > 1:
        base = _ALIASES.get(base.lower(), base.lower())
    key = "+".join([*modifiers, base])
    if key in _SENT:
        return _SENT[key]
    if modifiers == ["shift"] and len(base) == 1 and base.isalpha():
        return base.upper()
    is_known = base in _NAMES or (len(base) == 1 and (base.isalnum() if modifiers else base.isprintable()))
    return key if _MODIFIERS.issuperset(modifiers) and (is_known or key == "comma") else None


def _fault(command: ActionSpec, words: Sequence[str], keys: Sequence[str]) -> str:
    """What is wrong with the keys that are wanted for a command, "" if nothing is."""
    if "" in keys:
        wrong = next(word for word in words if key_of(word) is None)
        return f"{quoted(wrong, 40)} is no key; write one such as x, R, ctrl+r, f5 or pageup"
    defaults = command.keys.split(" ")
    if command.is_numbered and len(keys) != len(defaults):
        return f"it needs a list of {len(defaults)} different keys, one for each of its numbers"
    if (command.priority and Home.REPLAY not in command.homes) or Home.FILTER in command.homes:
        for key in keys:
            if key not in defaults and (len(key) == 1 or key == "comma" or key in _WRITING):
                return f"{quoted(key_label(key), 40)} is needed where you write; take another, such as ctrl+r or f9"
    return ""


def _with(wanted: Mapping[str, Sequence[str]]) -> tuple[ActionSpec, ...]:
    """All commands, some with other keys than their own."""
    commands: list[ActionSpec] = []
    for command in COMMANDS:
        keys = wanted.get(command.id)
        kept = KEPT.get(command.id)
        commands.append(
            command
            if keys is None
            else command._replace(keys=" ".join(dict.fromkeys((*keys, kept) if kept is not None else keys)))
        )
    return tuple(commands)


def _clashes(commands: Sequence[ActionSpec]) -> Iterator[tuple[str, str]]:
    """The id of each command that has a key which means another one in the same place, and words that say so.

    What shares a key by default may do so: one of the two steps back where the other works.
    """
    defaults = {command.id: set(command.keys.split(" ")) for command in COMMANDS}
    for place, homes in _HERE.items():
        having: dict[str, list[str]] = {}
        for command in commands:
            if not set(homes).isdisjoint(command.homes) or (command.priority and Home.APP in command.homes):
                for key in command.keys.split(" "):
                    for other in having.setdefault(key, []):
                        if defaults[other].isdisjoint(defaults[command.id]):
                            words = f"{other} and {command.id} would both have the key {key_label(key)} in {place}"
                            yield from ((one, words) for one in (other, command.id))
                    having[key].append(command.id)
