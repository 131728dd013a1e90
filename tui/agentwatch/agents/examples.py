"""The contracts for those who write their first one: what each is for, and a minimal example in our own words."""

from __future__ import annotations

from typing import Final, Literal

Name = Literal["handoff-packet", "return-format", "subagent-return", "return-meta", "report-contract"]

PURPOSES: Final[dict[Name, str]] = {
    "handoff-packet": (
        "What a parent hands to a child: bounded, explicit work. It is the first block of the child's prompt."
        " `parent_task_id`, `attempt` and `decision_id` link it; a retry carries the decision_id it carries out."
        " A checklist of todos may follow it in Markdown."
    ),
    "return-format": (
        "What a child gives back as Markdown: four headers of level two, in this spelling. `state` is SUCCESS, PARTIAL"
        " or ERROR; with ERROR, `retry_recommended` (yes or no) is a must, and `error_code` and `retry_hint` help."
        " List exactly the files that you wrote: they are looked at."
    ),
    "subagent-return": (
        "What a subagent gives back as one JSON object. `status` is completed, partial, failed or blocked; unless it is"
        " completed, `errors` say what went wrong. Artifacts are looked for on disk."
    ),
    "return-meta": (
        "The dialect of subagent-return in files such as `.return-meta.json`: stage words such as researched and"
        " planned, and `in_progress` while the work goes on."
    ),
    "report-contract": (
        "What an agent reports as one JSON object: `status` is completed, failed or blocked, with the reason where it"
        " is not completed, and a confidence from 0 to 1."
    ),
}

EXAMPLES: Final[dict[Name, str]] = {
    "handoff-packet": """\
{
  "handoff_schema": "composability.handoff_packet.v1",
  "task_id": "shop.api",
  "objective": "Build the checkout API.",
  "evidence": [{"path": "docs/api.md", "purpose": "The agreed design.", "required": true}],
  "success_criteria": ["The tests in tests/api pass"],
  "risks": [{"risk": "The schema moves.", "mitigation": "Stay with version 3."}]
}
""",
    "return-format": """\
## Status
state: SUCCESS
summary: The checkout API is built and its tests pass.
task_id: shop.api

## Deliverables
- src/api.py - the checkout API

## Evidence
- docs/api.md - read for the design

## Runtime Attestation
runtime_model_reported: vendor/model
runtime_mode_reported: code
files_created:
- src/api.py
files_modified:
- (none)
""",
    "subagent-return": """\
{
  "status": "completed",
  "summary": "The checkout API is built. Its tests pass.",
  "artifacts": [{"type": "implementation", "path": "src/api.py", "summary": "The checkout API."}],
  "metadata": {"session_id": "sess_1735460684_a1b2c3", "agent_type": "implementer",
    "delegation_depth": 1, "delegation_path": ["orchestrator", "implement", "implementer"]}
}
""",
    "return-meta": """\
{
  "status": "researched",
  "summary": "Three ways to build the checkout are compared. The second is the cheapest.",
  "artifacts": [{"type": "report", "path": "reports/checkout.md", "summary": "The comparison."}],
  "metadata": {"session_id": "sess_1735460684_a1b2c3", "agent_type": "researcher",
    "delegation_depth": 1, "delegation_path": ["orchestrator", "research", "researcher"]}
}
""",
    "report-contract": """\
{
  "report_metadata": {"agent_name": "investigator", "task_id": "shop.api", "status": "completed",
    "verbosity_level": "summary", "confidence_level": 0.9},
  "findings": {"checkout": "Orders are written twice when the client retries."},
  "recommendations": ["Make the endpoint idempotent."],
  "identified_gaps": [],
  "blockers": []
}
""",
}
"""One document each. No rule is broken in them."""
