"""A session of Claude Code in which each case is a child: the text that it was asked, and the one that it returned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

A_MINUTE_AGO = datetime.now(UTC) - timedelta(minutes=1)
_COMMON = {"sessionId": "s", "version": "2.1.329", "timestamp": A_MINUTE_AGO.isoformat().replace("+00:00", "Z")}


def _record(path: Path, kind: str, message: dict[str, object], agent: str | None, number: int, cwd: str) -> None:
    record = {"type": kind, **_COMMON, "cwd": cwd, "isSidechain": agent is not None, "uuid": f"{agent}-{number}"}
    if agent is not None:
        record["agentId"] = agent
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**record, "message": message}) + "\n")


def _answer(agent: str, block: dict[str, object], stop: str) -> dict[str, object]:
    known = {"id": f"msg-{agent}", "type": "message", "role": "assistant", "model": "claude-test-1"}
    return {**known, "content": [block], "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}}


def write_session(home: Path, workspace: Path, children: Iterable[tuple[str, str, str]]) -> None:
    """Write the session: of each child its name, what it was asked and what it returned."""
    project = home / ".claude" / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(workspace))
    agents = project / "s" / "subagents"
    agents.mkdir(parents=True)
    main, cwd = project / "s.jsonl", str(workspace)
    _record(main, "user", {"role": "user", "content": "Plant the garden."}, None, 0, cwd)
    for number, (name, asked, returned) in enumerate(children, 1):
        call, agent, own = f"call_{name}", f"a{name}", agents / f"agent-a{name}.jsonl"
        given = {"description": name, "prompt": asked, "subagent_type": "general-purpose"}
        use = {"type": "tool_use", "id": call, "name": "Agent", "input": given}
        _record(main, "assistant", _answer(call, use, "tool_use"), None, 2 * number, cwd)
        described = {"agentType": "general-purpose", "description": name, "toolUseId": call, "spawnDepth": 1}
        own.with_suffix(".meta.json").write_text(json.dumps(described))
        _record(own, "user", {"role": "user", "content": asked}, agent, 1, cwd)
        _record(own, "assistant", _answer(agent, {"type": "text", "text": returned}, "end_turn"), agent, 2, cwd)
        result = {"tool_use_id": call, "type": "tool_result", "content": [{"type": "text", "text": returned}]}
        _record(main, "user", {"role": "user", "content": [result]}, None, 2 * number + 1, cwd)
