"""Texts held against the contracts, for agents that are about to hand them over or back; and what the tools answer.

The answers are models: their descriptions are what the clients show to their own models. Pure.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from agentwatch.agents.examples import EXAMPLES, PURPOSES, Name
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.rules import contract_rules
from agentwatch.contracts.shapes import Contract, Document, Return

INVALID: Final = "invalid"

_NO_RETURN: Final = (
    "no contract is recognised in it: write it again, beginning with `## Status` (return-format), or as one JSON"
    " object; get_contract('return-format') has an example"
)
_HANDOFF: Final = "this is a handoff, and what you give back is a return: get_contract('return-format') has an example"
_MEND: Final = "mend every error, and validate it again before you send it"


class BrokenRule(BaseModel):
    """One rule broken."""

    rule: Annotated[str, Field(description="Its id; get_contract tells what it asks for.")]
    severity: Annotated[str, Field(description="`error` breaks the contract, `warning` is tolerated.")]
    message: Annotated[str, Field(description="What is wrong and what to do about it.")]
    line: Annotated[int | None, Field(description="The line of the text, from 1; null where all of it is meant.")]


class Judged(BaseModel):
    """What the contracts find in a text."""

    contract: Annotated[str | None, Field(description="The contract it was recognised as; null: as none.")]
    state: Annotated[str | None, Field(description="What the task's state becomes; `invalid` counts as failed.")]
    findings: Annotated[list[BrokenRule], Field(description="The rules it breaks, by line.")]
    do_now: Annotated[str, Field(description="What to do now. Do it.")]


class Validated(Judged):
    """Whether a return may be sent."""

    compliant: Annotated[bool, Field(description="True: it breaks no rule, and can be sent.")]


class Submitted(Judged):
    """Whether a document was taken, and where it is."""

    accepted: Annotated[bool, Field(description="False: nothing was written. Mend it and submit it again.")]
    path: Annotated[str | None, Field(description="The file, relative to the workspace.")]
    sha256: Annotated[str | None, Field(description="Of the file: what a decision about it will name.")]


class Waited(BaseModel):
    """The operator's decision, or that there is none yet. With a decision, all its signed keys are there, too."""

    model_config = ConfigDict(extra="allow")

    pending: Annotated[bool, Field(description="True: not decided. That is neither an approval nor a refusal.")]
    do_now: Annotated[str, Field(description="What to do now. Do it.")]
    state: Annotated[str | None, Field(description="The state of the task as agentwatch sees it; null: not seen.")]


class RuleInShort(BaseModel):
    """One rule of a contract, in short: a contract has dozens of them, and a model pays for each word."""

    id: str
    severity: str
    wrong: Annotated[str, Field(description="What breaks it.")]
    right: Annotated[str, Field(description="How it should be.")]


class ContractTold(BaseModel):
    """A contract: what it is for, a document that keeps it, and its rules."""

    name: str
    purpose: str
    example: Annotated[str, Field(description="A minimal document that breaks no rule. Replace its words.")]
    rules: list[RuleInShort]


def validated(text: str) -> Validated:
    """Whether a text may be the last message of a child. Prose or a fence around the contract is no obstacle there."""
    reading = read_document(text, "return", embedded=True)
    if reading is None or not isinstance(reading.document, Return):
        return Validated(**judged(None), do_now=_NO_RETURN if reading is None else _HANDOFF, compliant=False)
    judgement = judged(reading)
    compliant = judgement["state"] != INVALID
    do_now = "send exactly this text, and nothing else, as your last message" if compliant else _MEND
    return Validated(**judgement, do_now=do_now, compliant=compliant)


def judged(reading: Document | None) -> dict[str, Any]:
    """What an answer says of a reading: `contract`, `state` (None for a handoff) and `findings`."""
    if reading is None:
        return {"contract": None, "state": None, "findings": []}
    state, document = None, reading.document
    if isinstance(document, Return):
        state = INVALID if reading.has_error or document.outcome is None else document.outcome.value
    findings = [
        BrokenRule(rule=one.rule, severity=one.severity.value, message=one.message, line=one.line)
        for one in reading.findings
    ]
    return {"contract": reading.contract.value, "state": state, "findings": findings}


def told(name: Name) -> ContractTold:
    """Everything about one contract; of the rules also those that hold for any document."""
    contract = Contract(name)
    rules = [
        RuleInShort(id=rule.id, severity=rule.severity.value, wrong=rule.title, right=rule.right)
        for rule in contract_rules().values()
        if rule.contract in (contract, None)
    ]
    return ContractTold(name=name, purpose=PURPOSES[name], example=EXAMPLES[name], rules=rules)
