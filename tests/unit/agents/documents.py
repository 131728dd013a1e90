"""Handoffs and returns that keep their contracts."""

from __future__ import annotations

import json


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


def returned(state: str = "ERROR", summary: str = "The migration timed out.", more: str = "") -> str:
    error = "error_code: E_TOOL_FAILURE\nretry_recommended: yes\nretry_hint: Raise the time-out.\n"
    return (
        f"## Status\nstate: {state}\nsummary: {summary}\n{error if state == 'ERROR' else ''}{more}\n"
        "## Deliverables\n- (none)\n\n## Evidence\n- docs/api.md - read\n\n"
        "## Runtime Attestation\nruntime_model_reported: some/model\nruntime_mode_reported: code\n"
        "files_created:\n- (none)\nfiles_modified:\n- (none)\n"
    )
