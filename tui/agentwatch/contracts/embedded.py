"""Finds the contract inside the text that a subagent returned: open, in a fence, or as an object among prose."""

from __future__ import annotations

import json
from typing import Final

from agentwatch.contracts.json_documents import Opened, opened, read_json
from agentwatch.contracts.json_source import JsonSource
from agentwatch.contracts.markdown_documents import read_fenced_packet, read_leading_packet, read_return
from agentwatch.contracts.markdown_source import Fence, fences, lines_of
from agentwatch.contracts.signatures import contract_of

_ATTEMPTS: Final = 20
"""Places in a text where a JSON object may begin that are tried."""

_DECODER: Final = json.JSONDecoder()


def read_inside(text: str, name: str) -> Opened | None:
    """Read the first contract in a text; None where there is none. Lines are those of the whole text."""
    if text.lstrip()[:1] == "{":
        found = _read_object(text, name)
        if found is not None:
            return found
    lines = lines_of(text)
    found = read_leading_packet(lines, name) or read_return(lines, embedded=True)
    if found is not None:
        return found
    for fence in fences(lines):
        found = read_fenced_packet(lines, fence, name) or _read_fence(lines, fence, name)
        if found is not None:
            return found
    return _read_object("\n".join(lines), name)


def _read_fence(lines: list[str], fence: Fence, name: str) -> Opened | None:
    inner = lines[fence.first : fence.behind]
    text = "\n".join(inner)
    if text.lstrip()[:1] == "{":
        return read_json(text, name, fence.first + 1)
    return read_return(inner, embedded=True, first_line=fence.first + 1) if text.strip() else None


def _read_object(text: str, name: str) -> Opened | None:
    """Read the first object among prose that is one of ours."""
    position = 0
    for _ in range(_ATTEMPTS):
        position = text.find("{", position)
        if position < 0:
            return None
        behind, part = _object_at(text, position)
        contract = contract_of(part, name) if isinstance(part, dict) else None
        if contract is not None:
            source = JsonSource(text[position:behind], 1 + text.count("\n", 0, position))
            return opened(source, contract, name)
        position = max(behind or 0, position + 1)
    return None


def _object_at(text: str, position: int) -> tuple[int | None, object]:
    """(offset behind it, the object that begins here); (None, what can be read of it) where it breaks off."""
    try:
        value, behind = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, JsonSource(text[position:]).value
    return behind, value
