"""How an agent stands, by its own transcript first and its parent's word second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from agentwatch.delegation.run import Message, RunState
from agentwatch.sources.claude_code.calls import Answer
from agentwatch.sources.claude_code.conversation import UNREAD, Conversation
from agentwatch.sources.sessions.lineage import LEFT_BEHIND, WORDLESS

_BY_HUMAN: Final = ("[request interrupted", "interrupted by user", "the user doesn't want", "user rejected")
_LIMIT: Final = re.compile(r'(?:this agent|Agent ".*") stopped at its \d{1,9}-turn limit')
_LOST: Final = ("[tool call did not complete", "no completion record")
_STATES: Final = {
    "failed": RunState.FAILED,
    "killed": RunState.CANCELED,
    "stopped": RunState.CANCELED,
    "canceled": RunState.CANCELED,
    "cancelled": RunState.CANCELED,
}


class Standing(NamedTuple):
    """State, the words of the program for it, the return, and when it ended."""

    state: RunState
    reason: str = ""
    said: Message | None = None
    ended_at: float | None = None


def standing(conversation: Conversation | None, heard: Sequence[Answer]) -> Standing:
    """`conversation` is None where the agent has no transcript; `heard` is what its parents were told, oldest first."""
    if conversation is not None and conversation.is_unread:
        # What cannot be read may say that it failed, so it is not said to be over.
        copies = [answer.said for answer in heard if answer.said is not None and answer.at >= conversation.round_at]
        ended_at = conversation.ended_at
        return Standing(RunState.ENDED, "", copies[-1], ended_at) if copies else Standing(RunState.SUBMITTED, UNREAD)
    if conversation is not None and conversation.state not in (RunState.SUBMITTED, RunState.WORKING):
        return Standing(conversation.state, conversation.reason, conversation.said, conversation.ended_at)
    begun = conversation is not None and conversation.started_at is not None
    open_state = RunState.WORKING if begun else RunState.SUBMITTED
    told = [answer for answer in heard if not answer.launched]
    # What ended an earlier round says nothing of one that began later.
    if conversation is not None and conversation.rounds > 1:
        told = [answer for answer in told if answer.at >= conversation.round_at]
    if not told:
        return Standing(open_state)
    last = told[-1]
    if last.error is not None:
        return _failed(last.error, last.at, begun=begun)
    if any(words in last.summary.lower() for words in _LOST):
        return Standing(RunState.FAILED, LEFT_BEHIND, None, last.at)
    if _LIMIT.match(last.summary):
        return Standing(RunState.FAILED, last.summary, None, last.at)
    state = _STATES.get(last.status, RunState.ENDED)
    if state is not RunState.ENDED:
        return Standing(state, last.summary or last.status, None, last.at)
    own = conversation.last_text() if conversation is not None else None
    said = own or last.said
    return Standing(RunState.ENDED, WORDLESS if said is None else "", said, last.at)


def _failed(error: str, at: float, *, begun: bool) -> Standing:
    lowered = error.lower()
    if any(words in lowered for words in _LOST):
        return Standing(RunState.FAILED, LEFT_BEHIND, None, at)
    if any(words in lowered for words in _BY_HUMAN):
        return Standing(RunState.CANCELED, error, None, at)
    return Standing(RunState.FAILED, LEFT_BEHIND if begun and "api error" not in lowered else error, None, at)
