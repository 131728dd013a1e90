"""Handoffs and returns as agents write them."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
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
    """The text of a handoff packet."""
    packet = {
        "task_id": task_id,
        "objective": objective,
        "evidence": [{"path": "docs/api.md", "purpose": "the design", "required": True}],
        "success_criteria": ["The tests pass"],
        "risks": [{"risk": "The schema moves", "mitigation": "Pin it"}],
        "mode": "code",
    }
    return json.dumps(packet | changes, indent=2, ensure_ascii=False) + "\n"


def returned(
    state: str = "ERROR",
    task_id: str = "shop.api",
    summary: str = "The migration timed out.",
    more: str = FAILURE,
    evidence: str = "docs/api.md - read",
    created: str = "- (none)",
) -> str:
    """The text of a return."""
    return _RETURN.format(state=state, task_id=task_id, summary=summary, more=more, evidence=evidence, created=created)


FAILED = {"api.handoff.json": handoff(), "api.return.md": returned(), "docs/api.md": "# API\n"}
"""A task that failed."""

SHOP = {
    "shop.handoff.json": handoff("shop", "Ship the new checkout"),
    "plan.handoff.json": handoff("shop.plan", "Plan the work", parent_task_id="shop"),
    "plan.return.md": returned("COMPLETED", "shop.plan", "Five packets, no blockers.", ""),
    "api.handoff.json": handoff("shop.api", "Build the checkout API", parent_task_id="shop"),
    "api.return.md": returned(),
    "docs.handoff.json": handoff("shop.docs", "Write the guide", parent_task_id="shop"),
    "docs.return.md": returned("COMPLETED", "shop.docs", "It is written.", "", created="- docs/guide.md"),
    "auth.handoff.json": handoff("shop.auth", "Audit the login", parent_task_id="shop"),
    "auth.return.md": returned("BLOCKED", "shop.auth", "One thing is open.", "blockers:\n- Which flow is in scope?\n"),
    "ui.handoff.json": handoff("shop.ui", "Build the payment form", parent_task_id="shop", mode="design"),
    "docs/api.md": "# API\n",
}
"""A task with five children: completed, failed, completed with a false claim, blocked, and not begun."""


def line(at: float, kind: str, session: str, cwd: str, **more: object) -> str:
    """A record of a transcript of Claude Code."""
    stamp = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    common = {"isSidechain": False, "uuid": str(uuid4()), "timestamp": stamp, "version": "2.1.329"}
    return json.dumps({"type": kind, **more, **common, "cwd": cwd, "sessionId": session}) + "\n"


def session(workspace: Path, *, session_id: str = SESSION, ago: float = 60) -> tuple[Path, str]:
    """A session of Claude Code in this workspace that said something and runs a command; where, and its transcript."""
    at, cwd = time.time() - ago, str(workspace)
    path = Path.home() / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd) / f"{session_id}.jsonl"
    text = line(at, "user", session_id, cwd, message={"role": "user", "content": "Export the invoices."})
    text += said(at + 1, session_id, cwd, {"type": "text", "text": "I read the totals first."})
    text += called(at + 2, session_id, cwd, "Bash", {"command": "npm test -- --watch=false"})
    return path, text


def said(at: float, session_id: str, cwd: str, *blocks: object) -> str:
    """An answer of the model."""
    message = {"id": f"msg_{uuid4()}", "type": "message", "role": "assistant", "model": "claude-test-1"}
    usage = {"input_tokens": 100, "output_tokens": 10}
    return line(at, "assistant", session_id, cwd, message={**message, "content": blocks, "usage": usage})


def called(at: float, session_id: str, cwd: str, tool: str, given: object) -> str:
    """A call of a tool."""
    return said(at, session_id, cwd, {"type": "tool_use", "id": f"call_{tool}", "name": tool, "input": given})
