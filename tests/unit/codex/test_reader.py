"""The reader of Codex on a home that grows, moves, breaks and lies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.run import RunState
from tests.unit.codex.home import Home

HOSTILE = [
    {"type": "task_complete", "last_agent_message": [1], "error": {"message": {}}},
    {"type": "item_completed", "item": {"type": "CollabAgentToolCall", "tool": [], "receiver_thread_ids": [1, {}]}},
    {"type": "item_completed", "item": {"type": "CollabAgentToolCall", "tool": "close_agent", "agents_states": 7}},
    {"type": "item_completed", "item": {"type": "UserMessage", "content": [None, {"text": 3}]}},
    {"type": "function_call", "name": "spawn_agent", "call_id": "x", "arguments": "["},
    {"type": "function_call", "name": "spawn_agent", "call_id": "y", "arguments": "[]"},
    {"type": "function_call", "name": "spawn_agent", "call_id": "\ud800", "arguments": '{"message": "\ud800 x"}'},
    {"type": "function_call", "name": "request_user_input", "call_id": "\udfff", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "y", "output": [{"text": 5}, "\ud800"]},
    {"type": "function_call", "name": "update_plan", "arguments": '{"plan": [1, {"step": 2, "status": []}]}'},
    {"type": ["token_count"], "info": {"total_token_usage": {"total_tokens": True}}},
    {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 10**400}}},
    {"type": "user_message", "message": "\ud800"},
    {"type": "task_started", "turn_id": {}},
    [[]],
]
TIMES = ["9999999-01-01", "0001-01-01T00:00:00+23:59", 5, None, "2027-01-15T08:00:00"]


def hostile_lines() -> st.SearchStrategy[bytes]:
    kinds = st.sampled_from(["event_msg", "response_item", "turn_context", "session_meta", {}, 7])
    known = st.builds(
        lambda time, kind, payload: json.dumps(
            {"timestamp": time, "type": kind, "payload": payload}, separators=(",", ":")
        ).encode(),
        st.sampled_from(TIMES),
        kinds,
        st.sampled_from(HOSTILE),
    )
    return st.one_of(st.binary(max_size=80), known, st.just(b"[" * 5000))


@given(junk=st.lists(hostile_lines(), max_size=12))
def test_hostile_lines_neither_break_the_reader_nor_hide_the_others(
    junk: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Home(tmp_path_factory.mktemp("codex"))
    root = home.root()
    for line in junk:
        root.lines.append(line + b"\n")
    home.write(root.begin().complete("Done."))
    home.read()
    run = home.run(root)
    assert run.said is not None
    assert (run.state, run.said.opening) == (RunState.ENDED, "Done.")
    for message in (run.prompt, run.said, *(one.said for one in run.rounds[:-1] if one.said)):
        assert message is not None
        assert home.reader.text(message.digest) is not None
