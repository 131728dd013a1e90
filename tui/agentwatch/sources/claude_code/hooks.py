"""The payloads that Claude Code gives to a hook on its standard input, as a small typed value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from agentwatch.sources.sessions.fields import Fields, inner, mapping, text

_MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook. Every text is foreign and unsanitised; None stands for what the payload does not say.

    `event` is `SubagentStart`, `SubagentStop`, `PostToolUse`, …; `agent_id` is None for the session's own agent.
    `agent_transcript` is the transcript of the agent that stops, `transcript` that of its session. `last_message` is
    whole, while the transcript may still lack its last lines. `stop_hook_active` says that a stop was already blocked.
    `given` and `answered` are what a tool was used with and what came of it.
    """

    event: str
    session_id: str
    cwd: str | None = None
    transcript: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    agent_transcript: str | None = None
    last_message: str | None = None
    tool: str | None = None
    tool_use_id: str | None = None
    stop_hook_active: bool = False
    given: Fields = field(default_factory=dict)
    answered: Fields = field(default_factory=dict)


def read_hook_call(payload: bytes | str) -> HookCall | None:
    """None for what is no payload of a hook. Never raises, never looks at a file."""
    if len(payload) > _MAX_BYTES:
        return None
    try:
        given = mapping(json.loads(payload))
    except (ValueError, RecursionError):
        return None
    event, session_id = text(given, "hook_event_name"), text(given, "session_id")
    if event is None or session_id is None:
        return None
    last = given.get("last_assistant_message")
    return HookCall(
        event,
        session_id,
        text(given, "cwd"),
        text(given, "transcript_path"),
        text(given, "agent_id"),
        text(given, "agent_type"),
        text(given, "agent_transcript_path"),
        last if isinstance(last, str) else None,
        text(given, "tool_name"),
        text(given, "tool_use_id"),
        given.get("stop_hook_active") is True,
        inner(given, "tool_input"),
        inner(given, "tool_response"),
    )
