"""Handoffs and returns as agents write them."""

import json
import re
import time
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

SESSION = "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10"
_RETURN = """\
## Status
state: {state}
task_id: {task_id}
summary: {summary}
{more}
## Deliverables
- (none)

## Evidence
- {evidence}

## Runtime Attestation
runtime_model_reported: some/model
runtime_mode_reported: code
files_created:
{created}
files_modified:
- (none)
"""
FAILURE = "error_code: E_TOOL_FAILURE\nretry_recommended: yes\nretry_hint: Raise the time-out.\n"


def handoff(task_id: str = "shop.api", objective: str = "Build the API.", **changes: object) -> str:
    """Return the text of a handoff."""
    packet = {
        "task_id": task_id,
        "objective": objective,
        "evidence": [{"path": "docs/api.md", "purpose": "the design", "required": True}],
        "success_criteria": ["The tests pass"],
        "risks": [{"risk": "The schema moves", "mitigation": "Pin it"}],
        "mode": "code",
    }
    return json.dumps(packet | changes, indent=2, ensure_ascii=False) + "\n"


def returned(  # noqa: PLR0917
    state: str = "ERROR",
    task_id: str = "shop.api",
    summary: str = "The migration timed out.",
    more: str = FAILURE,
    evidence: str = "docs/api.md - read",
    created: str = "- (none)",
) -> str:
    """Return the text of a return."""
    return _RETURN.format(state=state, task_id=task_id, summary=summary, more=more, evidence=evidence, created=created)


FAILED = {"api.handoff.json": handoff(), "api.return.md": returned(), "docs/api.md": "# API\n"}
"""The files of a task that failed."""


def blocked(task_id: str = "shop.auth", *blockers: str) -> str:
    """Return the JSON report of a child that is blocked."""
    metadata = {
        "agent_name": "auditor",
        "task_id": task_id,
        "status": "blocked",
        "verbosity_level": "summary",
        "confidence_level": 0.8,
    }
    report = {"report_metadata": metadata, "findings": {"context_map": [["Sandy.", None]]}, "blockers": blockers}
    return json.dumps({**report, "recommendations": [], "identified_gaps": []})


SHOP = {
    "shop.handoff.json": handoff("shop", "Ship the new checkout"),
    "plan.handoff.json": handoff("shop.plan", "Plan the work", parent_task_id="shop"),
    "plan.return.md": returned("SUCCESS", "shop.plan", "Five packets, no blockers.", ""),
    "api.handoff.json": handoff("shop.api", "Build the checkout API", parent_task_id="shop"),
    "api.return.md": returned(),
    "docs.handoff.json": handoff("shop.docs", "Write the guide", parent_task_id="shop"),
    "docs.return.md": returned("SUCCESS", "shop.docs", "It is written.", "", created="- docs/guide.md"),
    "auth.handoff.json": handoff("shop.auth", "Audit the login", parent_task_id="shop"),
    "auth.return.json": blocked("shop.auth", "Which flow is in scope?"),
    "ui.handoff.json": handoff("shop.ui", "Build the payment form", parent_task_id="shop", mode="design"),
    "docs/api.md": "# API\n",
}
"""A task with five children: completed, failed, completed with a false claim, blocked, and not begun."""


def line(at: float, kind: str, session: str, cwd: str, **more: object) -> str:
    """Return a record of a transcript of Claude Code."""
    stamp = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    common = {"isSidechain": False, "uuid": str(uuid4()), "timestamp": stamp, "version": "2.1.329"}
    return json.dumps({"type": kind, **more, **common, "cwd": cwd, "sessionId": session}) + "\n"


def session(workspace: Path, *, session_id: str = SESSION, ago: float = 60) -> tuple[Path, str]:
    """Return the path and the transcript of a session of Claude Code that said something and runs a command."""
    at, cwd = time.time() - ago, str(workspace)
    path = Path.home() / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd) / f"{session_id}.jsonl"
    text = line(at, "user", session_id, cwd, message={"role": "user", "content": "Export the invoices."})
    text += said(at + 1, session_id, cwd, {"type": "text", "text": "I read the totals first."})
    text += called(at + 2, session_id, cwd, "Bash", {"command": "npm test -- --watch=false"})
    return path, text


def said(at: float, session_id: str, cwd: str, *blocks: object, stop: str = "tool_use") -> str:
    """Return an answer of the model; `stop="end_turn"` makes it the last answer of the turn."""
    message = {"id": f"msg_{uuid4()}", "type": "message", "role": "assistant", "model": "claude-test-1"}
    usage = {"input_tokens": 100, "output_tokens": 10}
    return line(
        at, "assistant", session_id, cwd, message={**message, "content": blocks, "stop_reason": stop, "usage": usage}
    )


def called(at: float, session_id: str, cwd: str, tool: str, given: object) -> str:
    """Return a call of a tool."""
    return said(at, session_id, cwd, {"type": "tool_use", "id": f"call_{tool}", "name": tool, "input": given})


def decisions(workspace: Path) -> list[dict[str, Any]]:
    """Return the decisions in the directory where agents read them."""
    files = (workspace / ".agentwatch" / "decisions").glob("*.json")
    return [json.loads(b64decode(json.loads(path.read_text("utf-8"))["payload"])) for path in files]


def child(workspace: Path, packet: str, command: str, output: str, report: str) -> list[tuple[Path, str]]:
    """Return the files of a session that hands a packet to a child; the child runs a failing command and reports."""
    path, text = session(workspace)
    at, cwd = time.time() - 50, str(workspace)
    text += called(at, SESSION, cwd, "Agent", {"description": "d", "prompt": packet, "subagent_type": "code"})
    own = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    meta = {"agentType": "code", "description": "the totals", "spawnDepth": 1, "toolUseId": "call_Agent"}
    result = {"tool_use_id": "call_Bash", "type": "tool_result", "content": output, "is_error": True}
    lines = [
        line(at + 1, "user", SESSION, cwd, message={"role": "user", "content": packet}),
        called(at + 2, SESSION, cwd, "Bash", {"command": command}),
        line(at + 3, "user", SESSION, cwd, message={"role": "user", "content": [result]}),
        said(at + 4, SESSION, cwd, {"type": "text", "text": report}, stop="end_turn"),
    ]
    own_lines = "".join(json.dumps({**json.loads(one), "isSidechain": True, "agentId": "a1"}) + "\n" for one in lines)
    return [(own, own_lines), (own.with_suffix(".meta.json"), json.dumps(meta)), (path, text)]
