"""JSON documents and their reading.

A contract in JSON is a signature in `signatures` and a module with `judge`; to add one, name it in `rules`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agentwatch.contracts.findings import Judgement, shown
from agentwatch.contracts.json_source import JsonSource
from agentwatch.contracts.rules import module_of
from agentwatch.contracts.shapes import Contract, Reading
from agentwatch.contracts.signatures import contract_of
from agentwatch.contracts.stage_words import meaning

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Document
    from agentwatch.contracts.validation import Contracted


class Opened(NamedTuple):
    """A recognised document: its reading, and its full model."""

    reading: Reading
    model: Contracted


def read_json(text: str, name: str, first_line: int = 1, *, embedded: bool = False) -> Opened | None:
    """Read a text that begins with `{`; None where it is none of ours. `first_line` is its place in its file.

    `embedded`: it stands in what a subagent returned.
    """
    # The plain parser is several times faster than one that checks, and most JSON in a workspace is none of ours.
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        source = JsonSource(text, first_line)
        contract = contract_of(source.value, name, embedded=embedded) if isinstance(source.value, dict) else None
    else:
        contract = contract_of(top, name, embedded=embedded)
        if contract is None:
            return None
        source = JsonSource(text, first_line)
    return None if contract is None else opened(source, contract, name)


def opened(source: JsonSource, contract: Contract, name: str) -> Opened:
    """Judge an object by its contract."""
    judgement = Judgement()
    source.judge(judgement)
    _judge_statuses(source.value, judgement)
    # Of a part nothing can be said of what is missing: it is read, and only the break is a finding.
    model, document = _judge(contract, source.value, judgement if source.whole else Judgement(), name)
    findings = judgement.findings(source.line_of) if judgement else ()
    return Opened(Reading(document, findings, source.complete), model)


def _judge_statuses(top: dict[str, Any], judgement: Judgement) -> None:
    """Note where the status of one contract says something else than that of another in the same object."""
    metadata = top.get("report_metadata")
    said = (top.get("status"), metadata.get("status") if isinstance(metadata, dict) else None)
    if len({outcome for word in said if isinstance(word, str) and (outcome := meaning(word))}) > 1:
        judgement.add("DOC015", ("status",), value=shown(said[0]), other=shown(said[1]))


def read_json_by_name(text: str, name: str, contract: Contract) -> Opened | None:
    """Judge a text that has no signature by the contract that its file's name says.

    None for a sound object that is called as those of the dialect are: its name is no contract's.
    """
    source = JsonSource(text)
    judgement = Judgement()
    source.judge(judgement)
    top = source.value if isinstance(source.value, dict) else {}
    dialect = contract is Contract.RETURN_META
    sound = source.whole and isinstance(source.value, dict)
    if sound and dialect:
        return None
    if sound:
        judgement.add("DOC012", (), contract=contract)
    elif source.whole:
        judgement.add("DOC008", (), value=shown(source.value))
    model, document = _judge(contract, top, judgement if sound else Judgement(), name)
    if not dialect:
        document = replace(document, recognised=False)
    complete = source.complete and dialect
    return Opened(Reading(document, judgement.findings(source.line_of), complete), model)


def _judge(contract: Contract, top: dict[str, Any], judgement: Judgement, name: str) -> tuple[Contracted, Document]:
    # The models of a contract take longer to load than most sessions to be read: none that is not met is loaded.
    named = {"name": name} if contract is Contract.RETURN_META else {}
    judged: tuple[Contracted, Document] = module_of(contract).judge(top, judgement, **named)
    return judged
