"""What a return claims by itself: files made, evidence used, lines referred to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast

from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.evidence.pointers import Likeness, likeness, pointers
from agentwatch.evidence.shapes import Assertion, Kind, Verdict

if TYPE_CHECKING:
    # Each takes a while to load, and few workspaces hold all of them.
    from agentwatch.contracts.report import Report
    from agentwatch.contracts.return_format import ReturnFormat
    from agentwatch.contracts.return_meta import ReturnMeta
    from agentwatch.contracts.subagent_return import SubagentReturn
    from agentwatch.contracts.validation import Contracted

NOT_A_PATH: Final = "a command, a result or a reference, not a path: nothing on disk tells whether it is true"
NO_PATH: Final = "it names no file, so there is nothing to look for"
NO_POINTER: Final = "not of the form repo://path:first-last, so there is nothing to look for"

_NOTHING: Final = frozenset({"(none)", "none", "(none).", "none.", "n/a", "(n/a)", "-", "[]", "(empty)"})
_REPO: Final = re.compile(r"repo://(?P<path>.*?)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z", re.DOTALL)


def assertions_of(summary: Return, model: Contracted) -> Iterator[Assertion]:
    """The claims of a return, by its full model, in the order of the document."""
    unfinished = summary.outcome is Outcome.WORKING
    match summary.contract:
        case Contract.RETURN_FORMAT:
            yield from _of_return_format(cast("ReturnFormat", model))
        case Contract.SUBAGENT_RETURN:
            yield from _of_artifacts(cast("SubagentReturn", model), unfinished=unfinished)
        case Contract.RETURN_META:
            meta = cast("ReturnMeta", model)
            yield from _of_artifacts(meta, unfinished=unfinished)
            yield from _files(Kind.CREATED, meta.files_created, unfinished=unfinished)
            yield from _files(Kind.MODIFIED, meta.files_modified, unfinished=unfinished)
        case Contract.REPORT_CONTRACT:
            yield from _of_report(cast("Report", model))


def says_nothing(text: str) -> bool:
    """The bullet only says that there are none."""
    return text.strip().casefold() in _NOTHING


def _of_return_format(document: ReturnFormat) -> Iterator[Assertion]:
    attestation = document.attestation
    if attestation is not None:
        yield from _files(Kind.CREATED, attestation.files_created)
        yield from _files(Kind.MODIFIED, attestation.files_modified)
    for deliverable in document.deliverables or ():
        if says_nothing(deliverable.path):
            continue
        like = likeness(deliverable.path)
        if like is Likeness.NONE:
            yield Assertion(Kind.DELIVERABLE, deliverable.path, settled=(Verdict.UNVERIFIABLE, NO_PATH))
        else:
            yield Assertion(Kind.DELIVERABLE, deliverable.path, doubtful=like is Likeness.DOUBTFUL)
    for text in document.evidence or ():
        if says_nothing(text):
            continue
        found = pointers(text)
        if not found:
            yield Assertion(Kind.EVIDENCE, text, settled=(Verdict.UNVERIFIABLE, NOT_A_PATH))
        for pointer in found:
            yield Assertion(
                Kind.EVIDENCE, pointer.path, pointer.lines, doubtful=pointer.doubtful, stated=pointer.stated
            )


def _of_artifacts(document: SubagentReturn | ReturnMeta, *, unfinished: bool) -> Iterator[Assertion]:
    for artifact in document.artifacts or ():
        if artifact.path is None or not artifact.path.strip():
            yield Assertion(Kind.ARTIFACT, "", settled=(Verdict.UNVERIFIABLE, NO_PATH))
        elif not says_nothing(artifact.path):
            yield Assertion(Kind.ARTIFACT, artifact.path, unfinished=unfinished)


def _files(kind: Kind, paths: Iterable[str] | None, *, unfinished: bool = False) -> Iterator[Assertion]:
    for path in paths or ():
        if not says_nothing(path):
            yield Assertion(kind, path, unfinished=unfinished)


def _of_report(document: Report) -> Iterator[Assertion]:
    """The pointers of the context map as they were written: the model leaves out those that break the contract."""
    rows = (document.findings or {}).get("context_map")
    for row in rows if isinstance(rows, list) else ():
        if not (isinstance(row, list) and len(row) > 1 and isinstance(row[1], str) and row[1].strip()):
            continue
        found = _REPO.match(row[1])
        if found is None:
            yield Assertion(Kind.REFERENCE, row[1], settled=(Verdict.UNVERIFIABLE, NO_POINTER))
            continue
        first = found["first"]
        lines = (int(first), int(found["last"] or first)) if first is not None else None
        yield Assertion(Kind.REFERENCE, found["path"], lines)
