"""The handoff packet: what a parent gives a child, as JSON, alone or as the first fenced block of a Markdown text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.findings import shown
from agentwatch.contracts.paths import judge_paths
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Handoff, Todo
from agentwatch.contracts.signatures import unwrapped
from agentwatch.contracts.validation import Contracted, Whole, validated
from agentwatch.contracts.wording import brief, sentences, shared

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_error, _warning = makers(Contract.HANDOFF_PACKET)
_MESSAGE = "A) new_task.message (string)"
_REQUIRED = "Required fields (MVP)"
_OPTIONAL = "Optional fields"

_OF_AGENTWATCH: Final = ("parent_task_id", "mode", "session_id", "decision_id", "restores")
SCHEMA: Final = "composability.handoff_packet.v1"


class EvidencePointer(Contracted):
    """A file the child must, or may, read."""

    path: str | None = row("db/v3.sql", absent="HOF013", type="HOF014")
    purpose: str | None = row("The schema to build on.", absent="HOF016", type="HOF017")
    required: bool | None = row(True, missing="HOF018", type="HOF019")


class Risk(Contracted):
    """A risk the child should watch for."""

    risk: str | None = row("Slow tests.", absent="HOF033", type="HOF034")
    mitigation: str | None = row("Run the subset.", absent="HOF035", type="HOF036")


class ExpectedDeliverable(Contracted):
    """A file the child is expected to make."""

    path: str | None = row("api.py", absent="HOF052", type="HOF053")
    description: str | None = row("The API.", absent="HOF054", type="HOF055")
    must_create: bool | None = row(True, missing="HOF056", type="HOF057")


class HandoffPacket(Contracted):
    """The whole packet, and the checklist that came with it. None: not there, or not of the type it must have."""

    handoff_schema: str | None = row(SCHEMA, type="HOF040")
    task_id: str | None = row("shop.api", needs="a stable identifier", missing="HOF001", type="HOF002", empty="HOF003")
    objective: str | None = row(
        "Build the checkout API.", needs="one sentence", missing="HOF004", type="HOF005", empty="HOF007"
    )
    evidence: list[EvidencePointer] | None = row(missing="HOF010", type="HOF011", entry="HOF012")
    success_criteria: list[str] | None = row(
        ["All tests of the API pass."], missing="HOF020", type="HOF021", entry="HOF022", blank="HOF022"
    )
    risks: list[Risk] | None = row(missing="HOF030", type="HOF031", entry="HOF032")
    constraints: list[str] | None = row(["No code edits."], type="HOF042", entry="HOF043")
    deliverables: list[ExpectedDeliverable] | None = row(type="HOF050", entry="HOF051")
    dependencies: list[str] | None = row(["shop.schema"], type="HOF044", entry="HOF045")
    notes: list[str] | None = row(["Use v3."], type="HOF046", entry="HOF047")
    parent_task_id: str | None = row("shop", type="HOF070")
    attempt: Whole | None = row(2, ge=1, le=1_000_000, type="HOF071", range="HOF071")
    mode: str | None = row("architect", type="HOF070")
    session_id: str | None = row("sess_1735460684_a1b2c3", type="HOF070")
    decision_id: str | None = row("0a1b2c3d", type="HOF070")
    restores: str | None = row("shop.api", type="HOF070")
    todos: tuple[Todo, ...] | None = None


_RULES: Final[tuple[Rule, ...]] = (
    _warning("HOF006", _REQUIRED, "`objective` is more than one sentence")
    .says("`objective` has {count} sentences; state the mission in one and move the rest to `notes`.")
    .because("The contract asks for a one-sentence mission statement: two sentences are usually two tasks.")
    .example('"objective": "Build the checkout API."', '"objective": "Build the API. Then write the docs."'),
    _error("HOF015", _REQUIRED, "evidence path not repo-relative")
    .says("The evidence path {value} is not repo-relative: {reason}; write it from the root of the repository.")
    .because("The child may run in another checkout, where only a path inside the repository means the same file.")
    .example('"path": "docs/schema.md"', '"path": "/home/me/shop/docs/schema.md"'),
    _warning("HOF041", _OPTIONAL, "unknown `handoff_schema`")
    .says("`handoff_schema` is {value}; `composability.handoff_packet.v1` is the version this packet is judged by.")
    .because("The version tag tells a reader which contract the packet follows; another one may mean other keys.")
    .example('"handoff_schema": "composability.handoff_packet.v1"', '"handoff_schema": "v1"'),
    _warning("HOF060", _MESSAGE, "packet not fenced")
    .says("The packet stands in the Markdown without a fence; put ```json above it and ``` below it.")
    .because("The contract asks for a fenced JSON object as the first block, so that a child finds where it ends.")
    .example('```json\n{"task_id": "shop.api", …}\n```', '{"task_id": "shop.api", …}\n- [ ] Read'),
    _warning("HOF061", _REQUIRED, "packet inside another object")
    .says("The packet stands inside `handoff_packet`; write its keys at the top of the object.")
    .because("The keys are those of the object itself: a reader that does not look inside the wrapper finds none.")
    .example('{"task_id": "shop.api", …}', '{"handoff_packet": {"task_id": "shop.api", …}}'),
    _warning("HOF070", _OPTIONAL, "key for agentwatch is not a string")
    .says("`{key}` is {value}; agentwatch understands it only as a string.")
    .because("The key is not of the contract; agentwatch links tasks by it.")
    .example('"parent_task_id": "shop"', '"parent_task_id": 7'),
    _warning("HOF071", _OPTIONAL, "`attempt` is not a positive integer")
    .says("`attempt` is {value}; agentwatch understands it only as an integer from 1 on.")
    .because("`attempt` is not of the contract; agentwatch counts retries by it.")
    .example('"attempt": 2', '"attempt": "second"'),
)

TABLE: Final = Table(
    Contract.HANDOFF_PACKET,
    HandoffPacket,
    _RULES,
    why={
        "handoff_schema": "The version tag tells a reader which contract the packet follows.",
        "task_id": "The task id is what a return, a retry and the tree refer to; without it nothing can be traced.",
        "objective": "The objective is the child's mission; without it the child guesses.",
        "evidence": "The child sees nothing of the parent's context but the evidence it is pointed to.",
        "evidence[].path": "An evidence pointer without a path points nowhere.",
        "evidence[].purpose": "The purpose tells the child what to look for in the file.",
        "evidence[].required": "The child must know whether it has to read the file.",
        "success_criteria": "Without verifiable outcomes nobody can tell when the task is done.",
        "risks": "The parent knows what went wrong before; an empty array says that it thought of nothing.",
        "risks[].risk": "A mitigation without its risk cannot be understood.",
        "risks[].mitigation": "A risk without its mitigation only worries.",
        "constraints": "The constraints are what the child must not do.",
        "deliverables": "The deliverables are looked for when the task is done.",
        "deliverables[].path": "A deliverable without a path cannot be looked for.",
        "deliverables[].description": "The description says what the file must hold.",
        "deliverables[].must_create": "The child must know whether the task fails without this file.",
        "dependencies": "The dependencies are what the child must agree with.",
        "notes": "The notes are short context that fits nowhere else.",
        "attempt": "agentwatch counts retries by it.",
        **dict.fromkeys(_OF_AGENTWATCH, "agentwatch links tasks by it."),
    },
    sections=(_REQUIRED, _OPTIONAL),
)


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
    judge_paths("HOF015", "evidence", raw, judgement)
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
