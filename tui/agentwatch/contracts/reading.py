"""The way in: recognises which contract a text follows, reads it and judges it.

A contract in JSON is one module with `recognises`, `is_own_file` and `judge`; to add one, add it to `_JSON`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts import handoff, report, return_format, return_meta, subagent_return
from agentwatch.contracts.findings import Judgement, shown
from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.json_source import REPLACEMENT, JsonSource
from agentwatch.contracts.markdown_source import Fence, after_front_matter, fences, lines_of
from agentwatch.contracts.return_sections import find_sections, may_be_return, unframed
from agentwatch.contracts.shapes import Contract, Handoff, Reading, Return, TodoList
from agentwatch.contracts.todos import first_item, read_checklist

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Document
    from agentwatch.contracts.validation import Contracted

_LINES_OF_JSON: Final = re.compile(r"\.(?:jsonl|ndjson)\Z", re.IGNORECASE)
_JSON_FILE: Final = re.compile(r"\.json\Z", re.IGNORECASE)
_TODOS_FILE: Final = re.compile(r"(?:^|/)(?:[^/]+\.)?todos\.md\Z", re.IGNORECASE)
_SCHEMA_FILE: Final = re.compile(r"schema[^/]*\.json\Z", re.IGNORECASE)
_FENCED: Final = ("", "json", "jsonc", "json5")
_GAP: Final = 200
"""Characters of white space that may stand between a title and the packet."""
_ATTEMPTS: Final = 20
"""Places in a prose text where a JSON object may begin that are tried."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A recognised document: what `read_document` and `open_document` give."""

    reading: Reading
    model: Contracted


def read_document(text: str, name: str, *, embedded: bool = False) -> Reading | None:
    """Recognise a text and read it; None where it follows none of the contracts.

    `name` is the path relative to the workspace, with `/`: some files are known by it. `embedded` is for the text that
    a subagent returned in a transcript, where prose or a fence may stand around the contract. Never raises.
    """
    found = _read(text, name, embedded=embedded)
    return found.reading if found is not None else None


def open_document(text: str, name: str, *, embedded: bool = False) -> Contracted | None:
    """The full typed model of a text that `read_document` recognises, None for any other.

    A `HandoffPacket`, `ReturnFormat`, `SubagentReturn`, `ReturnMeta` or `Report`; a checklist in a file of its own is
    a `HandoffPacket` that has only `todos`. What broke a rule is left out of the model. Never raises.
    """
    found = _read(text, name, embedded=embedded)
    return found.model if found is not None else None


def _read(text: str, name: str, *, embedded: bool) -> _Read | None:
    text = _decodable(text.removeprefix("\ufeff"))
    return _inside(text, name) if embedded else _whole(text, name)


def _decodable(text: str) -> str:
    """The text without halves of surrogate pairs, which no encoding can write."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _whole(text: str, name: str) -> _Read | None:
    """The document that the whole text is."""
    head = text[:200].lstrip()[:1] or text.lstrip()[:1]
    if head == "{":
        return None if _LINES_OF_JSON.search(name) else _json(text, name)
    if _JSON_FILE.search(name):
        return _unreadable_json(text, name)
    return _markdown(text, name, head)


def _json(text: str, name: str, first_line: int = 1) -> _Read | None:
    if _is_foreign(text, name):
        return None
    source = JsonSource(text, first_line)
    top = source.value
    if not isinstance(top, dict):
        return _unreadable_json(text, name)
    contract = _contract_of(top, name)
    if contract is None and not source.whole:
        contract = _contract_by_name(name)
    if contract is None:
        return None
    if contract is Contract.HANDOFF_PACKET and source.text_behind is not None and not _JSON_FILE.search(name):
        return _unfenced(text, source.text_behind)
    return _judged(source, contract, name)


def _is_foreign(text: str, name: str) -> bool:
    """Whether a sound JSON text is none of ours. The plain parser is several times faster than one that checks."""
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(top, dict) and _contract_of(top, name) is None


def _judged(source: JsonSource, contract: Contract, name: str) -> _Read:
    judgement = Judgement()
    source.judge(judgement)
    # Of a part nothing can be said of what is missing: it is read, and only the break is a finding.
    model, document = _judge(contract, source.value, judgement if source.whole else Judgement(), name)
    findings = judgement.findings(source.line_of) if judgement else ()
    return _Read(Reading(document, findings, source.complete), model)


def _judge(contract: Contract, top: dict[str, Any], judgement: Judgement, name: str) -> tuple[Contracted, Document]:
    if contract is Contract.RETURN_META:
        return return_meta.judge(top, judgement, name)
    if contract is Contract.SUBAGENT_RETURN:
        return subagent_return.judge(top, judgement)
    if contract is Contract.REPORT_CONTRACT:
        return report.judge(top, judgement)
    return handoff.judge(top, judgement)


def _contract_of(top: dict[str, Any], name: str) -> Contract | None:
    """The contract whose signature a JSON object has."""
    if "$schema" in top or isinstance(top.get("properties"), dict) or _SCHEMA_FILE.search(name):
        return None
    if isinstance(top.get("objectives"), list) and not return_meta.is_own_file(name):
        return None
    if "report_metadata" in top:
        return Contract.REPORT_CONTRACT
    if return_meta.recognises(top, name):
        return Contract.RETURN_META
    if subagent_return.recognises(top, name):
        return Contract.SUBAGENT_RETURN
    if handoff.recognises(top, name):
        return Contract.HANDOFF_PACKET
    return Contract.REPORT_CONTRACT if report.recognises(top, name) else None


def _contract_by_name(name: str) -> Contract | None:
    if return_meta.is_own_file(name):
        return Contract.RETURN_META
    if subagent_return.is_own_file(name):
        return Contract.SUBAGENT_RETURN
    if report.is_own_file(name):
        return Contract.REPORT_CONTRACT
    return Contract.HANDOFF_PACKET if handoff.is_own_file(name) else None


def _unreadable_json(text: str, name: str) -> _Read | None:
    """A file that must be one of ours by its name, and holds no JSON object."""
    contract = _contract_by_name(name)
    if contract is None:
        return None
    source = JsonSource(text)
    judgement = Judgement()
    source.judge(judgement)
    if source.whole:
        judgement.add("DOC008", (), value=shown(source.value))
    model, document = _judge(contract, {}, Judgement(), name)
    return _Read(Reading(document, judgement.findings(source.line_of), source.complete), model)


def _markdown(text: str, name: str, head: str) -> _Read | None:
    # Nearly every file of a workspace is none of ours: each step first asks the cheapest question that says so.
    if ("```" in text or "~~~" in text) and "{" in text:
        packet = _leading_packet(lines_of(text), name) if _may_lead_with_packet(text, head) else None
        if packet is not None:
            return packet
    found = _return(lines_of(text), text) if may_be_return(text) else None
    if found is None and _TODOS_FILE.search(name):
        return _todos(lines_of(text), text)
    return found


def _may_lead_with_packet(text: str, head: str) -> bool:
    """Whether the first block can be a fence: the text begins with one, with front matter or with a title."""
    if head == "#":
        behind = text.find("\n") + 1
        return text[behind : behind + _GAP].lstrip()[:1] in ("`", "~", "")
    return head in ("`", "~", "-")


def _return(lines: list[str], text: str, *, embedded: bool = False, first_line: int = 1) -> _Read | None:
    if embedded:
        lines = unframed(lines)
    sections = find_sections(lines, embedded=embedded)
    if sections is None:
        return None
    judgement = Judgement()
    _judge_characters(lines, text, judgement, first_line)
    judged = return_format.judge(lines, sections, judgement, embedded=embedded, first_line=first_line)
    findings = judgement.findings(judged.line_of) if judgement else ()
    return _Read(Reading(judged.document, findings, judged.complete), judged.model)


def _judge_characters(lines: list[str], text: str, judgement: Judgement, first_line: int = 1) -> None:
    if REPLACEMENT in text:
        index = next((index for index, line in enumerate(lines) if REPLACEMENT in line), 0)
        judgement.add_at("DOC003", first_line + index)


def _todos(lines: list[str], text: str) -> _Read | None:
    start = after_front_matter(lines)
    if first_item(lines, start) is None:
        return None
    judgement = Judgement()
    _judge_characters(lines, text, judgement)
    items = read_checklist(lines, start, judgement, alone=True)
    findings = judgement.findings(lambda _: None) if judgement else ()
    return _Read(Reading(TodoList(items), findings), HandoffPacket(todos=items))


def _leading_packet(lines: list[str], name: str) -> _Read | None:
    """The packet of a text whose first block, behind front matter and one title, is a fenced JSON object."""
    index = after_front_matter(lines)
    title_seen = False
    while index < len(lines):
        line = lines[index].strip()
        if line.startswith("# ") and not title_seen:
            title_seen = True
        elif line:
            break
        index += 1
    if index >= len(lines) or lines[index].lstrip()[:3] not in ("```", "~~~"):
        return None
    found = fences(lines, index, limit=1)
    return _fenced_packet(lines, found[0], name) if found and found[0].first == index + 1 else None


def _fenced_packet(lines: list[str], fence: Fence, name: str) -> _Read | None:
    if fence.language not in _FENCED:
        return None
    text = "\n".join(lines[fence.first : fence.behind])
    if not text.lstrip().startswith("{"):
        return None
    source = JsonSource(text, fence.first + 1)
    top = source.value
    if not isinstance(top, dict) or _contract_of(top, name) is not Contract.HANDOFF_PACKET:
        return None
    return _with_todos(source, lines, fence.behind + 1, closed=fence.closed)


def _unfenced(text: str, behind: int) -> _Read:
    """A packet that begins a Markdown text without a fence, and the text that follows it."""
    lines = lines_of(text)
    source = JsonSource(text[:behind])
    judgement = Judgement()
    judgement.add_at("HOF060", source.line_of(()))
    return _with_todos(source, lines, text.count("\n", 0, behind), closed=True, judgement=judgement)


def _with_todos(
    source: JsonSource, lines: list[str], start: int, *, closed: bool, judgement: Judgement | None = None
) -> _Read:
    judgement = Judgement() if judgement is None else judgement
    source.judge(judgement)
    complete = source.complete and closed
    if source.complete and not closed:
        judgement.add_at("DOC002", len(lines))
    model, document = handoff.judge(source.value, judgement if source.whole else Judgement())
    item = first_item(lines, start)
    if item is not None:
        todos = read_checklist(lines, item, judgement, alone=False)
        model = model.model_copy(update={"todos": todos})
        document = replace(document, todos=todos)
    findings = judgement.findings(source.line_of) if judgement else ()
    return _Read(Reading(document, findings, complete), model)


def _inside(text: str, name: str) -> _Read | None:
    """The contract inside the text that a subagent returned: open, in a fence, or as an object among prose."""
    if text.lstrip()[:1] == "{":
        found = _object_among_prose(text, name)
        if found is not None:
            return found
    lines = lines_of(text)
    found = _leading_packet(lines, name) or _return(lines, text, embedded=True)
    if found is not None:
        return found
    for fence in fences(lines):
        packet = _fenced_packet(lines, fence, name)
        if packet is not None:
            return packet
        inner = lines[fence.first : fence.behind]
        found = _fenced(inner, name, fence.first + 1)
        if found is not None:
            return found
    return _object_among_prose("\n".join(lines), name)


def _fenced(inner: list[str], name: str, first_line: int) -> _Read | None:
    if not any(inner):
        return None
    text = "\n".join(inner)
    if text.lstrip().startswith("{"):
        return _json(text, name, first_line)
    return _return(inner, text, embedded=True, first_line=first_line)


def _object_among_prose(text: str, name: str) -> _Read | None:
    position = -1
    for _ in range(_ATTEMPTS):
        position = text.find("{", position + 1)
        if position < 0:
            return None
        first_line = 1 + text.count("\n", 0, position)
        source = JsonSource(text[position:], first_line)
        if source.text_behind is not None:
            source = JsonSource(text[position : position + source.text_behind], first_line)
        if isinstance(source.value, dict) and source.value:
            contract = _contract_of(source.value, name)
            if contract is not None:
                return _judged(source, contract, name)
    return None


__all__ = ["Handoff", "Return", "open_document", "read_document"]
