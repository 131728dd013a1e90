"""A session of Claude Code in which each case is a child: the text that it was asked, and the one that it returned."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

A_MINUTE_AGO = datetime.now(UTC) - timedelta(minutes=1)
_COMMON = {"sessionId": "s", "version": "2.1.329", "timestamp": A_MINUTE_AGO.isoformat().replace("+00:00", "Z")}


def _record(path: Path, cwd: str, agent: str | None, message: dict[str, object]):
    own = {"agentId": agent} if agent else {}
    record = {"type": message["role"], **_COMMON, **own, "cwd": cwd, "isSidechain": bool(agent), "message": message}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**record, "uuid": f"{path.name}-{file.tell()}"}) + "\n")


def _answer(agent: str, block: dict[str, object], stop: str) -> dict[str, object]:
    known = {"id": f"msg-{agent}", "type": "message", "role": "assistant", "model": "claude-test-1"}
    return {**known, "content": [block], "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}}


def write_session(home: Path, workspace: Path, children: Iterable[tuple[str, str, str]]):
    """Write the session: of each child its name, what it was asked and what it returned."""
    project = home / ".claude" / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(workspace))
    agents = project / "s" / "subagents"
    agents.mkdir(parents=True)
    main, cwd = project / "s.jsonl", str(workspace)
    _record(main, cwd, None, {"role": "user", "content": "Plant the garden."})
    for name, asked, returned in children:
        call, agent, own = f"call_{name}", f"a{name}", agents / f"agent-a{name}.jsonl"
        given = {"description": name, "prompt": asked, "subagent_type": "general-purpose"}
        use = {"type": "tool_use", "id": call, "name": "Agent", "input": given}
        _record(main, cwd, None, _answer(call, use, "tool_use"))
        described = {"agentType": "general-purpose", "description": name, "toolUseId": call, "spawnDepth": 1}
        own.with_suffix(".meta.json").write_text(json.dumps(described))
        _record(own, cwd, agent, {"role": "user", "content": asked})
        _record(own, cwd, agent, _answer(agent, {"type": "text", "text": returned}, "end_turn"))
        result = {"tool_use_id": call, "type": "tool_result", "content": [{"type": "text", "text": returned}]}
        _record(main, cwd, None, {"role": "user", "content": [result]})
