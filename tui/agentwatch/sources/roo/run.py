"""The run of a task, of what its history item, its messages and its parent's say.

Which task handed it on is said by history items of late. Before, the words told it: a parent's messages hold each call
of `new_task` with its message, and that is the first of the child's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.roo.item import Item
from agentwatch.sources.roo.talk import CANCELED, Talk

NAME: Final = "roo"

_BY_WORDS: Final = "its first message is what its parent handed over"

_STATES: Final = {
    "active": RunState.WORKING,
    "delegated": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "aborted": RunState.CANCELED,
}

_SLACK: Final = 1.0
"""Seconds by which the clock may step back between a call and the first word of the child."""


class Handing(NamedTuple):
    """Who handed a task on, and by which call: `at` is when that was made, None where it is not known.
    `is_said`: the history item names the parent. `asked_at` is that of a run."""

    parent: str
    at: float | None
    is_said: bool
    asked_at: float | None


def handings(tasks: Iterable[tuple[Item, Talk]]) -> Mapping[str, Handing]:
    """How each task that another one handed on came to be, by its id."""
    tasks = list(tasks)
    calls: defaultdict[str, list[tuple[float, str, float]]] = defaultdict(list)
    for item, talk in tasks:
        for call in talk.calls:
            calls[call.words].append((call.at, item.id, call.asked_at))
    handed: dict[str, Handing] = {}
    for item, talk in tasks:
        begun = (talk.began_at or 0.0) + _SLACK
        above = [
            call
            for call in calls.get(talk.words, ())
            if call[0] <= begun and call[1] != item.id and item.parent in (None, call[1])
        ]
        # The same words may be handed over again, for a retry: the last call before is the one.
        at, caller, asked_at = max(above, default=(None, item.parent, None))
        if caller is not None:
            handed[item.id] = Handing(caller, at, item.parent is not None, asked_at)
    return handed


def run_of(item: Item, talk: Talk, place: str, handing: Handing | None, is_waited_for: bool) -> Run:
    """The run of a task. `is_waited_for`: its last call of `new_task` has become a task."""
    # Before 2025-11 no task had a status: what it said last tells how it is.
    implied = "completed" if talk.finished else "active"
    state = _STATES.get(item.status or implied, RunState.WORKING)
    if state is RunState.WORKING and talk.canceled and item.status != "delegated":
        state = RunState.CANCELED
    is_delegating = item.status == "delegated" or (talk.calling and is_waited_for)
    said = talk.results[-1] if state is RunState.ENDED and talk.results else None
    link = ""
    if handing is not None:
        link = "its history item names the parent" if handing.is_said else _BY_WORDS
    updated_at = max(item.at, talk.last_at or 0.0)
    return Run(
        source=NAME,
        session_id=item.id,
        parent_session=handing.parent if handing is not None else None,
        state=state,
        place=place,
        started_at=talk.began_at or item.at,
        updated_at=updated_at,
        ended_at=updated_at if state is not RunState.WORKING else None,
        link=link,
        reason=(CANCELED if talk.canceled else item.status or "") if state is RunState.CANCELED else "",
        agent=item.mode,
        mode=item.mode,
        prompt=talk.prompt or item.task,
        said=said,
        rounds=talk.rounds if said is None else talk.rounds[:-1],
        todos=talk.todos,
        tokens=item.tokens or talk.tokens,
        waiting=talk.waiting if state is RunState.WORKING and not is_delegating else "",
        asked_at=handing.asked_at if handing is not None else None,
    )
