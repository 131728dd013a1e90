"""Claude Code: its name, and the calls of its hooks. The module `claude_code_reader` reads its sessions."""

import json
from typing import NamedTuple

from agentwatch.sources.sessions.fields import Fields, as_object, nested, objects, text

NAME = "claude-code"  # the name of the source


_MAX_BYTES = 16 * 1024 * 1024
ASKS = "PermissionRequest"  # the name of the hook event: a tool needs a human's permission


class HookCall(NamedTuple):
    """One call of a hook. A missing text is None, and all texts are untrusted. `agent_id` is None for the session's own
    agent. `last_message` is always complete, but the transcript may still lack its last lines. `stop_hook_active` tells
    whether a hook has already blocked a stop. `given` has the arguments of a tool, and `answered` its result."""

    event: str
    session_id: str
    cwd: str | None = None
    agent_id: str | None = None
    agent_transcript: str | None = None
    last_message: str | None = None
    tool: str | None = None
    tool_use_id: str | None = None
    stop_hook_active: bool = False
    given: Fields = as_object(None)
    answered: Fields = as_object(None)
    transcript: str | None = None
    suggestions: tuple[Fields, ...] = ()


def read_hook_call(payload: bytes | str) -> HookCall | None:
    """Parse the JSON that Claude Code gives to a hook. Return None if it is malformed."""
    if len(payload) > _MAX_BYTES:
        return None
    try:
        fields = as_object(json.loads(payload))
    except (ValueError, RecursionError):
        return None
    event, session_id = text(fields, "hook_event_name"), text(fields, "session_id")
    if event is None or session_id is None:
        return None
    if event == ASKS and (text(fields, "tool_name") is None or not isinstance(fields.get("tool_input"), dict)):
        # If a request for a permission names no tool, it cannot be answered.
        return None
    return HookCall(
        event=event,
        session_id=session_id,
        cwd=text(fields, "cwd"),
        agent_id=text(fields, "agent_id"),
        agent_transcript=text(fields, "agent_transcript_path"),
        last_message=text(fields, "last_assistant_message"),
        tool=text(fields, "tool_name"),
        tool_use_id=text(fields, "tool_use_id"),
        stop_hook_active=fields.get("stop_hook_active") is True,
        given=nested(fields, "tool_input"),
        answered=nested(fields, "tool_response"),
        transcript=text(fields, "transcript_path"),
        suggestions=tuple(objects(fields, "permission_suggestions")),
    )
