"""The way in: recognises which contract a text follows, reads it and judges it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.embedded import read_correction, read_inside, read_packet_inside, read_wrapped
from agentwatch.contracts.json_documents import Opened, read_json, read_json_by_name
from agentwatch.contracts.markdown_documents import read_markdown, read_markdown_by_name, read_unfenced_packet
from agentwatch.contracts.shapes import Contract
from agentwatch.contracts.signatures import contract_by_name

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Reading
    from agentwatch.contracts.validation import Contracted

_LINES_OF_JSON: Final = re.compile(r"\.(?:jsonl|ndjson)\Z", re.IGNORECASE | re.ASCII)
_JSON_FILE: Final = re.compile(r"\.json\Z", re.IGNORECASE | re.ASCII)
_MORE_BEHIND: Final = re.compile(r"^(?:```|~~~|\{)", re.MULTILINE)
_LOOKED_AT: Final = 200


def read_document(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Reading | None:
    """Recognise a text and read it; None where it follows none of the contracts.

    `name` is the path relative to the workspace, with `/`: some files are known by it. `embedded` is for the text that
    a subagent returned in a transcript, where prose or a fence may stand around the contract: its last return counts.
    `handed_over` is for one that a subagent was asked: its first packet counts, and nothing else. Never raises.
    """
    found = read_and_open(text, name, embedded=embedded, handed_over=handed_over)
    return found.reading if found is not None else None


def open_document(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Contracted | None:
    """The full typed model of a text that `read_document` recognises, None for any other.

    A `HandoffPacket`, `ReturnFormat`, `SubagentReturn`, `ReturnMeta` or `Report`; a checklist in a file of its own is
    a `HandoffPacket` that has only `todos`. What broke a rule is left out of the model. Never raises.
    """
    found = read_and_open(text, name, embedded=embedded, handed_over=handed_over)
    return found.model if found is not None else None


def read_and_open(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Opened | None:
    """Both at once: the contract of the reading says which model it is."""
    text = _writable(text.removeprefix("\ufeff"))
    if handed_over:
        return read_packet_inside(text, name)
    if embedded:
        return read_inside(text, name)
    head = text[:_LOOKED_AT].lstrip()[:1] or text.lstrip()[:1]
    if head == "{" and _LINES_OF_JSON.search(name):
        return None
    found: Opened | None = None
    is_json = _JSON_FILE.search(name) is not None
    if head == "{":
        found = (None if is_json else read_unfenced_packet(text, name)) or read_json(text, name)
    elif not is_json:
        found = read_markdown(text, name, head)
        if found is not None and found.reading.contract is Contract.RETURN_FORMAT and _MORE_BEHIND.search(text):
            found = read_correction(text, name) or found
    contract = contract_by_name(name) if found is None else None
    if contract is None:
        return found
    if is_json:
        return read_json_by_name(text, name, contract)
    return read_wrapped(text, name, contract) or read_markdown_by_name(text, name, contract)


def _writable(text: str) -> str:
    """The text without halves of surrogate pairs, which no encoding can write."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
