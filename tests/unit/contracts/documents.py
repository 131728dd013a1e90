"""A valid document of each contract, and short ways to break a copy of it."""

import copy
import json
from collections.abc import Callable
from typing import Any

Change = Callable[[Any], Any]

PACKET = {
    "handoff_schema": "composability.handoff_packet.v1",
    "task_id": "garden.beds.north",
    "objective": "Plan the north bed for spring.",
    "evidence": [
        {"path": "maps/north.md", "purpose": "Shows the shade.", "required": True},
        {"path": "seeds/stock.csv", "purpose": "Says what is left.", "required": False},
    ],
    "success_criteria": ["Every row has a plant.", "No plant stands in the shade."],
    "risks": [{"risk": "Late frost.", "mitigation": "Sow after the tenth of May."}],
    "constraints": ["No digging."],
    "deliverables": [{"path": "plans/north.md", "description": "The plan.", "must_create": True}],
    "dependencies": ["garden.compost"],
    "notes": ["The tap is broken."],
    "parent_task_id": "garden.beds",
    "attempt": 1,
    "mode": "planner",
    "session_id": "sess_1700000000_aa11",
}

TODOS = """\
# Todos

- [x] READ: Look at the map
- [-] PLAN: Draw the rows
- [ ] PLAN: Count the seeds
- [ ] VERIFY: Check the shade
"""

RETURN = """\
## Status
state: SUCCESS
summary: Planned the north bed with nine rows.

## Deliverables
- plans/north.md \u2014 the plan
- plans/seeds.csv - seeds to buy

## Evidence
- maps/north.md
- rows counted: 9

## Runtime Attestation
runtime_model_reported: acme/grower-2
runtime_mode_reported: planner
files_created:
- plans/north.md
files_modified:
- (none)
"""

FAILURE = """\
## Status
state: ERROR
summary: The map could not be read.
error_code: E_NO_MAP
retry_recommended: yes
retry_hint: Pass the map as text.

## Deliverables
- (none)

## Evidence
- (none)

## Runtime Attestation
runtime_model_reported: acme/grower-2
runtime_mode_reported: planner
files_created:
- (none)
files_modified:
- (none)
"""

PARTIAL = """\
## Status
state: PARTIAL
summary: Planned half of the north bed.

## Deliverables
- plans/north.md \u2014 the plan so far

## Evidence
- maps/north.md

## Runtime Attestation
runtime_model_reported: acme/grower-2
runtime_mode_reported: planner
files_created:
- plans/north.md
files_modified:
- (none)
limitations:
- Rows five to nine are open.
"""

SUBAGENT = {
    "status": "completed",
    "summary": "Planned the north bed. Nine rows are filled.",
    "artifacts": [
        {"type": "plan", "path": "plans/north.md", "summary": "The plan."},
        {"type": "report", "path": "reports/soil.md", "summary": "What the soil holds."},
    ],
    "metadata": {
        "session_id": "sess_1700000000_aa11",
        "duration_seconds": 12.5,
        "agent_type": "planner",
        "delegation_depth": 1,
        "delegation_path": ["orchestrator", "plan", "planner"],
        "phase_count": 2,
        "estimated_hours": 3,
        "findings_count": 4,
    },
    "next_steps": "Buy the seeds.",
}

SUBAGENT_FAILED = {
    **SUBAGENT,
    "status": "failed",
    "artifacts": [],
    "errors": [
        {
            "type": "timeout",
            "message": "The soil probe did not answer.",
            "recoverable": True,
            "recommendation": "Charge the probe.",
        }
    ],
}

META = {
    "status": "researched",
    "started_at": "2030-01-01T00:00:00Z",
    "summary": "Read the almanac.",
    "artifacts": [{"type": "report", "path": "reports/almanac.md", "summary": "Dates of frost."}],
    "metadata": {
        "session_id": "sess_1700000000_bb22",
        "agent_type": "researcher",
        "delegation_depth": 1,
        "delegation_path": ["orchestrator", "research", "researcher"],
    },
    "errors": [{"type": "gap", "message": "No data for May.", "recoverable": True, "recommendation": "Ask."}],
    "blockers": ["The library is closed."],
    "next_steps": "Plan the beds.",
    "phases_completed": 1,
    "phases_total": 2,
    "requires_user_review": True,
    "review_reason": "Two almanacs disagree.",
}

REPORT = {
    "report_metadata": {
        "agent_name": "soil-reader",
        "task_id": "garden.soil",
        "status": "completed",
        "verbosity_level": "detailed",
        "confidence_level": 0.8,
        "token_usage": 1200,
        "execution_time_seconds": 30,
        "error_message": None,
    },
    "findings": {
        "context_map": [["The soil is sandy.", None], ["Where the samples are read.", "repo://src/soil.py:10-20"]]
    },
    "recommendations": ["Add compost."],
    "identified_gaps": ["No sample of the west bed."],
    "blockers": [],
}


def text_of(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def put(path: str, value: Any) -> Change:
    """Set the value at a dotted path, or remove it if `value` is `...`; numbers are list indices."""

    def change(document: Any) -> Any:
        document = copy.deepcopy(document)
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        node = document
        for step in way:
            node = node[step]
        if value is ...:
            del node[last]
        else:
            node[last] = value
        return document

    return change


def swap(old: str, new: str) -> Change:
    """Replace the first occurrence of `old` in a text."""

    def change(document: str) -> str:
        assert old in document, old
        return document.replace(old, new, 1)

    return change
