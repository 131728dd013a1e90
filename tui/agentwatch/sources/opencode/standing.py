"""How a session stands: by its own last message, and where this does not tell, by what its parent was told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentwatch.delegation.run import RunState
from agentwatch.sources.opencode.records import ToolCall, TurnRecord
from agentwatch.sources.opencode.session import Dialogue

OVER: Final = frozenset({RunState.ENDED, RunState.FAILED, RunState.CANCELED})

_CANCELED: Final = ("Task cancelled", "Tool execution aborted", "Tool execution was interrupted")
"""What stands in a task call that a human aborted; Kilo says who did it behind it."""

LEFT_BEHIND: Final = "left behind unfinished: its parent went on without it"
PATIENCE: Final = 3.0
"""Seconds after which a call that shows nothing of its work is taken to wait for a permission."""


class Standing(NamedTuple):
    """`reason` is in the program's words. `ended` is in milliseconds, 0 where it is not known."""

    state: RunState
    reason: str = ""
    ended: int = 0


def judge(
    session: Dialogue,
    parent: Dialogue | None,
    parent_state: RunState | None,
    calls_a_tool: Callable[[str], bool],
) -> Standing:
    """How a session stands. `parent_state` is None where there is no parent or its state is not known.
    `calls_a_tool` tells it of a message: a model that says "stop" beside a call is asked again."""
    asked, last = session.last_round.asked, session.last_round.last
    has_answered = any(one.answers for one in session.rounds())
    nothing_yet = Standing(RunState.WORKING if has_answered else RunState.SUBMITTED)
    own = standing_of(last) if last is not None else nothing_yet
    call = parent.call_for(session.row.id) if parent is not None else None
    if parent is None or call is None:
        return own
    begun = asked.created if asked is not None else 0
    told = _told(call, begun)
    if told is None and call.is_answered_later:
        told = _noticed(session, parent, begun)
    if own.state is RunState.ENDED and told is None and last is not None and calls_a_tool(last.id):
        own = Standing(RunState.WORKING)
    if own.state not in OVER:
        if told is not None:
            return told
        return Standing(RunState.FAILED, LEFT_BEHIND) if _is_left_behind(call, parent, parent_state) else own
    if own.state is RunState.ENDED and told is not None and told.state is RunState.FAILED:
        return told
    return own


def judge_call(call: ToolCall, parent: Dialogue, parent_state: RunState | None) -> Standing | None:
    """How a task stands that has no session; None as long as it may still get one."""
    if not call.is_open:
        return _told(call, 0) or Standing(RunState.WORKING)
    return Standing(RunState.FAILED, LEFT_BEHIND) if _is_left_behind(call, parent, parent_state) else None


def _is_left_behind(call: ToolCall, parent: Dialogue, parent_state: RunState | None) -> bool:
    """Whether nobody waits for the answer to a call any more: its program was killed and its parent went on."""
    return call.is_open and (parent_state in OVER or parent.goes_on_after(call.message))


def waits_for(session: Dialogue, now: float) -> tuple[str, float | None]:
    """What a working session waits for from a human, and when to ask again, in seconds since the epoch."""
    due: float | None = None
    for call in sorted(session.calls.values(), key=lambda call: call.id):
        if not call.waits or session.goes_on_after(call.message):
            continue
        at = call.started / 1000 + PATIENCE
        if call.waits_surely or now >= at:
            return call.waits, None
        due = at if due is None else min(due, at)
    return "", due


def standing_of(last: TurnRecord) -> Standing:
    """How a round stands by its last message."""
    if last.is_aborted:
        return Standing(RunState.CANCELED, last.error, last.completed)
    if last.error:
        return Standing(RunState.FAILED, last.error, last.completed)
    if last.is_ended:
        return Standing(RunState.ENDED, "", last.completed)
    return Standing(RunState.WORKING)


def _told(call: ToolCall, begun: int) -> Standing | None:
    """By the call that waited for the session, unless that was for an earlier round."""
    if call.is_open or call.is_answered_later or call.ended < begun:
        return None
    if call.error.startswith(_CANCELED):
        return Standing(RunState.CANCELED, call.error, call.ended)
    if call.error:
        return Standing(RunState.FAILED, call.error, call.ended)
    return Standing(RunState.ENDED, "", call.ended)


def _noticed(session: Dialogue, parent: Dialogue, begun: int) -> Standing | None:
    """By what the parent was told of a session in the background."""
    told = parent.notice_about(session.row.id)
    if told is None or told[0] < begun:
        return None
    at, notice = told
    return (
        Standing(RunState.FAILED, notice.text or "it failed", at)
        if notice.is_error
        else Standing(RunState.ENDED, "", at)
    )
