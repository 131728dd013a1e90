"""The way in: recognises which contract a text follows, reads it and judges it.

In a text that was handed over or back the contract may stand open, in a fence, or as an object among prose.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.contracts.documents import (
    judged,
    read_fenced_packet,
    read_json,
    read_json_by_name,
    read_leading_packet,
    read_markdown,
    read_markdown_by_name,
    read_return,
    read_unfenced_packet,
)
from agentwatch.contracts.findings import Judgement
from agentwatch.contracts.json_source import JsonSource
from agentwatch.contracts.markdown_source import Fence, fences, lines_of, uncommented
from agentwatch.contracts.return_sections import open_returns, tail_of, unframed
from agentwatch.contracts.shapes import Contract, Handoff, Opened, Outcome, Return
from agentwatch.contracts.signatures import (
    contract_by_name,
    contract_of,
    is_json,
    leading_contract_of,
    may_follow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentwatch.contracts.shapes import Reading

_ATTEMPTS: Final = 20
"""Places in a text where an object seems to begin, and none can be read, that are tried."""
_OBJECTS: Final = 5_000
"""Objects of a text that are looked at."""

_DECODER: Final = json.JSONDecoder()
_GOES_ON: Final = re.compile(r"[ \t.`]*[^\s.`]")
_OBJECT: Final = re.compile(r'\{(?=\s*")')
_LINES_OF_JSON: Final = re.compile(r"\.(?:jsonl|ndjson)\Z", re.IGNORECASE | re.ASCII)
_MORE_BEHIND: Final = ("\n```", "\n~~~", "\n{")
_LOOKED_AT: Final = 200


def read_document(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Reading | None:
    """Recognise a text and read it; None where it follows none of the contracts.

    `name` is the path relative to the workspace, with `/`: some files are known by it. `embedded` is for the text that
    a subagent returned in a transcript, where prose or a fence may stand around the contract: its last return counts.
    `handed_over` is for one that a subagent was asked: its first packet counts, and nothing else. Never raises.
    """
    found = read_and_open(text, name, embedded=embedded, handed_over=handed_over)
    return found.reading if found is not None else None


def read_and_open(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Opened | None:
    """The same with the full typed model; the contract of the reading says which one it is.

    A `HandoffPacket`, `ReturnFormat`, `SubagentReturn`, `ReturnMeta` or `Report`; a checklist in a file of its own is
    a `HandoffPacket` that has only `todos`. What broke a rule is left out of the model.
    """
    text = _writable(text.removeprefix("\ufeff"))
    if handed_over:
        return _packet(lines_of(text), name)
    if embedded:
        return _read_inside(text, name)
    head = text[:_LOOKED_AT].lstrip()[:1] or text.lstrip()[:1]
    if head == "{" and _LINES_OF_JSON.search(name):
        return None
    found: Opened | None = None
    called_json = is_json(name)
    if head == "{":
        found = (None if called_json else read_unfenced_packet(text, name)) or read_json(text, name)
    elif not called_json:
        found = read_markdown(text, name, head)
        if found is not None and found.reading.contract is Contract.RETURN_FORMAT and _holds_more(text):
            found = _read_correction(text, name) or found
    contract = contract_by_name(name) if found is None else None
    if contract is None:
        return found
    if called_json:
        return read_json_by_name(text, name, contract)
    return _read_wrapped(text, name, contract) or read_markdown_by_name(text, name, contract)


def _holds_more(text: str) -> bool:
    """Whether a fence or an object stands at the margin of a text that begins with a return."""
    return any(mark in text for mark in _MORE_BEHIND)


def _writable(text: str) -> str:
    """The text without halves of surrogate pairs, which no encoding can write."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _Placed(NamedTuple):
    """A return in a text: its lines are `first` up to, not including, `behind`.

    `tail` is where the last section of an open one begins, behind which another may stand; None where it is not open.
    """

    first: int
    behind: int
    opened: Opened
    tail: int | None = None

    def is_corrected_by(self, made: Opened) -> bool:
        """Whether a return that stands in its tail is another: whole, with another state, and no success."""
        said = made.reading.document
        own = self.opened.reading.document
        if not (made.reading.complete and isinstance(said, Return) and isinstance(own, Return)):
            return False
        # A success may be what a good return would have been: nothing gets better by it.
        return said.outcome not in (None, Outcome.COMPLETED, own.outcome)


def _read_inside(text: str, name: str) -> Opened | None:
    """Read what a text hands back: its last return, else its first packet; None where there is neither.

    Templates and drafts stand before the return that is meant, corrections behind it. Lines are those of the text.
    """
    lines = lines_of(text)
    found = _returns(lines, name)
    if not found:
        return _packet(lines, name)
    meant = found[-1]
    if all(each.opened.reading.document == meant.opened.reading.document for each in found):
        return meant.opened
    return _noted(meant.opened, "DOC011", meant.first + 1, count=len(found))


def _noted(made: Opened, rule: str, line: int, **facts: object) -> Opened:
    """The same with one more finding, in front of the others."""
    judgement = Judgement()
    judgement.add_at(rule, line, **facts)
    findings = (*judgement.findings(), *made.reading.findings)
    return made._replace(reading=replace(made.reading, findings=findings))


def _read_wrapped(text: str, name: str, contract: Contract) -> Opened | None:
    """Read a Markdown file whose name says its contract and that holds it in a fence, a wrapper or behind other words.

    None where it holds none.
    """
    wants_return = contract is Contract.RETURN_FORMAT
    # In a file of this name a packet needs as few keys as one in a JSON file of this name.
    found = _read_inside(text, name) if wants_return else _packet(lines_of(text), f"{name[:-2]}json")
    if found is None or isinstance(found.reading.document, Return) is not wants_return:
        return None
    return _noted(found, "DOC014", 1)


def _read_correction(text: str, name: str) -> Opened | None:
    """Read the last return of a file that begins with an open one, where it stands in a fence or an object behind it.

    None where none does.
    """
    found = _returns(lines_of(text), name)
    corrected = found and found[0].tail is not None and found[-1].tail is None
    return _read_wrapped(text, name, Contract.RETURN_FORMAT) if corrected else None


def _returns(lines: list[str], name: str) -> list[_Placed]:
    """The returns in a text, in their order.

    What stands inside one, such as quoted output, is no other; but at the left margin of its tail one that tells
    another state, and no success, corrects it (`is_corrected_by`).
    """
    shown = unframed(uncommented(lines))
    open_ones = _in_sections(shown)
    found = list(open_ones)
    rest = list(lines)
    for fence in fences(lines):
        around = _around(open_ones, fence.first)
        if around is not None:
            rest[fence.first : fence.behind] = [""] * (fence.behind - fence.first)
            if around.tail is None or fence.first <= around.tail or shown[fence.first - 1][:1] not in ("`", "~"):
                continue
        made = _read_fence(lines, fence, name)
        if made is not None and (
            isinstance(made.reading.document, Return) if around is None else around.is_corrected_by(made)
        ):
            found.append(_Placed(fence.first, fence.behind, made))
    for each in found:
        behind = each.behind if each.tail is None else each.tail
        rest[each.first : behind] = [""] * (behind - each.first)
    for line, made in _objects("\n".join(rest), name):
        around = _around(open_ones, line)
        counts = isinstance(made.reading.document, Return) if around is None else shown[line][:1] == "{"
        if counts and (around is None or around.is_corrected_by(made)):
            found.append(_Placed(line, line + 1, made))
    return sorted(found, key=lambda each: each.first)


def _around(found: list[_Placed], line: int) -> _Placed | None:
    return next((each for each in found if each.first <= line < each.behind), None)


def _in_sections(lines: list[str]) -> list[_Placed]:
    """The returns that are neither fenced nor JSON: each goes on until the next one, or the end."""
    starts = open_returns(lines)
    found: list[_Placed] = []
    for index, first in enumerate(starts):
        behind = starts[index + 1] if index + 1 < len(starts) else len(lines)
        made = read_return(lines[first:behind], embedded=True, first_line=first + 1)
        if made is not None:
            found.append(_Placed(first, behind, made, tail_of(lines, first, behind)))
    return found


def _read_fence(lines: list[str], fence: Fence, name: str) -> Opened | None:
    inner = lines[fence.first : fence.behind]
    text = "\n".join(inner)
    if text.lstrip()[:1] == "{":
        return read_json(text, name, fence.first + 1, embedded=True)
    return read_return(inner, embedded=True, first_line=fence.first + 1) if text.strip() else None


def _packet(lines: list[str], name: str) -> Opened | None:
    """Read what a text hands over: its first packet, whatever return it shows as an example; None where is none."""
    text = "\n".join(lines)
    bare = text.lstrip()[:1] == "{"
    found = _leading_object(text, name) if bare else read_leading_packet(lines, name, embedded=True)
    if found is not None:
        return found
    for fence in fences(lines):
        found = read_fenced_packet(lines, fence, name)
        if found is not None:
            return found
    return next((made for _, made in _objects(text, name) if isinstance(made.reading.document, Handoff)), None)


def _leading_object(text: str, name: str) -> Opened | None:
    start = text.index("{")
    behind, part = _object_at(text, start)
    contract = leading_contract_of(part, name) if isinstance(part, dict) else None
    if contract is None:
        return None
    made = judged(JsonSource(text[start:behind], 1 + text.count("\n", 0, start)), contract, name)
    return made if isinstance(made.reading.document, Handoff) else None


def _objects(text: str, name: str) -> Iterator[tuple[int, Opened]]:
    """Each object among prose that is one of ours, with the index of its first line."""
    if not may_follow(text, name):
        return
    position = failures = line = counted = 0
    for _ in range(_OBJECTS):
        match = _OBJECT.search(text, position)
        if match is None or failures == _ATTEMPTS:
            return
        start = match.start()
        behind, part = _object_at(text, start)
        # Words that go on behind an object on its line quote it.
        quoted = behind is not None and _GOES_ON.match(text, behind) is not None
        contract = contract_of(part, name, embedded=not quoted) if isinstance(part, dict) else None
        if contract is not None:
            line, counted = line + text.count("\n", counted, start), start
            yield line, judged(JsonSource(text[start:behind], 1 + line), contract, name)
        failures += behind is None
        # Behind one of ours that breaks off, the next one begins on a line of its own: its parts are not looked at.
        position = behind or (start + 1 if contract is None else text.find("\n{", start))
        if position < 0:
            return


def _object_at(text: str, position: int) -> tuple[int | None, object]:
    """(offset behind it, the object that begins here); (None, what can be read of it) where it breaks off."""
    try:
        value, behind = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, JsonSource(text[position:]).value
    return behind, value
