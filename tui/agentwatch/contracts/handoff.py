"""The handoff packet (JSON) that a parent gives to a child. In a Markdown text it is the first fenced block."""

from agentwatch.contracts.fields import Attempt, Maybe, Model, Note, Notes, Required, Text, Word, read_fields
from agentwatch.contracts.reading import WRAPPER, unwrap_packet
from agentwatch.contracts.rules import Findings, build_fields, count_sentences, judge_paths
from agentwatch.contracts.shapes import Contract, Handoff, Json, Todos

SCHEMA = "composability.handoff_packet.v1"


class EvidencePointer(Model):
    """A file that the child must read, or may read."""

    path: Text
    purpose: Text
    required: Required[bool]


class Risk(Model):
    """A risk that the child should watch for."""

    risk: Text
    mitigation: Text


class ExpectedDeliverable(Model):
    """A file that the child is expected to make."""

    path: Text
    description: Text
    must_create: Required[bool]


class HandoffPacket(Model):
    """The whole packet with its checklist. A field is None if it is missing or of the wrong type."""

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
    """Report every rule that a packet breaks. Return the packet, and the fields of it that the task tree needs."""
    inner = unwrap_packet(top)
    if inner is not top:
        findings.add("HOF061", (WRAPPER,))
        findings.at = (WRAPPER,)
    # Ignore a key `todos` in the packet. The checklist is the text after the packet.
    raw = {key: value for key, value in inner.items() if key != "todos"}
    packet = read_fields(Contract.HANDOFF_PACKET, HandoffPacket, raw, findings)
    if packet.handoff_schema not in (None, SCHEMA):
        findings.add("HOF041", ("handoff_schema",), value=packet.handoff_schema)
    if packet.objective and (count := count_sentences(packet.objective)) > 1:
        findings.add("HOF006", ("objective",), count=count)
    judge_paths("HOF015", "evidence", packet.evidence, findings)
    return packet, build_fields(Handoff, packet, task_id=packet.task_id, objective=packet.objective)
