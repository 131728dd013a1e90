"""What the tools answer: the structured outputs, whose descriptions the clients show to their models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agentwatch.contracts.shapes import Finding


class Found(BaseModel):
    """One rule broken."""

    rule: Annotated[str, Field(description="Its id; get_contract tells what it asks for.")]
    severity: Annotated[str, Field(description="`error` breaks the contract, `warning` is tolerated.")]
    message: Annotated[str, Field(description="What is wrong and what to do about it.")]
    line: Annotated[int | None, Field(description="The line of the text, from 1; null where all of it is meant.")]

    @classmethod
    def of(cls, finding: Finding) -> Found:
        return cls(rule=finding.rule, severity=finding.severity.value, message=finding.message, line=finding.line)


class Judged(BaseModel):
    """What the contracts find in a text."""

    contract: Annotated[str | None, Field(description="The contract it was recognised as; null: as none.")]
    state: Annotated[str | None, Field(description="What the task's state becomes; `invalid` counts as failed.")]
    findings: Annotated[list[Found], Field(description="The rules it breaks, by line.")]
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


class Rule(BaseModel):
    """One rule of a contract, in short: a contract has dozens of them, and a model pays for each word."""

    id: str
    severity: str
    wrong: Annotated[str, Field(description="What breaks it.")]
    right: Annotated[str, Field(description="How it should be.")]


class Told(BaseModel):
    """A contract: what it is for, a document that keeps it, and its rules."""

    name: str
    purpose: str
    example: Annotated[str, Field(description="A minimal document that breaks no rule. Replace its words.")]
    rules: list[Rule]
