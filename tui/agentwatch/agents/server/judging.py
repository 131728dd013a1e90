"""Texts held against the contracts, for agents that are about to hand them over or back. Pure."""

from __future__ import annotations

from typing import Final

from agentwatch.agents.server.shapes import Found, Validated
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Reading, Return

INVALID: Final = "invalid"

_NO_RETURN: Final = (
    "no contract is recognised in it: write it again, beginning with `## Status` (return-format), or as one JSON"
    " object; get_contract('return-format') has an example"
)
_HANDOFF: Final = "this is a handoff, and what you give back is a return: get_contract('return-format') has an example"
_MEND: Final = "mend every error, and validate it again before you send it"


def validated(text: str) -> Validated:
    """Whether a text may be the last message of a child. Prose or a fence around the contract is no obstacle there."""
    reading = read_document(text, "return", embedded=True)
    document = reading.document if reading is not None else None
    if reading is None or not isinstance(document, Return):
        words = _NO_RETURN if reading is None else _HANDOFF
        return Validated(contract=None, state=None, findings=[], do_now=words, compliant=False)
    wrong = reading.has_error or document.outcome is None
    return Validated(
        contract=reading.contract.value,
        state=state_of(reading),
        findings=found(reading),
        do_now=_MEND if wrong else "send exactly this text, and nothing else, as your last message",
        compliant=not wrong,
    )


def state_of(reading: Reading) -> str | None:
    """The word of the state that the task gets; None for a handoff."""
    document = reading.document
    if not isinstance(document, Return):
        return None
    return INVALID if reading.has_error or document.outcome is None else document.outcome.value


def found(reading: Reading) -> list[Found]:
    """The findings of a reading as an answer has them."""
    return [Found.of(finding) for finding in reading.findings]
