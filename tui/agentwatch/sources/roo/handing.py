"""Which task was handed on by which: said by history items of late, and told before that by the words handed over.

A parent's messages hold each call of `new_task` with its message, and that message is the first of the child's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from agentwatch.sources.roo.item import Item
from agentwatch.sources.roo.talk import Talk

_SLACK: Final = 1.0
"""Seconds by which the clock may step back between a call and the first word of the child."""


@dataclass(frozen=True, slots=True)
class Handing:
    """Who handed a task on, and by which call: `at` is when that was made, None where it is not found.

    `is_said`: the history item names the parent. `asked_at` is that of a run.
    """

    parent: str
    at: float | None
    is_said: bool
    asked_at: float | None


def handings(tasks: Iterable[tuple[Item, Talk]]) -> Mapping[str, Handing]:
    """How each task that another one handed on came to be, by its id."""
    tasks = list(tasks)
    calls: dict[str, list[tuple[float, str, float]]] = defaultdict(list)
    for item, talk in tasks:
        for call in talk.calls:
            calls[call.words].append((call.at, item.id, call.asked_at))
    found: dict[str, Handing] = {}
    for item, talk in tasks:
        begun = (talk.began_at or 0.0) + _SLACK
        above = [
            (at, caller, asked_at)
            for at, caller, asked_at in calls.get(talk.words, ())
            if at <= begun and caller != item.id and item.parent in (None, caller)
        ]
        # The same words may be handed over again, for a retry: the last call before is the one.
        at, caller, asked_at = max(above, default=(None, item.parent, None))
        if caller is not None:
            found[item.id] = Handing(caller, at, item.parent is not None, asked_at)
    return found
