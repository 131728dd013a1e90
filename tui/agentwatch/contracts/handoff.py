"""The handoff packet: what a parent gives a child, as JSON, alone or as the first fenced block of a Markdown text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.catalogue.handoff import RULES
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.shapes import Contract, Handoff, Todo
from agentwatch.contracts.signatures import unwrapped
from agentwatch.contracts.validation import Contracted, Whole, validated
from agentwatch.contracts.wording import brief, sentences, shared

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

SCHEMA: Final = "composability.handoff_packet.v1"


_REQUIRED: Final = "Required fields (MVP)"
_OPTIONAL: Final = "Optional fields"
_LINKS: Final = "agentwatch links tasks by it."


# A table: a field is a row.
# fmt: off
class EvidencePointer(Contracted):
    """A file the child must, or may, read."""

    path: str | None = row(
        "An evidence pointer without a path points nowhere.", right="db/v3.sql",
        missing="HOF013", type="HOF014", empty="HOF013")
    purpose: str | None = row(
        "The purpose tells the child what to look for in the file.", right="The schema to build on.",
        missing="HOF016", type="HOF017", empty="HOF016")
    required: bool | None = row(
        "The child must know whether it has to read the file.", right=True, missing="HOF018", type="HOF019")


class Risk(Contracted):
    """A risk the child should watch for."""

    risk: str | None = row(
        "A mitigation without its risk cannot be understood.", right="Slow tests.",
        missing="HOF033", type="HOF034", empty="HOF033")
    mitigation: str | None = row(
        "A risk without its mitigation only worries.", right="Run the subset.",
        missing="HOF035", type="HOF036", empty="HOF035")


class ExpectedDeliverable(Contracted):
    """A file the child is expected to make."""

    path: str | None = row(
        "A deliverable without a path cannot be looked for.", right="api.py",
        missing="HOF052", type="HOF053", empty="HOF052")
    description: str | None = row(
        "The description says what the file must hold.", right="The API.",
        missing="HOF054", type="HOF055", empty="HOF054")
    must_create: bool | None = row(
        "The child must know whether the task fails without this file.", right=True, missing="HOF056", type="HOF057")


class HandoffPacket(Contracted):
    """The whole packet, and the checklist that came with it. None: not there, or not of the type it must have."""

    handoff_schema: str | None = row(
        "The version tag tells a reader which contract the packet follows.", section=_OPTIONAL, right=SCHEMA,
        type="HOF040")
    task_id: str | None = row(
        "The task id is what a return, a retry and the tree refer to; without it nothing can be traced.",
        section=_REQUIRED, right="shop.api", fill="give the task a stable identifier",
        missing="HOF001", type="HOF002", empty="HOF003")
    objective: str | None = row(
        "The objective is the child's mission; without it the child guesses.",
        section=_REQUIRED, right="Build the checkout API.", fill="say in one sentence what to achieve",
        missing="HOF004", type="HOF005", empty="HOF007")
    evidence: list[EvidencePointer] | None = row(
        "The child sees nothing of the parent's context but the evidence it is pointed to.",
        section=_REQUIRED, missing="HOF010", type="HOF011", entry="HOF012")
    success_criteria: list[str] | None = row(
        "Without verifiable outcomes neither the child nor the parent can tell when the task is done.",
        section=_REQUIRED, right=["All tests of the API pass."],
        missing="HOF020", type="HOF021", entry="HOF022", blank="HOF022")
    risks: list[Risk] | None = row(
        "The parent knows what went wrong before; an empty array says that it thought of nothing.",
        section=_REQUIRED, missing="HOF030", type="HOF031", entry="HOF032")
    constraints: list[str] | None = row(
        "The constraints are what the child must not do.", section=_OPTIONAL, right=["No code edits."],
        type="HOF042", entry="HOF043")
    deliverables: list[ExpectedDeliverable] | None = row(
        "The deliverables are looked for when the task is done.", section=_OPTIONAL, type="HOF050", entry="HOF051")
    dependencies: list[str] | None = row(
        "The dependencies are what the child must agree with.", section=_OPTIONAL, right=["shop.schema"],
        type="HOF044", entry="HOF045")
    notes: list[str] | None = row(
        "The notes are short context that fits nowhere else.", section=_OPTIONAL, right=["Use v3."],
        type="HOF046", entry="HOF047")
    parent_task_id: str | None = row(_LINKS, section=_OPTIONAL, right="shop", type="HOF070")
    attempt: Whole | None = row(
        "agentwatch counts retries by it.", section=_OPTIONAL, right=2, ge=1, le=1_000_000,
        type="HOF071", range="HOF071")
    mode: str | None = row(_LINKS, section=_OPTIONAL, right="architect", type="HOF070")
    session_id: str | None = row(_LINKS, section=_OPTIONAL, right="sess_1735460684_a1b2c3", type="HOF070")
    decision_id: str | None = row(_LINKS, section=_OPTIONAL, right="0a1b2c3d", type="HOF070")
    restores: str | None = row(_LINKS, section=_OPTIONAL, right="shop.api", type="HOF070")
    todos: tuple[Todo, ...] | None = None
# fmt: on


TABLE: Final = Table(Contract.HANDOFF_PACKET, HandoffPacket, RULES)


def judge(top: dict[str, Any], judgement: Judgement) -> tuple[HandoffPacket, Handoff]:
    """The typed packet and its summary; every rule it breaks is noted."""
    inner = unwrapped(top)
    if inner is not top:
        judgement.add("HOF061", ("handoff_packet",))
        top, judgement = inner, judgement.inside("handoff_packet")
    # A packet may hold a key of that name; the checklist is what stands behind the packet.
    raw = {key: value for key, value in top.items() if key != "todos"} if "todos" in top else top
    packet = validated(HandoffPacket, raw, TABLE.judging, judgement)
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
