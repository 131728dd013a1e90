"""JSON documents and their reading.

A contract in JSON is a signature in `signatures` and a module with `judge`; to add one, name it here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agentwatch.contracts.findings import Judgement, shown
from agentwatch.contracts.json_source import JsonSource
from agentwatch.contracts.shapes import Contract, Reading
from agentwatch.contracts.signatures import contract_by_name, contract_of

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Document
    from agentwatch.contracts.validation import Contracted


class Opened(NamedTuple):
    """A recognised document: its reading, and its full model."""

    reading: Reading
    model: Contracted


def read_json(text: str, name: str, first_line: int = 1) -> Opened | None:
    """Read a text that begins with `{`; None where it is none of ours. `first_line` is its place in its file."""
    # The plain parser is several times faster than one that checks, and most JSON in a workspace is none of ours.
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        source = JsonSource(text, first_line)
        contract = contract_of(source.value, name) if isinstance(source.value, dict) else None
    else:
        contract = contract_of(top, name)
        if contract is None:
            return None
        source = JsonSource(text, first_line)
    if contract is None:
        return read_unreadable(text, name)
    return opened(source, contract, name)


def opened(source: JsonSource, contract: Contract, name: str) -> Opened:
    """Judge an object by its contract."""
    judgement = Judgement()
    source.judge(judgement)
    # Of a part nothing can be said of what is missing: it is read, and only the break is a finding.
    model, document = _judge(contract, source.value, judgement if source.whole else Judgement(), name)
    findings = judgement.findings(source.line_of) if judgement else ()
    return Opened(Reading(document, findings, source.complete), model)


def read_unreadable(text: str, name: str) -> Opened | None:
    """Read a text that has no signature as what its file must be by its name; None where the name says nothing.

    A sound object without a signature is nothing of ours whatever its file is called.
    """
    contract = contract_by_name(name)
    if contract is None:
        return None
    source = JsonSource(text)
    judgement = Judgement()
    source.judge(judgement)
    top = source.value if isinstance(source.value, dict) else {}
    if source.whole:
        if isinstance(source.value, dict):
            return None
        judgement.add("DOC008", (), value=shown(source.value))
    model, document = _judge(contract, top, Judgement(), name)
    return Opened(Reading(document, judgement.findings(source.line_of), source.complete), model)


def _judge(contract: Contract, top: dict[str, Any], judgement: Judgement, name: str) -> tuple[Contracted, Document]:
    # The models of the contracts take longer to load than most sessions to be read, and many hold no contract.
    from agentwatch.contracts import handoff, report, return_meta, subagent_return  # noqa: PLC0415

    if contract is Contract.RETURN_META:
        return return_meta.judge(top, judgement, name)
    if contract is Contract.SUBAGENT_RETURN:
        return subagent_return.judge(top, judgement)
    if contract is Contract.REPORT_CONTRACT:
        return report.judge(top, judgement)
    return handoff.judge(top, judgement)
