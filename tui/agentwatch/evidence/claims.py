"""The claims of one return, by itself and against its handoff, before anybody looks at the disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.reading import open_document, read_document
from agentwatch.contracts.report import Report
from agentwatch.contracts.return_format import ReturnFormat
from agentwatch.contracts.return_meta import ReturnMeta
from agentwatch.contracts.shapes import Outcome, Return
from agentwatch.contracts.subagent_return import SubagentReturn
from agentwatch.contracts.validation import Contracted
from agentwatch.evidence import asked, returned
from agentwatch.evidence.shapes import Assertion, Claim, Kind, Limit, Verdict

__all__ = ["MAX_ASSERTIONS", "Assertion", "Claim", "Kind", "Limit", "Verdict", "claims_of"]

_OUTCOMES: Final = {"SUCCESS": Outcome.COMPLETED, "PARTIAL": Outcome.PARTIAL, "ERROR": Outcome.FAILED}

MAX_ASSERTIONS: Final = 1_000
"""Assertions of one return that are checked; one more says that there were more."""

_TOO_MANY: Final = "this return claims more than {limit} things: the rest was not checked, so look for yourself"


def claims_of(
    returned_text: str, returned_name: str, handoff_text: str | None = None, handoff_name: str | None = None
) -> tuple[Assertion, ...]:
    """What a return claims, and what its handoff demands of it; nothing where the text is no return.

    Names are paths relative to the workspace. Never raises.
    """
    document, outcome = _opened(returned_text, returned_name)
    if document is None:
        return ()
    found: dict[tuple[object, ...], Assertion] = {}
    for assertion in _all(document, outcome, returned_text, handoff_text, handoff_name):
        found.setdefault((assertion.kind, assertion.path, assertion.lines), assertion)
        if len(found) > MAX_ASSERTIONS:
            last = Assertion(assertion.kind, "", settled=(Verdict.UNVERIFIABLE, _TOO_MANY.format(limit=MAX_ASSERTIONS)))
            return (*list(found.values())[:MAX_ASSERTIONS], last)
    return tuple(found.values())


def _all(
    document: Contracted, outcome: Outcome | None, text: str, handoff_text: str | None, handoff_name: str | None
) -> Iterator[Assertion]:
    made: list[str] = []
    for assertion in returned.assertions_of(document, outcome):
        if assertion.kind.is_made and assertion.settled is None:
            made.append(assertion.path)
        yield assertion
    if handoff_text is None:
        return
    packet = open_document(handoff_text, handoff_name or "handoff.json")
    packet = packet or open_document(handoff_text, handoff_name or "handoff.json", embedded=True)
    if isinstance(packet, HandoffPacket):
        yield from asked.assertions_of(packet, document, outcome, text, made)


def _opened(text: str, name: str) -> tuple[Contracted | None, Outcome | None]:
    """The full model of a return and its outcome; a transcript's text has prose or a fence around it."""
    for embedded in (False, True):
        document = open_document(text, name, embedded=embedded)
        if isinstance(document, ReturnFormat):
            return document, _OUTCOMES.get((document.status and document.status.state) or "")
        if isinstance(document, (SubagentReturn, ReturnMeta, Report)):
            reading = read_document(text, name, embedded=embedded)
            summary = reading.document if reading is not None else None
            return document, summary.outcome if isinstance(summary, Return) else None
    return None, None
