"""The handoff packet, given by a parent to a child: JSON, alone or as the first fenced block of a Markdown text."""

from agentwatch.contracts.fields import Attempt, Maybe, Model, Note, Notes, Required, Text, Word, read_fields
from agentwatch.contracts.reading import WRAPPER, unwrapped
from agentwatch.contracts.rules import Findings, judge_paths, outline, sentences
from agentwatch.contracts.shapes import Contract, Handoff, Json, Todos

SCHEMA = "composability.handoff_packet.v1"


class EvidencePointer(Model):
    """A file the child must, or may, read."""

    path: Text
    purpose: Text
    required: Required[bool]


class Risk(Model):
    """A risk the child should watch for."""

    risk: Text
    mitigation: Text


class ExpectedDeliverable(Model):
    """A file the child is expected to make."""

    path: Text
    description: Text
    must_create: Required[bool]


class HandoffPacket(Model):
    """The whole packet and its checklist; a field is None if it is missing or of the wrong type."""

    handoff_schema: Note
    task_id: Text
    objective: Text
    evidence: Required[list[EvidencePointer]]
    success_criteria: Required[list[Word]]
    risks: Required[list[Risk]]
    constraints: Notes
    deliverables: Maybe[list[ExpectedDeliverable]]
    dependencies: Notes
    notes: Notes
    parent_task_id: Note
    attempt: Attempt
    mode: Note
    session_id: Note
    decision_id: Note
    restores: Note
    todos: Maybe[Todos]


MODELS = {Contract.HANDOFF_PACKET: HandoffPacket}


def judge(_contract: Contract, top: Json, findings: Findings) -> tuple[HandoffPacket, Handoff]:
    """Return the typed packet and its fields, and note every rule that it breaks."""
    inner = unwrapped(top)
    if inner is not top:
        findings.add("HOF061", (WRAPPER,))
        findings.at = (WRAPPER,)
    # The packet itself may have a key `todos`; the checklist stands behind the packet.
    raw = {key: value for key, value in inner.items() if key != "todos"}
    packet = read_fields(Contract.HANDOFF_PACKET, HandoffPacket, raw, findings)
    if packet.handoff_schema not in (None, SCHEMA):
        findings.add("HOF041", ("handoff_schema",), value=packet.handoff_schema)
    if packet.objective and (count := sentences(packet.objective)) > 1:
        findings.add("HOF006", ("objective",), count=count)
    judge_paths("HOF015", "evidence", packet.evidence, findings)
    return packet, outline(Handoff, packet, task_id=packet.task_id, objective=packet.objective)
