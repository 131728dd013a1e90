"""The run of a task, of what its history item, its messages and its parent's say."""

from __future__ import annotations

from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.roo.handing import Handing
from agentwatch.sources.roo.item import Item
from agentwatch.sources.roo.talk import CANCELED, Talk

NAME: Final = "roo"

_STATES: Final = {
    "active": RunState.WORKING,
    "delegated": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "aborted": RunState.CANCELED,
}


def run_of(item: Item, talk: Talk, place: str, handing: Handing | None, is_waited_for: bool) -> Run:
    """The run of a task. `is_waited_for`: its last call of `new_task` has become a task."""
    # Before 2025-11 no task had a status: what it said last tells how it is.
    implied = "completed" if talk.finished else "active"
    state = _STATES.get(item.status or implied, RunState.WORKING)
    if state is RunState.WORKING and talk.canceled and item.status != "delegated":
        state = RunState.CANCELED
    is_delegating = item.status == "delegated" or (talk.calling and is_waited_for)
    ended = state is RunState.ENDED
    said = talk.results[-1] if ended and talk.results else None
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
        link=_link(handing),
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


def _link(handing: Handing | None) -> str:
    if handing is None:
        return ""
    return (
        "its history item names the parent" if handing.is_said else "its first message is what its parent handed over"
    )
