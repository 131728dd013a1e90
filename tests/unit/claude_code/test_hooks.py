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
    )


def test_the_use_of_a_tool_names_it() -> None:
    payload = COMMON | {"hook_event_name": "PostToolUse", "tool_name": "Agent", "tool_use_id": "toolu_1"}
    call = read_hook_call(json.dumps(payload))
    assert call is not None
    assert (call.tool, call.tool_use_id, call.agent_id, call.last_message) == ("Agent", "toolu_1", None, None)


@pytest.mark.parametrize(
    "payload", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"session_id": "s1"}', b'{"hook_event_name": 7}']
)
def test_what_is_no_payload_is_none(payload: bytes) -> None:
    assert read_hook_call(payload) is None


def test_values_of_other_types_are_not_there() -> None:
    payload = COMMON | {"hook_event_name": "Stop", "cwd": 7, "agent_id": [], "stop_hook_active": "yes"}
    call = read_hook_call(json.dumps(payload))
    assert call == HookCall("Stop", "s1")
