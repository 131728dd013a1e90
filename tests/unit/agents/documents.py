"""Handoffs and returns that keep their contracts."""

import json
from collections.abc import Sequence


def packet(task_id: str = "shop.api", **more: object) -> str:
    fields = {
        "handoff_schema": "composability.handoff_packet.v1",
        "task_id": task_id,
        "objective": "Build the API.",
        "evidence": [{"path": "docs/api.md", "purpose": "The design.", "required": True}],
        "success_criteria": ["The tests pass"],
        "risks": [{"risk": "The schema moves.", "mitigation": "Pin it."}],
    }
    return json.dumps(fields | more, indent=2) + "\n"


def returned(
    state: str = "ERROR",
    summary: str = "The migration timed out.",
    more: str = "",
    *,
    code: str = "E_TOOL_FAILURE",
    limits: Sequence[str] = (),
) -> str:
    error = f"error_code: {code}\nretry_recommended: yes\nretry_hint: Raise the time-out.\n"
    limitations = "".join(("limitations:\n", *(f"- {limit}\n" for limit in limits))) if limits else ""
    return (
        f"## Status\nstate: {state}\nsummary: {summary}\n{error if state == 'ERROR' else ''}{more}\n"
        "## Deliverables\n- (none)\n\n## Evidence\n- docs/api.md - read\n\n"
        "## Runtime Attestation\nruntime_model_reported: some/model\nruntime_mode_reported: code\n"
        f"files_created:\n- (none)\nfiles_modified:\n- (none)\n{limitations}"
    )


def subagent(status: str, summary: str, *blockers: str, session: str = "sess_1735460684_a1b2c3") -> str:
    """Return a subagent-return with these `blockers`; without any it has made `docs/api.md`."""
    errors = [
        {"type": "input", "message": blocker, "recoverable": True, "recommendation": "Say so."} for blocker in blockers
    ]
    fields = {
        "status": status,
        "summary": summary,
        "artifacts": [] if blockers else [{"type": "documentation", "path": "docs/api.md", "summary": "The design."}],
        "metadata": {
            "session_id": session,
            "agent_type": "implementer",
            "delegation_depth": 1,
            "delegation_path": ["implementer"],
        },
    }
    return json.dumps(fields | ({"errors": errors} if errors else {}), indent=2) + "\n"
