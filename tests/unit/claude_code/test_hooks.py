"""The payloads of hooks."""

from __future__ import annotations

import json

import pytest

from agentwatch.sources.claude_code.hooks import HookCall, read_hook_call

COMMON = {"session_id": "s1", "transcript_path": "/h/s1.jsonl", "cwd": "/w", "permission_mode": "default"}


def test_the_stop_of_an_agent_carries_its_last_words() -> None:
    payload = COMMON | {
        "hook_event_name": "SubagentStop",
        "agent_id": "a1",
        "agent_type": "architect",
        "agent_transcript_path": "/h/s1/subagents/agent-a1.jsonl",
        "last_assistant_message": "## Status",
        "stop_hook_active": True,
        "background_tasks": [],
    }
    assert read_hook_call(json.dumps(payload).encode()) == HookCall(
        event="SubagentStop",
        session_id="s1",
        cwd="/w",
        agent_id="a1",
        agent_transcript="/h/s1/subagents/agent-a1.jsonl",
        last_message="## Status",
        stop_hook_active=True,
        transcript="/h/s1.jsonl",
    )


@pytest.mark.parametrize(
    "payload", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"session_id": "s1"}', b'{"hook_event_name": 7}']
)
def test_what_is_no_payload_is_none(payload: bytes) -> None:
    assert read_hook_call(payload) is None


def test_a_permission_that_is_asked_for_carries_the_whole_input_and_what_the_program_suggests() -> None:
    asked = COMMON | {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "make"}}
    suggested = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    call = read_hook_call(json.dumps(asked | {"agent_id": "a1", "permission_suggestions": [suggested, 7]}))
    assert call is not None
    assert (call.tool, call.agent_id, call.given) == ("Bash", "a1", {"command": "make"})
    assert call.suggestions == (suggested, {})
    assert read_hook_call(json.dumps({key: value for key, value in asked.items() if key != "tool_name"})) is None
    for odd in (None, "make", ["make"]):
        assert read_hook_call(json.dumps(asked | {"tool_input": odd})) is None, odd
