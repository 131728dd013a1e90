"""The claims of one return, by itself and against its handoff, before anybody looks at the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from agentwatch.contracts.reading import read_and_open
from agentwatch.contracts.shapes import Contract, Opened, Outcome, Return
from agentwatch.delegation.claims import Verdict
from agentwatch.evidence import asked
from agentwatch.evidence.commands.statements import statements_in, tells_result
from agentwatch.evidence.pointers import Likeness, likeness, pointers
from agentwatch.evidence.shapes import Assertion, ClaimKind
from agentwatch.text import folded

if TYPE_CHECKING:
    # Each takes a while to load, and few workspaces hold all of them.
    from agentwatch.contracts.fields import Model
    from agentwatch.contracts.handoff import HandoffPacket
    from agentwatch.contracts.json_returns import Report, ReturnMeta, SubagentReturn
    from agentwatch.contracts.return_format import ReturnFormat

MAX_ASSERTIONS: Final = 1_000
"""Assertions of one return that are checked; one more says that there were more."""

_TOO_MANY: Final = (
    f"this return claims more than {MAX_ASSERTIONS} things: the rest was not checked, so look for yourself"
)
_NOT_A_PATH: Final = "a command, a result or a reference, not a path: nothing on disk tells whether it is true"
_NO_PATH: Final = "it names no file, so there is nothing to look for"
_NO_POINTER: Final = "not of the form repo://path:first-last, so there is nothing to look for"

_NOTHING: Final = frozenset({"(none)", "none", "(none).", "none.", "n/a", "(n/a)", "-", "[]", "(empty)"})
"""What a bullet says where there are none."""
_REPO: Final = re.compile(r"repo://(?P<path>.*?)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z", re.DOTALL)

_REMOVES: Final = re.compile(r"\b(?:deleted|removed)\b", re.IGNORECASE)
_WAS: Final = re.compile(r"\s(?:was|is|has been)\Z")
_OPENING: Final = " \t`*\"'(:\u2013\u2014-"
_BETWEEN: Final = f"{_OPENING}),;."
_BESIDE: Final = 300
"""Letters beside a word that are looked at."""


class Told(NamedTuple):
    """What one document says that is held against the evidence. Of what is no return, `summary` is None and nothing is
    `stated`; of what is no packet, `demands` is None. `cited` is the evidence that a return cites, None where its
    contract has no section for that."""

    summary: Return | None = None
    stated: tuple[Assertion, ...] = ()
    cited: tuple[str, ...] | None = None
    demands: asked.Demands | None = None


def told_by(opened: Opened | None, *, logged: bool = False) -> Told:
    """What a document says, by its full model: most of that is needed for nothing else, and large. `logged`: also what
    it says of commands and tests."""
    if opened is None:
        return Told()
    document, model = opened.document, opened.model
    if isinstance(document, Return):
        is_cited = document.contract is Contract.RETURN_FORMAT
        cited = tuple(cast("ReturnFormat", model).evidence or ()) if is_cited else None
        return Told(document, tuple(_stated(document, model, logged=logged)), cited)
    is_packet = document.contract is Contract.HANDOFF_PACKET
    return Told(demands=asked.demands_of(cast("HandoffPacket", model)) if is_packet else None)


Tell = Callable[[str, str], Told]
"""The text of a file and its name to what it says."""


def told_in(text: str, name: str) -> Told:
    """What the text of a file says. Never raises."""
    return told_by(read_and_open(text, name))


def claims_of(
    returned_text: str,
    returned_name: str,
    handoff_text: str | None = None,
    handoff_name: str | None = None,
    *,
    stored: bool = False,
    logged: bool = False,
    tell: Tell = told_in,
) -> tuple[Assertion, ...]:
    """What a return claims, and what its handoff demands of it; nothing where the text is no return.

    Names are paths relative to the workspace. `stored`: both are what a session handed over and back. `logged`: what is
    said of commands can be held against a log. `tell` may know already what a file says. Never raises.
    """
    told = Told() if stored else tell(returned_text, returned_name)
    if logged and told.summary is not None:
        told = told_by(read_and_open(returned_text, returned_name), logged=True)
    if told.summary is None:
        # The text of a transcript has prose or a fence around the return.
        told = told_by(read_and_open(returned_text, returned_name, embedded=True), logged=logged)
    if told.summary is None:
        return ()
    demands = _demands(handoff_text, handoff_name or "handoff.json", tell) if handoff_text is not None else None
    assertions: dict[tuple[object, ...], Assertion] = {}
    removed = set(_removed_in(returned_text))
    for one in _all(told, told.summary, returned_text, demands, logged=logged):
        is_removed = one.path in removed and one.kind is not ClaimKind.MUST_CREATE
        assertions.setdefault((one.kind, one.path, one.lines), one._replace(removed=True) if is_removed else one)
        if len(assertions) > MAX_ASSERTIONS:
            return (*islice(assertions.values(), MAX_ASSERTIONS), _unchecked(one.kind, "", _TOO_MANY))
    return tuple(assertions.values())


def _removed_in(text: str) -> Iterator[str]:
    """The words that stand beside one that says that something was removed; among them the paths."""
    lower = folded(text)
    if "deleted" not in lower and "removed" not in lower:
        return
    for verb in _REMOVES.finditer(text):
        before = _WAS.sub("", text[max(verb.start() - _BESIDE, 0) : verb.start()].rstrip(_BETWEEN)).rstrip(_BETWEEN)
        after = text[verb.end() : verb.end() + _BESIDE].lstrip(_OPENING)
        yield from (word.lstrip(_OPENING).rstrip(_BETWEEN) for word in (*before.split()[-1:], *after.split()[:1]))


def _demands(text: str, name: str, tell: Tell) -> asked.Demands | None:
    demands = tell(text, name).demands
    return demands or told_by(read_and_open(text, name, handed_over=True)).demands


def _all(told: Told, summary: Return, text: str, demands: asked.Demands | None, *, logged: bool) -> Iterator[Assertion]:
    yield from told.stated
    if demands is not None:
        made = [one.path for one in told.stated if one.kind.is_made and one.settled is None]
        yield from asked.assertions_of(demands, told.cited, summary.outcome, text, made, logged=logged)


def _stated(summary: Return, model: Model | None, *, logged: bool) -> Iterator[Assertion]:
    """The claims of a return, by its full model, in the order of the document."""
    unfinished = summary.outcome is Outcome.WORKING
    if logged and not unfinished:
        yield from _prose(ClaimKind.SUMMARY, summary.summary)
    if summary.contract is Contract.RETURN_FORMAT:
        yield from _of_return_format(cast("ReturnFormat", model), logged=logged)
    if summary.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META):
        artifacts = cast("SubagentReturn | ReturnMeta", model).artifacts or ()
        yield from _files(ClaimKind.ARTIFACT, [artifact.path or "" for artifact in artifacts], unfinished=unfinished)
        for artifact in artifacts if logged and not unfinished else ():
            yield from _prose(ClaimKind.ARTIFACT, artifact.summary)
    if summary.contract is Contract.RETURN_META:
        meta = cast("ReturnMeta", model)
        yield from _files(ClaimKind.CREATED, meta.files_created, unfinished=unfinished)
        yield from _files(ClaimKind.MODIFIED, meta.files_modified, unfinished=unfinished)
    if summary.contract is Contract.REPORT_CONTRACT:
        yield from _of_report(cast("Report", model))


def _prose(kind: ClaimKind, text: str | None) -> Iterator[Assertion]:
    """What a text says of commands and tests."""
    for one in statements_in(text or "", by_clause=True):
        yield Assertion(kind, one.text, statement=one)


def _of_return_format(document: ReturnFormat, *, logged: bool) -> Iterator[Assertion]:
    if document.attestation is not None:
        yield from _files(ClaimKind.CREATED, document.attestation.files_created)
        yield from _files(ClaimKind.MODIFIED, document.attestation.files_modified)
    for deliverable in document.deliverables or ():
        path = deliverable.path
        if _is_nothing(path):
            continue
        if logged:
            yield from _prose(ClaimKind.DELIVERABLE, deliverable.description)
        like = likeness(path)
        if like is Likeness.NONE:
            yield _unchecked(ClaimKind.DELIVERABLE, path, _NO_PATH)
        else:
            yield Assertion(ClaimKind.DELIVERABLE, path, doubtful=like is Likeness.DOUBTFUL)
    for text in _said(document.evidence):
        said = statements_in(text) if logged else []
        for statement in said:
            yield Assertion(ClaimKind.EVIDENCE, statement.text, statement=statement)
        named = () if any(one.command is not None for one in said) else pointers(text)
        if not named and not said:
            yield _unchecked(ClaimKind.EVIDENCE, text, _NOT_A_PATH)
        for one in named:
            stated = one.stated or bool(said) or (logged and tells_result(text))
            yield Assertion(ClaimKind.EVIDENCE, one.path, one.lines, doubtful=one.doubtful, stated=stated)


def _files(kind: ClaimKind, paths: Iterable[str] | None, *, unfinished: bool = False) -> Iterator[Assertion]:
    return (Assertion(kind, path, unfinished=unfinished) for path in _said(paths))


def _of_report(document: Report) -> Iterator[Assertion]:
    """The pointers of the context map as they were written: the model leaves out those that break the contract."""
    rows = (document.findings or {}).get("context_map")
    for row in rows if isinstance(rows, list) else ():
        if not (isinstance(row, list) and len(row) > 1 and isinstance(row[1], str) and row[1].strip()):
            continue
        pointer = _REPO.match(row[1])
        if pointer is None:
            yield _unchecked(ClaimKind.REFERENCE, row[1], _NO_POINTER)
            continue
        first = pointer["first"]
        lines = (int(first), int(pointer["last"] or first)) if first is not None else None
        yield Assertion(ClaimKind.REFERENCE, pointer["path"], lines)


def _said(bullets: Iterable[str] | None) -> Iterator[str]:
    return (bullet for bullet in bullets or () if not _is_nothing(bullet))


def _is_nothing(bullet: str) -> bool:
    return bullet.strip().casefold() in _NOTHING


def _unchecked(kind: ClaimKind, path: str, why: str) -> Assertion:
    return Assertion(kind, path, settled=(Verdict.UNVERIFIABLE, why))
