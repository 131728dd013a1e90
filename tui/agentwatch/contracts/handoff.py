"""The handoff packet: what a parent gives a child, as JSON, alone or as the first fenced block of a Markdown text."""

from __future__ import annotations

from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from agentwatch.contracts.fields import Model, Required, Table, Text, Whole, Word
from agentwatch.contracts.reading import WRAPPER, unwrapped
from agentwatch.contracts.rules import Findings, brief, judge_paths, sentences, shared
from agentwatch.contracts.shapes import Contract, Handoff, Todo

SCHEMA: Final = "composability.handoff_packet.v1"


class EvidencePointer(Model):
    """A file the child must, or may, read."""

    path: Text = None
    purpose: Text = None
    required: Required[bool] = None


class Risk(Model):
    """A risk the child should watch for."""

    risk: Text = None
    mitigation: Text = None


class ExpectedDeliverable(Model):
    """A file the child is expected to make."""

    path: Text = None
    description: Text = None
    must_create: Required[bool] = None


class HandoffPacket(Model):
    """The whole packet, and the checklist that came with it. None: not there, or not of the type it must have."""

    handoff_schema: str | None = None
    task_id: Text = None
    objective: Text = None
    evidence: Required[list[EvidencePointer]] = None
    success_criteria: Required[list[Word]] = None
    risks: Required[list[Risk]] = None
    constraints: list[str] | None = None
    deliverables: list[ExpectedDeliverable] | None = None
    dependencies: list[str] | None = None
    notes: list[str] | None = None
    parent_task_id: str | None = None
    attempt: Annotated[Whole, Ge(1), Le(1000000)] | None = None
    mode: str | None = None
    session_id: str | None = None
    decision_id: str | None = None
    restores: str | None = None
    todos: tuple[Todo, ...] | None = None


_ROWS: Final = r"""
# Optional fields
handoff_schema | type HOF040 | "composability.handoff_packet.v1" | The version tag tells a reader which contract the
  packet follows.
# Required fields (MVP)
task_id | missing HOF001, type HOF002, empty HOF003 | "shop.api" | The task id is what a return, a retry and the tree
  refer to; without it nothing can be traced. | needs a stable identifier
objective | missing HOF004, type HOF005, empty HOF007 | "Build the checkout API." | The objective is the child's
  mission; without it the child guesses. | needs one sentence
evidence | missing HOF010, type HOF011, entry HOF012 | - | The child sees nothing of the parent's context but the
  evidence it is pointed to.
evidence[].path | missing empty HOF013, type HOF014 | "db/v3.sql" | An evidence pointer without a path points nowhere.
evidence[].purpose | missing empty HOF016, type HOF017 | "The schema to build on." | The purpose tells the child what to
  look for in the file.
evidence[].required | missing HOF018, type HOF019 | true | The child must know whether it has to read the file.
success_criteria | missing HOF020, type HOF021, entry blank HOF022 | ["All tests of the API pass."] | Without verifiable
  outcomes nobody can tell when the task is done.
risks | missing HOF030, type HOF031, entry HOF032 | - | The parent knows what went wrong before; an empty array says
  that it thought of nothing.
risks[].risk | missing empty HOF033, type HOF034 | "Slow tests." | A mitigation without its risk cannot be understood.
risks[].mitigation | missing empty HOF035, type HOF036 | "Run the subset." | A risk without its mitigation only worries.
# Optional fields
constraints | type HOF042, entry HOF043 | ["No code edits."] | The constraints are what the child must not do.
deliverables | type HOF050, entry HOF051 | - | The deliverables are looked for when the task is done.
deliverables[].path | missing empty HOF052, type HOF053 | "api.py" | A deliverable without a path cannot be looked for.
deliverables[].description | missing empty HOF054, type HOF055 | "The API." | The description says what the file must
  hold.
deliverables[].must_create | missing HOF056, type HOF057 | true | The child must know whether the task fails without
  this file.
dependencies | type HOF044, entry HOF045 | ["shop.schema"] | The dependencies are what the child must agree with.
notes | type HOF046, entry HOF047 | ["Use v3."] | The notes are short context that fits nowhere else.
parent_task_id | type HOF070 | "shop" | agentwatch links tasks by it.
attempt | type range HOF071 | 2 | agentwatch counts retries by it.
mode | type HOF070 | "architect" | agentwatch links tasks by it.
session_id | type HOF070 | "sess_1735460684_a1b2c3" | agentwatch links tasks by it.
decision_id | type HOF070 | "0a1b2c3d" | agentwatch links tasks by it.
restores | type HOF070 | "shop.api" | agentwatch links tasks by it.
"""
_TABLE: Final = Table(Contract.HANDOFF_PACKET, HandoffPacket, _ROWS)
TABLES: Final = {Contract.HANDOFF_PACKET: _TABLE}


def judge(_contract: Contract, top: dict[str, Any], findings: Findings, _name: str) -> tuple[HandoffPacket, Handoff]:
    """The typed packet and its fields; every rule it breaks is noted."""
    inner = unwrapped(top)
    if inner is not top:
        findings.add("HOF061", (WRAPPER,))
        findings.at = (WRAPPER,)
    # A packet may hold a key of that name; the checklist is what stands behind the packet.
    raw = {key: value for key, value in inner.items() if key != "todos"}
    packet = _TABLE.read(HandoffPacket, raw, findings)
    if packet.handoff_schema not in (None, SCHEMA):
        findings.add("HOF041", ("handoff_schema",), value=packet.handoff_schema)
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
