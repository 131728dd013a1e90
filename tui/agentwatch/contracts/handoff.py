"""The handoff packet: what a parent gives a child, as JSON, alone or as the first fenced block of a Markdown text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.shapes import Handoff, Todo
from agentwatch.contracts.signatures import unwrapped
from agentwatch.contracts.validation import Contracted, Faults, Schema, Whole, validated
from agentwatch.contracts.wording import brief, sentences, shared

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

SCHEMA: Final = "composability.handoff_packet.v1"


class EvidencePointer(Contracted):
    """A file the child must, or may, read."""

    path: str | None = None
    purpose: str | None = None
    required: bool | None = None


class Risk(Contracted):
    """A risk the child should watch for."""

    risk: str | None = None
    mitigation: str | None = None


class ExpectedDeliverable(Contracted):
    """A file the child is expected to make."""

    path: str | None = None
    description: str | None = None
    must_create: bool | None = None


class HandoffPacket(Contracted):
    """The whole packet, and the checklist that came with it. None: not there, or not of the type it must have."""

    handoff_schema: str | None = None
    task_id: str | None = None
    objective: str | None = None
    evidence: list[EvidencePointer] | None = None
    success_criteria: list[str] | None = None
    risks: list[Risk] | None = None
    constraints: list[str] | None = None
    deliverables: list[ExpectedDeliverable] | None = None
    dependencies: list[str] | None = None
    notes: list[str] | None = None
    parent_task_id: str | None = None
    attempt: Whole | None = Field(default=None, ge=1, le=1_000_000)
    mode: str | None = None
    session_id: str | None = None
    decision_id: str | None = None
    restores: str | None = None
    todos: tuple[Todo, ...] | None = None


_FAULTS: Final[Faults] = {
    (("task_id",), "missing"): "HOF001",
    (("task_id",), "type"): "HOF002",
    (("task_id",), "empty"): "HOF003",
    (("objective",), "missing"): "HOF004",
    (("objective",), "type"): "HOF005",
    (("objective",), "empty"): "HOF007",
    (("evidence",), "missing"): "HOF010",
    (("evidence",), "type"): "HOF011",
    (("evidence", "*"), "type"): "HOF012",
    (("evidence", "*", "path"), "missing"): "HOF013",
    (("evidence", "*", "path"), "type"): "HOF014",
    (("evidence", "*", "path"), "empty"): "HOF013",
    (("evidence", "*", "purpose"), "missing"): "HOF016",
    (("evidence", "*", "purpose"), "type"): "HOF017",
    (("evidence", "*", "purpose"), "empty"): "HOF016",
    (("evidence", "*", "required"), "missing"): "HOF018",
    (("evidence", "*", "required"), "type"): "HOF019",
    (("success_criteria",), "missing"): "HOF020",
    (("success_criteria",), "type"): "HOF021",
    (("success_criteria", "*"), "type"): "HOF022",
    (("success_criteria", "*"), "empty"): "HOF022",
    (("risks",), "missing"): "HOF030",
    (("risks",), "type"): "HOF031",
    (("risks", "*"), "type"): "HOF032",
    (("risks", "*", "risk"), "missing"): "HOF033",
    (("risks", "*", "risk"), "type"): "HOF034",
    (("risks", "*", "risk"), "empty"): "HOF033",
    (("risks", "*", "mitigation"), "missing"): "HOF035",
    (("risks", "*", "mitigation"), "type"): "HOF036",
    (("risks", "*", "mitigation"), "empty"): "HOF035",
    (("handoff_schema",), "type"): "HOF040",
    (("constraints",), "type"): "HOF042",
    (("constraints", "*"), "type"): "HOF043",
    (("dependencies",), "type"): "HOF044",
    (("dependencies", "*"), "type"): "HOF045",
    (("notes",), "type"): "HOF046",
    (("notes", "*"), "type"): "HOF047",
    (("deliverables",), "type"): "HOF050",
    (("deliverables", "*"), "type"): "HOF051",
    (("deliverables", "*", "path"), "missing"): "HOF052",
    (("deliverables", "*", "path"), "type"): "HOF053",
    (("deliverables", "*", "path"), "empty"): "HOF052",
    (("deliverables", "*", "description"), "missing"): "HOF054",
    (("deliverables", "*", "description"), "type"): "HOF055",
    (("deliverables", "*", "description"), "empty"): "HOF054",
    (("deliverables", "*", "must_create"), "missing"): "HOF056",
    (("deliverables", "*", "must_create"), "type"): "HOF057",
    (("parent_task_id",), "type"): "HOF070",
    (("mode",), "type"): "HOF070",
    (("session_id",), "type"): "HOF070",
    (("decision_id",), "type"): "HOF070",
    (("restores",), "type"): "HOF070",
    (("attempt",), "type"): "HOF071",
    (("attempt",), "range"): "HOF071",
}
_SCHEMA: Final = Schema(_FAULTS)


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[HandoffPacket, Handoff]:
    """The typed packet and its summary; every rule it breaks is noted."""
    inner = unwrapped(top)
    if inner is not top:
        judgement.add("HOF061", ("handoff_packet",))
        top, judgement = inner, judgement.inside("handoff_packet")
    # A packet may hold a key of that name; the checklist is what stands behind the packet.
    raw = {key: value for key, value in top.items() if key != "todos"} if "todos" in top else top
    packet = validated(HandoffPacket, raw, _SCHEMA, judgement)
    if packet.handoff_schema not in (None, SCHEMA):
        judgement.add("HOF041", ("handoff_schema",), value=shown(packet.handoff_schema))
    if packet.objective and (count := sentences(packet.objective)) > 1:
        judgement.add("HOF006", ("objective",), count=count)
    evidence = raw.get("evidence")
    if isinstance(evidence, list):
        for index, pointer in enumerate(evidence[:MAX_ENTRIES]):
            path = pointer.get("path") if isinstance(pointer, dict) else None
            if isinstance(path, str) and path.strip() and (reason := why_not_relative(path)):
                judgement.add("HOF015", ("evidence", index, "path"), value=shown(path), reason=reason)
    return packet, summary_of(packet)


def summary_of(packet: HandoffPacket) -> Handoff:
    """What the delegation tree needs of a packet."""
    return Handoff(
        task_id=packet.task_id or None,
        objective=brief(packet.objective),
        parent_task_id=shared(packet.parent_task_id),
        attempt=packet.attempt,
        mode=shared(packet.mode),
        session_id=packet.session_id or None,
        decision_id=packet.decision_id or None,
        restores=packet.restores or None,
        todos=packet.todos,
    )
