"""The handoff packet: what a parent gives a child, as JSON, alone or as the first fenced block of a Markdown text."""

from __future__ import annotations

from typing import Any, Final

from agentwatch.contracts.fields import Model, Table, Whole, Word, read, row
from agentwatch.contracts.reading import WRAPPER, unwrapped
from agentwatch.contracts.rules import Findings, brief, judge_paths, sentences, shared, shown
from agentwatch.contracts.shapes import Contract, Handoff, Todo

SCHEMA: Final = "composability.handoff_packet.v1"
_LINKED: Final = "agentwatch links tasks by it."


class EvidencePointer(Model):
    """A file the child must, or may, read."""

    path: str | None = row(
        "db/v3.sql", "missing empty HOF013, type HOF014", "An evidence pointer without a path points nowhere."
    )
    purpose: str | None = row(
        "The schema to build on.",
        "missing empty HOF016, type HOF017",
        "The purpose tells the child what to look for in the file.",
    )
    required: bool | None = row(
        True, "missing HOF018, type HOF019", "The child must know whether it has to read the file."
    )


class Risk(Model):
    """A risk the child should watch for."""

    risk: str | None = row(
        "Slow tests.", "missing empty HOF033, type HOF034", "A mitigation without its risk cannot be understood."
    )
    mitigation: str | None = row(
        "Run the subset.", "missing empty HOF035, type HOF036", "A risk without its mitigation only worries."
    )


class ExpectedDeliverable(Model):
    """A file the child is expected to make."""

    path: str | None = row(
        "api.py", "missing empty HOF052, type HOF053", "A deliverable without a path cannot be looked for."
    )
    description: str | None = row(
        "The API.", "missing empty HOF054, type HOF055", "The description says what the file must hold."
    )
    must_create: bool | None = row(
        True, "missing HOF056, type HOF057", "The child must know whether the task fails without this file."
    )


class HandoffPacket(Model):
    """The whole packet, and the checklist that came with it. None: not there, or not of the type it must have."""

    handoff_schema: str | None = row(
        SCHEMA, "type HOF040", "The version tag tells a reader which contract the packet follows."
    )
    task_id: str | None = row(
        "shop.api",
        "missing HOF001, type HOF002, empty HOF003",
        "The task id is what a return, a retry and the tree refer to; without it nothing can be traced.",
        needs="a stable identifier",
    )
    objective: str | None = row(
        "Build the checkout API.",
        "missing HOF004, type HOF005, empty HOF007",
        "The objective is the child's mission; without it the child guesses.",
        needs="one sentence",
    )
    evidence: list[EvidencePointer] | None = row(
        None,
        "missing HOF010, type HOF011, entry HOF012",
        "The child sees nothing of the parent's context but the evidence it is pointed to.",
    )
    success_criteria: list[Word] | None = row(
        ["All tests of the API pass."],
        "missing HOF020, type HOF021, entry blank HOF022",
        "Without verifiable outcomes nobody can tell when the task is done.",
    )
    risks: list[Risk] | None = row(
        None,
        "missing HOF030, type HOF031, entry HOF032",
        "The parent knows what went wrong before; an empty array says that it thought of nothing.",
    )
    constraints: list[str] | None = row(
        ["No code edits."], "type HOF042, entry HOF043", "The constraints are what the child must not do."
    )
    deliverables: list[ExpectedDeliverable] | None = row(
        None, "type HOF050, entry HOF051", "The deliverables are looked for when the task is done."
    )
    dependencies: list[str] | None = row(
        ["shop.schema"], "type HOF044, entry HOF045", "The dependencies are what the child must agree with."
    )
    notes: list[str] | None = row(
        ["Use v3."], "type HOF046, entry HOF047", "The notes are short context that fits nowhere else."
    )
    parent_task_id: str | None = row("shop", "type HOF070", _LINKED)
    attempt: Whole | None = row(2, "type range HOF071", "agentwatch counts retries by it.", ge=1, le=1000000)
    mode: str | None = row("architect", "type HOF070", _LINKED)
    session_id: str | None = row("sess_1735460684_a1b2c3", "type HOF070", _LINKED)
    decision_id: str | None = row("0a1b2c3d", "type HOF070", _LINKED)
    restores: str | None = row("shop.api", "type HOF070", _LINKED)
    todos: tuple[Todo, ...] | None = None


_SECTIONS: Final = ("Required fields (MVP)", "Optional fields")
TABLES: Final = {Contract.HANDOFF_PACKET: Table(Contract.HANDOFF_PACKET, HandoffPacket, _SECTIONS)}


def judge(_contract: Contract, top: dict[str, Any], findings: Findings, _name: str) -> tuple[HandoffPacket, Handoff]:
    """The typed packet and its fields; every rule it breaks is noted."""
    inner = unwrapped(top)
    if inner is not top:
        findings.add("HOF061", (WRAPPER,))
        findings.at = (WRAPPER,)
    # A packet may hold a key of that name; the checklist is what stands behind the packet.
    raw = {key: value for key, value in inner.items() if key != "todos"}
    packet = read(HandoffPacket, raw, findings)
    if packet.handoff_schema not in (None, SCHEMA):
        findings.add("HOF041", ("handoff_schema",), value=shown(packet.handoff_schema))
    if packet.objective and (count := sentences(packet.objective)) > 1:
        findings.add("HOF006", ("objective",), count=count)
    judge_paths("HOF015", "evidence", raw, findings)
    return packet, Handoff(
        task_id=packet.task_id or None,
        objective=brief(packet.objective),
        parent_task_id=shared(packet.parent_task_id),
        attempt=packet.attempt,
        mode=shared(packet.mode),
        session_id=packet.session_id or None,
        decision_id=packet.decision_id or None,
        restores=packet.restores or None,
    )
