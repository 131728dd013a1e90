"""The claims of one return, by itself and against its handoff, before anybody looks at the disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from agentwatch.contracts.reading import read_and_open
from agentwatch.contracts.shapes import Contract, Return
from agentwatch.evidence import asked, returned
from agentwatch.evidence.shapes import Assertion, Claim, Kind, Limit, Verdict

if TYPE_CHECKING:
    # Each takes a while to load, and few workspaces hold all of them.
    from agentwatch.contracts.handoff import HandoffPacket
    from agentwatch.contracts.return_format import ReturnFormat
    from agentwatch.contracts.validation import Contracted

__all__ = ["MAX_ASSERTIONS", "Assertion", "Claim", "Kind", "Limit", "Verdict", "claims_of"]

MAX_ASSERTIONS: Final = 1_000
"""Assertions of one return that are checked; one more says that there were more."""

_TOO_MANY: Final = "this return claims more than {limit} things: the rest was not checked, so look for yourself"


def claims_of(
    returned_text: str,
    returned_name: str,
    handoff_text: str | None = None,
    handoff_name: str | None = None,
    *,
    stored: bool = False,
) -> tuple[Assertion, ...]:
    """What a return claims, and what its handoff demands of it; nothing where the text is no return.

    Names are paths relative to the workspace. `stored`: both are what a session handed over and back. Never raises.
    """
    opened = _opened(returned_text, returned_name, stored=stored)
    if opened is None:
        return ()
    found: dict[tuple[object, ...], Assertion] = {}
    for assertion in _all(*opened, returned_text, handoff_text, handoff_name):
        found.setdefault((assertion.kind, assertion.path, assertion.lines), assertion)
        if len(found) > MAX_ASSERTIONS:
            last = Assertion(assertion.kind, "", settled=(Verdict.UNVERIFIABLE, _TOO_MANY.format(limit=MAX_ASSERTIONS)))
            return (*list(found.values())[:MAX_ASSERTIONS], last)
    return tuple(found.values())


def _all(
    summary: Return, model: Contracted, text: str, handoff_text: str | None, handoff_name: str | None
) -> Iterator[Assertion]:
    made: list[str] = []
    for assertion in returned.assertions_of(summary, model):
        if assertion.kind.is_made and assertion.settled is None:
            made.append(assertion.path)
        yield assertion
    if handoff_text is None:
        return
    handoff = read_and_open(handoff_text, handoff_name or "handoff.json")
    if handoff is None or handoff.reading.contract is not Contract.HANDOFF_PACKET:
        handoff = read_and_open(handoff_text, handoff_name or "handoff.json", handed_over=True)
    if handoff is not None:
        evidence = None
        if summary.contract is Contract.RETURN_FORMAT:
            evidence = cast("ReturnFormat", model).evidence or ()
        yield from asked.assertions_of(cast("HandoffPacket", handoff.model), evidence, summary.outcome, text, made)


def _opened(text: str, name: str, *, stored: bool) -> tuple[Return, Contracted] | None:
    """A return and its full model; a transcript's text has prose or a fence around it."""
    for embedded in (True,) if stored else (False, True):
        found = read_and_open(text, name, embedded=embedded)
        if found is not None and isinstance(found.reading.document, Return):
            return found.reading.document, found.model
    return None
