"""A handoff that breaks its contract is made sound where that needs no guess, and what was missing says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentwatch.decisions.handoff import UNSTATED, handoff_problems, mended
from tests.unit.history.recorded import packet

SOUND: dict[str, Any] = json.loads(packet("x", attempt=1)) | {"decision_id": "d" * 32}
POINTER = {"path": "a.py", "purpose": "read", "required": True}


def read(text: str, name: str) -> Any:
    return json.loads(text if name.endswith(".json") else text.split("```json")[1].split("```", maxsplit=1)[0])


@pytest.mark.parametrize("name", ["x.handoff.json", "x.handoff.md"])
@pytest.mark.parametrize(
    ("key", "value", "now"),
    [
        ("risks", None, [{"risk": UNSTATED, "mitigation": UNSTATED}]),
        ("risks", "It is late.", [{"risk": "It is late.", "mitigation": UNSTATED}]),
        ("risks", [{"risk": "r", "kept": 1}], [{"risk": "r", "kept": 1, "mitigation": UNSTATED}]),
        ("objective", None, UNSTATED),
        ("objective", "  ", UNSTATED),
        ("objective", ["Build it."], '["Build it."]'),
        ("success_criteria", None, [UNSTATED]),
        ("success_criteria", "It runs.", ["It runs."]),
        ("constraints", [3, "", None, "no edits"], ["3", "no edits"]),
        ("evidence", None, []),
        ("evidence", ["a.py"], [POINTER | {"purpose": UNSTATED}]),
        ("evidence", [POINTER | {"required": "yes"}], [POINTER]),
        ("evidence", [POINTER | {"required": "no"}], [POINTER | {"required": False}]),
        ("deliverables", [{"path": "a.py"}], [{"path": "a.py", "description": UNSTATED, "must_create": True}]),
        ("task_id", 17, "x"),
        ("task_id", None, "x"),
    ],
)
def test_what_breaks_the_contract_is_filled_in_or_corrected(name: str, key: str, value: object, now: object) -> None:
    broken = {one: said for one, said in (SOUND | {key: value}).items() if said is not None}
    text = json.dumps(broken, indent=2)
    text = text if name.endswith(".json") else f"# The task\n\n```json\n{text}\n```\n\n- [ ] one\n"
    found, keys = mended(text, name, task_id="x")
    assert (keys, read(found, name)) == ((key,), broken | {key: now})
    assert handoff_problems(found, name, task_id="x", attempt=1, decision_id="d" * 32) == []


def test_a_pointer_that_leads_out_of_the_repository_is_kept_as_a_note() -> None:
    out = POINTER | {"path": "/srv/a.py"}
    text = json.dumps(SOUND | {"evidence": [POINTER, out]})
    found, keys = mended(text, "x.handoff.json", task_id="x")
    packet = json.loads(found)
    assert (keys, packet["evidence"], packet["notes"]) == (
        ("evidence", "notes"),
        [POINTER],
        [f"evidence: {json.dumps(out)}"],
    )
