"""What stays of a version when its text is dropped, and texts packed small.

An outline holds what the attempts of a task are counted and judged by: whose document it is, what it says of the
state, and one error where it breaks its contract.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, Final

from agentwatch.contracts.shapes import Contract, Document, Finding, Handoff, Outcome, Return, Severity, TodoList
from agentwatch.delegation.observation import Seen

_LONGEST: Final = 8_192
"""Characters of an outline. Ids are never cut: a longer outline is not kept, and the version goes with its text."""

_FINDINGS: Final = '"findings":'
_PROSE: Final = 200
_UNPACKED_LIMIT: Final = 64 * 1024 * 1024

_HANDOFF: Final = ("task_id", "parent_task_id", "attempt", "mode", "session_id", "decision_id", "restores")
_RETURN: Final = (
    *("reported_state", "task_id", "attempt", "session_id", "agent"),
    *("error_code", "mode", "retry_recommended"),
)


@dataclass(frozen=True, slots=True)
class Content:
    """What a version says: the document, what is wrong with it, and whether it broke off."""

    document: Document
    findings: tuple[Finding, ...]
    incomplete: bool


def pack(text: str) -> bytes:
    # A lone surrogate cannot be encoded otherwise; a text that holds one is as old as the file it came from.
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpack(packed: object) -> str | None:
    """The text again, None where it is damaged."""
    if not isinstance(packed, bytes):
        return None
    opened = zlib.decompressobj()
    try:
        data = opened.decompress(packed, _UNPACKED_LIMIT)
        return data.decode("utf-8", "surrogatepass") if opened.eof else None
    except (zlib.error, UnicodeDecodeError):
        return None


def outline_of(seen: Seen) -> str | None:
    """The outline of a version as JSON, None where it would be too long."""
    document = seen.document
    fields: dict[str, object]
    if isinstance(document, Handoff):
        fields = {"kind": "handoff", "objective": _cut(document.objective), **_some(document, _HANDOFF)}
    elif isinstance(document, Return):
        fields = {
            "kind": "return",
            "contract": document.contract.value,
            "outcome": document.outcome.value if document.outcome else None,
            "delegation_path": document.delegation_path or None,
            "summary": _cut(document.summary),
            **_some(document, _RETURN),
        }
    else:
        fields = {"kind": "todos"}
    fields["incomplete"] = seen.incomplete or None
    fields["findings"] = [
        [finding.rule, finding.severity.value, _cut(finding.message), finding.line] for finding in _kept(seen.findings)
    ] or None
    outline = json.dumps({name: value for name, value in fields.items() if value is not None}, separators=(",", ":"))
    return outline if len(outline) <= _LONGEST else None


def content_of(path: str, text: str | None, outline: str | None) -> Content | None:
    """Read a version again: its text by today's contracts, else its outline. None where neither can be read."""
    # In the worker: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document  # noqa: PLC0415

    reading = None if text is None else read_document(text, path)
    if reading is None:
        return _open(outline)
    findings = reading.findings
    if outline is not None and _FINDINGS in outline and (noted := _open(outline)) is not None:
        # What the source found in the bytes cannot be seen in the text any more.
        findings = (*_of_the_source(noted.findings), *findings)
    return Content(reading.document, findings, not reading.complete)


def _kept(findings: tuple[Finding, ...]) -> list[Finding]:
    error = next((finding for finding in findings if finding.severity is Severity.ERROR), None)
    of_the_source = _of_the_source(findings)
    return of_the_source if error is None or error in of_the_source else [*of_the_source, error]


def _of_the_source(findings: tuple[Finding, ...]) -> list[Finding]:
    if not findings:
        return []
    from agentwatch.contracts.rules import RULES  # noqa: PLC0415

    return [finding for finding in findings if finding.rule not in RULES]


def _some(document: Document, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(document, name) for name in names}


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_PROSE]


def _open(outline: str | None) -> Content | None:
    if outline is None:
        return None
    try:
        fields = json.loads(outline)
        findings = tuple(
            Finding(rule, Severity(severity), message, line)
            for rule, severity, message, line in fields.get("findings", ())
        )
        return Content(_document(fields), findings, bool(fields.get("incomplete")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # A damaged file: what cannot be read any more is left out.
        return None


def _document(fields: dict[str, Any]) -> Document:
    kind = fields["kind"]
    if kind == "handoff":
        more: dict[str, Any] = {name: fields.get(name) for name in _HANDOFF}
        return Handoff(objective=fields.get("objective"), **more)
    if kind == "return":
        outcome = fields.get("outcome")
        more = {name: fields.get(name) for name in _RETURN}
        return Return(
            contract=Contract(fields["contract"]),
            outcome=Outcome(outcome) if outcome is not None else None,
            delegation_path=tuple(fields.get("delegation_path", ())),
            summary=fields.get("summary"),
            **more,
        )
    if kind == "todos":
        return TodoList(())
    raise ValueError(kind)
