"""Claude Code: its name, and the calls of its hooks as typed values. `claude_code_reader` reads its sessions."""

import json
from typing import NamedTuple

from agentwatch.sources.sessions.fields import Fields, as_object, nested, objects, text

NAME = "claude-code"  # the name of the program in its runs


_MAX_BYTES = 16 * 1024 * 1024
ASKS = "PermissionRequest"  # the event of a call that a person is asked about


class HookCall(NamedTuple):
    """One call of a hook. A missing field is None, and every text is untrusted. `agent_id` is None for the session's
    own agent. `last_message` is complete, while the transcript may still lack its last lines. If `stop_hook_active`, a
    stop was already blocked. `given` and `answered` are a tool's arguments and result."""

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
    """Return the call in a hook's payload, or None if the payload is malformed. Never raise, and read no file."""
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
        # The request does not say what it asks for.
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
